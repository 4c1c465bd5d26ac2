"""Base class of displays, the plain display, and the choice between tree, plain lines and nothing."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Self

from nodes.values import Json
from runtime import events
from runtime.display.progress import Progress, Step
from runtime.display.stream import Talk, kind_for
from runtime.display.text import duration, one_line

DEADLINE = 5.0  # seconds between two lines about a waiting step


class Display:
    """Event listener and context manager inside the event loop, whose timer calls ``tick``. This one shows nothing."""

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
        """Draw for the first time."""

    def tick(self) -> None:
        """Update after some time has passed."""

    def end(self) -> None:
        """Restore the terminal. May be called twice."""


class Plain(Display):
    """A line for each step, for pipes, CI and terminals that cannot move their cursor."""

    interval = 1.0

    def __init__(self, talk: Talk, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.talk = talk
        self.progress = Progress(clock)
        self._error_shown: dict[str, Json] | None = None
        self._spoke_at = clock()

    def __call__(self, event: events.Event) -> None:
        current = self.progress.running(event.path) if isinstance(event, events.StepFinished) else None
        self.progress(event)
        match event:
            case events.RunStarted():
                self._line("resume" if event.resumed else "run", event.run, event.name)
            case events.StepStarted():
                self._spoke_at = self.progress.clock()
                if event.attempt > 1:
                    self._line("again", event.path, event.summary, f"attempt {event.attempt}")
            case events.StepFinished():
                self._spoke_at = self.progress.clock()
                self._finished(event, current)
            case events.Said():
                self._line("--", event.text)
            case _:
                pass

    def tick(self) -> None:
        now = self.progress.clock()
        if now - self._spoke_at < DEADLINE or self.progress.ended is not None:
            return
        self._spoke_at = now
        step = self.progress.current
        if step is self.progress.root:
            what = "between steps" if step.children else "no step runs yet"
            self._line("..", what, duration(now - self.progress.since))
        else:
            waits = step.waiting and f"waiting: {step.waiting}"
            self._line("..", step.path, self.progress.place(), step.summary, waits, duration(now - step.since))

    def _finished(self, event: events.StepFinished, step: Step | None) -> None:
        # The number of steps that are not repeated is printed once at the beginning.
        if event.status == "recorded":
            return
        # An error passes through every container; only the line of the failed step shows it.
        if event.container and (event.status == "ok" or (event.error and event.error == self._error_shown)):
            return
        self._error_shown = event.error
        remark = "it had happened" if event.status == "recovered" else ""
        if event.error:
            remark = str(event.error.get("message", ""))
        self._line(event.status, event.path, step.summary if step is not None else "", remark, duration(event.seconds))

    def _line(self, *parts: str) -> None:
        self.talk.line("  ".join(one_line(part) for part in parts if part))


def choose(*, quiet: bool = False) -> Display:
    if quiet:
        return Display()
    talk = Talk(sys.stderr)
    if kind_for(talk) == "tree":
        from runtime.display.tree import Tree  # rich is slow to load, and only a terminal needs it

        return Tree(talk)
    return Plain(talk)
