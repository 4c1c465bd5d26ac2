"""The lines of a conversation: messages, requests to models, calls, and kept versions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nodes.values import Json
from runtime.log import entries
from runtime.report.parts import ErrorReport, FileReport, FlagReport, Model, absent

Effect = Literal["read", "idempotent", "effect"]
OPEN = "open, no outcome recorded"  # text shown in place of a missing outcome
BROKEN = "the process ended here, before the rest came"  # text shown behind what came of an answer

Outcome = Literal["ok", "error", "recovered", "interrupted", "skipped"]


class Line(Model):
    """Fields of every line."""

    line: int | None = absent()
    """Its number in the log of a session."""
    at: str
    thread: str | None = absent()
    """In a session: ``session`` for the person and the model, ``delegate:…`` for a subagent, ``summary:…`` for a summary."""


class TextLine(Line):
    """A line with a text."""

    text: str


class UserLine(TextLine):
    """A message to the model; in a session, usually a person's."""

    kind: Literal["user"]
    mode: entries.Mode | None = absent()
    """The mode of the session; absent if no person sent it."""
    upto: int | None = absent()
    """The last line to be summarized."""
    until: int | None = absent()
    """The line up to which more summaries follow, as one request could not hold all."""
    heard: int | None = absent()
    """The line at which the message was kept, while the model worked."""
    typed: str | None = absent()
    """The `/compress` that a question for a summary came of."""


class ArrivedLine(TextLine):
    """What came of an answer in whose midst the process ended."""

    kind: Literal["arrived"]


class HeardLine(TextLine):
    """A message that the person said while the model worked, and that it does not have yet."""

    kind: Literal["heard"]
    mode: entries.Mode


class ReasoningLine(TextLine):
    """The model's reasoning before its answer."""

    kind: Literal["reasoning"]


class AskedCall(Model):
    """A tool call in an answer."""

    id: str
    name: str
    arguments: str | None = absent()
    blob: entries.Blob | None = absent()
    """Reference to large arguments of a run."""
    masked: Literal[True] | None = absent()


class AssistantLine(TextLine):
    """An answer of the model."""

    kind: Literal["assistant"]
    key: str
    """Identifies the request."""
    source: entries.Source
    masked: Literal[True] | None = absent()
    """A secret was masked: the text differs from the model's."""
    model: str
    response: str | None = absent()
    stored: Literal[True] | None = absent()
    """A later request can continue from the response."""
    usage: entries.Usage | None = absent()
    dollars: str | None = absent()
    seconds: float | None = absent()
    calls: list[AskedCall] | None = absent()


class ToolResultLine(TextLine):
    """The result of a tool call, as shown to the model."""

    kind: Literal["tool_result"]
    asked: str
    picture: entries.PictureEntry | None = absent()
    """A picture that was shown with it."""


class ModelErrorLine(TextLine):
    """A request without an answer; ``text`` is the part that had arrived."""

    kind: Literal["model_error"]
    error: ErrorReport
    usage: entries.Usage | None = absent()
    dollars: str | None = absent()
    seconds: float | None = absent()
    again: float | None = absent()
    """Seconds until it is sent again; absent if it is not."""
    free: Literal[True] | None = absent()
    pending: Literal[True] | None = absent()
    """The server may still be working on it."""

    @property
    def final(self) -> bool:
        """True if no other try of the same request follows."""
        return self.again is None and self.pending is None


class RequestedLine(Line):
    """A request to a model is announced."""

    kind: Literal["requested"]
    key: str
    model: str
    estimate: int
    """Estimated tokens of the input."""
    raw: int
    limit: int
    """Maximum tokens of the answer."""
    seconds: float
    """Time limit of the request."""
    tries: int = Field(alias="try")
    """Number of the try, from 1."""


class SubmittedLine(Line):
    """The server works on a request in the background."""

    kind: Literal["submitted"]
    key: str
    response: str


class DoneLine(Line):
    """An action of an agent on the page, with its outcome."""

    kind: Literal["call"]
    path: str
    asked: str | None
    node: str
    action: str | None
    effect: Effect
    args: Json
    status: Outcome | None
    """Null if no outcome is recorded."""
    error: ErrorReport | None
    seconds: float | None


class OpenLine(Model):
    """The last request has no outcome in this attempt."""

    kind: Literal["open"]
    text: str


class SummaryLine(TextLine):
    """The text that replaces older lines in requests."""

    kind: Literal["summary"]
    upto: int
    """The last line that it replaces."""
    until: int | None = absent()
    """The line up to which more summaries follow, as one request could not hold all."""
    refresh: list[str] | None = absent()
    """The tools with which the model can look how things stand since."""


class EventLine(TextLine):
    """An action of the person, or an event, between two messages."""

    kind: Literal["event"]
    run: str | None = absent()
    asked: str | None = absent()
    """The id of the call as which the model sees the run that the text tells."""
    what: str | None = absent()
    """The message or command that began the run."""
    upto: int | None = absent()
    """The line of the run's log up to which the text tells it."""
    spent: dict[str, Json] | None = absent()


class VersionLine(Line):
    """A change of something that the session keeps."""

    kind: Literal["version"]
    of: str
    name: str
    number: int
    value: Json
    masked: Literal[True] | None = absent()
    cleared: Literal[True] | None = absent()
    reason: str
    by: Literal["model", "person", "file"]


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
    """Another note in the log of a session."""

    kind: Literal["note"]
    name: str
    data: dict[str, Json]


Text = UserLine | ReasoningLine | AssistantLine | ToolResultLine | ModelErrorLine  # lines of both
OfRun = Text | RequestedLine | SubmittedLine | DoneLine | OpenLine  # lines of an attempt of a run
OfSession = (
    Text | ArrivedLine | HeardLine | SummaryLine | EventLine | VersionLine | CallLine | ResultLine | NoteLine
)  # lines of a session


def is_told_in(line: OfSession, thread: str) -> bool:
    """True if the line belongs to what was said in a thread; a `/compress` does, though a thread of its own answers it."""
    typed = isinstance(line, UserLine) and line.typed and (line.thread or "").startswith(entries.SUMMARY)
    return line.thread == thread or bool(typed and (line.thread or "").endswith(f":{thread}"))


def typed(line: OfSession) -> str | None:
    """Return what the person typed, for a line that is a word of theirs besides a message."""
    match line:
        case UserLine(typed=str(word)):
            return word
        case NoteLine(name="stopped"):
            return "/stop"
        case NoteLine(name="answered", data={"answer": answer, "question": question}):
            return f"{answer}\n(to: {question})"
        case _:
            return None


def is_resume(line: OfSession) -> bool:
    return isinstance(line, NoteLine) and line.name == "claimed" and int(line.data["epoch"]) > 1


def fields_of(entry: entries.AnyEntry, *without: str) -> dict[str, Json]:
    # Thoughts are encrypted: nobody but their model can read them.
    left_out = {"v", "seq", "blob", "text", "tokens", "chars", "value", "args", "thoughts", *without}
    return entry.model_dump(mode="json", exclude=left_out, exclude_none=True)
