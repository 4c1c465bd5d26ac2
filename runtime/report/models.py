"""The reports of a run and of a session: what ``runops show`` tells, in every form."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nodes.values import Json
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
)


class AttemptReport(Model):
    """One attempt of a step."""

    attempt: int
    """Its number, from 1."""
    at: str
    action: str | None
    effect: Literal["read", "idempotent", "effect"]
    args: Json
    """What the action was given."""
    status: Literal["ok", "error", "recovered", "interrupted", "skipped"] | None
    """Null where no outcome is recorded."""
    seconds: float | None
    error: ErrorReport | None
    flags: list[FlagReport]
    verdict: Literal["done", "not-done", "skipped"] | None
    """What was found out later about a side effect of unknown outcome."""
    thread: list[Annotated[said.OfRun, Field(discriminator="kind")]]
    """What was said to a model and by it, and what it did."""


Status = Literal["ok", "error", "tolerated", "recovered", "skipped", "interrupted", "redo", "running", "open"]
"""``redo``: undone by a restored checkpoint; ``recovered``: done before a crash, as the site confirmed."""


class StepReport(Model):
    """A step, a container, or one turn of a loop."""

    path: str
    type: str
    status: Status
    seconds: float | None
    value: Json
    """Null where it has none."""
    costs: Costs | None
    """What its models cost; null where none was asked."""
    attempts: list[AttemptReport]
    parent: str | None
    """The path of the step around it."""
    preview: str = Field(default="", exclude=True)
    """The beginning of its value, on one line."""
    folded: int = Field(default=0, exclude=True)
    """Turns that went well and are left out of a brief report."""

    @property
    def label(self) -> str:
        """What it is called below its parent: its id, and for a turn of a loop the turn."""
        return self.path[len(self.parent or "") :].lstrip("/") if self.parent else self.path


class RunReport(Printed):
    """What a run did: ``runops show RUN --json``."""

    run: str
    workflow: str
    file: str
    state: State
    """``died``: it ended without a word."""
    started: str
    last: str
    """When something was last written of it."""
    inputs: dict[str, Json]
    secrets: list[str]
    """Their names."""
    trial: dict[str, Json] | None
    """For a run of single nodes, or a copy: what it was given. It is never resumed."""
    key: str | None
    parent: str | None
    """The session that started it."""
    steps: list[StepReport]
    """Each step is listed behind the step around it."""
    open: list[str]
    """The paths of calls without a recorded outcome."""
    error: ErrorReport | None
    path: str | None
    """The step that failed, or that asks."""
    place: str | None
    """Where the step that failed or asks is: file, line and column; null where that is unknown."""
    tolerated: int
    """Failures that `on_error: continue` passed over."""
    files: list[FileReport]
    flags: list[FlagReport]
    evidence: list[EvidenceReport]
    costs: Costs | None
    budget: str | None
    question: QuestionReport | None
    next: str | None
    """The command to type next; null where the run passed, is running, or waits for nothing that can be given."""

    @property
    def asks(self) -> QuestionReport | None:
        """The question that somebody can answer; a trial is never resumed, so it asks none."""
        return self.question if self.trial is None else None


class VersionReport(Model):
    """Something that a session keeps, as it is now."""

    number: int
    """From 1; each change counts."""
    at: str
    reason: str
    by: Literal["model", "person"]
    value: Json


class AskedReport(Model):
    """A question that a build asked."""

    question: str
    choices: list[str]
    answer: str | None


class BuildReport(Model):
    """What a build is to reach, what it asks, and how it ended."""

    goal: entries.Build | None
    questions: list[AskedReport]
    waits: str | None
    """The question that waits for an answer."""
    finish: dict[str, Json] | None
    """How it ended by itself: `done`, `summary`, and for a workflow its `file`, `proved`, `inputs`; null while it did not."""


class SessionReport(Printed):
    """What was said and done in a session, what it keeps, what it cost: ``runops show SESSION --json``."""

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
    """When something was last written of it."""
    messages: int
    """Of the person and the model, without those of subagents."""
    costs: Costs | None
    spent: dict[str, Costs]
    """The same by who asked: empty for the session itself, the path of the call for a subagent."""
    runs: dict[str, Costs]
    """The costs of the runs that it started, by run; they count against its budget, and not in `costs`."""
    plan: VersionReport | None
    description: VersionReport | None
    draft: VersionReport | None
    variables: dict[str, VersionReport]
    following: str | None
    """The run that it started and whose end it does not know."""
    open: list[str]
    """The paths of calls without a recorded outcome."""
    waiting: list[str]
    """The threads whose last request to the model has no recorded outcome."""
    torn: int
    """Bytes at the end of the log that are no whole line."""
    build: BuildReport | None
    said: list[Annotated[said.OfSession, Field(discriminator="kind")]]
    """What was said and done, in order."""
