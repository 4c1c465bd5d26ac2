"""How long a query may compute: what takes longer is interrupted, and what cannot be interrupted is given up."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

GRACE = 2.0
"""Seconds in which DuckDB ends a statement that is interrupted; inside one function call it does not look."""


class Clock:
    """Counts the time in which a database is at work, and interrupts it when that is used up. Time in which its rows are printed does not count."""

    def __init__(self, database: duckdb.DuckDBPyConnection, seconds: float, stuck: Callable[[], None] | None) -> None:
        """``stuck`` is called, in another thread, where the database continues all the same."""
        self.seconds = seconds
        self.over = False
        """Whether the time is used up."""
        self._database = database
        self._stuck = stuck
        self._left = seconds

    def check(self) -> None:
        """Raise TimeoutError once the time is used up: for work between two statements."""
        if self.over:
            raise TimeoutError

    @contextlib.contextmanager
    def at_work(self) -> Generator[None]:
        """The time of the block counts. Raises TimeoutError where it was not enough, whatever the block itself raised then."""
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
