"""Events of a running engine, for the display, the JSON stream or an embedding program. The log is authoritative; events are for display."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal, Protocol, get_args

from nodes.errors import BudgetReached, Paused, Replaced, RunOpsError
from nodes.values import Json

StepStatus = Literal[
    "ok", "error", "paused", "out-of-budget", "replaced", "tolerated", "skipped", "recorded", "recovered"
]
"""Status of a node that ended.

``paused``: a person is asked; ``out-of-budget``: a model request would exceed a budget; ``replaced``: another owner continues the run;
``recorded``: its outcome is in the log, so it was not run again; ``recovered``: reconciliation settled it, so it was not done again;
``skipped``: ``when`` was false.
"""

RunStatus = Literal["passed", "failed", "paused", "interrupted", "out-of-budget", "replaced"]
"""``replaced``: another owner has claimed the run and continues it; the log shows this only by that owner's ``claimed``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EventBase:
    """Fields of every event besides its ``run``."""

    seq: int = dataclasses.field(default=0, compare=False)
    """Number of the event, from 1 for each process of a run."""

    def as_json(self) -> dict[str, Json]:
        """Return a JSON object; ``event`` is its kind, such as ``step-finished``."""
        return {"event": _kind(type(self)), **dataclasses.asdict(self)}


def _kind(of: type[EventBase]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", of.__name__).lower()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Within(EventBase):
    run: str = dataclasses.field(default="", compare=False)
    """Id of the run; the engine fills it in."""


def titled(workflow: str, row: str | None) -> str:
    """Return the name of a workflow, with the label of its row of inputs if it has one."""
    return workflow if row is None else f"{workflow} [{row}]"


@dataclasses.dataclass(frozen=True, slots=True)
class RunStarted(EventBase):
    """The run is claimed and its log open. ``resumed`` is True for a resume, False for a first start; ``row`` labels its row of inputs."""

    run: str
    workflow: str
    resumed: bool
    row: str | None = None

    @property
    def name(self) -> str:
        return titled(self.workflow, self.row)


@dataclasses.dataclass(frozen=True, slots=True)
class StepStarted(Within):
    """A node begins; for a container its scope opens. ``summary`` is one line, without secrets; ``depth`` counts from 0."""

    path: str
    type: str
    summary: str
    depth: int
    container: bool
    attempt: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class StepWaiting(Within):
    """The step now waits for ``what``: an element, a rule, the site, a person."""

    path: str
    what: str


@dataclasses.dataclass(frozen=True, slots=True)
class LoopItem(Within):
    """A loop begins its item ``index`` of ``length``, which is None if unknown beforehand."""

    path: str
    index: int
    length: int | None
    key: Json


@dataclasses.dataclass(frozen=True, slots=True)
class StepFinished(Within):
    """A node ended. ``error`` as in the log, secrets masked."""

    path: str
    status: StepStatus
    seconds: float
    container: bool
    error: dict[str, Json] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Said(Within):
    """A sentence for the person: what will not be redone, which browser is used, why something waits."""

    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class RunEnded(EventBase):
    """The run ended by itself. ``output`` and ``error`` as in the log, secrets masked; ``exit`` is the command's exit code."""

    run: str
    status: RunStatus
    exit: int
    seconds: float
    output: Json = None
    error: dict[str, Json] | None = None
    path: str | None = None
    place: str | None = None
    """File, line and column of the step at ``path``."""
    tolerated: int = 0
    question: dict[str, Json] | None = None
    files: list[dict[str, Json]] = dataclasses.field(default_factory=list[dict[str, Json]])
    """Files that the run's steps have kept: ``name``, ``path``, ``size``, ``sha256``, ``type``."""
    flags: list[dict[str, Json]] = dataclasses.field(default_factory=list[dict[str, Json]])
    """Matters for a person to check although the step continued: ``path``, ``code``, ``message``, ``evidence``."""
    costs: dict[str, Json] | None = None
    """Use of models: ``requests``, tokens by kind, ``dollars`` (a text; null if a price is unknown); None if no model was asked."""


Event = RunStarted | StepStarted | StepWaiting | LoopItem | StepFinished | Said | RunEnded


_KINDS: dict[Json, type[Event]] = {_kind(each): each for each in get_args(Event)}


def from_json(data: Mapping[str, Json]) -> Event:
    """Return the event that ``as_json`` has written."""
    return _KINDS[data["event"]](**{name: value for name, value in data.items() if name != "event"})


class Listener(Protocol):
    """Receives events in order, in the engine's thread, and must return at once. An exception is logged (``runops``); the run continues."""

    def __call__(self, event: Event, /) -> None: ...


def ended_by(error: RunOpsError) -> StepStatus:
    """Return the status of a node that raised ``error``. A pause, a reached budget and another owner are no failures."""
    if isinstance(error, Replaced):
        return "replaced"
    if isinstance(error, BudgetReached):
        return "out-of-budget"
    return "paused" if isinstance(error, Paused) else "error"
