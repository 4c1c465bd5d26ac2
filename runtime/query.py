"""SQL over all runs of a workspace: their logs are read into a database in memory, one after another and line by line, then the statement.

A log may be written to meanwhile: a torn last line is not there yet. A damaged log is left out and named.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nodes import registry
from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime import damage, log, settings, store
from runtime.models import ledger
from runtime.sql import lockdown, results, statement

if TYPE_CHECKING:
    import duckdb

MEGABYTES = 512
"""Memory that the tables and the statement may take."""

BATCH = 2000
"""Calls that are handed over at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of a view."""

    name: str
    type: str
    text: str


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


RUN = ("run", "VARCHAR", "id of the run")

DOLLARS = "DECIMAL(30, 15)"
"""Exact: a price of a million tokens has fewer than nine places."""

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
        RUN,
        ("call", "VARCHAR", "id of the call in its run"),
        ("line", "BIGINT", "line of the log"),
        ("thread", "VARCHAR", "run, or confirm:<call>"),
        ("path", "VARCHAR", "place of the step"),
        ("node", "VARCHAR", "node type"),
        ("action", "VARCHAR", "its action or query"),
        ("attempt", "BIGINT", "number of the attempt, from 1"),
        ("effect", "VARCHAR", "read, idempotent or effect"),
        ("started", "TIMESTAMP", "when it acted, UTC"),
        ("status", "VARCHAR", "ok, error, recovered, interrupted, skipped, or open"),
        ("judged", "VARCHAR", "what was found out about it later: done, not-done, skipped"),
        ("tolerated", "BOOLEAN", "whether `on_error: continue` passed over it"),
        ("seconds", "DOUBLE", "how long it took"),
        ("error", "VARCHAR", "code of its error"),
        ("message", "VARCHAR", "what the error says"),
    ),
    "costs": _columns(
        RUN,
        ("line", "BIGINT", "line of the log with which the request was announced"),
        ("path", "VARCHAR", "the step that asked a model"),
        ("call", "VARCHAR", "id of the attempt's call in its run"),
        ("attempt", "BIGINT", "number of the step's attempt, from 1"),
        ("thread", "VARCHAR", "model:<call>, the thread of the request"),
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
    "plans": _columns(
        ("session", "VARCHAR", "id of the session"),
        ("version", "BIGINT", "number of the plan's version, from 1"),
        ("written", "TIMESTAMP", "when, UTC"),
        ("text", "VARCHAR", "the plan"),
    ),
}
"""The views, each with its columns."""

STEPS = """
SELECT run, line, path, node, action, effect,
  CASE judged WHEN 'done' THEN 'recovered' WHEN 'skipped' THEN 'skipped' ELSE status END AS status,
  count(*) OVER step AS attempts, min(started) OVER step AS started, sum(seconds) OVER step AS seconds, error, message
