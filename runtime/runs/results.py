"""Outcomes of the runs of one command, and their common exit code."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events
from runtime.language import workflow

WORST_FIRST = (70, 143, 130, 75, 3, 2, 1, 6, 5, 4, 0)
"""Exit codes: a bug, two interruptions, another owner, setup, usage, failure, drift, budget, pause, and then success."""

State = Literal["not-begun", "begun", "passed", "failed", "paused", "interrupted", "out-of-budget", "replaced", "error"]
"""``error``: the run could not start, so there is none. ``begun``: it started, and its outcome is not known yet."""


def worst(codes: Iterable[int]) -> int:
    """Return the worst of ``codes``; 0 for none. An unknown code is the worst."""
    return min(codes, key=lambda code: WORST_FIRST.index(code) if code in WORST_FIRST else -1, default=0)


@dataclasses.dataclass(slots=True)
class Outcome:
    file: Path  # the path as it was named, or found
    loaded: workflow.Loaded | None = None
    state: State = "not-begun"
    run: str | None = None
    ended: events.RunEnded | None = None
    error: RunOpsError | None = None
    exit: int | None = None  # the exit code of this run alone; None if it was not begun
    seconds: float = 0.0
    started: str = ""  # start time of the run, ISO 8601 UTC; empty before

    @property
    def name(self) -> str:
        return self.loaded.workflow.name if self.loaded is not None else self.file.stem

    @property
    def step(self) -> str | None:
        return self.ended.path if self.ended is not None else None

    @property
    def place(self) -> str | None:
        """File, line and column of that step; None if unknown."""
        return None if self.loaded is None else self.loaded.place(self.step)

    @property
    def problem(self) -> dict[str, Json] | None:
        """The error, or the question that the run waits with, as in the log; None if there is neither."""
        if self.error is not None:
            return self.error.as_json()
        return None if self.ended is None else self.ended.question or self.ended.error

    def begin(self) -> None:
        self.state = "begun"
        self.started = dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

    def refuse(self, error: RunOpsError) -> None:
        self.error, self.state, self.exit = error, "error", error.exit

    def end(self, ended: events.RunEnded | None, code: int) -> None:
        """Note the run's outcome; None: it was interrupted before it reported one."""
        self.ended, self.exit = ended, code
        self.state = "interrupted" if ended is None else ended.status
        self.run = self.run if ended is None else ended.run
        self.seconds = self.seconds if ended is None else ended.seconds
