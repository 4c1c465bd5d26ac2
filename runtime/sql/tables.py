"""Lists of maps as tables. The type of a column is that of its values."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nodes.values import Json
from runtime.sql.lockdown import quoted
from runtime.sql.statement import Refused, Statement

if TYPE_CHECKING:
    import duckdb

CHUNK = 5000  # rows per insert
MOST_FIELDS = 200  # most fields of a nested map that becomes a STRUCT; a larger one becomes JSON

MOST_COLUMNS = 1000

Type = Any  # DuckDB's name of a type, `[type]` for a list, `{name: type}` for a map, None if all values are null


def columns_of(rows: Sequence[dict[str, Json]]) -> dict[str, Type]:
    """Return the columns of a table in order of first appearance, each with the type of its values."""
    found: dict[str, Type] = {}
    for row in rows:
        for name, value in row.items():
            found[name] = merged(found[name], type_of(value)) if name in found else type_of(value)
    return found


def type_of(value: Json) -> Type:
    """Return the type of one value; JSON if no other fits."""
    match value:
        case None:
            return None
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT"
        case float():
            return "DOUBLE"
        case str():
            return "VARCHAR"
        case list():
            return _list_of(functools.reduce(merged, map(type_of, value), None))
        case _:
            return _map_of({name: type_of(item) for name, item in value.items()})


def merged(one: Type, other: Type) -> Type:
    """Return the type for values of both types."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if {str(one), str(other)} == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    if isinstance(one, list) and isinstance(other, list):
        return _list_of(merged(one[0], other[0]))
    if isinstance(one, dict) and isinstance(other, dict):
        left: dict[str, Type] = one
        right: dict[str, Type] = other
        return _map_of({name: merged(left.get(name), right.get(name)) for name in {**left, **right}})
    return "JSON"


def _list_of(inner: Type) -> Type:
    return "JSON" if inner == "JSON" else [inner]


def _map_of(fields: dict[str, Type]) -> Type:
    fits = 0 < len(fields) <= MOST_FIELDS and all(fields) and len(set(map(str.casefold, fields))) == len(fields)
    return fields if fits and "JSON" not in fields.values() else "JSON"


def _written(kind: Type) -> Json:
    """Return the type in the form of ``from_json``."""
    if isinstance(kind, list):
        return [_written(kind[0])]
    if isinstance(kind, dict):
        return {name: _written(each) for name, each in kind.items()}
    return kind or "VARCHAR"


def load(database: duckdb.DuckDBPyConnection, statement: Statement, given: dict[tuple[str, ...], list[Json]]) -> None:
    """Create the tables that the statement names. A table without rows gets every column that the statement reads from it.

    Raises Refused for columns that DuckDB cannot distinguish.
    """
    columns = {name: columns_of(rows) for name, rows in given.items()}
    known = {column.casefold() for each in columns.values() for column in each}
    for name, rows in given.items():
        if not rows:
            columns[name] = dict.fromkeys(_wanted(statement, name, known))
            known |= {column.casefold() for column in columns[name]}
        _make(database, name, columns[name], rows)


def _make(database: duckdb.DuckDBPyConnection, name: tuple[str, ...], kinds: dict[str, Type], rows: list[Json]) -> None:
    shown = ".".join(name)
    _refuse_alike(shown, kinds)
    for depth in range(1, len(name)):
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name[depth - 1])}")
    full = ".".join(quoted(each) for each in name)
    kept = {column: kind for column, kind in kinds.items() if kind is not None}
    base = quoted(f"{shown} ")  # trailing space: no list in scope has such a name
    if kept:
        structure = json.dumps([{column: _written(kind) for column, kind in kept.items()}]).replace("'", "''")
        made = f"SELECT unnest(from_json($1::JSON, '{structure}'), max_depth := 2)"
        database.execute(f"CREATE TABLE main.{base} AS {made}", [_chunk(rows[:0], kept)])
        for start in range(0, len(rows), CHUNK):
            database.execute(f"INSERT INTO main.{base} {made}", [_chunk(rows[start : start + CHUNK], kept)])
    else:
        database.execute(f"CREATE TABLE main.{base} AS SELECT range AS i FROM range($1)", [len(rows)])  # noqa: S608 - a quoted name
    # A column that is null in every row has no type: a literal NULL fits every use.
    shown_columns = [quoted(column) if column in kept else f"NULL AS {quoted(column)}" for column in kinds]
    picked = ", ".join(shown_columns) or 'NULL AS "nothing"'
    database.execute(f"CREATE VIEW {full} AS SELECT {picked} FROM main.{base}")  # noqa: S608 - quoted names


def _chunk(rows: list[Json], kept: dict[str, Type]) -> str:
    plain = [{column: row.get(column) for column in kept} for row in rows]
    for column in (name for name, kind in kept.items() if kind == "JSON"):
        for row in plain:
            # A missing value makes the column null, not the JSON `null`.
            if row[column] is None:
                del row[column]
    return json.dumps(plain, ensure_ascii=False)


def _wanted(statement: Statement, name: tuple[str, ...], known: set[str]) -> dict[str, None]:
    """Return the columns that a statement names of a table without rows; ``known`` are those of other tables."""
    called = {"", *(each.alias.casefold() for each in statement.tables if each.name == name)}
    found: dict[str, str] = {}
    for column in statement.columns:
        if len(column) > 1 and column[0].casefold() in called:
            found.setdefault(column[1].casefold(), column[1])
        elif len(column) == 1 and column[0].casefold() not in known:
            found.setdefault(column[0].casefold(), column[0])
    return dict.fromkeys(found.values())


def _refuse_alike(table: str, kinds: dict[str, Type]) -> None:
    seen: dict[str, str] = {}
    for column in kinds:
        if not column:
            raise Refused("sql-failed", f"a column of `{table}` has no name", "give every field of the maps a name")
        other = seen.setdefault(column.casefold(), column)
        if other != column:
            message = f"`{table}` has the columns `{other}` and `{column}`, which are the same in SQL"
            raise Refused("sql-failed", message, "rename one of them in a `transform` with `expr` before")
    if len(kinds) > MOST_COLUMNS:
        message = f"`{table}` has more than {MOST_COLUMNS} columns"
        raise Refused("sql-limit", message, "keep only the fields that you need")
