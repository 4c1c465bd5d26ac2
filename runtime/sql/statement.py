"""Analyzes a statement with DuckDB's parser: it must be one SELECT over named tables and pure functions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nodes.values import Json

if TYPE_CHECKING:
    import duckdb

TABLE_FUNCTIONS = frozenset({"generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"})
"""Functions allowed in place of a table: they make rows from values."""

IMPURE = frozenset({"current_query", "current_setting", "getenv", "getvariable", "which_secret", "write_log"})
"""Functions that read the process or write to its log instead of computing on values."""


class Refused(Exception):
    """The statement cannot be used: a stable code, one sentence, and a fix."""

    def __init__(
        self, code: str, message: str, fix: str, line: int | None = None, place: tuple[int, int] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.line = line
        self.place = place  # offsets of the mistake in the statement


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    name: tuple[str, ...]  # `("orders",)` or `("inputs", "prices")`
    alias: str


@dataclasses.dataclass(frozen=True, slots=True)
class Statement:
    text: str
    plain: str  # statement as DuckDB writes it: without comments and a final `;`
    tables: list[Table]
    own: frozenset[str]  # names, folded, that the statement defines for its own tables (`WITH`)
    columns: list[tuple[str, ...]]
    """Columns that the statement names, after the table's name if written; with an empty one for columns of ``USING``."""
    params: frozenset[str]  # names of its `$name` parameters


def read(database: duckdb.DuckDBPyConnection, text: str) -> Statement:
    """Parse the statement in ``text``. Raises Refused unless it is exactly one SELECT that reads values only."""
    row = database.execute("SELECT CAST(json_serialize_sql($1) AS VARCHAR)", [text]).fetchone()
    assert row is not None
    tree = json.loads(row[0])
    if tree["error"]:
        raise _unreadable(text, tree)
    statements = tree["statements"]
    if len(statements) != 1:
        what = f"`sql` holds {len(statements)} statements" if statements else "`sql` holds no statement"
        raise Refused("sql-refused", what, "write one SELECT; several steps are several nodes")
    tables: list[Table] = []
    own: set[str] = set()
    columns: list[tuple[str, ...]] = []
    for part in _parts(statements[0]):
        kind = part.get("type")
        if kind == "BASE_TABLE":
            path = tuple(str(each) for each in part["qualified_name"]["path"])
            tables.append(Table(path, str(part.get("alias") or path[-1])))
        elif kind == "SHOW_REF":
            message = "SHOW, DESCRIBE and SUMMARIZE describe the database, not values"
            raise Refused("sql-refused", message, "write one SELECT")
        elif kind == "TABLE_FUNCTION" and str(part["function"].get("function_name")).lower() not in TABLE_FUNCTIONS:
            raise _not_allowed(str(part["function"].get("function_name")))
        elif kind == "COLUMN_REF":
            columns.append(tuple(str(each) for each in part["column_names"]))
        elif part.get("class") == "FUNCTION" and str(part.get("function_name")).lower() in IMPURE:
            raise _not_allowed(str(part["function_name"]))
        columns += [("", str(each)) for each in part.get("using_columns") or []]
        if isinstance(named := part.get("cte_map"), dict):
            own |= {str(each["key"]).casefold() for each in named["map"]}
    row = database.execute("SELECT json_deserialize_sql($1::JSON)", [row[0]]).fetchone()
    assert row is not None
    params = frozenset(str(each["key"]) for each in statements[0].get("named_param_map") or [])
    return Statement(text, str(row[0]), tables, frozenset(own), columns, params)


def _parts(tree: Json) -> Iterator[dict[str, Json]]:
    pending = [tree]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            yield here
            pending += here.values()
        elif isinstance(here, list):
            pending += reversed(here)


def _unreadable(text: str, tree: dict[str, Json]) -> Refused:
    if tree.get("error_type") == "not implemented":
        fix = "write one SELECT (or WITH … SELECT, FROM …, VALUES …): it reads lists of maps that are in scope, and changes nothing"
        return Refused("sql-refused", "`sql` takes a SELECT, and this statement does something else", fix)
    begin, length = json.loads(tree.get("location") or "[0, 0]")  # in bytes
    start, end = (len(text.encode()[:each].decode(errors="ignore")) for each in (begin, begin + length))
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    fix = f"correct the SQL at or before line {line}, column {column}: DuckDB reads it up to there"
    return Refused("sql-failed", str(tree["error_message"]).rstrip(".!"), fix, line, (start, end))


def _not_allowed(name: str) -> Refused:
    message = f"`{name}` is not available: `sql` reads no files, no network and no settings"
    return Refused("sql-refused", message, "give what it needs as a list of maps, from an input or a node above")
