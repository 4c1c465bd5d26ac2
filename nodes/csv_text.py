"""Converts lists of maps to CSV (RFC 4180), and back."""

from __future__ import annotations

import csv
import io
import json

from nodes.template import kind_of
from nodes.values import Json


class NoSheet(ValueError):
    """The value is not a table, or the text not CSV; the message gives the reason."""


def written(value: Json, separator: str = ",") -> str:
    """Return a list of maps as CSV: a header with every key in order of first appearance, null as nothing, lists and maps as JSON.

    Raises NoSheet for anything else.
    """
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        what = "a list of other things" if isinstance(value, list) else kind_of(value)
        raise NoSheet(f"CSV holds a list of maps, and the value is {what}")
    rows: list[dict[str, Json]] = value
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    if names:
        sheet = csv.writer(out, delimiter=separator, lineterminator="\r\n")
        # A row of one empty cell would be an empty line, which readers skip: it is quoted.
        lone = csv.writer(out, delimiter=separator, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
        for cells in [names, *([cell(row.get(name)) for name in names] for row in rows)]:
            (lone if cells == [""] else sheet).writerow(cells)
    return out.getvalue()


def cell(value: Json) -> str:
    """Return a value as a cell: null as nothing, text as it is, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read(text: str, separator: str = ",") -> list[Json]:
    """Return the rows of a CSV text as maps of texts, by the names in its first line; empty lines are skipped.

    Raises NoSheet if the text is no CSV, the header repeats a name, or a row has another number of cells.
    """
    lines = csv.reader(
        io.StringIO(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"), newline=""), delimiter=separator, strict=True
    )
    try:
        filled = [(lines.line_num, cells) for cells in lines if cells]
    except csv.Error as error:
        raise NoSheet(f"line {lines.line_num} is no CSV: {error}") from None
    if not filled:
        return []
    names = filled[0][1]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise NoSheet(f"the header has `{twice}` twice")
    for number, cells in filled[1:]:
        if len(cells) != len(names):
            raise NoSheet(f"line {number} has {len(cells)} cells, and the header {len(names)}")
    return [dict(zip(names, cells, strict=True)) for _number, cells in filled[1:]]
