"""Time limit of a query: it is interrupted after that, and abandoned if it does not stop."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

GRACE = 2.0
"""Seconds for DuckDB to stop an interrupted statement; inside one function call it does not react."""


class Clock:
    """Measures the time in which a database works, and interrupts it at the limit. Printing its rows does not count."""

    def __init__(self, database: duckdb.DuckDBPyConnection, seconds: float, stuck: Callable[[], None] | None) -> None:
        """``stuck`` is called, in another thread, if the database continues after the interrupt."""
        self.seconds = seconds
        self.over = False
        """True if the time is used up."""
        self._database = database
        self._stuck = stuck
        self._left = seconds

    def check(self) -> None:
        """Raise TimeoutError once the time is used up; for work between two statements."""
        if self.over:
            raise TimeoutError

    @contextlib.contextmanager
    def at_work(self) -> Generator[None]:
        """Count the time of the block. Raises TimeoutError if it exceeds the limit, whatever the block itself raised."""
        self.check()
        ended = threading.Event()
        began = time.monotonic()
        watch = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watch.start()
        try:
            yield
        except Exception:
            self.check()
            raise
        finally:
            ended.set()
            watch.join()
            self._left -= time.monotonic() - began
        self.check()

    def _watch(self, ended: threading.Event) -> None:
        if ended.wait(max(self._left, 0.0)):
            return
        self.over = True
        self._database.interrupt()
        if not ended.wait(GRACE) and self._stuck is not None:
            self._stuck()
