"""Requests of a browser context that are under way: what a page still waits for to draw itself."""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from collections.abc import Callable

from playwright.async_api import BrowserContext, Error, Page, Request, Response

QUIET_SECONDS = 0.1  # seconds without a request until a page has what it asked for
LONGEST = 10.0  # seconds after which a request counts no more: a page that is told of news keeps one open

_DRAWS = frozenset({"document", "script", "stylesheet", "xhr", "fetch"})
_STREAM = "text/event-stream"

_trackers: weakref.WeakKeyDictionary[BrowserContext, InFlight] = weakref.WeakKeyDictionary()


def of(context: BrowserContext) -> InFlight:
    """Return the tracker of the context: it knows the requests that began since the first call."""
    if context not in _trackers:
        _trackers[context] = InFlight(context)
    return _trackers[context]


class InFlight:
    def __init__(self, context: BrowserContext) -> None:
        self._begun: dict[Request, float] = {}
        self._ended: weakref.WeakKeyDictionary[Page, float] = weakref.WeakKeyDictionary()  # when its last request ended
        self._change = asyncio.Event()
        context.on("request", self._begins)
        context.on("response", self._answered)
        context.on("requestfinished", self._over)
        context.on("requestfailed", self._over)

    def waits(self, page: Page) -> bool:
        """Return True if the page has no answer yet to something that it asked for."""
        now = time.monotonic()
        # What is not reported as over belongs to a document that is gone, or never ends.
        self._begun = {each: since for each, since in self._begun.items() if now - since < LONGEST}
        return any(_page_of(each) is page for each in self._begun)

    def rests(self, page: Page, seconds: float = QUIET_SECONDS) -> bool:
        """Return True if the page has asked for nothing for so long."""
        return not self.waits(page) and time.monotonic() - self._ended.get(page, 0.0) >= seconds

    async def rest(self, page: Page, seconds: float, stopped: Callable[[], bool]) -> None:
        """Wait until ``rests``, for ``seconds`` at the most, or until ``stopped``."""
        until = time.monotonic() + seconds
        while (
            not self.rests(page) and (left := until - time.monotonic()) > 0 and not page.is_closed() and not stopped()
        ):
            self._change.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(QUIET_SECONDS, left)):
                    await self._change.wait()

    def _begins(self, request: Request) -> None:
        if request.resource_type in _DRAWS:
            self._begun[request] = time.monotonic()
            self._change.set()

    def _answered(self, response: Response) -> None:
        if response.headers.get("content-type", "").startswith(_STREAM):
            self._over(response.request)

    def _over(self, request: Request) -> None:
        if self._begun.pop(request, None) is not None and (page := _page_of(request)) is not None:
            self._ended[page] = time.monotonic()
            self._change.set()


def _page_of(request: Request) -> Page | None:
    try:
        return request.frame.page
    except Error:
        # It is a worker's, or of a tab that opens just now.
        return None
