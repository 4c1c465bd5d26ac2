"""The views of ``runops query``, their columns, and the insertion of rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from nodes.values import Json
from runtime.log import entries, ledger

if TYPE_CHECKING:
    import duckdb


class Column(NamedTuple):
    name: str
    type: str
    text: str


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


RUN = ("run", "VARCHAR", "id of the run")
REQUESTER = ("run", "VARCHAR", "id of the run, or of the session")
CONVERSATION = ("conversation", "VARCHAR", "id of the session")

DOLLARS = "DECIMAL(30, 15)"  # exact: a price of a million tokens has fewer than nine places


def _versions(value: str) -> tuple[Column, ...]:
    return _columns(
        CONVERSATION,
        ("number", "BIGINT", "of the version, from 1"),
        ("line", "BIGINT", "line of the log"),
        ("written", "TIMESTAMP", "when, UTC"),
        ("reason", "VARCHAR", "why"),
        ("author", "VARCHAR", "who wrote it: model or person"),
        ("value", "VARCHAR", f"{value}; null if it was cleared"),
    )


VIEWS: dict[str, tuple[Column, ...]] = {
    "runs": _columns(
        RUN,
        ("workflow", "VARCHAR", "name of the workflow"),
        ("file", "VARCHAR", "its file"),
        ("row", "VARCHAR", "the row of a table that gave its inputs"),
        ("state", "VARCHAR", "running, passed, failed, paused, interrupted, out-of-budget, or died"),
        ("exit", "INTEGER", "exit code; null while it runs, and if it died"),
        ("started", "TIMESTAMP", "first entry of its log, UTC"),
        ("ended", "TIMESTAMP", "last entry of its log, UTC"),
        ("seconds", "DOUBLE", "from the first entry to the last"),
        ("calls", "BIGINT", "attempts of steps"),
        ("tolerated", "BIGINT", "failures that `on_error: continue` tolerated"),
        ("error", "VARCHAR", "code of the error that it failed with"),
        ("message", "VARCHAR", "what the error says"),
        ("path", "VARCHAR", "the step that failed"),
        ("output", "VARCHAR", "the run's result, as JSON; of a long one the beginning"),
        ("parent", "VARCHAR", "the session from which it was started"),
    ),
    "steps": _columns(
        RUN,
        ("line", "BIGINT", "line of the log, of the last attempt"),
        ("path", "VARCHAR", "path of the step: `checkout/each_order[#1007]/pay`"),
        ("node", "VARCHAR", "node type"),
        ("action", "VARCHAR", "its action or query"),
        ("effect", "VARCHAR", "read, idempotent or effect"),
        ("status", "VARCHAR", "ok, error, recovered, interrupted, skipped, or open: of the last attempt"),
        ("attempts", "BIGINT", "how often it was tried"),
        ("started", "TIMESTAMP", "when the first attempt acted, UTC"),
        ("seconds", "DOUBLE", "of all attempts together"),
        ("error", "VARCHAR", "code of the last attempt's error"),
        ("message", "VARCHAR", "what the error says"),
    ),
    "calls": _columns(
        REQUESTER,
        ("call", "VARCHAR", "id of the call in its run or session"),
        ("line", "BIGINT", "line of the log"),
        ("thread", "VARCHAR", "run, confirm:<call>, model:<call>; in a session: session, delegate:<call>"),
        ("path", "VARCHAR", "path of the step; in a session of the tool call"),
        ("node", "VARCHAR", "node type"),
        ("action", "VARCHAR", "its action or query, or the tool"),
        ("attempt", "BIGINT", "number of the attempt, from 1"),
        ("effect", "VARCHAR", "read, idempotent or effect"),
        ("started", "TIMESTAMP", "when it acted, UTC"),
        ("status", "VARCHAR", "ok, error, recovered, interrupted, skipped, or open"),
        ("reconciled", "VARCHAR", "what a later check found: done, not-done, skipped"),
        ("tolerated", "BOOLEAN", "whether `on_error: continue` tolerated it"),
        ("seconds", "DOUBLE", "how long it took"),
        ("error", "VARCHAR", "code of its error"),
        ("message", "VARCHAR", "what the error says"),
    ),
    "costs": _columns(
        REQUESTER,
        ("line", "BIGINT", "line of the log that announces the request"),
        ("path", "VARCHAR", "the step that asked; in a session the delegate, …/summary for a summary, else empty"),
        ("call", "VARCHAR", "id of the attempt's call in its run, or of the delegate's in its session"),
        ("attempt", "BIGINT", "number of the step's attempt, from 1"),
        ("thread", "VARCHAR", "model:<call>; in a session: session, delegate:<call>, summary:<number>:<thread>"),
        ("tried", "BIGINT", "number of the try of the same request, from 1; null if a cassette answered"),
        ("started", "TIMESTAMP", "when it was announced, UTC"),
        ("status", "VARCHAR", "ok, error, or open: its outcome is unknown"),
        ("source", "VARCHAR", "model or cassette"),
        ("model", "VARCHAR", "as the server names it, else as requested"),
        ("estimate", "BIGINT", "tokens of the input, as estimated before it was sent"),
        ("output_limit", "BIGINT", "tokens that the answer might have"),
        ("input_tokens", "BIGINT", "tokens sent, as the server counts"),
        ("cached_tokens", "BIGINT", "of these, read from the cache"),
        ("output_tokens", "BIGINT", "tokens received, reasoning included"),
        ("reasoning_tokens", "BIGINT", "of these, reasoning"),
        ("dollars", DOLLARS, "what it cost; null if that is unknown, or nothing was paid"),
        ("paid", "BOOLEAN", "whether it costs anything, as far as known"),
        ("seconds", "DOUBLE", "time until its end"),
        ("response", "VARCHAR", "id of the server's response"),
        ("error", "VARCHAR", "code of its error"),
    ),
    "plans": _versions("the plan, as JSON"),
    "descriptions": _versions("the description"),
    "sessions": _columns(
        ("session", "VARCHAR", "id of the session"),
        ("purpose", "VARCHAR", "chat or build"),
        ("about", "VARCHAR", "the run that it is about, or the workflow file; of a build the goal"),
        ("parent", "VARCHAR", "the conversation that began it"),
        ("forked", "VARCHAR", "the session from which it is a fork"),
        ("state", "VARCHAR", "running: a process holds it; or idle"),
        ("mode", "VARCHAR", "chat, agent or run"),
        ("started", "TIMESTAMP", "first entry of its log, UTC"),
        ("last", "TIMESTAMP", "last entry of its log, UTC"),
        ("messages", "BIGINT", "messages of the person and answers of the model"),
        ("requests", "BIGINT", "requests to models, delegates and summaries included"),
        ("dollars", DOLLARS, "what they cost; null if that is unknown for one of them"),
    ),
}

STEPS = """
SELECT run, line, path, node, action, effect,
  CASE reconciled WHEN 'done' THEN 'recovered' WHEN 'skipped' THEN 'skipped' ELSE status END AS status,
  count(*) OVER step AS attempts, min(started) OVER step AS started, sum(seconds) OVER step AS seconds, error, message
