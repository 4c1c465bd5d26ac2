"""The lines of `chat --json-lines`: what a front end says to a session, and what it hears from it, one JSON object a line."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nodes.values import Json
from runtime.display import escapes
from runtime.log import entries
from runtime.report import endings
from runtime.report.parts import Costs, Model, absent


class Said(Model):
    """A line that a front end writes. A line that is no JSON object is the same as its text in ``say``."""

    say: str
    """A message to the model, or a word with a slash."""
    meanwhile: bool = False
    """True if the model is to have the message while it works on an earlier one. Others wait for their turn, but for `/stop`."""


class Answered(Model):
    """A line that answers the open question."""

    answer: str
    """One of its choices, by its text or its number, or free text."""


ChatLine = Said | Answered


class Heard(Model):
    """A line that a front end reads."""

    def line(self) -> str:
        return escapes.in_json(self.model_dump_json())


class SessionEvent(Heard):
    """The session: first of all, and again after a word that changed one of these."""

    event: Literal["session"] = "session"
    version: Literal[1] = 1
    """Changes if an event or a field is removed or changes its meaning. A front end ignores what it does not know."""
    session: str
    mode: entries.Mode
    about: endings.AboutReport
    title: str
    """What it is about, in a line."""


class ReadyEvent(Heard):
    """Messages are read from now on: what a crash left unanswered is answered."""

    event: Literal["ready"] = "ready"


class RequestEvent(Heard):
    """A request goes to a model. What its answer says begins anew: also if it is sent again."""

    event: Literal["request"] = "request"
    model: str
    tokens: int
    """Tokens of the request, an upper bound."""
    limit: int
    """The tokens that it may have."""


class TextEvent(Heard):
    """A piece of an answer."""

    event: Literal["text"] = "text"
    text: str


class WaitingEvent(Heard):
    """What the session waits for."""

    event: Literal["waiting"] = "waiting"
    text: str


class CallEvent(Heard):
    """The model calls a tool."""

    event: Literal["call"] = "call"
    path: str
    """Names the call; one of a delegate is below the call that sent it (`4_delegate/1_find`)."""
    tool: str
    arguments: str
    """Whole, as the model wrote them: usually JSON."""


class OutputEvent(Heard):
    """A call has its output."""

    event: Literal["output"] = "output"
    path: str
    failed: bool
    text: str
    """What the model is shown."""


class DelegateEvent(Heard):
    """A delegate has ended; what it took."""

    event: Literal["delegate"] = "delegate"
    path: str
    text: str


class RunEvent(Heard):
    """An event of a run that the session began: its steps as they begin and end."""

    event: Literal["run"] = "run"
    run: dict[str, Json]
    """As a listener has it (docs/embedding.md): `event` is `run-started`, `step-started`, `step-finished`, `run-ended` …"""


class QuestionEvent(Heard):
    """A tool asks the person; the session waits for an `answer`. Asked again after an answer that is none of the choices."""

    event: Literal["question"] = "question"
    path: str
    """The call that asks."""
    question: str
    choices: list[str]
    free: bool
    """Whether another answer than the choices is allowed."""


class ChangedEvent(Heard):
    """Something that is kept has changed: the plan, a variable, the draft."""

    event: Literal["changed"] = "changed"
    of: str
    name: str


class NoteEvent(Heard):
    """A sentence for the person: what a word did, that something was summed up."""

    event: Literal["note"] = "note"
    text: str


class WarningEvent(Heard):
    """A warning for the person."""

    event: Literal["warning"] = "warning"
    text: str


class ResultEvent(Heard):
    """What a word with a slash has to show."""

    event: Literal["result"] = "result"
    text: str


class KeptEvent(Heard):
    """A message with `meanwhile` came while something works, and is in the log: the model has it with its next request."""

    event: Literal["kept"] = "kept"


class ReplyEvent(Heard):
    """The model has answered, and works on, for a message came meanwhile. The last answer is in `answer`."""

    event: Literal["reply"] = "reply"
    text: str


class ProposalEvent(Heard):
    """The model proposes what the person may do with the session's run: the next message does it if it is `yes`."""

    event: Literal["proposal"] = "proposal"
    command: str
    """A word with a slash: `/answer TEXT`, `/decide done` …"""


class CostsEvent(Heard):
    """What an answer cost."""

    event: Literal["costs"] = "costs"
    costs: Costs


class AnswerEvent(Heard):
    """A message is done: with an answer, an error, or the run that it began."""

    event: Literal["answer"] = "answer"
    said: str
    answer: str | None
    error: endings.ErrorReport | None
    run: endings.RunRecord | None = absent()


class EndEvent(Heard):
    """The last line: the outcome, as `chat --json` prints it."""

    event: Literal["end"] = "end"
    ending: endings.ChatEnding


ChatEvent = Annotated[
    SessionEvent
    | ReadyEvent
    | RequestEvent
    | TextEvent
    | WaitingEvent
    | CallEvent
    | OutputEvent
    | DelegateEvent
    | RunEvent
    | QuestionEvent
    | ChangedEvent
    | NoteEvent
    | WarningEvent
    | ResultEvent
    | KeptEvent
    | ReplyEvent
    | ProposalEvent
    | CostsEvent
    | AnswerEvent
    | EndEvent,
    Field(discriminator="event"),
]
