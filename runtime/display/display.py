"""Interface of all displays, and the choice of one: tree, plain lines, or nothing."""

from __future__ import annotations

import abc
import asyncio
import sys
from types import TracebackType
from typing import Self

from runtime import events
from runtime.display.stream import Talk, kind_for


class Display(abc.ABC):
    """An event listener to enter inside the event loop: a timer of that loop draws it, whatever the engine does."""

    interval: float | None = None
    """Seconds between two calls of ``tick``; None for never."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self.begin()
        if self.interval is not None:
            self._schedule(asyncio.get_running_loop(), self.interval)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.end()

    def _schedule(self, loop: asyncio.AbstractEventLoop, interval: float) -> None:
        def fire() -> None:
            self.tick()
            self._timer = loop.call_later(interval, fire)

        self._timer = loop.call_later(interval, fire)

    @abc.abstractmethod
    def __call__(self, event: events.Event) -> None:
        """Receive an event; return at once and never raise."""

    def begin(self) -> None:  # noqa: B027 — most displays have nothing to prepare
        """Show that something begins."""

    def tick(self) -> None:  # noqa: B027 — a quiet display has no clock
        """Update after some time has passed."""

    def end(self) -> None:  # noqa: B027 — a quiet display has nothing to clear away
        """Leave the terminal as a person expects it. May be called twice."""


class Quiet(Display):
    def __call__(self, event: events.Event) -> None:
        pass


def choose(*, quiet: bool = False, stream: Talk | None = None) -> Display:
    talk = stream if stream is not None else Talk(sys.stderr)
    kind = kind_for(talk, quiet=quiet)
    if kind == "tree":
        from runtime.display.tree import Tree  # rich is slow to load, and only a terminal needs it

        return Tree(talk)
    from runtime.display.plain import Plain

    return Plain(talk) if kind == "plain" else Quiet()
