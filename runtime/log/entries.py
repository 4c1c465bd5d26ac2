"""The entries of a conversation, and their form as lines. ``docs/log-format.md`` is the specification."""

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
"""The thread of a session in which the person speaks with the model."""


MODEL = "model:"
"""What the name of a thread with a model begins with."""


def model_thread(call: str) -> str:
    """The thread of what a call has with a model."""
    return f"{MODEL}{call}"


def call_of(thread: str) -> str:
    """The call to which a thread other than the run's own belongs."""
    return thread.partition(":")[2]


DELEGATE = "delegate:"
"""What the name of a thread begins with in which a model works that another one has sent."""


def delegate_thread(call: str) -> str:
    """The thread of the delegate that a call has sent."""
    return f"{DELEGATE}{call}"


SUMMARY = "summary:"
"""What the name of a thread begins with in which a model is asked to sum up another thread."""


def summary_thread(thread: str, number: int) -> str:
    """The thread in which ``thread`` is summed up for the ``number``-th time, from 1."""
    return f"{SUMMARY}{number}:{thread}"


CONFIRM = "confirm:"
"""What the name of a thread begins with in which the site is asked about an action, in a tab of its own."""

PERSON = "a person said so"
"""How it is known what became of a side effect of which a person said so; this alone outlasts the process that heard *not done*."""

SUM = b',"sum":"'
SUM_LENGTH = len(SUM) + len('00000000"}')


class Record(BaseModel):
    """A part of an entry."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Blob(Record):
    """A large value that stands outside the log, by the hash of its bytes."""

    sha256: str
    bytes: int
    preview: str
    path: str


class RunHeader(Record):
    """What a run was started with. Secrets stand as names only."""

    workflow: str
    file: str
    text: Blob
    callees: dict[str, Blob]
    """The texts of the files that it uses, by path from its own folder."""
    inputs: dict[str, Json]
    secrets: list[str]
    origins: list[str]
    browser: dict[str, Json]
    versions: dict[str, str]
    trial: dict[str, Json] | None = None
    """Of a trial of one node: which, and what it was given. It is never resumed."""
    key: str | None = None
    """The key under which the run was begun, if it was given one."""
    budget: str | None = None
    """What its steps may spend together, if that was said."""
    parent: str | None = None
    """The session from which it was started."""


Mode = Literal["chat", "agent", "run"]
"""How a session goes on: a talk, a model that acts with tools, a talk as a run has it. It changes what the model is told of itself, and nothing else."""


class Forked(Record):
    """What a session goes on from that was another one up to there."""

    conversation: str
    line: int
    """The last line of the other one that it has taken over."""


class Repairs(Record):
    """What a build is to fix that goes on from a run which failed."""

    run: str
    """That run."""
    path: str
    """The step at which it failed."""
    file: str
    """The workflow's file: the build leaves it as it is."""
    evidence: str
    """What is known of the failure, as the model is told it."""


class Build(Record):
    """What a build is to reach, as the person said it."""

    goal: str
    url: str | None = None
    """Where the site is."""
    save: str
    """The file in which the workflow is left."""
    force: bool = False
    """Whether that file may be one that was there before."""
    runs: int
    """How often the draft must pass."""
    effects: Literal["ask", "allow", "hold"]
    """What becomes of side effects."""
    inputs: dict[str, Json]
    """Those with which it is proved."""
    secrets: list[str]
    """Names of those that it may use."""
    repairs: Repairs | None = None
    """Where it fixes a workflow that is there."""


class SessionHeader(Record):
    """What a session was begun with."""

    purpose: Literal["chat", "build"]
    run: str | None = None
    """The run that it is about."""
    file: str | None = None
    """The workflow file that it is about."""
    parent: str | None = None
    """The conversation that began it."""
    forked: Forked | None = None
    versions: dict[str, str]
    budget: str | None = None
    """What it may spend, delegates included."""
    build: Build | None = None
    """Of a build: what it is to reach."""


class SourceChange(Record):
    """What a run has from its file: it may take another one on its way."""

    workflow: str
    text: Blob
    callees: dict[str, Blob]
    inputs: dict[str, Json]
    secrets: list[str]
    origins: list[str]


class PageState(Record):
    """What a step left on the pages."""

    documents: int
    pending: bool
    posted: Literal[True] | None = None
    """A tab shows the answer to a form."""
    status: int | None = None
    """The error with which the site answered for the document that was shown."""
    url: str | None = None
    """Address of the tab, of an action of class *effect*: where it has led."""
    load: Literal["new", "same"] | None = None
    """Of a step that loads an address: whether that gave a new document, or another view of the same one."""


