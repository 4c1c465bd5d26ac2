"""Outcomes of the cases of one command, and their common exit code. A case is one run to do: a workflow with the inputs of one row."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events
from runtime.language import workflow

WORST_FIRST = (70, 143, 130, 75, 3, 2, 1, 6, 5, 4, 0)
"""Exit codes: a bug, two interruptions, another owner, setup, usage, failure, drift, budget, pause, and then success."""

FAILED = 1
"""Exit code of a run that the workflow or the site has failed: another run may pass."""

State = Literal[
    "skipped", "begun", "passed", "flaky", "failed", "paused", "interrupted", "out-of-budget", "replaced", "error"
]
"""``skipped``: it was not begun. ``begun``: it started, and its outcome is not known yet. ``flaky``: it passed, after a run of it had
failed. ``error``: it could not start, so there is no run."""


def now() -> str:
    """Return the time as reports show it: ISO 8601 UTC, to the second."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def worst(codes: Iterable[int]) -> int:
    """Return the worst of ``codes``; 0 for none. An unknown code is the worst."""
    return min(codes, key=lambda code: WORST_FIRST.index(code) if code in WORST_FIRST else -1, default=0)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    file: Path  # the path as it was named, or found
    loaded: workflow.Loaded | None = None  # None if it cannot be read
    row: str | None = None
    """The label of its row of inputs; None for a workflow without rows."""
    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The inputs of that row."""

    @property
    def id(self) -> str:
        """Identify the case in selections and reports: ``FILE``, or ``FILE[ROW]``."""
        return str(self.file) if self.row is None else f"{self.file}[{self.row}]"

    @property
    def name(self) -> str:
        name = self.loaded.workflow.name if self.loaded is not None else self.file.stem
        return events.titled(name, self.row)


@dataclasses.dataclass(slots=True)
class CaseRun:
    """One run of a case, by one process."""

    started: str  # start time, ISO 8601 UTC
    state: State = "begun"
    id: str | None = None  # None until its log is open
    ended: events.RunEnded | None = None
    error: RunOpsError | None = None  # why it could not start
    exit: int | None = None
    seconds: float = 0.0

    def refuse(self, error: RunOpsError) -> None:
        self.error, self.state, self.exit = error, "error", error.exit

    def end(self, ended: events.RunEnded | None, code: int) -> None:
        """Note how it ended; None: it was interrupted before it reported an outcome."""
        self.ended, self.exit = ended, code
        self.state = "interrupted" if ended is None else ended.status
        self.id = self.id if ended is None else ended.run
        self.seconds = self.seconds if ended is None else ended.seconds


@dataclasses.dataclass(slots=True)
class Outcome:
    """What became of a case: its runs in order. The last one decides."""

    case: Case
    runs: list[CaseRun] = dataclasses.field(default_factory=list[CaseRun])
    refused: RunOpsError | None = None  # why it cannot run at all, found before any run began
    notes: list[str] = dataclasses.field(default_factory=list[str])
    """Sentences for a person: it was not retried, or the process of a run of it died."""
    differed: list[dict[str, Json]] = dataclasses.field(default_factory=list[dict[str, Json]])
    """Of a flaky case: the differences between its last two runs, as in reports."""
    fails_flaky: bool = False  # true if it counts as failed, should it be flaky
    over: bool = False  # true once no further run of it begins

    def begin(self) -> CaseRun:
        self.runs.append(CaseRun(now()))
        return self.runs[-1]

    @property
    def last(self) -> CaseRun | None:
        return self.runs[-1] if self.runs else None

    @property
    def state(self) -> State:
        if self.refused is not None:
            return "error"
        if self.last is None:
            return "skipped"
        failed_before = any(each.state == "failed" for each in self.runs[:-1])
        return "flaky" if self.last.state == "passed" and failed_before else self.last.state

    @property
    def file(self) -> Path:
        return self.case.file

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def run(self) -> str | None:
        return self.last.id if self.last is not None else None

    @property
    def ended(self) -> events.RunEnded | None:
        return self.last.ended if self.last is not None else None

    @property
    def error(self) -> RunOpsError | None:
        return self.refused or (self.last.error if self.last is not None else None)

    @property
    def exit(self) -> int | None:
        """The exit code of this case alone; None if it was not begun."""
        if self.refused is not None:
            return self.refused.exit
        if self.state == "flaky" and self.fails_flaky:
            return FAILED
        return self.last.exit if self.last is not None else None

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.runs)

    @property
    def started(self) -> str:
        """When its first run began; empty before."""
        return self.runs[0].started if self.runs else ""

    @property
    def step(self) -> str | None:
        return self.ended.path if self.ended is not None else None

    @property
    def place(self) -> str | None:
        """File, line and column of that step; None if unknown."""
        return None if self.case.loaded is None else self.case.loaded.place(self.step)

    @property
    def problem(self) -> dict[str, Json] | None:
        """The error, or the question that the run waits with, as in the log; None if there is neither."""
        if self.error is not None:
            return self.error.as_json()
        return None if self.ended is None else self.ended.question or self.ended.error


@dataclasses.dataclass(frozen=True, slots=True)
class Shard:
    number: int  # from 1
    of: int


@dataclasses.dataclass(slots=True)
class Results:
    """All cases of one command, as its reports show them."""

    outcomes: Sequence[Outcome]
    shard: Shard | None = None
    selected: Sequence[str] = ()
    """Ids of all selected cases in order, those of other shards too."""
    started: str = ""
    exit: int | None = None  # None until all has ended
