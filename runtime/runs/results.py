"""How the runs of one command ended: one by one, and the exit code of them all."""

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
"""Exit codes: a bug, an interruption, another owner, setup, usage, failure, drift, budget, pause, and then success."""

State = Literal["not-begun", "begun", "passed", "failed", "paused", "interrupted", "out-of-budget", "replaced", "error"]
"""``error``: the run could not start, so there is none; ``begun``: it started, and has not said yet how it ended."""


def worst(codes: Iterable[int]) -> int:
    """The exit code that stands for all of ``codes``; 0 for none. A code that nobody knows is the worst."""
    return min(codes, key=lambda code: WORST_FIRST.index(code) if code in WORST_FIRST else -1, default=0)


@dataclasses.dataclass(slots=True)
class Outcome:
    """One file and the run of it."""

    file: Path
    """As it was named, or found."""
    loaded: workflow.Loaded | None = None
    """None where the file cannot be used."""
    state: State = "not-begun"
    run: str | None = None
    """The run's id, once its log is open."""
    ended: events.RunEnded | None = None
    """How it ended, where it said so."""
    error: RunOpsError | None = None
    """What kept it from starting."""
    exit: int | None = None
    """The exit code that this run alone would give; None where it was not begun."""
    seconds: float = 0.0
    started: str = ""
    """When the run began, ISO 8601 UTC; empty before."""

    @property
    def name(self) -> str:
        """What the workflow is called."""
        return self.loaded.workflow.name if self.loaded is not None else self.file.stem

    @property
    def step(self) -> str | None:
        """The path of the step that failed, or that waits."""
        return self.ended.path if self.ended is not None else None

    @property
    def place(self) -> str | None:
        """Where that step stands: file, line and column; None where nobody knows."""
        return None if self.loaded is None else self.loaded.place(self.step)

    @property
    def problem(self) -> dict[str, Json] | None:
        """What went wrong, or the question that it waits with, as in the log; None where nothing did."""
        if self.error is not None:
            return self.error.as_json()
        return None if self.ended is None else self.ended.question or self.ended.error

    def begin(self) -> None:
        """Note that it begins now."""
        self.state = "begun"
        self.started = dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

    def refuse(self, error: RunOpsError) -> None:
        """Note what keeps it from starting."""
        self.error, self.state, self.exit = error, "error", error.exit

    def end(self, ended: events.RunEnded | None, code: int) -> None:
        """Note how the run ended; None: it was interrupted before it could say so."""
        self.ended, self.exit = ended, code
        self.state = "interrupted" if ended is None else ended.status
        self.run = self.run if ended is None else ended.run
        self.seconds = self.seconds if ended is None else ended.seconds
