"""Process that executes one statement: excessive time or memory ends only this process.

DuckDB limits most of its memory and can mostly be interrupted, but not while one function builds a huge text. So the kernel enforces
limits too. The process reads two lines of JSON, the statement and the tables that it may name, and writes one: the rows or the error.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodes.values import Json
from runtime.sql import lockdown, results, statement, tables
from runtime.sql.statement import Refused

if TYPE_CHECKING:
    import duckdb


def main() -> None:
    try:
        answer = _answer()
    except Refused as refused:
        evidence = {} if refused.line is None else {"line": refused.line}
        answer = {"error": {"code": refused.code, "message": refused.message, "fix": refused.fix, "evidence": evidence}}
    sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _answer() -> dict[str, Json]:
    import duckdb

    asked: dict[str, Any] = json.loads(sys.stdin.readline())
    database = lockdown.connect(asked["megabytes"])
    _bound(asked["megabytes"], asked["seconds"])
    try:
        read = statement.read(database, asked["sql"])
        _refuse_params(read.params, asked["params"])
        given: dict[tuple[str, ...], list[Json]] = {
            tuple(name): rows for name, rows in json.loads(sys.stdin.readline())
        }
        found: dict[tuple[str, ...], list[Json]] = {}
        for name in dict.fromkeys(each.name for each in read.tables):
            if (rows := _table(name, given)) is not None:
                found[name] = rows
            elif len(name) != 1 or name[0].casefold() not in read.own:
                return {"unknown": name}
        tables.load(database, read, found)
        return {"rows": _rows(database, read, asked)}
    except duckdb.Error as error:
        raise _failed(error, asked) from None
    except MemoryError:
        raise _too_much(asked) from None


def _table(name: tuple[str, ...], given: dict[tuple[str, ...], list[Json]]) -> list[Json] | None:
    """Return the rows of a table. Case matters only for names that differ in nothing else."""
    if name in given:
        return given[name]
    folded = [each.casefold() for each in name]
    alike = [rows for each, rows in given.items() if [part.casefold() for part in each] == folded]
    return alike[0] if len(alike) == 1 else None


def _refuse_params(wanted: frozenset[str], given: dict[str, Json]) -> None:
    if missing := sorted(wanted - given.keys()):
        raise Refused("sql-failed", f"`${missing[0]}` has no value", f"give one: `params: {{{missing[0]}: …}}`")
    if unused := sorted(given.keys() - wanted):
        fix = f"take `{unused[0]}` out of `params`, or use it"
        raise Refused("sql-failed", f"the statement has no `${unused[0]}`", fix)


def _bound(megabytes: int, seconds: float) -> None:
    """Set kernel limits for what DuckDB does not limit: memory beyond current use, CPU time of all threads, files."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = in_use + 2 * (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    whole = int(seconds * lockdown.THREADS) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _rows(database: duckdb.DuckDBPyConnection, read: statement.Statement, asked: dict[str, Any]) -> list[Json]:
    rows: list[Json] = []
    size = 0
    for batch in results.execute(database, read, asked["params"]).batches:
        rows += batch
        size += len(json.dumps(batch))
        if len(rows) > asked["rows"]:
            raise Refused("sql-limit", f"the result has more than {asked['rows']} rows", lockdown.NARROW)
        if size > asked["megabytes"] << 18:
            raise _too_much(asked)
    return rows


def _failed(error: Exception, asked: dict[str, Any]) -> Refused:
    import duckdb

    message, hint, line = lockdown.error_text(error)
    if isinstance(error, duckdb.OutOfMemoryException) or "maximum supported string size" in message:
        return _too_much(asked)
    if "pytz" in message:
        message, hint = "a time with a time zone is inside a list or map", "cast it to TIMESTAMP or VARCHAR"
    where = f"line {line} of the SQL" if line else "the SQL"
    return Refused("sql-failed", message, hint or f"correct {where}, or the values that it reads", line)


def _too_much(asked: dict[str, Any]) -> Refused:
    message = f"the statement needs more than {asked['megabytes']} MB of memory"
    return Refused("sql-limit", message, lockdown.NARROW)


if __name__ == "__main__":
    main()
