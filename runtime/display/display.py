"""The base of all displays, and the choice of one: tree, plain lines, or nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import Self

from runtime import events
from runtime.display.stream import Talk, kind_for


class Display:
    """An event listener to enter inside the event loop: a timer of that loop draws it. This one shows nothing."""

    interval: float | None = None
    """Seconds between two calls of ``tick``; None for never."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self.begin()
        self._schedule()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.end()

    def _schedule(self) -> None:
        if self.interval is not None:
            self._timer = asyncio.get_running_loop().call_later(self.interval, self._fire)

    def _fire(self) -> None:
        self.tick()
        self._schedule()

    def __call__(self, event: events.Event) -> None:
        """Receive an event; return at once and never raise."""

    def begin(self) -> None:
        """Show that something begins."""

    def tick(self) -> None:
        """Update after some time has passed."""

    def end(self) -> None:
        """Leave the terminal as a person expects it. May be called twice."""


def choose(*, quiet: bool = False) -> Display:
    if quiet:
        return Display()
    talk = Talk(sys.stderr)
    if kind_for(talk) == "tree":
        from runtime.display.tree import Tree  # rich is slow to load, and only a terminal needs it

        return Tree(talk)
    from runtime.display.plain import Plain

    return Plain(talk)