FROM calls WHERE thread = 'run'
WINDOW step AS (PARTITION BY run, path)
QUALIFY row_number() OVER (PARTITION BY run, path ORDER BY line DESC) = 1
"""


def cost(run: str, row: ledger.Spent, asked: Mapping[str, Json]) -> dict[str, Json]:
    """Return a row of ``costs``; ``asked`` are facts of a request that the ledger does not keep."""
    used = row.usage.model_dump() if row.usage is not None else {}
    return {
        **{name: getattr(row, name) for name in ("line", "path", "thread", "status", "source", "model", "response")},
        **asked,
        **{f"{kind}_tokens": number for kind, number in used.items()},
        "run": run,
        "started": moment(row.at),
        "estimate": row.estimate if row.source == "model" else None,
        "output_limit": row.limit if row.source == "model" else None,
        "dollars": ledger.plain(row.dollars) if row.dollars is not None else None,
        "paid": row.paid,
        "seconds": row.seconds if row.status != "open" and row.source == "model" else None,
        "error": row.error,
    }


def call(run: str, asked: entries.Call, result: entries.Result | None = None) -> dict[str, Json]:
    """Return a row of ``calls``."""
    names = ("call", "thread", "path", "node", "action", "attempt", "effect")
    row = {name: getattr(asked, name) for name in names} | {"run": run, "line": asked.seq, "started": moment(asked.at)}
    if result is None:
        return {**row, "status": "open", "tolerated": False}
    error = result.error or {}
    return {
        **row,
        "status": result.status,
        "tolerated": bool(result.tolerated),
        "seconds": result.seconds,
        "error": error.get("code"),
        "message": error.get("message"),
    }


def moment(at: str) -> str:
    """Return a time of a log as DuckDB reads it: UTC, without a zone."""
    return at.removesuffix("Z")


def insert(database: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Json]]) -> None:
    if not rows:
        return
    structure = json.dumps([{each.name: each.type for each in VIEWS[table]}])
    database.execute(
        f"INSERT INTO {table} SELECT unnest(from_json($1::JSON, '{structure}'), max_depth := 2)",
        [json.dumps(rows)],
    )
