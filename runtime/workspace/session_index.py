"""The conversations of a workspace: of what kind each is, and the sessions among them."""

from __future__ import annotations

import dataclasses
from typing import Literal

from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime.display.text import cut, one_line
from runtime.log import entries
from runtime.log import session as log_session
from runtime.log.store import store

Kind = Literal["run", "session"]
SessionState = Literal["running", "idle", "damaged"]
"""``running``: a process holds it; ``idle``: nobody does, and anybody may go on with it."""

BEGINNING = 60
"""Characters of the first word of a session, which tells it from others."""


def kind(kept: store.Kept, conversation: str) -> Kind | None:
    """What a conversation is, by its first line, and nothing else of it is read; None where that line is not whole. Raises UsageError ``unknown-run``."""
    match kept.first(conversation):
        case entries.Scope(session=entries.SessionHeader()):
            return "session"
        case entries.Scope(run=entries.RunHeader()):
            return "run"
        case _:
            return None


def is_somebodys_run(kept: store.Kept, conversation: str) -> bool:
    """Whether it is a run that was begun as one: no session, and no copy in which a fix was tried."""
    match kept.first(conversation):
        case entries.Scope(session=entries.SessionHeader()):
            return False
        case entries.Scope(run=entries.RunHeader(trial=dict() as trial)):
            return "copy" not in trial
        case _:
            return True


def refuse_session(kept: store.Kept, conversation: str) -> None:
    """Raise UsageError ``not-a-run`` where the conversation is a session."""
    if kind(kept, conversation) == "session":
        raise UsageError(
            "not-a-run",
            f"{conversation} is a session, and no run",
            fix=f"go on with it: `{again(conversation, kept)}`; `runops show {conversation}` tells what was said",
        )


def again(session: str, kept: store.Kept) -> str:
    """What goes on with a session."""
    match kept.first(session):
        case entries.Scope(session=entries.SessionHeader(purpose="build")):
            return f"runops build --resume {session}"
        case _:
            return f"runops chat --resume {session}"


def fold(reading: store.Reading) -> log_session.Session:
    """What a session holds. Raises UsageError ``not-a-session`` for a run, and for a fork whose maker died before it was whole."""
    first = next(iter(reading.entries), None)
    if isinstance(first, entries.Scope) and first.run is not None:
        raise UsageError(
            "not-a-session",
            f"{reading.id} is a run, and no session",
            fix=f"talk about it: `runops chat {reading.id}`; go on with it: `runops resume {reading.id}`",
        )
    is_session = isinstance(first, entries.Scope) and first.session is not None
    past = log_session.Session(reading.entries if is_session else ())
    if not past.begun:
        raise UsageError(
            "not-a-session",
            f"session {reading.id} died before it had begun",
            fix="begin another one: `runops chat`",
        )
    return past


@dataclasses.dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line of ``runops runs --sessions``."""

    id: str
    purpose: str
    state: SessionState
    about: str | None
    """The run that it is about by now, or the workflow file; None: neither."""
    parent: str | None
    forked: str | None
    """The session from which it is a fork."""
    mode: str
    started: str
    last: str
    messages: int
    costs: dict[str, Json] | None
    """What models cost in it, as it stands in ``runops show``; None where none was asked."""
    begins: str
    """The beginning of the first word."""
    problem: str | None = None
    """For a damaged log: what is wrong, with file and line."""


def list_sessions(kept: store.Kept) -> list[SessionSummary]:
    """Every session, oldest first. A damaged one is listed as such; one that has not begun is left out."""
    found: list[SessionSummary] = []
    for conversation in kept.ids():
        try:
            if kind(kept, conversation) != "session":
                continue
            reading = kept.read(conversation)
        except LogError as error:
            found.append(_damaged(conversation, error.message))
            continue
        except UsageError:
            # `runops prune` took it away since its name was read.
            continue
        past = log_session.Session(reading.entries)
        if past.begun:
            found.append(summary(conversation, past, held=reading.held))
    return found


def summary(conversation: str, past: log_session.Session, *, held: bool) -> SessionSummary:
    """A session that has begun, in a line."""
    assert past.header is not None
    return SessionSummary(
        id=conversation,
        purpose=past.header.purpose,
        state="running" if held else "idle",
        about=past.about or past.header.file,
        parent=past.header.parent,
        forked=past.header.forked.conversation if past.header.forked is not None else None,
        mode=past.mode,
        started=past.started,
        last=past.last_at,
        messages=past.messages,
        costs=past.ledger.totals(),
        begins=_beginning(past),
    )


def titled(past: log_session.Session) -> str:
    """What a session is, where a workflow's name stands for a run: ``chat about pay.yaml``, ``chat: Why did it fail?``."""
    assert past.header is not None
    about = past.about or past.header.file
    first = _beginning(past)
    return f"{past.header.purpose} about {about}" if about else ": ".join(filter(None, (past.header.purpose, first)))


def _beginning(past: log_session.Session) -> str:
    said = past.thread(entries.SESSION_THREAD).said
    word = next((each for each in said if isinstance(each, entries.User)), None)
    if word is None:
        return ""
    text = word.blob.preview if word.blob is not None else word.text or ""
    return cut(one_line(text), BEGINNING)


def _damaged(conversation: str, problem: str) -> SessionSummary:
    return SessionSummary(conversation, "?", "damaged", None, None, None, "?", "", "", 0, None, "", problem)
