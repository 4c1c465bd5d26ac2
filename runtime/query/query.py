"""SQL over all runs and sessions of a workspace: their logs are loaded into an in-memory database, then the statement runs.

A log may be written meanwhile: an incomplete last line is ignored. A damaged log is left out and reported.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nodes import errors
from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime.log import entries as log_entries
from runtime.log import ledger
from runtime.log.store import file_store, integrity
from runtime.query import session_rows, views
from runtime.query.views import STEPS, VIEWS
from runtime.sql import lockdown, results, statement
from runtime.system import regular_files
from runtime.workspace import session_index

if TYPE_CHECKING:
    import duckdb

MEGABYTES = 512  # memory limit of the tables and the statement, in MB
SECONDS = 60.0  # default time limit of a query
BATCH = 2000  # calls inserted at once
GRACE = 2.0  # seconds for DuckDB to stop an interrupted statement; during one function call it does not react


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    result: results.Result
    left_out: list[LogError]  # the logs that could not be read, each with its problem


def ask(
    files: file_store.Files,
    text: str,
    seconds: float = SECONDS,
    stuck: Callable[[UsageError], None] | None = None,
) -> Answer:
    """Return the rows of one SELECT over the views.

    Raises UsageError: ``bad-query`` for an unusable statement, with the nearest name if there is one; ``query-limit`` if it needs too much
    memory, or more than ``seconds`` to read the logs and to compute. Reading batches of the result can raise both. A single call of an SQL
    function may not be interruptible: then ``stuck`` is called with the error, in another thread.
    """
    database = lockdown.connect(MEGABYTES)
    limit = _Clock(database, seconds, lambda: stuck(_too_long(seconds)) if stuck is not None else None)
    with _as_usage(limit):
        read = statement.read(database, text)
        for table in read.tables:
            _refuse_unknown(table.name, read.own)
        if read.params:
            raise statement.Refused("sql-refused", f"`${min(read.params)}` has no value", "write the value itself")
        left_out = _load(database, files, limit)
        found = results.execute(database, read, {})
    return Answer(results.Result(found.columns, _timed(found.batches, limit)), left_out)


def _timed(batches: Iterator[list[dict[str, Json]]], limit: _Clock) -> Iterator[list[dict[str, Json]]]:
    while True:
        with _as_usage(limit):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextlib.contextmanager
def _as_usage(limit: _Clock) -> Generator[None]:
    """Convert DuckDB's errors in the block to UsageError, and count the block's time."""
    import duckdb  # costs 150 ms

    try:
        with limit.at_work():
            yield
    except TimeoutError:
        raise _too_long(limit.seconds) from None
    except (duckdb.Error, statement.Refused) as error:
        raise _usage(error) from None


def _too_long(seconds: float) -> UsageError:
    fix = f"{lockdown.NARROW}; or give it more time: `--timeout {10 * seconds:g}`"
    return UsageError("query-limit", f"the query took longer than {seconds:g} s", fix=fix)


def _usage(error: Exception) -> UsageError:
    import duckdb

    if isinstance(error, statement.Refused):
        return UsageError("bad-query", error.message.replace("`sql`", "a query"), fix=error.fix)
    message, hint, _line = lockdown.error_text(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        message = f"the query needs more than {MEGABYTES} MB of memory"
        return UsageError("query-limit", message, fix=lockdown.NARROW)
    return UsageError("bad-query", message, fix=hint or "`runops query` lists the views and their columns")


def _refuse_unknown(name: tuple[str, ...], own: frozenset[str]) -> None:
    written = ".".join(name)
    if len(name) == 1 and (name[0].lower() in VIEWS or name[0].casefold() in own):
        return
    fix = errors.did_you_mean(written, VIEWS, f"there are {', '.join(VIEWS)}; `runops query` lists their columns")
    raise UsageError("bad-query", f"there is no view `{written}`", fix=fix)


def _load(database: duckdb.DuckDBPyConnection, files: file_store.Files, limit: _Clock) -> list[LogError]:
    for name, columns in VIEWS.items():
        if name != "steps":
            database.execute(f"CREATE TABLE {name} ({', '.join(f'{each.name} {each.type}' for each in columns)})")
    database.execute(f"CREATE VIEW steps AS {STEPS}")
    left_out: list[LogError] = []
    for run in files.ids():
        limit.check()
        database.execute("BEGIN")
        try:
            if session_index.kind(files, run) == "session":
                session_rows.read(database, files, run)
            else:
                _Reader(database, files, run, limit).read()
        except LogError as error:
            database.execute("ROLLBACK")
            left_out.append(error)
        except (FileNotFoundError, UsageError):  # it was deleted meanwhile
            database.execute("ROLLBACK")
        else:
            database.execute("COMMIT")
    return left_out


class _Clock:
    """Measures a database's working time, and interrupts it at the limit. Printing rows does not count."""

    def __init__(self, database: duckdb.DuckDBPyConnection, seconds: float, stuck: Callable[[], None] | None) -> None:
        """``stuck`` is called, in another thread, if the database continues after the interrupt."""
        self.seconds = seconds
        self.over = False  # true if the time is used up
        self._database = database
        self._stuck = stuck
        self._left = seconds

    def check(self) -> None:
        """Raise TimeoutError if the time is used up; for work between two statements."""
        if self.over:
            raise TimeoutError

    @contextlib.contextmanager
    def at_work(self) -> Generator[None]:
        """Count the time of the block. Raises TimeoutError if it exceeds the limit, whatever the block itself raised."""
        self.check()
        ended = threading.Event()
        began = time.monotonic()
        watch = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watch.start()
        try:
            yield
        except Exception:
            self.check()
            raise
        finally:
            ended.set()
            watch.join()
            self._left -= time.monotonic() - began
        self.check()

    def _watch(self, ended: threading.Event) -> None:
        if ended.wait(max(self._left, 0.0)):
            return
        self.over = True
        self._database.interrupt()
        if not ended.wait(GRACE) and self._stuck is not None:
            self._stuck()


