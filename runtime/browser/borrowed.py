"""Lends one browser to several runs in turn: each works in it, and none of them ends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from runtime.browser import port


class _Borrowed:
    """The browser itself, except that ``close`` leaves it open."""

    def __init__(self, browser: port.Browser) -> None:
        self._browser = browser

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browser, name)

    async def close(self, *, keep: bool = False) -> None:
        """Return the browser to its lender: allow all its origins again, and forget a refusal that was not read."""
        self._browser.confine(None, "")
        self._browser.refusal()


class Lender:
    """Lends the browser that ``opened`` returns, as the last run left it. Implements ``runtime.runs.run.Browsers``."""

    def __init__(self, opened: Callable[[], Awaitable[port.Browser]]) -> None:
        self._opened = opened

    async def open(self) -> port.Browser:
        return cast("port.Browser", _Borrowed(await self._opened()))

    async def reattach(self) -> port.Browser | None:
        """Return None: a run with a borrowed browser is never resumed."""
        return None