class Entry(Record):
    """What every line has. ``seq`` and ``at`` are given by the log when it is appended."""

    v: Literal[1] = FORMAT
    seq: int = 0
    at: str = ""
    thread: str = RUN_THREAD


class Scope(Entry):
    """A container, one turn of a loop, or the run itself: opened, decided, committed, failed."""

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
    """One attempt of a leaf, written just before the action."""

    kind: Literal["call"] = "call"
    call: str = ""
    path: str
    node: str
    action: str | None = None
    asked: str | None = None
    """Of what a model asked for: the id of its call in the exchange before."""
    again: str | None = None
    """Of a step that goes on with the conversation of an earlier attempt: the call that began the conversation, and gave its thread the name."""
    attempt: int
    effect: Literal["read", "idempotent", "effect"]
    args: Json = None
    blob: Blob | None = None
    held_before: bool | None = None
    url: str | None = None
    """Address of the tab just before an action of class *effect*."""
    matched: list[str] | None = None
    recorded: list[str] | None = None
    fingerprint: str


Status = Literal["ok", "error", "recovered", "interrupted", "skipped"]


def thread_of(call: Call) -> str:
    """The thread that a step has with its model: of its own, or of the attempt with whose conversation it goes on."""
    return model_thread(call.again or call.call)


class Result(Entry):
    """The outcome of one call."""

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
    """What a person should look at, though the step went on: ``code``, ``message``, ``evidence``."""
    seconds: float | None = None
    page: PageState | None = None


class Checkpoint(Entry):
    """Browser state to rebuild from; it holds the consequences of every line up to ``after``."""

    kind: Literal["checkpoint"] = "checkpoint"
    file: str
    urls: list[str]
    after: int
    sha256: str | None = None
    """Of the file's bytes."""
    verified: dict[str, Json] | None = None
    """What held on the page then: ``rules``, and ``seconds`` that it had to come to that."""


class Said(Entry):
    """What stands in a thread with a model, word for word."""

    text: str | None = None
    blob: Blob | None = None
    tokens: int = 0
    """The most tokens that it can have in a request, counted when it was written."""
    chars: int = 0
    """Its characters in a request."""


class User(Said):
    """What a model is told: the question, or what was wrong with its last answer. In a session, what a person says."""

    kind: Literal["user"] = "user"
    mode: Mode | None = None
    """Of a session: how it goes on."""
    upto: int | None = None
    """Of the question for a summary: the last line of the thread that it is to stand for."""


class Reasoning(Entry):
    """A summary of what a model thought before the answer that follows."""

    kind: Literal["reasoning"] = "reasoning"
    text: str


class Usage(Record):
    """Tokens of one request, as the server counted them."""

    input: int
    cached: int
    output: int
    reasoning: int


class ToolCallEntry(Record):
    """A model asks for a tool."""

    id: str
    name: str
    arguments: str | None = None
    """As the model wrote them, secrets masked."""
    blob: Blob | None = None
    masked: Literal[True] | None = None
    """A secret stood in the arguments."""


Source = Literal["model", "cassette", "log"]
"""Where an answer came from: a model, a cassette, or an earlier attempt of the step that a crash ended."""


class Assistant(Said):
    """A model's answer: it closes the exchange that the last request began."""

    kind: Literal["assistant"] = "assistant"
    key: str
    """What tells the request from others: the SHA-256 of its normalised form."""
    source: Source
    masked: Literal[True] | None = None
    """A secret stood in it: the text is not what the model said."""
    model: str
    """As the server names it."""
    response: str | None = None
    """The response's id."""
    usage: Usage | None = None
    dollars: str | None = None
    """What it cost: a decimal number; null where the price is not known, or nothing was paid."""
    seconds: float | None = None
    calls: list[ToolCallEntry] | None = None
    """The tools that it asks for, in order: each gets one ``call`` with its result."""


class ToolResult(Said):
    """What a model was told of a call that it had asked for."""

    kind: Literal["told"] = "told"
    asked: str


class Summary(Said):
    """What stands in a request for all of the thread that came before."""

    kind: Literal["summary"] = "summary"
    upto: int
    """The last line that it stands for."""


