"""Entries of a conversation, and their form as lines. ``docs/log-format.md`` is the specification."""

from __future__ import annotations

import datetime as dt
import hashlib
import zlib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from nodes.errors import LogError
from nodes.values import Json

FORMAT = 1
RUN_THREAD = "run"
SESSION_THREAD = "session"
"""Thread of a session in which the person talks with the model."""


BACKGROUND_THREAD = "background"
"""Thread of a run with one entry: the conversation of the session that began it, as the models of its steps have it."""

MODEL = "model:"


def model_thread(call: str) -> str:
    return f"{MODEL}{call}"


def call_of(thread: str) -> str:
    return thread.partition(":")[2]


DELEGATE = "delegate:"


def delegate_thread(call: str) -> str:
    return f"{DELEGATE}{call}"


SUMMARY = "summary:"


def summary_thread(thread: str, number: int) -> str:
    return f"{SUMMARY}{number}:{thread}"


CONFIRM = "confirm:"
"""Prefix of threads in which a ``confirm`` asks the site about an action, in a separate tab: of its call, or of its step before there is one."""

PERSON = "a person said so"
"""Source of a verdict that a person gave. Only a person's *not done* outlasts the process that recorded it."""

SUM = b',"sum":"'
SUM_LENGTH = len(SUM) + len('00000000"}')


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Blob(Record):
    sha256: str
    bytes: int
    preview: str
    path: str


class RunHeader(Record):
    """Start of a run: its file, inputs and settings. Secrets appear as names only."""

    workflow: str
    file: str
    text: Blob
    callees: dict[str, Blob]
    inputs: dict[str, Json]
    secrets: list[str]
    origins: list[str]
    browser: dict[str, Json]
    versions: dict[str, str]
    trial: dict[str, Json] | None = None
    """For a trial of one node: the node and its inputs. A trial is never resumed."""
    key: str | None = None
    row: str | None = None
    """Label of the row of a table that gave its inputs."""
    budget: str | None = None
    parent: str | None = None
    tool: str | None = None
    """Path of the call, in the parent, of the tool that began it: such a run belongs to that session's work."""


Mode = Literal["chat", "agent", "run"]
"""Mode of a session: a talk, a model that acts with tools, a talk as in a run. It changes only the instructions of the model."""


class Forked(Record):
    conversation: str
    line: int


class Repairs(Record):
    run: str
    path: str
    file: str
    """The workflow's file: the build leaves it as it is."""
    evidence: str


class Build(Record):
    goal: str
    url: str | None = None
    save: str
    force: bool = False
    anew: Literal[True] | None = None
    """True if the draft begins empty, whatever file the session is about."""
    runs: int
    effects: Literal["ask", "allow", "hold"]
    inputs: dict[str, Json]
    secrets: list[str]
    repairs: Repairs | None = None


class SessionHeader(Record):
    purpose: Literal["chat", "build"]
    run: str | None = None
    file: str | None = None
    parent: str | None = None
    forked: Forked | None = None
    versions: dict[str, str]
    budget: str | None = None
    """Budget of the session, delegates included."""
    build: Build | None = None


class SourceChange(Record):
    """Fields of a run that come from its file, and change if a resumed run takes another workflow text."""

    workflow: str
    text: Blob
    callees: dict[str, Blob]
    inputs: dict[str, Json]
    secrets: list[str]
    origins: list[str]


class PageState(Record):
    documents: int
    pending: bool
    posted: Literal[True] | None = None
    status: int | None = None
    url: str | None = None
    load: Literal["new", "same"] | None = None
    """For a step that loads an address: "new" if it gave a new document, "same" if another view of the same one."""


class Entry(Record):
    """Fields of every line. The log sets ``seq`` and ``at`` when the entry is appended."""

    v: Literal[1] = FORMAT
    seq: int = 0
    at: str = ""
    thread: str = RUN_THREAD


class Scope(Entry):
    kind: Literal["scope"] = "scope"
    path: str
    event: Literal["opened", "decided", "committed", "failed"]
    node: str
    value: Json = None
    blob: Blob | None = None
    masked: Literal[True] | None = None
    recorded: list[str] | None = None
    error: dict[str, Json] | None = None
    tolerated: Literal[True] | None = None
    run: RunHeader | None = None
    session: SessionHeader | None = None


class Call(Entry):
    kind: Literal["call"] = "call"
    call: str = ""
    path: str
    node: str
    action: str | None = None
    asked: str | None = None
    again: str | None = None
    """For a step that continues the conversation of an earlier attempt: the call that began it and named its thread."""
    attempt: int
    effect: Literal["read", "idempotent", "effect"]
    args: Json = None
    blob: Blob | None = None
    held_before: bool | None = None
    url: str | None = None
    matched: list[str] | None = None
    recorded: list[str] | None = None
    fingerprint: str


Status = Literal["ok", "error", "recovered", "interrupted", "skipped"]


def thread_of(call: Call) -> str:
    """Return the thread of a step with its model: its own, or that of the attempt whose conversation it continues."""
    return model_thread(call.again or call.call)


