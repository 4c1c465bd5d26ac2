"""Begins, reopens and forks sessions."""

from __future__ import annotations

import asyncio
import bisect
import re
from collections.abc import Callable, Sequence

from director.session import state_paths
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

_LINE = re.compile(rf"{state_paths.LINE}(\d{{1,12}})\b")


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

    It copies the conversation and the session state, but neither spending nor threads of subagents.
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
        "forked": log_entries.Forked(conversation=conversation, line=taken[-1].seq if taken else 1),
        "versions": version.versions(),
        "budget": budget if budget is not None else past.budget,
    }
    writer = LogWriter(await store.create(log_store.new_id()), session.Session(), masker, store.reader)
    async with log_store.release_on_error(writer.conversation):
        _open(writer, past.header.model_copy(update=update))
        # The header is synced first, so that a partial log is recognised after a power cut.
        await writer.barrier()
        _copy(writer, taken)
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
    end = _first_open(entries)
    given = {each.heard for each in entries if isinstance(each, log_entries.User) and each.seq < end}
    closed = {each.call for each in entries if isinstance(each, log_entries.Result) and each.seq < end}
    taken = [
        each
        for each in entries
        if each.seq < end
        and _is_taken(each)
        and (not isinstance(each, log_entries.Call) or each.call in closed)
        and not (isinstance(each, log_entries.Heard) and each.seq in given)
    ]
    # A conversation cannot continue from reasoning without its answer.
    while taken and isinstance(taken[-1], log_entries.Reasoning):
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


def _is_taken(entry: log_entries.AnyEntry) -> bool:
    if isinstance(entry, log_entries.ModelError) and (entry.again is not None or entry.pending is not None):
        # A broken answer that was requested again, or that is still pending, is not part of the conversation.
        return False
    said = isinstance(entry, log_entries.Said | log_entries.Reasoning | log_entries.Call | log_entries.Result)
    kept = isinstance(entry, log_entries.Version) and entry.of not in ("bench", "grant")
    stopped = isinstance(entry, log_entries.Note) and entry.name == "stopped"
    return kept or ((said or stopped) and entry.thread == log_entries.SESSION_THREAD)


def _copy(writer: SessionWriter, taken: Sequence[log_entries.AnyEntry]) -> None:
    lines: list[int] = []
    first = writer.history.last_seq + 1
    calls: dict[str, str] = {}

    def now(line: int) -> int:
        return first + bisect.bisect_right(lines, line) - 1

    def renamed(path: re.Match[str]) -> str:
        line = int(path[1])
        return f"{state_paths.LINE}{now(line) if line in lines else 0}"

    for entry in taken:
        copied = _as_taken(entry, calls, now)
        if isinstance(copied, log_entries.Summary):
            # It names lines of the log, and here they have other numbers.
            text = writer.text_of(copied)
            if (here := _LINE.sub(renamed, text)) != text:
                writer.said(copied, here, copied.blob.path if copied.blob is not None else "")
                lines.append(entry.seq)
                continue
        written = writer.copy(copied)
        if isinstance(entry, log_entries.Call) and isinstance(written, log_entries.Call):
            calls[entry.call] = written.call
        lines.append(entry.seq)


def _as_taken(entry: log_entries.AnyEntry, calls: dict[str, str], now: Callable[[int], int]) -> log_entries.AnyEntry:
    match entry:
        case log_entries.Assistant():
            # It was paid for in the original session.
            return entry.model_copy(update={"source": "log", "usage": None, "dollars": None, "seconds": None})
        case log_entries.ModelError():
            return entry.model_copy(update={"usage": None, "dollars": None, "seconds": None})
        case log_entries.Event():
            return entry.model_copy(update={"spent": None})
        case log_entries.Result():
            return entry.model_copy(update={"call": calls[entry.call]})
        case log_entries.User():
            # A heard message that the model has is copied as that one entry.
            return entry.model_copy(update={"heard": None})
        case log_entries.Summary():
            until = now(entry.until) if entry.until is not None else None
            return entry.model_copy(update={"upto": now(entry.upto), "until": until})
        case log_entries.Version():
            return entry.model_copy(update={"thread": log_entries.SESSION_THREAD})
        case _:
            return entry
