"""What a running engine tells whoever watches: the display, the JSON stream, an embedding program. The log is the truth; events are for eyes."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal, Protocol

from nodes.errors import BudgetReached, Paused, Replaced, RunOpsError
from nodes.values import Json

StepStatus = Literal[
    "ok", "error", "paused", "out-of-budget", "replaced", "tolerated", "skipped", "recorded", "recovered"
]
"""``paused``: a person is asked; ``out-of-budget``: a model was not asked, for that would have cost too much; ``replaced``: the run goes on elsewhere; ``recorded``: done before the crash and not done again; ``recovered``: done before the crash, as the site confirmed; ``skipped``: ``when`` was false."""

RunStatus = Literal["passed", "failed", "paused", "interrupted", "out-of-budget", "replaced"]
"""``replaced``: another owner has claimed the run, and it goes on there; of this the log says nothing but that owner's ``claimed``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswered:
    """What every event has beside its ``run``."""

    seq: int = dataclasses.field(default=0, compare=False)
    """The event's number, from 1 for each life of a run."""

    def as_json(self) -> dict[str, Json]:
        """A JSON object; ``event`` is what it is, such as ``step-finished``."""
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", type(self).__name__).lower()
        return {"event": name, **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Within(ToolAnswered):
    """What an event within a run has."""

    run: str = dataclasses.field(default="", compare=False)
    """The run's id; the engine fills it in."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunStarted(ToolAnswered):
    """The run is claimed and its log open. ``resumed`` tells a resume from a first start."""

    run: str
    workflow: str
    resumed: bool


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
    """What the step waits for now: an element, a rule, the site, a person."""

    path: str
    what: str


@dataclasses.dataclass(frozen=True, slots=True)
class LoopItem(Within):
    """A loop begins its turn ``index`` of ``length``, which is None where nobody knows beforehand."""

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
class RunEnded(ToolAnswered):
    """The run ended by itself. ``output`` and ``error`` as in the log, secrets masked; ``exit`` is the command's exit code."""

    run: str
    status: RunStatus
    exit: int
    seconds: float
    output: Json = None
    error: dict[str, Json] | None = None
    path: str | None = None
    place: str | None = None
    """Where the step at ``path`` stands: file, line and column."""
    tolerated: int = 0
    question: dict[str, Json] | None = None
    files: list[dict[str, Json]] = dataclasses.field(default_factory=list[dict[str, Json]])
    """The files that the run's steps have kept: ``name``, ``path``, ``size``, ``sha256``, ``type``."""
    flags: list[dict[str, Json]] = dataclasses.field(default_factory=list[dict[str, Json]])
    """What a person should look at though its step went on: ``path``, ``code``, ``message``, ``evidence``."""
    costs: dict[str, Json] | None = None
    """What its steps had with models: ``requests``, tokens by kind, ``dollars`` (a text; null where a price is unknown); None where no model was asked."""


Event = RunStarted | StepStarted | StepWaiting | LoopItem | StepFinished | Said | RunEnded


class Listener(Protocol):
    """Receives events, in order, from the engine's own thread. It must return at once. An exception is logged (logger ``runops``), and the run continues."""

    def __call__(self, event: Event, /) -> None:
        """One event."""
        ...


def ended_by(error: RunOpsError) -> StepStatus:
    """How a node ended that raised ``error``: a question to a person is none of its failures, and neither is another owner."""
    if isinstance(error, Replaced):
        return "replaced"
    if isinstance(error, BudgetReached):
        return "out-of-budget"
    return "paused" if isinstance(error, Paused) else "error"
