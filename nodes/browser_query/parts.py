"""Lists that a page shows in parts: by scrolling, or page by page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import override

from nodes.browser_query.reads import OfElement
from nodes.errors import SiteError, did_you_mean
from nodes.part import EffectClass
from nodes.targets import Target
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext

Row = dict[str, Json]
Read = Callable[[bool], Awaitable[list[Row]]]

GROWS_SECONDS = 1.5  # seconds that a list may take at its end until it shows more
LOOK_SECONDS = 0.1  # seconds between two looks for other rows
QUIET_SECONDS = 0.3  # seconds without other rows until a part is there that may come bit by bit
AT_ONCE_SECONDS = 0.05  # the same for a part that had as many rows as the one before when it was first seen

NO_RETRY = "`retry` does not begin in the middle of a list: let a `handle` with `attempts` load the first page with `goto`, and read it"


class InParts(OfElement):
    """A reading of rows; the page may show only a part of them at once."""

    scroll: Literal["until_end"] | None = None
    """``until_end``: scrolls from the beginning to the end, and reads every row on the way; needs ``key``."""
    next: Target | None = None
    """Button or link to the next page of the list. The node clicks it as long as it is there and enabled, and reads each page; needs ``key``.
    The step then is of class *idempotent*, and ``retry`` covers only errors before the first click."""
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
            raise PydanticCustomError("needless", "`key` goes with `scroll` or `next`", {"field": "key"})
        names = self._names
        if self.key is not None and names and self.key not in names:
            near = did_you_mean(self.key, names, f"it has {', '.join(f'`{each}`' for each in names)}")
            raise ValueError(f"a row has no field `{self.key}`, which is its `key`: {near}")
        return self

    @property
    def _names(self) -> Collection[str]:
        """The names of a row's fields; empty if only the page tells them."""
        return ()

    @property
    def _parts(self) -> bool:
        return self.scroll is not None or self.next is not None

    @property
    @override
    def effect_class(self) -> EffectClass:
        given = super().effect_class
        # It leaves the list's last page, so after a restore it is done again like a click, not passed over like a reading.
        return "idempotent" if self.next is not None and given == "read" else given

    @property
    @override
    def moves_page(self) -> bool:
        return self._parts

    @property
    @override
    def begins_once(self) -> bool:
        return self.next is not None

    async def whole(self, ctx: LeafContext, rows: Target, read: Read) -> list[Row]:
        """Return all rows. ``read`` reads those that the page has now; given false, it does not wait for any. ``rows`` matches them."""
        if not self._parts:
            return await read(True)
        found: dict[str, Row] = {}
        if self.scroll is not None:
            await ctx.page.scroll_rows(rows, start=True)
        first = await read(True)
        now = self._added(found, await self._settled(ctx, first, read, whole=not first))
        if self.next is not None:
            complete = await self._page_by_page(ctx, found, now, read)
        else:
            complete = await self._to_the_end(ctx, rows, found, now, read)
        if complete:
            return list(found.values())
        message = f"the list has more than {self.limit:,} rows: the rest was not read"
        ctx.flag("list-cut", message, {"limit": self.limit})
        return list(found.values())[: self.limit]

    def _added(self, found: dict[str, Row], rows: list[Row]) -> list[str]:
        keys = self._keys_of(rows)
        for key, row in zip(keys, rows, strict=True):
            found.setdefault(key, row)
        return keys

    def _keys_of(self, rows: list[Row]) -> list[str]:
        return [self._key_of(each, rows) for each in rows]

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

    async def _settled(self, ctx: LeafContext, rows: list[Row], read: Read, *, whole: bool) -> list[Row]:
        """Return the rows of a part when no more of them arrive. ``whole``: they seem to be all."""
        keys, quiet, since = self._keys_of(rows), AT_ONCE_SECONDS if whole else QUIET_SECONDS, time.monotonic()
        while time.monotonic() - since < quiet:
            if ctx.left < QUIET_SECONDS:
                raise SiteError(
                    "list-unsettled",
                    "the time is up, and the list still changes",
                    fix="give the node a longer `timeout`; or choose a `key` that stays the same while a row is shown",
                    evidence={"rows": list[Json](keys[:10])},
                )
            await asyncio.sleep(min(quiet, LOOK_SECONDS))
            rows = await read(False)
            if (seen := self._keys_of(rows)) != keys:
                keys, quiet, since = seen, QUIET_SECONDS, time.monotonic()
        return rows

    async def _page_by_page(self, ctx: LeafContext, found: dict[str, Row], now: list[str], read: Read) -> bool:
        """Add the rows of the pages after the first; false if there are more than ``limit``."""
        if len(found) > self.limit or not await self._goes_on(ctx):
            return len(found) <= self.limit
        try:
            while True:
                now = self._added(found, await self._next_page(ctx, now, read))
                if len(found) > self.limit or not await self._goes_on(ctx):
                    return len(found) <= self.limit
        except SiteError as error:
            fix = error.fix if self.retry is None else f"{error.fix}; {NO_RETRY}" if error.fix else NO_RETRY
            raise error.replaced(phase="after", fix=fix) from error.__cause__

    async def _goes_on(self, ctx: LeafContext) -> bool:
        """Click ``next``; false if it is not there, or not enabled."""
        assert self.next is not None
        target = await ctx.page.locate(self.next) if await ctx.page.count(self.next) else None
        if target is None or not (await ctx.page.state(target))["enabled"]:
            return False
        await ctx.page.click(target)
        return True

    async def _next_page(self, ctx: LeafContext, now: list[str], read: Read) -> list[Row]:
        while True:
            rows = await read(False)
            keys = self._keys_of(rows)
            if keys and keys != now:
                whole = len(keys) >= len(now) and not set(keys) & set(now)
                rows = await self._settled(ctx, rows, read, whole=whole)
                if rows and self._keys_of(rows) != now:
                    return rows
            if ctx.left < 1:
                raise SiteError(
                    "list-stays",
                    f"{self.next} was clicked, and the list shows the same rows",
                    fix="make `next` match only while there is a next page, such as `a.next:not(.disabled)`",
                    evidence={"rows": list[Json](now[:10])},
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def _to_the_end(
        self, ctx: LeafContext, rows: Target, found: dict[str, Row], now: list[str], read: Read
    ) -> bool:
        """Add the rows that come by scrolling; false if there are more than ``limit``."""
        while len(found) <= self.limit:
            more = await self._scrolled(ctx, rows, found, read)
            if more is None:
                return True
            now = self._added(found, await self._settled(ctx, more, read, whole=len(more) >= len(now)))
        return False

    async def _scrolled(self, ctx: LeafContext, rows: Target, found: Mapping[str, Row], read: Read) -> list[Row] | None:
        """Return the rows after scrolling on; None at the end."""
        if await ctx.page.scroll_rows(rows, start=False):
            return await read(False)
        began = time.monotonic()
        while time.monotonic() - began < GROWS_SECONDS:
            more = await read(False)
            if any(key not in found for key in self._keys_of(more)):
                return more
            await asyncio.sleep(LOOK_SECONDS)
        return None