class _Reader:
    """Loads one log into the tables. Keeps in memory only its open calls, one batch, and the cost of each request to a model."""

    def __init__(self, database: duckdb.DuckDBPyConnection, files: file_store.Files, run: str, limit: _Clock) -> None:
        self._limit = limit
        self._database = database
        self._files = files
        self._id = run
        self._run: dict[str, Json] = {"run": run, "calls": 0, "tolerated": 0}
        self._open: dict[str, log_entries.Call] = {}
        self._finished: list[dict[str, Json]] = []
        self._verdicts: dict[str, str] = {}
        self._ending: dict[str, Json] | None = None
        self._ledger = ledger.Ledger()
        self._asked: dict[int, dict[str, Json]] = {}  # facts of a request that the ledger does not keep, by its line

    def read(self) -> None:
        """Load the log. Raises LogError for a damaged log, or one of a later version."""
        run = self._id
        owned = self._files.owned(run)
        for entry in entries(self._files.conversation_file(run)):
            self._limit.check()
            self._take(entry)
            if len(self._finished) >= BATCH:
                views.insert(self._database, "calls", self._finished)
                self._finished = []
        if "workflow" not in self._run:
            return
        unfinished = [views.call(run, each) for each in self._open.values()]
        views.insert(self._database, "calls", [*self._finished, *unfinished])
        views.insert(
            self._database, "costs", [views.cost(run, row, self._asked[row.line]) for row in self._ledger.rows]
        )
        for call, verdict in self._verdicts.items():
            self._database.execute(
                "UPDATE calls SET reconciled = $verdict WHERE run = $run AND call = $call",
                {"verdict": verdict, "run": run, "call": call},
            )
        ending = self._ending or {}
        error: dict[str, Json] = ending.get("error") or {}
        self._run |= {
            "state": ending.get("status") or ("running" if owned else "died"),
            "exit": ending.get("exit"),
            "tolerated": ending.get("tolerated") or 0,
            "error": error.get("code"),
            "message": error.get("message"),
            "path": ending.get("path"),
        }
        views.insert(self._database, "runs", [self._run])
        self._database.execute("UPDATE runs SET seconds = epoch(ended - started) WHERE run = $1", [run])

    def _take(self, entry: log_entries.AnyEntry) -> None:
        at = views.moment(entry.at)
        self._run["ended"] = at
        match entry:
            case log_entries.Scope() if entry.run is not None:
                head = {name: getattr(entry.run, name) for name in ("workflow", "file", "row", "parent")}
                self._run |= {**head, "started": at}
            case log_entries.Scope(path="", event="committed"):
                # A blob cannot be read here, but its beginning is in the log itself.
                kept = json.dumps(entry.value, ensure_ascii=False) if entry.blob is None else entry.blob.preview
                self._run["output"] = kept if entry.value is not None or entry.blob is not None else None
            case log_entries.Call():
                self._run["calls"] += 1
                self._open[entry.call] = entry
            case log_entries.Result() if entry.call in self._open:
                self._finished.append(views.call(self._id, self._open.pop(entry.call), entry))
            case log_entries.Note(name="reconciled"):
                self._verdicts[str(entry.data["call"])] = str(entry.data["verdict"])
            case log_entries.Note(name="claimed"):
                self._ending = None
            case log_entries.Note(name="ended"):
                self._ending = entry.data
            case log_entries.Note(name="requested" | "submitted") | log_entries.Assistant() | log_entries.ModelError():
                self._take_exchange(entry)
            case _:
                pass

    def _take_exchange(self, entry: log_entries.Note | log_entries.Assistant | log_entries.ModelError) -> None:
        """Record an entry about a request to a model, which is made while the call of its step is open."""
        call = self._open.get(entry.thread.partition(":")[2])
        around: dict[str, Json] = {} if call is None else {"call": call.call, "attempt": call.attempt}
        tried = entry.data.get("try") if isinstance(entry, log_entries.Note) else None
        self._asked[entry.seq] = {**around, "tried": tried}
        if isinstance(entry, log_entries.Assistant):
            entry = entry.model_copy(update={"text": None})
        self._ledger.add(entry, "" if call is None else call.path)


def entries(file: Path) -> Iterator[log_entries.AnyEntry]:
    """Yield the current entries of a log; an incomplete end is skipped.

    Raises LogError ``log-damaged`` (file and line), ``log-too-new``.
    """
    with regular_files.opened(file) as lines:
        left, position, copying = os.fstat(lines.fileno()).st_size, 0, False
        for number, line in enumerate(lines, start=1):
            left -= len(line)
            if left < 0:
                return
            try:
                entry = integrity.entry_of(line, number)
                if not line.endswith(b"\n"):
                    return
            except log_entries.BadLine as error:
                begun = number > 1 or not line.endswith(b"\n")
                if begun and integrity.is_torn(line + lines.read(left), position, copying=copying):
                    return
                raise integrity.damaged(file, number, str(error)) from None
            yield entry
            position += len(line)
            copying = integrity.still_copying(entry, copying)
