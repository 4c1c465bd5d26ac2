"""Results of a statement as JSON, batch by batch."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nodes.values import Json, NotJson, normalise
from runtime.sql.lockdown import quoted
from runtime.sql.statement import Refused, Statement

if TYPE_CHECKING:
    import duckdb

BATCH = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """Rows with columns, each row a map."""

    columns: list[str]
    batches: Iterator[list[dict[str, Json]]]


def execute(database: duckdb.DuckDBPyConnection, read: Statement, params: Mapping[str, Json]) -> Result:
    """Execute the statement. Raises Refused for duplicate column names, and (in a batch) for a value without a JSON form."""
    cursor = database.execute(read.text, dict(params) or None)
    names = [str(each[0]) for each in cursor.description or []]
    kinds: list[Any] = [each[1] for each in cursor.description or []]
    for name in names:
        if names.count(name) > 1:
            message = f"two columns of the result are called `{name}`"
            raise Refused("sql-failed", message, f"name one of them: `… AS other_{name}`")
    if any(_zoned(kind) for kind in kinds):
        # DuckDB returns a timestamp with a zone only as text.
        picked = [
            f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" if _zoned(kind) else quoted(name)
            for name, kind in zip(names, kinds, strict=True)
        ]
        wrapped = f"SELECT {', '.join(picked)} FROM (\n{read.plain}\n)"  # noqa: S608 - it was parsed as one SELECT
        cursor = database.execute(wrapped, dict(params) or None)
    return Result(names, _batches(cursor, names, kinds))


def _batches(cursor: Any, names: list[str], kinds: list[Any]) -> Iterator[list[dict[str, Json]]]:
    while batch := cursor.fetchmany(BATCH):
        yield [
            {name: _plain(value, kind, name) for name, value, kind in zip(names, values, kinds, strict=True)}
            for values in batch
        ]


def _zoned(kind: Any) -> bool:
    return str(kind.id) == "timestamp with time zone"


def _plain(value: object, kind: Any, column: str) -> Json:
    try:
        return normalise(_converted(value, kind))
    except NotJson as error:
        message = f"the column `{column}` cannot be stored: {error}"
        raise Refused("sql-failed", message, "cast it in the SELECT, or leave it out") from None


def _converted(value: Any, kind: Any) -> Any:
    """Return the Python form of a value; parses JSON, also inside lists and maps."""
    if value is None:
        return None
    if str(kind) == "JSON":
        return json.loads(value)
    match str(kind.id):
        case "list" | "array":
            return [_converted(item, kind.children[0][1]) for item in value]
        case "struct":
            return {name: _converted(value[name], inner) for name, inner in kind.children}
        case "map":
            return {_key(key): _converted(item, kind.children[1][1]) for key, item in value.items()}
        case "timestamp with time zone" if isinstance(value, str):
            try:
                return dt.datetime.fromisoformat(value)
            except ValueError:
                return value
        case _:
            return value


def _key(key: object) -> str:
    plain = normalise(key)
    return plain if isinstance(plain, str) else json.dumps(plain)
