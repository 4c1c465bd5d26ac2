"""Shows during pauses what is waited for, and how long."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from runtime.display import escapes, stream
from runtime.display.plain import DEADLINE
from runtime.display.text import cut, duration, one_line

WIDE = 78
"""Columns of an overwritten line, if the width of the terminal is unknown."""


class Waits:
    """Shows what is waited for.

    On a terminal with cursor control it is one line, which disappears before other output; elsewhere it is a line every ten seconds.
    """

    def __init__(
        self,
        talk: stream.Talk,
        what: Callable[[], tuple[str, float] | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``what`` returns what is waited for, and its start by the clock; None if nothing is to be shown."""
        self._talk, self._what, self._clock = talk, what, clock
        self._told_at = clock()
        self._stands = False
        """True if the last line on the terminal is one of these."""
        self._timer: asyncio.TimerHandle | None = None

    def begins(self) -> None:
        """Begin to show waits, until it ``ends``. Does nothing without an event loop."""
        if self._timer is None:
            try:
                self._schedule(asyncio.get_running_loop())
            except RuntimeError:
                return

    def ends(self) -> None:
        """Stop showing waits. May be called twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.gives_way()

    def gives_way(self) -> None:
        """Called before other output."""
        if self._stands:
            self._stands = False
            self._talk.write(escapes.ERASED)

    def tick(self) -> None:
        """Called every second."""
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
