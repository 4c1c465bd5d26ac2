"""State that all tabs of a run share: the deadline, the guard on their documents, and the answers of the site."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Any

from playwright.async_api import BrowserContext, Page, Response

from nodes.errors import OriginRefused
from runtime.browser import origins, page_errors, playwright_internals
from runtime.browser.deadline import Deadline
from runtime.browser.devtools import origin_guard
from runtime.browser.devtools.downloads import DownloadManager
from runtime.browser.dialogs import Dialogs
from runtime.browser.options import Overlay
from runtime.browser.overlays import Overlays
from runtime.browser.port import Dismissal
from runtime.browser.site_answers import Answers


class RunPages:
    def __init__(
        self,
        context: BrowserContext,
        allowed: origin_guard.GuardedTarget,
        guard: origin_guard.Guard,
        downloads: DownloadManager,
        context_id: str | None,
        touch: bool,
    ) -> None:
        """``allowed`` limits the documents of this context. ``context_id`` names it in ``guard`` if the browser has several."""
        self.deadline = Deadline()
        self.downloads = downloads
        self.touch = touch
        self.answers = Answers(context, self.deadline, guard.network_process)
        self.dialogs: weakref.WeakSet[Dialogs] = weakref.WeakSet()
        """Dialogs of all tabs, including those that ``confirm`` uses."""
        self.overlays = Overlays()
        self._context = context
        self._allowed = allowed
        self._guard = guard
        self._context_id = context_id
        self._errors: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        """Error statuses of documents, by Playwright's internal request object."""
        self._reading: asyncio.Task[Any] | None = None
        """Last reading of the browser's state; its caller may have stopped waiting for it."""
        context.on("response", self._answered)

    def _answered(self, response: Response) -> None:
        if response.status >= page_errors.CLIENT_ERROR and response.request.is_navigation_request():
            self._errors[playwright_internals.key_of(response.request)] = response.status

    def error_for(self, request: object) -> int | None:
        return self._errors.get(request)

    def bound(self, seconds: float) -> None:
        self.deadline.bound(seconds)

    @property
    def allowed(self) -> origins.Allowed:
        return self._allowed.allowed

    def confine(self, origins: Sequence[str] | None, file: str) -> None:
        self._allowed.confine(origins, file)

    def allow(self, origins: Iterable[str]) -> None:
        """Load documents from these origins only. Reserved for the code that opened the browser; a run can only narrow them."""
        self._allowed.allow(origins)

    def dismiss(self, overlays: Sequence[Overlay]) -> None:
        self.overlays.wanted = tuple(overlays)

    def dismissed(self) -> list[Dismissal]:
        return self.overlays.taken()

    def refusal(self) -> OriginRefused | None:
        return self._allowed.refusal()

    def admit(self, url: str) -> None:
        """Raise OriginRefused if a document from ``url`` may not load; nothing was sent then."""
        if not self.allowed.document(url):
            raise origin_guard.refused(url, self.allowed, "main frame", "before")

    def committed(self, url: str) -> None:
        """Check a document again after it loaded, in case it appeared without a request."""
        if not url.startswith("chrome-error:"):
            self._allowed.check(url, "main frame")

    def begin(self, page: Page, *, driver_waits: bool = False) -> None:
        """Begin an action in ``page`` and forget earlier requests. Raises InternalError ``guard-lost``.

        ``driver_waits``: Playwright itself waits for the document that the action requests.
        """
        if self._guard.lost:
            raise origin_guard.lost()
        self.answers.begin(page, driver_waits=driver_waits)

    async def settled(self) -> None:
        """Wait for the end of an abandoned reading of the state: until then, a tab may exist that is not the site's."""
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=self.deadline.left())

    async def know_origins(self) -> None:
        """Make Playwright aware of all origins that may have stored data; it saves and clears only those that it knows."""

    @contextlib.asynccontextmanager
    async def opening_tabs(self) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
        """Yield a function that returns True if a tab was opened within the block and Playwright has not reported it yet."""
        before, arrived = await self._guard.tabs(self._context_id), list[Page]()

        async def any_to_come() -> bool:
            opened = await self._guard.tabs(self._context_id) - before
            return len(opened) > sum(not page.is_closed() for page in arrived)

        def arrive(page: Page) -> None:
            arrived.append(page)

        self._context.on("page", arrive)
        try:
            yield any_to_come
        finally:
            self._context.remove_listener("page", arrive)
