"""The lines of a conversation: what was said in it, asked of models, done for them, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from nodes.values import Json
from runtime.log import entries
from runtime.report.parts import ErrorReport, FileReport, FlagReport, Model, absent

Effect = Literal["read", "idempotent", "effect"]
OPEN = "open, no outcome recorded"
"""What is said of a request or a call in the place of its outcome."""

Outcome = Literal["ok", "error", "recovered", "interrupted", "skipped"]


class Line(Model):
    """What every line has."""

    line: int | None = absent()
    """Its number in the log of a session."""
    at: str
    thread: str | None = absent()
    """In a session: ``session`` for the person and the model, ``delegate:…`` for a subagent, ``summary:…`` for a summary."""


class TextLine(Line):
    """A line with a text."""

    text: str
    tokens: int | None = absent()
    """The most tokens that it takes in a request."""
    chars: int | None = absent()
    """Its characters in a request."""


class UserLine(TextLine):
    """What the model is told; in a session, what the person says."""

    kind: Literal["user"]
    mode: entries.Mode | None = absent()
    """The mode of the session; absent where no person said it."""
    upto: int | None = absent()
    """The last line that is to be summarized."""


class ReasoningLine(TextLine):
    """What the model thought before its answer."""

    kind: Literal["reasoning"]


class AskedCall(Model):
    """A tool call that an answer asks for."""

    id: str
    name: str
    arguments: str | None = absent()
    blob: entries.Blob | None = absent()
    """Where large arguments of a run are kept."""
    masked: Literal[True] | None = absent()


class AssistantLine(TextLine):
    """An answer of the model."""

    kind: Literal["assistant"]
    key: str
    """Identifies the request."""
    source: entries.Source
    masked: Literal[True] | None = absent()
    """A secret was in it: the text is not what the model said."""
    model: str
    response: str | None = absent()
    usage: entries.Usage | None = absent()
    dollars: str | None = absent()
    seconds: float | None = absent()
    calls: list[AskedCall] | None = absent()


class ToldLine(TextLine):
    """What the model is told of a call that it asked for."""

    kind: Literal["told"]
    asked: str


class ModelErrorLine(TextLine):
    """A request that brought no answer; ``text`` is what had arrived."""

    kind: Literal["model_error"]
    error: ErrorReport
    usage: entries.Usage | None = absent()
    dollars: str | None = absent()
    seconds: float | None = absent()
    again: float | None = absent()
    """Seconds after which it is sent again; absent where it is not."""
    free: Literal[True] | None = absent()
    pending: Literal[True] | None = absent()
    """The server may still be working on it."""

    @property
    def final(self) -> bool:
        """Whether no other try of the same request follows."""
        return self.again is None and self.pending is None


class RequestedLine(Line):
    """A request to a model is announced."""

    kind: Literal["requested"]
    key: str
    model: str
    estimate: int
    """Tokens of the input, estimated."""
    raw: int
    limit: int
    """Tokens that the answer may have."""
    seconds: float
    """That it may take."""
    tries: int = Field(alias="try")
    """Which try this is, from 1."""


class SubmittedLine(Line):
    """The server works on a request in the background."""

    kind: Literal["submitted"]
    key: str
    response: str


class DoneLine(Line):
    """What an agent did on the page, with its outcome."""

    kind: Literal["call"]
    path: str
    asked: str | None
    node: str
    action: str | None
    effect: Effect
    args: Json
    status: Outcome | None
    """Null where no outcome is recorded."""
    error: ErrorReport | None
    seconds: float | None


class OpenLine(Model):
    """The last request has no outcome in this attempt."""

    kind: Literal["open"]
    text: str


class SummaryLine(TextLine):
    """What a request says in the place of older lines."""

    kind: Literal["summary"]
    upto: int
    """The last line that it replaces."""


class EventLine(TextLine):
    """What the person did, or what happened, between two messages."""

    kind: Literal["event"]
    run: str | None = absent()
    spent: dict[str, Json] | None = absent()


class VersionLine(Line):
    """Something that the session keeps changes."""

    kind: Literal["version"]
    of: str
    name: str
    number: int
    value: Json
    masked: Literal[True] | None = absent()
    cleared: Literal[True] | None = absent()
    reason: str
    by: Literal["model", "person"]


class CallLine(Line):
    """A tool is called."""

    kind: Literal["call"]
    call: str
    path: str
    node: str
    action: str | None = absent()
    asked: str | None = absent()
    again: str | None = absent()
    attempt: int
    effect: Effect
    args: Json
    held_before: bool | None = absent()
    url: str | None = absent()
    matched: list[str] | None = absent()
    recorded: list[str] | None = absent()
    fingerprint: str


class ResultLine(Line):
    """The outcome of a call."""

    kind: Literal["result"]
    call: str
    status: Outcome
    value: Json
    masked: Literal[True] | None = absent()
    error: ErrorReport | None = absent()
    tolerated: Literal[True] | None = absent()
    files: list[FileReport] | None = absent()
    flags: list[FlagReport] | None = absent()
    seconds: float | None = absent()
    page: dict[str, Json] | None = absent()


class NoteLine(Line):
    """Something else that the log of a session notes."""

    kind: Literal["note"]
    name: str
    data: dict[str, Json]


OfRun = (
    UserLine
    | ReasoningLine
    | AssistantLine
    | ToldLine
    | ModelErrorLine
    | RequestedLine
    | SubmittedLine
    | DoneLine
    | OpenLine
)
"""What an attempt of a run has with a model."""

OfSession = (
    UserLine
    | ReasoningLine
    | AssistantLine
    | ToldLine
    | ModelErrorLine
    | SummaryLine
    | EventLine
    | VersionLine
    | CallLine
    | ResultLine
    | NoteLine
)
"""What a session holds."""

Text = UserLine | ReasoningLine | AssistantLine | ToldLine | ModelErrorLine
"""What both hold."""

IN_BOTH: Mapping[str, type[Text]] = {
    "user": UserLine,
    "reasoning": ReasoningLine,
    "assistant": AssistantLine,
    "told": ToldLine,
    "model_error": ModelErrorLine,
}
"""The lines of entries of these kinds."""

IN_SESSIONS: Mapping[str, type[OfSession]] = {
    **IN_BOTH,
    "summary": SummaryLine,
    "event": EventLine,
    "version": VersionLine,
    "call": CallLine,
    "result": ResultLine,
    "note": NoteLine,
}


def fields_of(entry: entries.AnyEntry, *without: str) -> dict[str, Json]:
    """The fields of an entry as its line has them, but for what may be in blobs, and for those named ``without``."""
    left_out = {"v", "seq", "blob", "text", "value", "args", *without}
    return entry.model_dump(mode="json", exclude=left_out, exclude_none=True)
