"""What a person is told while nothing else is: what is waited for, and for how long."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from runtime.display import escapes, stream
from runtime.display.plain import DEADLINE
from runtime.display.text import cut, duration, one_line

WIDE = 78
"""Columns of a line that is written over, where nobody knows how wide the terminal is."""


class Waits:
    """Says what is waited for: on a terminal that can move its cursor in one line, which goes as soon as something else is written; elsewhere in a line every ten seconds."""

    def __init__(
        self,
        talk: stream.Talk,
        what: Callable[[], tuple[str, float] | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``what`` is waited for, and since when by the clock; None where nothing is to be told."""
        self._talk, self._what, self._clock = talk, what, clock
        self._told_at = clock()
        self._stands = False
        """Whether the last line on the terminal is one of these."""
        self._timer: asyncio.TimerHandle | None = None

    def begins(self) -> None:
        """From here on, until it ``ends``. Nothing happens where no loop of events runs."""
        if self._timer is None:
            try:
                self._schedule(asyncio.get_running_loop())
            except RuntimeError:
                return

    def ends(self) -> None:
        """Nothing is told any more. May be called twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.gives_way()

    def gives_way(self) -> None:
        """Something else is written now."""
        if self._stands:
            self._stands = False
            self._talk.write(escapes.ERASED)

    def tick(self) -> None:
        """A second has passed."""
        found = self._what()
        if found is None:
            self.gives_way()
            return
        text = f"..  {one_line(found[0])}  {duration(self._clock() - found[1])}"
        if stream.kind_for(self._talk) == "tree":
            self._stands = True
            self._talk.write(f"{escapes.ERASED}{cut(text, self._wide())}")
            self._talk.flush()
        elif self._clock() - max(self._told_at, found[1]) >= DEADLINE:
            self._told_at = self._clock()
            self._talk.line(text)

    def _wide(self) -> int:
        try:
            return max(os.get_terminal_size(self._talk.fileno()).columns - 1, 1)
        except (OSError, ValueError):
            return WIDE

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        def fire() -> None:
            self.tick()
            self._timer = loop.call_later(1.0, fire)

        self._timer = loop.call_later(1.0, fire)
