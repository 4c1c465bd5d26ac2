"""A run's browser, whichever mode stands behind it: its tabs, what they have loaded, and what was lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

from playwright.async_api import BrowserContext, Error, Page, Request

from nodes.errors import OriginRefused
from runtime.browser import checkpoint, guard, origins
from runtime.browser.page import Tab
from runtime.browser.patience import Patience
from runtime.browser.port import Captured, PageFacts

_NOT_LOST = frozenset({"net::ERR_ABORTED", "net::ERR_BLOCKED_BY_CLIENT"})
"""Requests that the page or a newer navigation gave up, and those that the guard refused."""


CLOSE_SECONDS = 5.0
"""How long a tab may take to be closed."""


class Session:
    """Implements ``runtime.browser.port.Browser`` over a Playwright browser context."""

    def __init__(
        self,
        context: BrowserContext,
        ward: guard.Ward,
        end: Callable[[bool], Awaitable[None]],
        *,
        watch: guard.Guard,
        reattached: bool = False,
    ) -> None:
        """``ward`` is what ``watch`` lets this context load; ``end`` lets go of the browser, and ends it unless it is to be kept."""
        self.reattached = reattached
        self.patience = Patience()
        self._context = context
        self._ward = ward
        self._watch = watch
        self._end = end
        self._tabs: dict[Page, Tab] = {}
        self._closed_documents = 0
        self._lost: str | None = None
        self._closed_already = False
        self._current: Tab
        for page in context.pages:
            self._add(page)
        context.on("page", self._opened)
        context.on("requestfailed", self._failed)

    async def begin_with(self, page: Page | None) -> None:
        """Make ``page`` the current tab; without one the first, or a new one."""
        if page is None and not self._tabs:
            page = await self._context.new_page()
            self._add(page)
        self._current = self._tabs[page] if page is not None else next(iter(self._tabs.values()))

    def _add(self, page: Page) -> None:
        if page in self._tabs:
            return
        self._tabs[page] = Tab(page, self)
        page.once("close", self._closed)

    def _opened(self, page: Page) -> None:
        self._add(page)
        # A tab that opens by itself is told of when its document is there already.
        if page.url not in ("", "about:blank"):
            self._tabs[page].documents = 1
            self.committed(page.url)

    def _closed(self, page: Page) -> None:
        tab = self._tabs.pop(page, None)
        if tab is not None:
            self._closed_documents += tab.documents

    def _failed(self, request: Request) -> None:
        if request.failure in _NOT_LOST:
            return
        if request.method not in ("GET", "HEAD") or _of_main_frame(request):
            self._lost = f"{request.method} {origins.without_query(request.url)}"

    @property
    def page(self) -> Tab:
        """The current tab."""
        return self._current

    def facts(self) -> PageFacts:
        """Documents and pending input as of now."""
        tabs = self._tabs.values()
        return PageFacts(
            documents=self._closed_documents + sum(tab.documents for tab in tabs),
            pending_input=any(tab.pending_input for tab in tabs),
        )

    def effect_finished(self) -> None:
        """A deed of class *effect* finished: what was typed before it counts as taken up."""
        for tab in self._tabs.values():
            tab.pending_input = False

    def mark_pending(self) -> None:
        """Every tab holds input: what the engine says of a browser that it found again and that had some."""
        for tab in self._tabs.values():
            tab.pending_input = True

    def bound(self, seconds: float) -> None:
        """How long the page methods may wait from now on."""
        self.patience.bound(seconds)

    def refusal(self) -> OriginRefused | None:
        """The document that the guard refused since this was last asked."""
        return self._ward.refusal()

    def begin(self) -> None:
        """A deed begins: answers lost before it are forgotten. Raises where documents are no longer guarded."""
        if self._watch.lost:
            raise guard.lost()
        self._lost = None

    def admit(self, url: str) -> None:
        """Raises OriginRefused where a document from ``url`` may not load; nothing was sent then."""
        if not self._ward.allowed.document(url):
            raise guard.refused(url, self._ward.allowed, "main frame", "before")

    def committed(self, url: str) -> None:
        """A second look, should a document ever come to stand in a tab without having been asked for."""
        if not url.startswith("chrome-error:"):
            self._ward.check(url, "main frame")

    def lost_answer(self) -> str | None:
        """The request whose answer was lost since the last deed began."""
        return self._lost

    @contextlib.asynccontextmanager
    async def fresh_page(self) -> AsyncGenerator[Tab]:
        """A tab of its own, closed at the end."""
        page = await self._context.new_page()
        self._tabs.pop(page, None)
        try:
            yield Tab(page, self)
        finally:
            # A page that does not answer cannot be closed; it goes with the browser.
            with contextlib.suppress(Error, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await page.close()

    async def capture(self) -> Captured:
        """The browser's state, to rebuild from."""
        return await checkpoint.capture(self._context, list(self._tabs), self._current.page)

    async def restore(self, path: Path) -> None:
        """Bring this fresh browser to the state of a checkpoint."""
        page = await checkpoint.restore(self._context, self._current.page, path)
        self._add(page)
        self._current = self._tabs[page]

    async def close(self, *, keep: bool = False) -> None:
        """End the browser, or with ``keep`` let go of it; what is closed already stays as it is."""
        if not self._closed_already:
            self._closed_already = True
            await self._end(keep)


def _of_main_frame(request: Request) -> bool:
    if not request.is_navigation_request():
        return False
    try:
        return request.frame.parent_frame is None
    except Error:
        # Playwright does not know the frame yet: the first document of a tab that opens by itself.
        return True
