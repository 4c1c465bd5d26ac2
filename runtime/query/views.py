"""The views of ``runops query``, their columns, and the insertion of rows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodes.values import Json
from runtime.log import ledger

if TYPE_CHECKING:
    import duckdb


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of a view."""

    name: str
    type: str
    text: str


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


RUN = ("run", "VARCHAR", "id of the run")
REQUESTER = ("run", "VARCHAR", "id of the run, or of the session")
CONVERSATION = ("conversation", "VARCHAR", "id of the session")

DOLLARS = "DECIMAL(30, 15)"
"""Exact: a price of a million tokens has fewer than nine places."""


def _versions(value: str) -> tuple[Column, ...]:
    return _columns(
        CONVERSATION,
        ("number", "BIGINT", "of the version, from 1"),
        ("line", "BIGINT", "line of the log"),
        ("written", "TIMESTAMP", "when, UTC"),
        ("reason", "VARCHAR", "why"),
        ("author", "VARCHAR", "who wrote it: model or person"),
        ("value", "VARCHAR", f"{value}; null where it was cleared"),
    )


VIEWS: dict[str, tuple[Column, ...]] = {
    "runs": _columns(
        RUN,
        ("workflow", "VARCHAR", "name of the workflow"),
        ("file", "VARCHAR", "its file"),
        ("state", "VARCHAR", "running, passed, failed, paused, interrupted, out-of-budget, or died"),
        ("exit", "INTEGER", "exit code; null while it runs and where it died"),
        ("started", "TIMESTAMP", "first entry of its log, UTC"),
        ("ended", "TIMESTAMP", "last entry of its log, UTC"),
        ("seconds", "DOUBLE", "from the first entry to the last"),
        ("calls", "BIGINT", "attempts of steps"),
        ("tolerated", "BIGINT", "failures that `on_error: continue` passed over"),
        ("error", "VARCHAR", "code of the error that it failed with"),
        ("message", "VARCHAR", "what the error says"),
        ("path", "VARCHAR", "the step that failed"),
        ("parent", "VARCHAR", "the session from which it was started"),
    ),
    "steps": _columns(
        RUN,
        ("line", "BIGINT", "line of the log, of the last attempt"),
        ("path", "VARCHAR", "place of the step: `checkout/each_order[#1007]/pay`"),
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
        ("thread", "VARCHAR", "run, confirm:<call>, model:<call>; of a session session, delegate:<call>"),
        ("path", "VARCHAR", "place of the step; of a session of the tool that was asked for"),
        ("node", "VARCHAR", "node type"),
        ("action", "VARCHAR", "its action or query, or the tool"),
        ("attempt", "BIGINT", "number of the attempt, from 1"),
        ("effect", "VARCHAR", "read, idempotent or effect"),
        ("started", "TIMESTAMP", "when it acted, UTC"),
        ("status", "VARCHAR", "ok, error, recovered, interrupted, skipped, or open"),
        ("reconciled", "VARCHAR", "what was found out about it later: done, not-done, skipped"),
        ("tolerated", "BOOLEAN", "whether `on_error: continue` passed over it"),
        ("seconds", "DOUBLE", "how long it took"),
        ("error", "VARCHAR", "code of its error"),
        ("message", "VARCHAR", "what the error says"),
    ),
    "costs": _columns(
        REQUESTER,
        ("line", "BIGINT", "line of the log with which the request was announced"),
        (
            "path",
            "VARCHAR",
            "the step that asked a model; of a session the delegate, …/summary for a summary, empty for itself",
        ),
        ("call", "VARCHAR", "id of the attempt's call in its run, or of the delegate's in its session"),
        ("attempt", "BIGINT", "number of the step's attempt, from 1"),
        (
            "thread",
            "VARCHAR",
            "model:<call>, the thread of the request; of a session session, delegate:<call>, summary:<number>:<thread>",
        ),
        ("tried", "BIGINT", "number of the try of the same request, from 1; null where a cassette answered"),
        ("started", "TIMESTAMP", "when it was announced, UTC"),
        ("status", "VARCHAR", "ok, error, or open: nobody knows what became of it"),
        ("source", "VARCHAR", "model or cassette"),
        ("model", "VARCHAR", "as the server names it, else as it was asked for"),
        ("estimate", "BIGINT", "tokens of the input, as reckoned before it was sent"),
        ("output_limit", "BIGINT", "tokens that the answer might have"),
        ("input_tokens", "BIGINT", "tokens sent, as the server counts"),
        ("cached_tokens", "BIGINT", "of these, read from the cache"),
        ("output_tokens", "BIGINT", "tokens received, reasoning included"),
        ("reasoning_tokens", "BIGINT", "of these, reasoning"),
        ("dollars", DOLLARS, "what it cost; null where nobody knows, and where nothing was paid"),
        ("paid", "BOOLEAN", "whether it costs anything, for all that is known"),
        ("seconds", "DOUBLE", "how long it was waited for"),
        ("response", "VARCHAR", "id of the server's response"),
        ("error", "VARCHAR", "code of the error that it ended with"),
    ),
    "plans": _versions("the plan, as JSON"),
    "descriptions": _versions("the description"),
    "sessions": _columns(
        ("session", "VARCHAR", "id of the session"),
        ("purpose", "VARCHAR", "chat or build"),
        ("about", "VARCHAR", "the run that it is about by now, or the workflow file; of a build the goal"),
        ("parent", "VARCHAR", "the conversation that began it"),
        ("forked", "VARCHAR", "the session from which it is a fork"),
        ("state", "VARCHAR", "running: a process holds it; or idle"),
        ("mode", "VARCHAR", "chat, agent or run"),
        ("started", "TIMESTAMP", "first entry of its log, UTC"),
        ("last", "TIMESTAMP", "last entry of its log, UTC"),
        ("messages", "BIGINT", "words of the person and answers of the model"),
        ("requests", "BIGINT", "requests to models, those of delegates and for summaries included"),
        ("dollars", DOLLARS, "what they cost; null where that is not known of all of them"),
    ),
}
"""The views, each with its columns."""

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
        "started": row.at.removesuffix("Z"),
        "estimate": row.estimate if row.source == "model" else None,
        "output_limit": row.limit if row.source == "model" else None,
        "dollars": ledger.plain(row.dollars) if row.dollars is not None else None,
        "paid": row.paid,
        "seconds": row.seconds if row.status != "open" and row.source == "model" else None,
        "error": row.error,
    }


def hand_over(database: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Json]]) -> None:
    """Insert rows into the table of a view."""
    if not rows:
        return
    structure = json.dumps([{each.name: each.type for each in VIEWS[table]}])
    database.execute(
        f"INSERT INTO {table} SELECT unnest(from_json($1::JSON, '{structure}'), max_depth := 2)",
        [json.dumps(rows)],
    )