class Ran(Record):
    """What a run spent on models while a session followed it. Its own log has each request; here stands what counts against the session's budget."""

    calls: int
    tokens: int
    """Of input and output; a request of which nobody knows the outcome counts with the most that it may have had."""
    dollars: str | None = None
    """Null where a price is not known."""
    seconds: float
    totals: dict[str, Json] | None = None
    """As the run's own costs are rolled up, for people; null where no model was asked."""


class Event(Said):
    """What a person did beside talking, or what happened meanwhile: a model may be told of it in a line."""

    kind: Literal["event"] = "event"
    run: str | None = None
    """The run that it was: from here on the session is about that one."""
    spent: Ran | None = None
    """What that run spent on models."""


class Version(Entry):
    """What a session keeps beside what is said, as it stands from here on. What it was before is in the entries before."""

    kind: Literal["version"] = "version"
    thread: str = SESSION_THREAD
    of: Literal["plan", "description", "draft", "variable", "mode", "window", "setting", "grant", "bench"]
    name: str = ""
    """The variable's, the setting's, the action's that was allowed, the node's of the bench."""
    number: int
    """From 1, for each thing that is kept and each name."""
    value: Json = None
    blob: Blob | None = None
    masked: Literal[True] | None = None
    cleared: Literal[True] | None = None
    """It has no value any more."""
    reason: str
    by: Literal["model", "person"]


class ModelError(Said):
    """A request that brought no answer. Its text is what had come of one."""

    kind: Literal["model_error"] = "model_error"
    error: dict[str, Json]
    usage: Usage | None = None
    dollars: str | None = None
    seconds: float | None = None
    again: float | None = None
    """Seconds after which it is sent again; null where it is not."""
    free: Literal[True] | None = None
    """The server did not work on it, so it cost nothing."""
    pending: Literal[True] | None = None
    """In the background: the server may be at it still, so that whoever goes on fetches the answer."""


NoteName = Literal[
    "claimed",
    "changed",
    "tail-truncated",
    "restoring",
    "restored",
    "reconciled",
    "paused",
    "decided",
    "answered",
    "requested",
    "submitted",
    "child-started",
    "child-ended",
    "evidence",
    "ended",
]


class Note(Entry):
    """Something that is neither call nor scope: who owns the run, what was restored, judged, asked, answered; how it ended."""

    kind: Literal["note"] = "note"
    name: NoteName
    data: dict[str, Json]


AnyEntry = (
    Scope
    | Call
    | Result
    | Checkpoint
    | User
    | Reasoning
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
    """The present moment, as entries tell it: UTC, ISO 8601, milliseconds."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def numbered(entry: AnyEntry, seq: int) -> AnyEntry:
    """The entry as line ``seq`` of a log, written now; a call gets its id."""
    given: dict[str, Json] = {"seq": seq, "at": now()}
    if isinstance(entry, Call):
        given["call"] = f"c{seq}"
    return entry.model_copy(update=given)


def blob_of(data: bytes, path: str) -> Blob:
    """How entries name a blob with these bytes; ``path`` is what it is called in them."""
    sha256 = hashlib.sha256(data).hexdigest()
    return Blob(sha256=sha256, bytes=len(data), preview=data[:200].decode(errors="ignore"), path=path)


def encode(entry: AnyEntry) -> bytes:
    """The entry's line, with its checksum and the newline. Fields that are null are left out."""
    return seal(entry.model_dump_json(exclude_none=True)[:-1].encode())


def seal(unsealed: bytes) -> bytes:
    """A line from its bytes without checksum and closing brace."""
    return b'%b%b%08x"}\n' % (unsealed, SUM, zlib.crc32(unsealed))


def beginning(seq: int) -> bytes:
    """What line ``seq`` of a log begins with."""
    return b'{"v":%d,"seq":%d,' % (FORMAT, seq)


def is_sealed(line: bytes) -> bool:
    """Whether a line (with its newline) fits its checksum."""
    unsealed = line[: -SUM_LENGTH - 1]
    return line[len(unsealed) :] == b'%b%08x"}\n' % (SUM, zlib.crc32(unsealed))


class BadLine(ValueError):
    """A line that is not what was written; the message says in what way."""


def decode(line: bytes) -> AnyEntry:
    """The entry of a line (with or without its newline). Raises BadLine, and LogError ``log-too-new`` for a later format version."""
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
    """Raise LogError ``log-too-new`` where the line was written by a later format version."""
    try:
        version = _VERSION.validate_json(line).v
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


_VERSION = TypeAdapter(_Versioned)
