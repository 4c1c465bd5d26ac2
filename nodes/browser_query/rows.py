"""Queries that read many things alike: rows by selectors, and tables."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from nodes.browser_query.base import OfElement
from nodes.errors import SiteError
from nodes.parsing import Kind, read_as
from nodes.part import Part
from nodes.template import Text as TextField
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class FieldOf(Part):
    """One field of a row."""

    css: TextField | None = None
    """CSS selector below the row; without it the row itself."""
    attribute: str | None = None
    """Attribute to read in place of the text, such as ``href``."""
    type: Kind = "text"
    """What the text is read as: ``text``, ``number`` (``1,234.50 €`` is 1234.5) or ``integer``."""
    nth: int | None = None
    """Which of several matches, from 0; negative counts from the end."""
    optional: bool = False
    """Whether the field may be missing; it is then null."""


def _short_form(value: Any) -> Any:
    return {"css": value} if isinstance(value, str) else value


class Extract(OfElement):
    """Reads rows: for each element that matches ``target`` and is not hidden, a map of fields. Value: a list of maps.

    A field of a form is read as what it holds, a list as what is chosen in it, a box as ``true`` or ``false``. It waits until at least ``min`` rows
    are there. A field that a row lacks fails the node, unless it is ``optional``. No rows on a page that is an error of the server are no answer: the
    node fails with ``error-page``.
    """

    query: Literal["extract"]
    """Read rows."""
    fields: dict[str, Annotated[FieldOf, BeforeValidator(_short_form, json_schema_input_type=str | FieldOf)]] = Field(
        min_length=1
    )
    """Name of each field, and where in the row it stands: a CSS selector, or a map with ``css``, ``attribute``, ``type``, ``nth``, ``optional``."""
    min: int = Field(default=1, ge=0)
    """How many rows there must be at least. 0 reads what is there at once: wait for the page first."""

    async def run(self, ctx: LeafContext) -> Json:
        """Read all rows in one look, then turn texts into typed values."""
        target = await ctx.located(self.target)
        await ctx.act()
        try:
            rows = await ctx.page.rows(target, list(self.fields.values()), self.min)
        except SiteError as error:
            if error.code == "target-not-found" and self.min == 1:
                fix = "if there may be no row, write `min: 0`; else look at the page, and correct the target"
                raise error.replaced(fix=fix) from None
            raise
        return [
            {
                name: _typed(name, field, text, number)
                for (name, field), text in zip(self.fields.items(), row, strict=True)
            }
            for number, row in enumerate(rows, start=1)
        ]


def _typed(name: str, field: FieldOf, text: str | None, row: int) -> Json:
    if text is not None:
        return read_as(field.type, text, f"field `{name}` of row {row}")
    if field.optional:
        return None
    raise SiteError(
        "field-not-found",
        f"row {row} has no field `{name}`",
        fix="mark the field `optional: true` if a row may lack it, or make `target` match only the rows that have it",
        evidence={
            "field": name,
            "row": row,
            "css": field.css,
            "attribute": field.attribute,
        },
    )


class ColumnOf(Part):
    """One column of a table."""

    header: str | int
    """What stands above the column, or its number from 1."""
    type: Kind = "text"
    """What the text is read as: ``text``, ``number`` or ``integer``."""


def _column(value: Any) -> Any:
    return {"header": value} if isinstance(value, str | int) else value


class Table(OfElement):
    """Reads an HTML table as a person sees it. Value: a list of maps, one for each visible row of its body, by what stands above the columns.

    A header that is there twice gets a number (``Total``, ``Total 2``), a column without one its number from 1 (``3``); what only sorts the column is no
    part of its header. A cell that spans columns or rows stands in each of them, one with nothing but a field holds what is in it; a row that ends
    early has null in the rest. Rows of a ``tfoot`` are left out. It waits until at least ``min`` rows are there.
    """

    query: Literal["table"]
    """Read a table."""
    columns: (
        dict[str, Annotated[ColumnOf, BeforeValidator(_column, json_schema_input_type=str | int | ColumnOf)]] | None
    ) = Field(default=None, min_length=1)
    """Which columns to read, each by the name that the map shall have: a header in any case, a number from 1, or a map with ``header`` and ``type``.
    By default all of them, as text."""
    min: int = Field(default=1, ge=0)
    """How many rows there must be at least. 0 reads what is there at once, and is an empty list where there is no such table: wait for the page first."""

    async def run(self, ctx: LeafContext) -> Json:
        """Read the whole table in one look."""
        target = await ctx.located(self.target)
        await ctx.act()
        grid = await ctx.page.table(target, self.min)
        if not grid.rows and not grid.head:
            # Where there is no row there need be no table.
            return []
        width = max([len(grid.head), *(len(row) for row in grid.rows)], default=0)
        names = headers(grid.head + [""] * (width - len(grid.head)))
        wanted = self.columns or {name: ColumnOf(header=number) for number, name in enumerate(names, start=1)}
        places: dict[str, tuple[int, Kind]] = {
            name: (_place(column.header, names), column.type) for name, column in wanted.items()
        }
        return [
            {
                name: None if row[place] is None else read_as(kind, row[place] or "", f"`{name}` of row {number}")
                for name, (place, kind) in places.items()
            }
            for number, row in enumerate(grid.rows, start=1)
        ]


def headers(written: list[str]) -> list[str]:
    """A name for each column: what stands above it, with a number where that is there already, and its number where nothing is."""
    names: list[str] = []
    for number, header in enumerate(written, start=1):
        name, repeated = header or str(number), 2
        while name in names:
            name, repeated = f"{header} {repeated}", repeated + 1
        names.append(name)
    return names


def _place(header: str | int, names: list[str]) -> int:
    if isinstance(header, int) and 1 <= header <= len(names):
        return header - 1
    if isinstance(header, str) and header in names:
        return names.index(header)
    alike = [place for place, name in enumerate(names) if name.casefold() == str(header).casefold()]
    if isinstance(header, str) and len(alike) == 1:
        return alike[0]
    near = difflib.get_close_matches(str(header), names, 1)
    raise SiteError(
        "column-not-found",
        f"the table has no column {header!r}; it has {', '.join(repr(name) for name in names) or 'none'}",
        fix=f"did you mean `{near[0]}`?" if near else "correct the header, or give the number of the column, from 1",
        evidence={"header": header, "headers": list[Json](names)},
    )