FROM calls WHERE thread = 'run'
WINDOW step AS (PARTITION BY run, path)
QUALIFY row_number() OVER (PARTITION BY run, path ORDER BY line DESC) = 1
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What a query yields."""

    result: results.Result
    left_out: list[LogError]
    """The logs that could not be read, each with what is wrong with it."""


def ask(chosen: settings.Settings, text: str) -> Answer:
    """The rows of one SELECT over the views.

    Raises UsageError ``bad-query`` for a statement that cannot be used (with a near miss where there is one), ``query-limit`` where it
    needs too much memory. Both can also come while batches of the result are read.
    """
    import duckdb  # costs 150 ms

    database = lockdown.connect(MEGABYTES)
    try:
        read = statement.read(database, text)
        for table in read.tables:
            _refuse_unknown(table.name, read.own)
        if read.params:
            raise statement.Refused("sql-refused", f"`${min(read.params)}` has no value", "write the value itself")
        left_out = _load(database, store.FileStore(chosen.home))
        found = results.carry_out(database, read, {})
        return Answer(results.Result(found.columns, _told(found.batches)), left_out)
    except (duckdb.Error, statement.Refused) as error:
        raise _as_usage(error) from None


def _told(batches: Iterator[list[dict[str, Json]]]) -> Iterator[list[dict[str, Json]]]:
    import duckdb

    try:
        yield from batches
    except (duckdb.Error, statement.Refused) as error:
        raise _as_usage(error) from None


def _as_usage(error: Exception) -> UsageError:
    import duckdb

    if isinstance(error, statement.Refused):
        return UsageError("bad-query", error.message.replace("`sql`", "a query"), mend=error.mend)
    message, hint, _line = lockdown.words(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return UsageError(
            "query-limit",
            f"the query needs more than {MEGABYTES} MB of memory",
            mend="narrow it: WHERE, GROUP BY or LIMIT",
        )
    return UsageError("bad-query", message, mend=hint or "`runops query` lists the views and their columns")


def _refuse_unknown(name: tuple[str, ...], own: frozenset[str]) -> None:
    written = ".".join(name)
    if len(name) == 1 and (name[0].lower() in VIEWS or name[0].casefold() in own):
        return
    close = registry.near(written, VIEWS)
    mend = f"did you mean `{close}`?" if close else f"there are {', '.join(VIEWS)}; `runops query` lists their columns"
    raise UsageError("bad-query", f"there is no view `{written}`", mend=mend)


def _load(database: duckdb.DuckDBPyConnection, kept: store.FileStore) -> list[LogError]:
    for name, columns in VIEWS.items():
        if name != "steps":
            database.execute(f"CREATE TABLE {name} ({', '.join(f'{each.name} {each.type}' for each in columns)})")
    database.execute(f"CREATE VIEW steps AS {STEPS}")
    left_out: list[LogError] = []
    for run in kept.ids():
        database.execute("BEGIN")
        try:
            _Reader(database, kept, run).read()
        except LogError as error:
            database.execute("ROLLBACK")
            left_out.append(error)
        except (FileNotFoundError, UsageError):  # it was taken away meanwhile
            database.execute("ROLLBACK")
        else:
            database.execute("COMMIT")
    return left_out


class _Reader:
    """Takes one log into the tables; no more of it is in memory than its open calls, one batch, and what each request to a model cost."""

    def __init__(self, database: duckdb.DuckDBPyConnection, kept: store.FileStore, run: str) -> None:
        self._database = database
        self._kept = kept
        self._run: dict[str, Json] = {"run": run, "calls": 0, "tolerated": 0}
        self._open: dict[str, dict[str, Json]] = {}
        self._finished: list[dict[str, Json]] = []
        self._verdicts: dict[str, str] = {}
        self._ending: dict[str, Json] | None = None
        self._ledger = ledger.Ledger()
        self._asked: dict[int, dict[str, Json]] = {}
        """What the ledger does not keep of a request, by its line."""

    def read(self) -> None:
        """Raises LogError for a damaged log, or one of a later version."""
        run = str(self._run["run"])
        held = self._kept.held(run)
        for entry in entries(self._kept.conversation_file(run)):
            self._take(entry)
            if len(self._finished) >= BATCH:
                self._hand_over("calls", self._finished)
                self._finished = []
        if "workflow" not in self._run:
            return
        self._hand_over("calls", [*self._finished, *self._open.values()])
        self._hand_over("costs", [self._cost(row) for row in self._ledger.rows])
        for call, verdict in self._verdicts.items():
            self._database.execute(
                "UPDATE calls SET judged = $verdict WHERE run = $run AND call = $call",
                {"verdict": verdict, "run": run, "call": call},
            )
        ending = self._ending or {}
        error: dict[str, Json] = ending.get("error") or {}
        self._run |= {
            "state": ending.get("status") or ("running" if held else "died"),
            "exit": ending.get("exit"),
            "tolerated": ending.get("tolerated") or 0,
            "error": error.get("code"),
            "message": error.get("message"),
            "path": ending.get("path"),
        }
        self._hand_over("runs", [self._run])
        self._database.execute("UPDATE runs SET seconds = epoch(ended - started) WHERE run = $1", [run])

    def _take(self, entry: log.AnyEntry) -> None:
        at = entry.at.removesuffix("Z")
        self._run["ended"] = at
        match entry:
            case log.Scope() if entry.run is not None:
                self._run |= {"workflow": entry.run.workflow, "file": entry.run.file, "started": at}
            case log.Call():
                self._run["calls"] += 1
                self._open[entry.call] = {
                    **{
                        name: getattr(entry, name)
                        for name in ("call", "thread", "path", "node", "action", "attempt", "effect")
                    },
                    "run": self._run["run"],
                    "line": entry.seq,
                    "started": at,
                    "status": "open",
                    "tolerated": False,
                }
            case log.Result() if entry.call in self._open:
                row = self._open.pop(entry.call)
                error = entry.error or {}
                self._finished.append(
                    {
                        **row,
                        "status": entry.status,
                        "tolerated": bool(entry.tolerated),
                        "seconds": entry.seconds,
                        "error": error.get("code"),
                        "message": error.get("message"),
                    }
                )
            case log.Note(name="judged"):
                self._verdicts[str(entry.data["call"])] = str(entry.data["verdict"])
            case log.Note(name="claimed"):
                self._ending = None
            case log.Note(name="ended"):
                self._ending = entry.data
            case log.Note(name="requested" | "submitted") | log.Assistant() | log.ModelError():
                self._take_exchange(entry)
            case _:
                pass

    def _take_exchange(self, entry: log.Note | log.Assistant | log.ModelError) -> None:
        """What concerns a request to a model: it is made while the call of its step is open."""
        call = self._open.get(entry.thread.partition(":")[2], {})
        tried = entry.data.get("try") if isinstance(entry, log.Note) else None
        self._asked[entry.seq] = {"call": call.get("call"), "attempt": call.get("attempt"), "tried": tried}
        if isinstance(entry, log.Assistant):
            entry = entry.model_copy(update={"text": None})
        self._ledger.add(entry, str(call.get("path", "")))

    def _cost(self, row: ledger.Spent) -> dict[str, Json]:
        used = row.usage.model_dump() if row.usage is not None else {}
        return {
            **{
                name: getattr(row, name) for name in ("line", "path", "thread", "status", "source", "model", "response")
            },
            **self._asked[row.line],
            **{f"{kind}_tokens": number for kind, number in used.items()},
            "run": self._run["run"],
            "started": row.at.removesuffix("Z"),
            "estimate": row.estimate if row.source == "model" else None,
            "output_limit": row.limit if row.source == "model" else None,
            "dollars": ledger.plain(row.dollars) if row.dollars is not None else None,
            "paid": row.paid,
            "seconds": row.seconds if row.status != "open" and row.source == "model" else None,
            "error": row.error,
        }

    def _hand_over(self, table: str, rows: list[dict[str, Json]]) -> None:
        if not rows:
            return
        structure = json.dumps([{each.name: each.type for each in VIEWS[table]}])
        self._database.execute(
            f"INSERT INTO {table} SELECT unnest(from_json($1::JSON, '{structure}'), max_depth := 2)",
            [json.dumps(rows)],
        )


def entries(file: Path) -> Iterator[log.AnyEntry]:
    """The entries of a log, one by one, as far as they stand there now; a torn end is passed over.

    Raises LogError ``log-damaged`` (file and line), ``log-too-new``.
    """
    with file.open("rb") as lines:
        left, position, copying = os.fstat(lines.fileno()).st_size, 0, False
        for number, line in enumerate(lines, start=1):
            left -= len(line)
            if left < 0:
                return
            try:
                entry = damage.entry_of(line, number)
                if not line.endswith(b"\n"):
                    return
            except log.BadLine as error:
                begun = number > 1 or not line.endswith(b"\n")
                if begun and damage.is_torn(line + lines.read(left), position, copying=copying):
                    return
                raise damage.damaged(file, number, str(error)) from None
            yield entry
            position += len(line)
            copying = damage.goes_on_copying(entry, copying)
