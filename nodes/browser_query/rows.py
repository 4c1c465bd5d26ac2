"""Queries for repeated items: rows by selectors, and tables."""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from typing_extensions import override

from nodes.browser_query.parts import InParts, Row
from nodes.errors import SiteError
from nodes.parsing import Kind, read_as
from nodes.part import Part
from nodes.targets import Target
from nodes.template import Text as TextField
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


FIELDS_SECONDS = 5.0  # seconds that a field may come later than its row
PAUSE = 0.1


class FieldOf(Part):
    """One field of a row."""

    css: TextField | None = None
    """CSS selector below the row; without it the row itself."""
    attribute: str | None = None
    """Attribute to read instead of the text, such as ``href``."""
    type: Kind = "text"
    """Type of the value: ``text``, ``number`` (``1,234.50 €`` is 1234.5) or ``integer``."""
    nth: int | None = None
    """Index among several matches, from 0; negative counts from the end."""
    optional: bool = False
    """True if the field may be missing; it is then null."""


def _short_form(value: Any) -> Any:
    return {"css": value} if isinstance(value, str) else value


class Extract(InParts):
    """Reads rows: for each element that matches ``target`` and is not hidden, a map of fields. Value: a list of maps.

    The value of a form field is its content, of a list its selection, of a box ``true`` or ``false``. The query waits until there are at
    least ``min`` rows. A field that a row lacks fails the node after 5 seconds, unless it is ``optional``. If there are no rows because the page is an error
    of the server, the node fails with ``error-page``.
    """

    query: Literal["extract"]
    """Read rows."""
    fields: dict[str, Annotated[FieldOf, BeforeValidator(_short_form, json_schema_input_type=str | FieldOf)]] = Field(
        min_length=1
    )
    """Name of each field, and its place in the row: a CSS selector, or a map with ``css``, ``attribute``, ``type``, ``nth``, ``optional``."""
    min: int = Field(default=1, ge=0)
    """Least number of rows. 0 reads at once, without waiting: wait for the page first."""

    @property
    @override
    def _names(self) -> Collection[str]:
        return self.fields

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target)
        await ctx.act()
        return await self.whole(ctx, target, lambda first: self._read(ctx, target, self.min if first else 0))

    async def _read(self, ctx: LeafContext, target: Target, least: int) -> list[Row]:
        until = time.monotonic() + min(FIELDS_SECONDS, max(0.0, ctx.left - 1))
        while True:
            try:
                return await self._now(ctx, target, least)
            except SiteError as error:
                if error.code != "field-not-found" or time.monotonic() > until:
                    raise
            await asyncio.sleep(PAUSE)

    async def _now(self, ctx: LeafContext, target: Target, least: int) -> list[Row]:
        try:
            rows = await ctx.page.rows(target, list(self.fields.values()), least)
        except SiteError as error:
            if error.code == "target-not-found" and least == 1:
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
        evidence={"field": name, "row": row, "css": field.css, "attribute": field.attribute},
    )


BODY = "tbody > tr, [role=row]:not(:has([role=columnheader]))"
"""CSS of the rows of a table or grid that it scrolls."""


class ColumnOf(Part):
    """One column of a table."""

    header: str | int
    """Header of the column, or its number from 1."""
    type: Kind = "text"
    """Type of the value: ``text``, ``number`` or ``integer``."""


def _column(value: Any) -> Any:
    return {"header": value} if isinstance(value, str | int) else value