class Result(Entry):
    kind: Literal["result"] = "result"
    call: str
    status: Status
    value: Json = None
    blob: Blob | None = None
    masked: Literal[True] | None = None
    error: dict[str, Json] | None = None
    tolerated: Literal[True] | None = None
    files: list[dict[str, Json]] | None = None
    flags: list[dict[str, Json]] | None = None
    """Matters that a person should check although the step continued: ``code``, ``message``, ``evidence``."""
    dismissed: list[str] | None = None
    """Overlays that were closed meanwhile, as `dismiss` names them."""
    unmatched: str | None = None
    """For a count of nothing: the part around the target that matched nothing."""
    seconds: float | None = None
    page: PageState | None = None


class Checkpoint(Entry):
    """Browser state to rebuild from; it holds the consequences of every line up to ``after``."""

    kind: Literal["checkpoint"] = "checkpoint"
    file: str
    urls: list[str]
    after: int
    sha256: str | None = None
    verified: dict[str, Json] | None = None
    """Rules that held on the page then: ``rules``, and the ``seconds`` that the page had to meet them."""


class Said(Entry):
    text: str | None = None
    blob: Blob | None = None
    tokens: int = 0
    """Maximum number of tokens that it can have in a request, counted when it was written."""
    chars: int = 0


class User(Said):
    """Message to a model: the question, or the fault of its last answer. In a session, a person's message."""

    kind: Literal["user"] = "user"
    mode: Mode | None = None
    upto: int | None = None
    """For a question for a summary: the last line of the thread that the summary replaces."""
    until: int | None = None
    """The line up to which more summaries follow, as one request could not hold all."""
    heard: int | None = None
    """The line of the ``heard`` entry whose message this gives to the model."""


class Heard(Said):
    """A person's message, kept at the moment when it was said: the model works, and has it with its next request, as a ``user`` entry."""

    kind: Literal["heard"] = "heard"
    mode: Mode


class Reasoning(Entry):
    kind: Literal["reasoning"] = "reasoning"
    text: str


class Arrived(Entry):
    """A part of an answer that a person was shown as it came. Where the process ended before the answer, nothing else has it."""

    kind: Literal["arrived"] = "arrived"
    text: str


class Usage(Record):
    input: int
    cached: int
    output: int
    reasoning: int


class ToolCallEntry(Record):
    id: str
    name: str
    arguments: str | None = None
    """Arguments as the model wrote them, secrets masked."""
    blob: Blob | None = None
    masked: Literal[True] | None = None


class ThoughtEntry(Record):
    """Reasoning that the server has encrypted. It is opaque: it is kept and sent back unchanged, and never masked."""

    id: str
    before: int
    """Number of the call that it leads to, from 1; 0: it leads to the text."""
    tokens: int
    reader: str
    """Model and server that made it, the only ones that can read it."""
    sealed: str | None = None
    blob: Blob | None = None


Source = Literal["model", "cassette", "log"]
"""Source of an answer: a model, a cassette, or an earlier attempt of the step that a crash ended."""


class Assistant(Said):
    """A model's answer; it closes the exchange that the last request began."""

    kind: Literal["assistant"] = "assistant"
    key: str
    """Identity of the request: the SHA-256 of its normalised form."""
    source: Source
    masked: Literal[True] | None = None
    """True if it held a secret: the text is not exactly what the model wrote."""
    model: str
    response: str | None = None
    stored: Literal[True] | None = None
    """True if the server keeps the response, and a later request can continue from it."""
    usage: Usage | None = None
    dollars: str | None = None
    """Cost as a decimal number; null if the price is unknown or nothing was paid."""
    seconds: float | None = None
    calls: list[ToolCallEntry] | None = None
    """Tools that it asks for, in order: each gets one ``call`` with its result."""
    thoughts: list[ThoughtEntry] | None = None


class PictureEntry(Record):
    """A picture that a tool shows to the model."""

    blob: Blob
    width: int
    height: int


class ToolResult(Said):
    kind: Literal["tool_result"] = "tool_result"
    asked: str
    picture: PictureEntry | None = None


class Summary(Said):
    kind: Literal["summary"] = "summary"
    upto: int
    until: int | None = None
    """The line up to which more summaries follow, as one request could not hold all."""
    refresh: list[str] | None = None
    """Tools with which the model can see how things stand since; shown with the summary."""


class Ran(Record):
    """Spending of a run on models while a session followed it. It counts against the session's budget; the run's log has each request."""

    calls: int
    tokens: int
    """Input and output tokens. A request with unknown outcome counts with its maximum."""
    dollars: str | None = None
    seconds: float
    totals: dict[str, Json] | None = None
    """Totals as in the run's own costs, for people; null if no model was asked."""


RUN_TOOL = "run_workflow"
"""Name of the call as which a run stands in a session. It is never offered as a tool."""


class Event(Said):
    """A person's action besides talking, or something that happened meanwhile. A model may see it as one line.

    With ``asked`` it is a run: a call of ``RUN_TOOL`` whose output is the text. It is written when the run ends or pauses.
    """

    kind: Literal["event"] = "event"
    run: str | None = None
    """Run of the event: from here on the session is about it."""
    asked: str | None = None
    """Id of the call as which the run stands in the session."""
    what: str | None = None
    """The message or command that began the run; of another event what the person typed."""
    upto: int | None = None
    """Line of the run's log up to which the text tells it."""
    spent: Ran | None = None
    """Spending of that run on models."""


