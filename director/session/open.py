"""Begins, reopens and forks sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nodes.errors import UsageError
from nodes.values import Json
from runtime import version
from runtime.log import entries as log_entries
from runtime.log import session
from runtime.log.store import owners
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.secrets import masking
from runtime.workspace import session_index

SessionWriter = LogWriter[session.Session]

_NOTES = ("child-started", "child-ended", "delegate-started", "asked", "answered", "stopped")
"""Notes that a fork takes over."""

LEFT_OUT = log_entries.Note(thread=log_entries.SESSION_THREAD, name="left-out", data={})
"""Stands in a fork for a line of the other session that it does not take over."""


async def begin(
    store: log_store.Store, header: log_entries.SessionHeader, masker: masking.Masker, *, strategy: str | None = None
) -> SessionWriter:
    """Begin a session owned by this process; ``strategy`` is the one that holds. Raises LogError."""
    writer = LogWriter(await store.create(log_store.new_id()), session.Session(), masker, store.reader)
    async with log_store.release_on_error(writer.conversation):
        _open(writer, header)
        _claimed(writer, strategy=strategy)
    return writer


async def reopen(
    store: log_store.Store,
    conversation: str,
    masker: masking.Masker,
    *,
    take_over: bool = False,
    budget: str | None = None,
    strategy: str | None = None,
) -> SessionWriter:
    """Claim an existing session. Calls that a crash left open stay open until the next turn closes them.

    ``take_over`` ends a running process that owns it; ``budget`` replaces the session's budget; ``strategy`` is the one that holds.
    Raises UsageError ``not-a-session`` and ``unknown-run``, RunHeld, LogError.
    """
    # Refuse an id that is no session before anything is claimed or any process is ended.
    session_index.fold(await store.read(conversation))
    owned, entries = await store.claim(conversation, take_over=take_over)
    async with log_store.release_on_error(owned):
        past = await asyncio.to_thread(session.Session, entries)
        writer = LogWriter(owned, past, masker, store.reader)
        details: dict[str, Json] = (
            {"taken_from": owned.taken_from.as_evidence()} if owned.taken_from is not None else {}
        )
        if budget is not None and budget != past.budget:
            details["budget"] = budget
        _claimed(writer, strategy=strategy, **details)
    return writer


async def fork(
    store: log_store.Store,
    conversation: str,
    masker: masking.Masker,
    line: int | None = None,
    *,
    budget: str | None = None,
    strategy: str | None = None,
) -> SessionWriter:
    """Begin a session, owned by this process, that continues from another one's state at ``line``, by default its last.

    It copies the past line by line with its times, but not what was spent, permitted and executed.
    The other session is only read, and may be active: an answer with open calls is left out, with all that follows it.
    ``budget`` is by default the other's.
    Raises UsageError ``not-a-session``, ``unknown-run``, and ``usage`` for a line that it does not have; LogError.
    """
    reading = await store.read(conversation)
    past = await asyncio.to_thread(session_index.fold, reading)
    assert past.header is not None
    if line is not None and not 1 <= line <= past.last_seq:
        raise UsageError(
            "usage", f"session {conversation} has no line {line}", fix=f"its lines are 1 to {past.last_seq}"
        )
    taken = _taken(reading.entries[: line if line is not None else None])
    update = {
        # A fork of a build has its goal and draft; what was executed and granted stays with the other session.
        "purpose": "chat",
        "forked": log_entries.Forked(conversation=conversation, line=len(taken) + 1),
        "versions": version.versions(),
        "budget": budget if budget is not None else past.budget,
    }
    writer = LogWriter(await store.create(log_store.new_id()), session.Session(), masker, store.reader)
    async with log_store.release_on_error(writer.conversation):
        _open(writer, past.header.model_copy(update=update))
        # The header is synced first, so that a partial log is recognised after a power cut.
        await writer.barrier()
        for each in taken:
            writer.copy(each)
        _claimed(writer, strategy=strategy)
        await writer.barrier()
    return writer


def look(
    store: log_store.StoreReader, reading: log_store.Reading, past: session.Session, masker: masking.Masker
) -> SessionWriter:
    return LogWriter(log_store.Unwritten(reading.id, past.epoch), past, masker, store)


def find(store: log_store.StoreReader, name: str, *, builds: bool = False) -> str:
    """Return the id of the session that ``name`` means: an id, a unique part of one, or ``last``; with ``builds`` the last one that builds.

    Raises UsageError ``unknown-session``, and ``not-a-session`` for the id of a run.
    """
    ids = store.ids()
    if name == "last":
        last = next((each for each in reversed(ids) if _has_begun(store, each, builds=builds)), None)
        if last is None:
            raise UsageError(
                "unknown-session",
                f"there are no {'builds' if builds else 'sessions'} in {store.place}",
                fix='begin one: `runops build "GOAL" --url URL`' if builds else "begin one: `runops chat`",
            )
        return last
    wanted = name.upper()
    found = [each for each in ids if each == wanted] or [
        each for each in ids if wanted and (each.startswith(wanted) or each.endswith(wanted))
    ]
    if len(found) == 1:
        session_index.fold(store.read(found[0]))
        return found[0]
    what = f"no session is called {name!r}"
    if found:
        what = f"{len(found)} conversations are called {name!r}: {', '.join(found[:5])}"
    raise UsageError("unknown-session", what, fix="`runops runs --sessions` lists the sessions")


def _has_begun(store: log_store.StoreReader, conversation: str, *, builds: bool) -> bool:
    try:
        if session_index.kind(store, conversation) != "session":
            return False
        return session_index.fold(store.read(conversation)).builds or not builds
    except UsageError:
        return False


def _open(writer: SessionWriter, header: log_entries.SessionHeader) -> None:
    writer.scope("", "opened", "session", thread=log_entries.SESSION_THREAD, session=header)


def _claimed(writer: SessionWriter, *, strategy: str | None, **details: Json) -> None:
    held = {"strategy": strategy} if strategy is not None else {}
    data: dict[str, Json] = {
        **owners.me(),
        "epoch": writer.conversation.epoch,
        "version": version.VERSION,
        **held,
        **details,
    }
    writer.noted("claimed", data, log_entries.SESSION_THREAD)


def _taken(entries: Sequence[log_entries.AnyEntry]) -> list[log_entries.AnyEntry]:
    """Return what a fork has of the lines behind the first, each in its place: paths that name a line or a call lead to the same."""
    entries = entries[: _first_open(entries) - 1]
    # A conversation cannot continue from reasoning without its answer.
    while entries and isinstance(entries[-1], log_entries.Reasoning):
        entries = entries[:-1]
    closed = {each.call for each in entries if isinstance(each, log_entries.Result)}
    ended = {each.run for each in entries if isinstance(each, log_entries.Event)}
    ended |= {each.data["run"] for each in entries if isinstance(each, log_entries.Note) and each.name == "child-ended"}
    newest = {each.thread: each for each in entries if isinstance(each, log_entries.Said)}
    taken = list[log_entries.AnyEntry]()
    for each in entries[1:]:
        open_summary = each.thread.startswith(log_entries.SUMMARY) and isinstance(
            newest.get(each.thread), log_entries.User
        )
        open_call = isinstance(each, log_entries.Call) and each.call not in closed
        open_run = isinstance(each, log_entries.Note) and each.name == "child-started" and each.data["run"] not in ended
        taken.append(LEFT_OUT if open_summary or open_call or open_run else _as_taken(each))
    while taken and taken[-1] is LEFT_OUT:
        taken.pop()
    return taken


def _first_open(entries: Sequence[log_entries.AnyEntry]) -> int:
    """Return the line of the session's first answer with unfinished calls; the line after the last if there is none."""
    waiting: dict[str, int] = {}
    for entry in entries:
        if entry.thread == log_entries.SESSION_THREAD and isinstance(entry, log_entries.Assistant):
            waiting |= {each.id: entry.seq for each in entry.calls or ()}
        elif entry.thread == log_entries.SESSION_THREAD and isinstance(entry, log_entries.ToolResult):
            waiting.pop(entry.asked, None)
    return min(waiting.values(), default=len(entries) + 1)


def _as_taken(entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
    """Return what a fork has of an entry: what was spent, permitted, executed and claimed stays with the other session."""
    match entry:
        case log_entries.Assistant():
            # It was paid for in the original session.
            return entry.model_copy(update={"source": "log", "usage": None, "dollars": None, "seconds": None})
        case log_entries.ModelError(again=None, pending=None):
            return entry.model_copy(update={"usage": None, "dollars": None, "seconds": None})
        case log_entries.Event():
            return entry.model_copy(update={"spent": None})
        case log_entries.Note() if entry.name in _NOTES:
            return entry.model_copy(
                update={"data": {name: each for name, each in entry.data.items() if name != "spent"}}
            )
        case log_entries.ModelError() | log_entries.Note() | log_entries.Scope() | log_entries.Checkpoint():
            return LEFT_OUT
        case log_entries.Version() if entry.of in ("bench", "grant"):
            return LEFT_OUT
        case _:
            return entry
