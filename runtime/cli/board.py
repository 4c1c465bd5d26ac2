"""The live display of several workers on a terminal: a line for each, below a line with the sum."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Generator

from rich.text import Text
from typing_extensions import override

from runtime import events
from runtime.display.display import Display
from runtime.display.progress import Progress
from runtime.display.stream import Talk
from runtime.display.text import duration, fit, one_line
from runtime.display.tree import Drawing


@dataclasses.dataclass
class _Current:
    case: str
    progress: Progress


class Board(Display):
    interval = 0.25

    def __init__(self, total: int, talk: Talk | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._total = total
        self._done = self._failed = 0
        self._clock = clock
        self._since = clock()
        self._current: dict[int, _Current] = {}
        self._drawing = Drawing(talk or Talk(sys.stderr), self.lines)

    def began(self, place: int, case: str) -> None:
        self._current[place] = _Current(case, Progress(self._clock))

    def heard(self, place: int, event: events.Event) -> None:
        if place in self._current:
            self._current[place].progress(event)

    def ended(self, place: int, *, failed: bool) -> None:
        self._current.pop(place, None)
        self._done += 1
        self._failed += failed

    def lines(self, width: int, height: int) -> list[Text]:
        now = self._clock()
        failed = f"  {self._failed} not passed" if self._failed else ""
        head = Text(fit(f"{self._done}/{self._total}{failed}", duration(now - self._since), width), "bold")
        return [head, *(self._line(each, width, now) for _, each in sorted(self._current.items()))][:height]

    def _line(self, current: _Current, width: int, now: float) -> Text:
        progress = current.progress
        step = progress.current
        waiting = f"waiting: {step.waiting}" if step.waiting else step.summary
        parts = [one_line(current.case), progress.place(), one_line(step.path), one_line(waiting)]
        text = f">>  {'  '.join(filter(None, parts))}"
        return Text(fit(text, duration(now - progress.since), width), "cyan")

    @override
    def begin(self) -> None:
        self._drawing.start()

    @override
    def tick(self) -> None:
        self._drawing.refresh()

    @override
    def end(self) -> None:
        self._drawing.stop()

    @contextlib.contextmanager
    def aside(self) -> Generator[None]:
        """Remove the drawing while something is printed."""
        shown = self._drawing.shown
        self._drawing.stop()
        try:
            yield
        finally:
            if shown:
                self._drawing.start()