class Version(Entry):
    """A value that a session keeps, valid from here on. Earlier values are in earlier entries."""

    kind: Literal["version"] = "version"
    thread: str = SESSION_THREAD
    of: Literal["plan", "description", "draft", "variable", "mode", "window", "setting", "grant", "bench", "goal"]
    name: str = ""
    number: int
    value: Json = None
    blob: Blob | None = None
    masked: Literal[True] | None = None
    cleared: Literal[True] | None = None
    reason: str
    by: Literal["model", "person", "file"]


class ModelError(Said):
    """A request without an answer. Its text is the part of the answer that arrived."""

    kind: Literal["model_error"] = "model_error"
    error: dict[str, Json]
    usage: Usage | None = None
    dollars: str | None = None
    seconds: float | None = None
    again: float | None = None
    """Seconds until the request is sent again; null if it is not."""
    free: Literal[True] | None = None
    """True if the server did not work on it, so it cost nothing."""
    pending: Literal[True] | None = None
    """True for a background request: the server may still be at work, so a process that continues fetches the answer."""


NoteName = Literal[
    "claimed",
    "changed",
    "tail-truncated",
    "restoring",
    "restored",
    "reconciled",
    "confirm-tried",
    "paused",
    "decided",
    "asked",
    "answered",
    "stopped",
    "requested",
    "submitted",
    "reset",
    "child-started",
    "child-ended",
    "delegate-started",
    "evidence",
    "left-out",
    "ended",
]


class Note(Entry):
    """An entry that is neither call nor scope: ownership, restore, verdict, question, answer, end of the run."""

    kind: Literal["note"] = "note"
    name: NoteName
    data: dict[str, Json]


AnyEntry = (
    Scope
    | Call
    | Result
    | Checkpoint
    | User
    | Heard
    | Reasoning
    | Arrived
    | Assistant
    | ToolResult
    | ModelError
    | Summary
    | Event
    | Version
    | Note
)
_ADAPTER: TypeAdapter[AnyEntry] = TypeAdapter(Annotated[AnyEntry, Field(discriminator="kind")])


def now() -> str:
    """Return the present moment as in entries: UTC, ISO 8601, milliseconds."""
    return _written(dt.datetime.now(dt.UTC))


def moment(seconds: float) -> str:
    """Return a moment, in seconds since 1970, as in entries."""
    return _written(dt.datetime.fromtimestamp(seconds, dt.UTC))


def _written(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def numbered(entry: AnyEntry, seq: int) -> AnyEntry:
    """Return the entry as line ``seq`` of a log, written now unless it is a copy; a call gets its id."""
    given: dict[str, Json] = {"seq": seq, "at": entry.at or now()}
    if isinstance(entry, Call):
        given["call"] = f"c{seq}"
    return entry.model_copy(update=given)


def blob_of(data: bytes, path: str) -> Blob:
    sha256 = hashlib.sha256(data).hexdigest()
    return Blob(sha256=sha256, bytes=len(data), preview=data[:200].decode(errors="ignore"), path=path)


def encode(entry: AnyEntry) -> bytes:
    """Return the entry's line, with its checksum and the newline. Null fields are left out."""
    return seal(entry.model_dump_json(exclude_none=True)[:-1].encode())


def seal(unsealed: bytes) -> bytes:
    return b'%b%b%08x"}\n' % (unsealed, SUM, zlib.crc32(unsealed))


def beginning(seq: int) -> bytes:
    return b'{"v":%d,"seq":%d,' % (FORMAT, seq)


def is_sealed(line: bytes) -> bool:
    return line == seal(line[: -SUM_LENGTH - 1])


class BadLine(ValueError):
    """A line that differs from what was written; the message says in what way."""


def decode(line: bytes) -> AnyEntry:
    """Return the entry of a line (with or without its newline). Raises BadLine, and LogError ``log-too-new`` for a later format version."""
    line = line.rstrip(b"\n")
    unsealed, sealed = line[:-SUM_LENGTH], line[-SUM_LENGTH:]
    if sealed != b'%b%08x"}' % (SUM, zlib.crc32(unsealed)):
        has_one = sealed.startswith(SUM) and sealed.endswith(b'"}')
        raise BadLine("its checksum does not fit" if has_one else "it has no checksum")
    try:
        return _ADAPTER.validate_json(unsealed + b"}")
    except ValidationError as error:
        refuse_later_version(unsealed + b"}")
        first: Any = error.errors()[0]
        raise BadLine(f"it is not an entry: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None


def refuse_later_version(line: bytes) -> None:
    try:
        version = _Versioned.model_validate_json(line).v
    except ValidationError:
        return
    if version > FORMAT:
        raise LogError(
            "log-too-new",
            f"the log has format version {version}, and this RunOps reads versions up to {FORMAT}",
            fix="use the RunOps that wrote it, or a later one",
        )


class _Versioned(BaseModel):
    v: int
