"""The conversations of a workspace: their kinds, and the sessions among them."""

from __future__ import annotations

import dataclasses
from typing import Literal

from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime.display.text import cut, one_line
from runtime.log import entries
from runtime.log import session as log_session
from runtime.log.store import store as log_store

Kind = Literal["run", "session"]
SessionState = Literal["running", "idle", "damaged"]
"""``running``: a process owns it. ``idle``: none does, and it can be continued."""

BEGINNING = 60  # characters shown of a session's first message


def kind(store: log_store.StoreReader, conversation: str) -> Kind | None:
    """Return a conversation's kind, from its first line alone; None if that is incomplete. Raises UsageError ``unknown-run``."""
    match store.first(conversation):
        case entries.Scope(session=entries.SessionHeader()):
            return "session"
        case entries.Scope(run=entries.RunHeader()):
            return "run"
        case _:
            return None


def is_user_run(store: log_store.StoreReader, conversation: str, *, whole: bool = False) -> bool:
    """True if it was begun as a run: no session, no copy for testing a fix, not by a tool of a session, and with ``whole`` no trial."""
    match store.first(conversation):
        case entries.Scope(session=entries.SessionHeader()):
            return False
        case entries.Scope(run=entries.RunHeader(tool=str())):
            return False
        case entries.Scope(run=entries.RunHeader(trial=dict() as trial)):
            return not whole and "copy" not in trial
        case _:
            return True


def refuse_session(store: log_store.StoreReader, conversation: str) -> None:
    if kind(store, conversation) == "session":
        fix = f"continue with it: `{again(conversation, store)}`; `runops show {conversation}` shows what was said"
        raise UsageError("not-a-run", f"{conversation} is a session, and no run", fix=fix)


def again(session: str, store: log_store.StoreReader) -> str:
    first = store.first(session)
    build = isinstance(first, entries.Scope) and first.session is not None and first.session.purpose == "build"
    return f"runops {'build' if build else 'chat'} --resume {session}"


def fold(reading: log_store.Reading) -> log_session.Session:
    """Build the session from its log. Raises UsageError ``not-a-session`` for a run, and for an incomplete fork whose creator died."""
    first = next(iter(reading.entries), None)
    if isinstance(first, entries.Scope) and first.run is not None:
        fix = f"talk about it: `runops chat {reading.id}`; continue with it: `runops resume {reading.id}`"
        raise UsageError("not-a-session", f"{reading.id} is a run, and no session", fix=fix)
    is_session = isinstance(first, entries.Scope) and first.session is not None
    past = log_session.Session(reading.entries if is_session else ())
    if not past.begun:
        message = f"session {reading.id} died before it had begun"
        raise UsageError("not-a-session", message, fix="begin another one: `runops chat`")
    return past


@dataclasses.dataclass(frozen=True, slots=True)
class SessionSummary:
    id: str
    purpose: str
    state: SessionState
    about: str | None  # the run that it is about now, or the workflow file; None: neither
    parent: str | None
    forked: str | None
    mode: str
    started: str
    last: str
    messages: int
    costs: dict[str, Json] | None  # the cost of its models, as in `runops show`; None if none was asked
    begins: str
    problem: str | None = None


def list_sessions(store: log_store.StoreReader) -> list[SessionSummary]:
    """List the sessions, oldest first. A damaged one is listed as such; one that has not begun is left out."""
    found: list[SessionSummary] = []
    for conversation in store.ids():
        try:
            if kind(store, conversation) != "session":
                continue
            reading = store.read(conversation)
        except LogError as error:
            damaged = SessionSummary(
                conversation, "?", "damaged", None, None, None, "?", "", "", 0, None, "", error.message
            )
            found.append(damaged)
            continue
        except UsageError:
            # `runops prune` deleted it after its name was read.
            continue
        past = log_session.Session(reading.entries)
        if past.begun:
            found.append(summary(conversation, past, owned=reading.owned))
    return found


def summary(conversation: str, past: log_session.Session, *, owned: bool) -> SessionSummary:
    assert past.header is not None
    return SessionSummary(
        id=conversation,
        purpose=past.header.purpose,
        state="running" if owned else "idle",
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
    """Return a session's title, in place of a workflow's name: ``chat about pay.yaml``, ``chat: Why did it fail?``."""
    assert past.header is not None
    about = past.about or past.header.file
    purpose = past.header.purpose
    return f"{purpose} about {about}" if about else ": ".join(filter(None, (purpose, _beginning(past))))


def _beginning(past: log_session.Session) -> str:
    said = past.thread(entries.SESSION_THREAD).said
    word = next((each for each in said if isinstance(each, entries.User)), None)
    if word is None:
        return ""
    text = word.blob.preview if word.blob is not None else word.text or ""
    return cut(one_line(text), BEGINNING)
