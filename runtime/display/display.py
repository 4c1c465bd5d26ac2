"""The small interface behind which all displays stand, and the one choice among them."""

from __future__ import annotations

import abc
import asyncio
import sys
from types import TracebackType
from typing import Self

from runtime import events
from runtime.display.stream import Talk, kind_for


class Display(abc.ABC):
    """A listener with a beginning and an end. Enter it inside the event loop: it draws by a timer of that loop, whatever the engine does."""

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
        """Take an event; returns at once and never raises."""

    def begin(self) -> None:  # noqa: B027 — most displays have nothing to prepare
        """Show that something begins."""

    def tick(self) -> None:  # noqa: B027 — a quiet display has no clock
        """Time has passed."""

    def end(self) -> None:  # noqa: B027 — a quiet display has nothing to clear away
        """Leave the terminal as a person expects it. May be called twice."""


class Quiet(Display):
    """Says nothing; what went wrong is said at the end, by the command."""

    def __call__(self, event: events.Event) -> None:
        """Nothing."""


def choose(*, quiet: bool = False, stream: Talk | None = None) -> Display:
    """The display for a run whose talk goes to ``stream`` (stderr)."""
    talk = stream if stream is not None else Talk(sys.stderr)
    match kind_for(talk, quiet=quiet):
        case "tree":
            from runtime.display.tree import Tree  # rich is slow to load, and only a terminal needs it

            return Tree(talk)
        case "plain":
            from runtime.display.plain import Plain

            return Plain(talk)
        case "quiet":
            return Quiet()