class Table(InParts):
    """Reads a table or grid as a person sees it. Value: a list of maps, one for each visible row of its body, keyed by the headers.

    The target is a ``<table>``, or an element with the role ``table``, ``grid`` or ``treegrid``; a row that is split over pinned columns is one.
    A repeated header gets a number (``Total``, ``Total 2``), a column without one its number from 1 (``3``); sort controls are not part of a
    header. A cell that spans columns or rows is repeated in each of them. A cell with only a form field has its content. A row that ends
    early has null in the rest. Rows of a ``tfoot``, and those of one cell over all columns, are omitted. The query waits until there are
    at least ``min`` rows. If the page has not rendered all columns, the step has the flag ``columns-unrendered``; ``scroll`` reads them too.
    """

    query: Literal["table"]
    """Read a table."""
    columns: (
        dict[str, Annotated[ColumnOf, BeforeValidator(_column, json_schema_input_type=str | int | ColumnOf)]] | None
    ) = Field(default=None, min_length=1)
    """Columns to read, each by its key in the map: a header in any case, a number from 1, or a map with ``header`` and ``type``. By default
    all of them, as text."""
    min: int = Field(default=1, ge=0)
    """Least number of rows. 0 reads at once, without waiting, and is an empty list if there is no such table: wait for the page first."""

    @property
    @override
    def _names(self) -> Collection[str]:
        return self.columns or ()

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target)
        await ctx.act()
        body = Target(css=BODY, within=target)
        return await self.whole(ctx, body, lambda first: self._now(ctx, target, self.min if first else 0, flags=first))

    async def _now(self, ctx: LeafContext, target: Target, least: int, *, flags: bool) -> list[Row]:
        grid = await ctx.page.table(target, least, across=self.scroll is not None)
        if not grid.rows and not grid.head:
            # Columns cannot be looked up: with `min: 0` even the table may be missing.
            return []
        width = max([len(grid.head), *(len(row) for row in grid.rows)], default=0)
        numbers = list(grid.columns) or list(range(1, width + 1))
        names = headers(grid.head + [""] * (width - len(grid.head)), numbers)
        wanted = self.columns or {name: ColumnOf(header=number) for number, name in zip(numbers, names, strict=True)}
        places: dict[str, tuple[int, Kind]] = {
            name: (_place(column.header, names, numbers, grid.unrendered), column.type)
            for name, column in wanted.items()
        }
        if flags and grid.unrendered and self.columns is None:
            message = f"{grid.unrendered} of {width + grid.unrendered} columns are not rendered, and were not read"
            ctx.flag("columns-unrendered", message, {"read": list[Json](names), "unrendered": grid.unrendered})
        return [
            {
                name: None if row[place] is None else read_as(kind, row[place] or "", f"`{name}` of row {number}")
                for name, (place, kind) in places.items()
            }
            for number, row in enumerate(grid.rows, start=1)
        ]


def headers(written: list[str], numbers: list[int] | None = None) -> list[str]:
    """Return a name for each column: its header, with a number if it is repeated, or its number if it has none."""
    names: list[str] = []
    for number, header in zip(numbers or range(1, len(written) + 1), written, strict=True):
        name, repeated = header or str(number), 2
        while name in names:
            name, repeated = f"{header} {repeated}", repeated + 1
        names.append(name)
    return names


def _place(header: str | int, names: list[str], numbers: list[int], unrendered: int) -> int:
    if isinstance(header, int) and header in numbers:
        return numbers.index(header)
    if isinstance(header, str) and header in names:
        return names.index(header)
    alike = [place for place, name in enumerate(names) if name.casefold() == str(header).casefold()]
    if isinstance(header, str) and len(alike) == 1:
        return alike[0]
    near = difflib.get_close_matches(str(header), names, 1)
    fix = f"did you mean `{near[0]}`?" if near else "correct the header, or give the number of the column, from 1"
    if unrendered:
        fix = "write `scroll: until_end` with a `key`: it scrolls to the columns that are not rendered; or correct the header"
    missing = f", and {unrendered} more that the page has not rendered" if unrendered else ""
    raise SiteError(
        "column-not-found",
        f"the table has no column {header!r}; it has {', '.join(repr(name) for name in names) or 'none'}{missing}",
        fix=fix,
        evidence={"header": header, "headers": list[Json](names), **({"unrendered": unrendered} if unrendered else {})},
    )
