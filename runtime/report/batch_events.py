"""The lines of `run --events`: what happens to the cases of a command as it happens, one JSON object a line."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from nodes.values import Json
from runtime import events
from runtime.display import escapes
from runtime.report.endings import CaseRecord, FileName, ShardReport
from runtime.report.parts import Costs, ErrorReport, FileReport, FlagReport, Model


class Line(Model):
    case: FileName | None
    """The case; null in the first and the last line."""
    at: str
    """When it was written."""

    def line(self) -> str:
        try:
            return escapes.in_json(self.model_dump_json())
        except PydanticSerializationError:  # the name of a file may be no text
            return escapes.as_json(self.model_dump())


class StartedEvent(Line):
    """The command: the first line."""

    event: Literal["started"] = "started"
    version: Literal[1] = 1
    """Changes if an event or a field is removed or changes its meaning. A reader ignores what it does not know."""
    shard: ShardReport | None
    selected: list[FileName]
    """All selected cases, those of other shards too."""
    cases: list[FileName]
    """The cases of this command."""


class CaseStartedEvent(Line):
    """The first run of a case begins."""

    event: Literal["case-started"] = "case-started"
    file: FileName
    name: str
    row: str | None


class _OfRun(Line):
    run: str
    seq: int
    """Number of the event, from 1 for each process of a run."""


class RunStartedEvent(_OfRun):
    """The log of a run is open."""

    event: Literal["run-started"] = "run-started"
    workflow: str
    resumed: bool
    row: str | None = None
    """The label of its row of inputs."""


class StepStartedEvent(_OfRun):
    """A step or a container begins."""

    event: Literal["step-started"] = "step-started"
    path: str
    type: str
    summary: str
    """What it does, in a line."""
    depth: int
    """From 0."""
    container: bool
    attempt: int


class StepWaitingEvent(_OfRun):
    """A step waits for an element, a rule, the site or a person."""

    event: Literal["step-waiting"] = "step-waiting"
    path: str
    what: str


class LoopItemEvent(_OfRun):
    """A loop begins an item."""

    event: Literal["loop-item"] = "loop-item"
    path: str
    index: int
    length: int | None
    """Null if it is unknown."""
    key: Json


class StepFinishedEvent(_OfRun):
    """A step or a container ended."""

    event: Literal["step-finished"] = "step-finished"
    path: str
    status: events.StepStatus
    seconds: float
    container: bool
    error: ErrorReport | None


class SaidEvent(_OfRun):
    """A sentence for a person."""

    event: Literal["said"] = "said"
    text: str


class RunEndedEvent(_OfRun):
    """A run ended by itself. A run whose process died has no such line."""

    event: Literal["run-ended"] = "run-ended"
    status: events.RunStatus
    exit: int
    seconds: float
    output: Json
    error: ErrorReport | None
    path: str | None
    place: str | None
    tolerated: int
    question: dict[str, Json] | None
    files: list[FileReport]
    flags: list[FlagReport]
    costs: Costs | None


class CaseEndedEvent(Line):
    """A case ended: no further run of it begins."""

    event: Literal["case-ended"] = "case-ended"
    outcome: CaseRecord


class EndedEvent(Line):
    """All has ended: the last line."""

    event: Literal["ended"] = "ended"
    exit: int
    """The exit code."""


RunEvent = Annotated[
    RunStartedEvent
    | StepStartedEvent
    | StepWaitingEvent
    | LoopItemEvent
    | StepFinishedEvent
    | SaidEvent
    | RunEndedEvent,
    Field(discriminator="event"),
]

BatchEvent = StartedEvent | CaseStartedEvent | RunEvent | CaseEndedEvent | EndedEvent

_OF_RUN: TypeAdapter[Any] = TypeAdapter(RunEvent, config={"defer_build": True})


def of_run(case: str, at: str, event: dict[str, Json]) -> Line:
    """Return the line of an event of a run, as ``events.EventBase.as_json`` has it."""
    return _OF_RUN.validate_python({"case": case, "at": at, **event})
