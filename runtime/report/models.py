"""The reports of a run and of a session: the content of ``runops show``, in every form."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nodes.values import Json
from runtime.events import RunStatus
from runtime.log import entries
from runtime.log.store.store import State
from runtime.report import said
from runtime.report.parts import (
    Costs,
    ErrorReport,
    EvidenceReport,
    FileReport,
    FlagReport,
    Model,
    Printed,
    QuestionReport,
    absent,
)


class AttemptReport(Model):
    """One attempt of a step."""

    attempt: int
    """Its number, from 1."""
    at: str
    """When it began."""
    action: str | None
    effect: Literal["read", "idempotent", "effect"]
    args: Json
    """The action's arguments."""
    status: Literal["ok", "error", "recovered", "interrupted", "skipped"] | None
    """Null if no outcome is recorded."""
    seconds: float | None
    error: ErrorReport | None
    flags: list[FlagReport]
    dismissed: list[str]
    """Overlays that were closed meanwhile."""
    verdict: Literal["done", "not-done", "skipped"] | None
    """The later verdict on a side effect with unknown outcome."""
    thread: list[Annotated[said.OfRun, Field(discriminator="kind")]]
    """The exchange with a model, and the model's actions."""


Status = Literal["ok", "error", "tolerated", "recovered", "skipped", "interrupted", "redo", "running", "open"]
"""``interrupted``: of unknown outcome; ``redo``: undone by a restored checkpoint; ``recovered``: done before a crash, as the site confirmed."""


class StepReport(Model):
    """A step, a container, or one iteration of a loop."""

    path: str
    type: str
    status: Status
    seconds: float | None
    value: Json
    """Null if it has none."""
    costs: Costs | None
    """The costs of its models; null if none was asked."""
    attempts: list[AttemptReport]
    parent: str | None
    """The path of the step that contains it."""
    page: str | None = absent()
    """The address of the page after a side effect."""
    http: int | None = absent()
    """The status that the server answered with, where it is an error."""
    preview: str = Field(default="", exclude=True)
    """The beginning of its value, on one line."""
    folded: int = Field(default=0, exclude=True)
    """Number of successful iterations that a brief report leaves out."""

    @property
    def label(self) -> str:
        return self.path[len(self.parent or "") :].lstrip("/") if self.parent else self.path


class ProcessReport(Model):
    """A process that did steps of a run. A run that was resumed has several."""

    started: str
    last: str
    """Time of its last entry in the log."""
    status: RunStatus | None
    """Null if it recorded no outcome: it still runs, or it died."""
    took_over: bool
    """Whether it ended another process that still ran."""


class PastPause(Model):
    """A pause of a run, and what a person said to it."""

    at: str
    path: str | None
    """The step that asked."""
    code: str
    """The reason: `question`, or why the outcome of an action is unknown."""
    message: str
    replied: str | None
    """Time of the answer or decision; null if there is none yet."""
    decided: Literal["done", "not-done", "skip"] | None
    """What a person decided about the action."""
    answers: dict[str, Json] | None
    """What a person answered, by name."""


class RunReport(Printed):
    """The steps and outcome of a run: ``runops show RUN --json``."""

    run: str
    workflow: str
    file: str
    texts: dict[str, str]
    """The SHA-256 of the text of the workflow file, and of each file that it uses."""
    state: State
    """``died``: its process ended without recording an outcome."""
    started: str
    last: str
    """Time of the last entry in its log."""
    seconds: float
    """How long its processes worked, without the time between them."""
    processes: list[ProcessReport]
    """In order; not those that only wrote an answer or a decision of a person."""
    pauses: list[PastPause]
    """In order; of one step only its own, and those of the steps in it."""
    inputs: dict[str, Json]
    secrets: list[str]
    """Their names."""
    trial: dict[str, Json] | None
    """The inputs of a run of single nodes, or of a copy. Such a run is never resumed."""
    key: str | None
    row: str | None
    """The row of a table that gave its inputs."""
    parent: str | None
    """The session that started it."""
    steps: list[StepReport]
    """Each step is listed after the step that contains it."""
    open: list[str]
    """The paths of calls without a recorded outcome."""
    error: ErrorReport | None
    path: str | None
    """The step that failed, or that asks."""
    place: str | None
    """File, line and column of that step; null if unknown."""
    tolerated: int
    """Number of failures that `on_error: continue` tolerated."""
    files: list[FileReport]
    flags: list[FlagReport]
    evidence: list[EvidenceReport]
    output: Json = None
    """Its result; of a long one a brief report has the beginning."""
    costs: Costs | None
    budget: str | None
    question: QuestionReport | None
    next: str | None
    """The command to type next; null if the run passed, is running, or waits for nothing that can be given."""

    @property
    def asks(self) -> QuestionReport | None:
        """The question that a person can answer; None for a trial, which is never resumed."""
        return self.question if self.trial is None else None


class VersionReport(Model):
    """The current version of something that a session keeps."""

    number: int
    """Counts the changes, from 1."""
    at: str
    reason: str
    by: Literal["model", "person", "file"]
    value: Json


class AskedReport(Model):
    """A question that a build asked."""

    question: str
    choices: list[str]
    answer: str | None


class BuildReport(Model):
    """The goal, questions and outcome of a build."""

    goal: entries.Build | None
    questions: list[AskedReport]
    waits: str | None
    """The question that waits for an answer."""
    finish: dict[str, Json] | None
    """Its own result: `done`, `summary`, and for a workflow its `file`, `proved`, `inputs`; null until the build finishes."""


class DelegateReport(Model):
    """How one delegate ran."""

    path: str
    """The call that sent it."""
    agent: str | None
    """Its name; null for the anonymous one."""
    acts: bool
    """Whether it might change something."""
    context: Literal["clean", "inherit"]
    """What it began with: its task alone, or the conversation."""
    why: str
    """What decided that: `call`, `agent NAME`, a flag, a variable, a file, or `default`."""
    model: str
    tools: list[str]
    status: said.Outcome | None
    """Null if it has no outcome."""
    costs: Costs | None
    """Its costs, with those of its own delegates; null if nothing was asked."""


class SessionReport(Printed):
    """The content and costs of a session: ``runops show SESSION --json``."""

    session: str
    purpose: Literal["chat", "build"]
    title: str
    about: str | None
    """The run that it is about."""
    file: str | None
    """The workflow file that it is about."""
    parent: str | None
    """The conversation that began it."""
    forked: entries.Forked | None
    state: Literal["running", "idle", "damaged"]
    mode: entries.Mode
    budget: str | None
    started: str
    last: str
    """Time of the last entry in its log."""
    messages: int
    """Messages of the person and the model, without those of subagents."""
    costs: Costs | None
    spent: dict[str, Costs]
    """The same by requester: empty for the session itself, the path of the call for a subagent."""
    runs: dict[str, Costs]
    """The costs of the runs that it started, by run. They count against its budget, but are not in `costs`."""
    delegates: list[DelegateReport]
    """Each delegate, in the order in which they were sent."""
    plan: VersionReport | None
    description: VersionReport | None
    draft: VersionReport | None
    variables: dict[str, VersionReport]
    following: str | None
    """The run that it started and whose outcome it has not recorded."""
    open: list[str]
    """The paths of calls without a recorded outcome."""
    waiting: list[str]
    """The threads whose last request to the model has no recorded outcome."""
    torn: int
    """Bytes of an incomplete line at the end of the log."""
    build: BuildReport | None
    said: list[Annotated[said.OfSession, Field(discriminator="kind")]]
    """Everything said and done, in order."""
