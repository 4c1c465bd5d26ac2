"""Lists that a page shows in parts: by scrolling, or page by page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from nodes.browser_query.reads import OfElement
from nodes.errors import SiteError
from nodes.targets import Target
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext

Row = dict[str, Json]

GROWS_SECONDS = 1.5  # seconds that a list may take at its end until it shows more
LOOK_SECONDS = 0.1  # seconds between two looks for other rows


class InParts(OfElement):
    """A reading of rows; the page may show only a part of them at once."""

    scroll: Literal["until_end"] | None = None
    """``until_end``: scrolls from the beginning to the end, and reads every row on the way; needs ``key``."""
    next: Target | None = None
    """Button or link to the next page of the list. The node clicks it as long as it is there and enabled, and reads each page; needs ``key``."""
    key: str | None = None
    """Field or column that identifies a row: each is read once."""
    limit: int = Field(default=10_000, ge=1, le=100_000)
    """Most rows that are read with ``scroll`` or ``next``. If there are more, the step has the flag ``list-cut``."""

    @model_validator(mode="after")
    def _one_way(self) -> InParts:
        if self.scroll is not None and self.next is not None:
            raise ValueError("a list is read with `scroll` or with `next`, not both")
        if self._parts and self.key is None:
            raise ValueError("`scroll` and `next` need a `key`: the field that identifies a row")
        if self.key is not None and not self._parts:
            raise ValueError("`key` goes with `scroll` or `next`")
        return self

    @property
    def _parts(self) -> bool:
        return self.scroll is not None or self.next is not None

    @property
    @override
    def moves_page(self) -> bool:
        return self._parts

    async def whole(self, ctx: LeafContext, rows: Target, read: Callable[[bool], Awaitable[list[Row]]]) -> list[Row]:
        """Return all rows. ``read`` reads those that the page has now; given false, it does not wait for any. ``rows`` matches them."""
        if not self._parts:
            return await read(True)
        found: dict[str, Row] = {}
        if self.scroll is not None:
            await ctx.page.scroll_rows(rows, start=True)
        now = self._added(found, await read(True))
        while len(found) <= self.limit:
            if self.next is not None:
                more = await self._next_page(ctx, now, read)
            else:
                more = await self._scrolled(ctx, rows, found, read)
            if more is None:
                return list(found.values())
            now = self._added(found, more)
        message = f"the list has more than {self.limit:,} rows: the rest was not read"
        ctx.flag("list-cut", message, {"limit": self.limit})
        return list(found.values())[: self.limit]

    def _added(self, found: dict[str, Row], rows: list[Row]) -> list[str]:
        keys = [self._key_of(each, rows) for each in rows]
        for key, row in zip(keys, rows, strict=True):
            found.setdefault(key, row)
        return keys

    def _key_of(self, row: Mapping[str, Json], rows: list[Row]) -> str:
        assert self.key is not None
        if row.get(self.key) is None:
            raise SiteError(
                "key-missing",
                f"a row has no `{self.key}`, so it cannot be told from others",
                fix="choose another `key`, or make `target` match only rows that have it",
                evidence={"key": self.key, "row": rows.index(dict(row)) + 1},
            )
        return str(row[self.key])

    async def _next_page(
        self, ctx: LeafContext, now: list[str], read: Callable[[bool], Awaitable[list[Row]]]
    ) -> list[Row] | None:
        """Return the rows of the next page; None if there is none."""
        assert self.next is not None
        target = await ctx.page.locate(self.next) if await ctx.page.count(self.next) else None
        if target is None or not (await ctx.page.state(target))["enabled"]:
            return None
        await ctx.page.click(target)
        while True:
            rows = await read(False)
            if rows and [self._key_of(each, rows) for each in rows] != now:
                return rows
            if ctx.left < 1:
                raise SiteError(
                    "list-stays",
                    f"{self.next} was clicked, and the list shows the same rows",
                    fix="make `next` match only while there is a next page, such as `a.next:not(.disabled)`",
                    phase="after",
                    evidence={"rows": list[Json](now[:10])},
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def _scrolled(
        self, ctx: LeafContext, rows: Target, found: Mapping[str, Row], read: Callable[[bool], Awaitable[list[Row]]]
    ) -> list[Row] | None:
        """Return the rows after scrolling on; None at the end."""
        if await ctx.page.scroll_rows(rows, start=False):
            return await read(False)
        began = time.monotonic()
        while time.monotonic() - began < GROWS_SECONDS:
            more = await read(False)
            if any(self._key_of(each, more) not in found for each in more):
                return more
            await asyncio.sleep(LOOK_SECONDS)
        return None
