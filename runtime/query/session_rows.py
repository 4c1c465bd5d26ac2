"""Loads the log of a session into the tables of ``runops query``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nodes.errors import LogError
from nodes.values import Json
from runtime.log import entries, ledger
from runtime.log import session as log_session
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import value_of
from runtime.query import views
from runtime.workspace import session_index

if TYPE_CHECKING:
    import duckdb


def read(database: duckdb.DuckDBPyConnection, files: file_store.Files, session: str) -> None:
    """Add the session's rows; none for a fork that was never complete. Raises LogError for a damaged log, or one of a later version."""
    reading = files.read(session)
    past = log_session.Session(reading.entries)
    if not past.begun:
        return
    views.insert(database, "sessions", [_session(session_index.summary(session, past, owned=reading.owned), past)])
    views.insert(database, "calls", [views.call(session, each.call, each.result) for each in past.actions.values()])
    views.insert(database, "costs", list(_costs(session, reading, past)))
    views.insert(database, "plans", [_version(session, each, files) for each in past.versions("plan")])
    views.insert(database, "descriptions", [_version(session, each, files) for each in past.versions("description")])


def _session(summary: session_index.SessionSummary, past: log_session.Session) -> dict[str, Json]:
    spent = ledger.totals(past.ledger.rows)
    names = ("purpose", "about", "parent", "forked", "state", "mode", "messages")
    return {
        **{name: getattr(summary, name) for name in names},
        # The summary of a build names no run or file: its goal takes that place.
        "about": summary.about or (summary.begins if summary.purpose == "build" else None),
        "session": summary.id,
        "started": views.moment(summary.started),
        "last": views.moment(summary.last),
        "requests": spent["requests"],
        "dollars": spent["dollars"],
    }


def _costs(session: str, reading: log_store.Reading, past: log_session.Session) -> Iterator[dict[str, Json]]:
    tries = {
        each.seq: each.data["try"]
        for each in reading.entries
        if isinstance(each, entries.Note) and each.name == "requested"
    }
    for row in past.ledger.rows:
        # A summary of a delegate's work also belongs to the call that started the delegate.
        thread = row.thread.split(":", 2)[2] if row.thread.startswith(entries.SUMMARY) else row.thread
        call = entries.call_of(thread) or None
        attempt = past.actions[call].call.attempt if call in past.actions else None
        yield views.cost(session, row, {"call": call, "attempt": attempt, "tried": tries.get(row.line)})


def _version(session: str, version: entries.Version, files: log_store.StoreReader) -> dict[str, Json]:
    return {
        "conversation": session,
        "number": version.number,
        "line": version.seq,
        "written": views.moment(version.at),
        "reason": version.reason,
        "author": version.by,
        "value": _value(version, files),
    }


def _value(version: entries.Version, files: log_store.StoreReader) -> str | None:
    if version.cleared:
        return None
    try:
        value = value_of(version, files)
    except LogError:
        # The blob cannot be read, but its preview is in the log itself.
        return version.blob.preview if version.blob is not None else None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
