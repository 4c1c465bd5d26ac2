"""Lends one browser to several runs in turn: each works in it, and none of them ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence

from typing_extensions import override

from nodes.errors import OriginRefused
from nodes.pages import Page, Tabs
from runtime.browser import port


class Lent(port.Browser):
    """A borrowed browser. It is the browser itself, except that ``close`` leaves it open."""

    def __init__(self, browser: port.Browser) -> None:
        self._browser = browser

    @property
    @override
    def lost_tabs(self) -> Sequence[port.LostTab]:
        return self._browser.lost_tabs

    @property
    @override
    def page(self) -> Page:
        return self._browser.page

    @property
    @override
    def tabs(self) -> Tabs:
        return self._browser.tabs

    @override
    def facts(self) -> port.PageFacts:
        return self._browser.facts()

    @override
    def effect_finished(self) -> None:
        self._browser.effect_finished()

    @override
    def mark_pending(self) -> None:
        self._browser.mark_pending()

    @override
    def mark_posted(self) -> None:
        self._browser.mark_posted()

    @override
    def bound(self, seconds: float) -> None:
        self._browser.bound(seconds)

    @override
    def confine(self, origins: Sequence[str] | None, file: str) -> None:
        self._browser.confine(origins, file)

    @override
    def refusal(self) -> OriginRefused | None:
        return self._browser.refusal()

    @override
    async def lost_answer(self) -> port.MissingAnswer | None:
        return await self._browser.lost_answer()

    @override
    async def missing_answer(self, *, every: bool) -> port.MissingAnswer | None:
        return await self._browser.missing_answer(every=every)

    @override
    async def at_rest(self, *, earlier: bool = False) -> bool:
        return await self._browser.at_rest(earlier=earlier)

    @override
    def fresh_page(self) -> contextlib.AbstractAsyncContextManager[Page]:
        return self._browser.fresh_page()

    @override
    async def capture(self) -> port.Captured:
        return await self._browser.capture()

    @override
    async def restore(self, data: bytes) -> port.Differs | None:
        return await self._browser.restore(data)

    @override
    async def close(self, *, keep: bool = False) -> None:
        """Return the browser to its lender: allow all its origins again, and forget a refusal that was not read."""
        self._browser.confine(None, "")
        self._browser.refusal()


class Lender:
    """Lends the browser that ``opened`` returns, as the last run left it. Implements ``runtime.runs.run.Browsers``."""

    def __init__(self, opened: Callable[[], Awaitable[port.Browser]]) -> None:
        self._opened = opened

    async def open(self) -> port.Browser:
        return Lent(await self._opened())

    async def reattach(self) -> port.Browser | None:
        """Return None: a run with a borrowed browser is never resumed."""
        return None
