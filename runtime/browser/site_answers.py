"""Answers of the site to the present action: to requests that may change data, and to documents.

A request counts from its start to its first answer. It is lost if its page or Chromium's network process dies before: it may
have been carried out. A request that the page itself aborted is not lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable

from playwright.async_api import BrowserContext, Error, Page, Request, Response

from nodes.errors import SiteError
from runtime.browser import isolated_world, origins, playwright_errors
from runtime.browser.deadline import Deadline
from runtime.browser.port import MissingAnswer

SERVER_ERROR = 500

LOOK_SECONDS = 0.05  # seconds between two checks for a dialog or a closed page that prevents an answer
NETWORK_SECONDS = 1.0  # seconds that Chromium's network process may take to show that it runs

_ABORTED = re.compile(r"net::ERR_ABORTED|NS_BINDING_ABORTED|.*\bcancelled\b.*")
"""Failure of a request that the page or a newer navigation aborted, or that ended with Chromium's network process."""

_BUSY = (408, 429)

_WAIT = isolated_world.Script[None](
    "() => { globalThis._runopsWaited = false; setTimeout(() => { globalThis._runopsWaited = true; }); }", None
)

_WAITED = isolated_world.Script[bool]("() => globalThis._runopsWaited !== false", bool)
"""True if the page has finished its immediate tasks, such as submitting a form; also true in another document."""


class Answers:
    def __init__(
        self,
        context: BrowserContext,
        deadline: Deadline,
        network: Callable[[], Awaitable[int | None]],
        blocked: Callable[[Request], bool],
    ) -> None:
        """``blocked`` returns True for a failed request that the guard refused."""
        self._deadline = deadline
        self._blocked = blocked
        self._network = network
        self._process = asyncio.ensure_future(network())  # last known network process
        self._page: Page | None = None  # page of the present action
        self._driver_waits = True
        self._asked: dict[Request, bool] = {}
        """Requests since the present action began; True for those without an answer."""
        self._earlier: set[Request] = set()  # requests of earlier actions without an answer
        self._changed = asyncio.Event()
        self._lost: str | None = None
        self._aborted: str | None = None  # A request aborted by the page or by the death of the network process
        self._refused: MissingAnswer | None = None
        self.reached = False
        """True if a navigation was answered since the present action began, even with a redirect only."""
        self.requests = 0  # requests of all tabs so far
        context.on("request", self._began)
        context.on("requestfailed", self._failed)
        context.on("response", self._answered)

    def begin(self, page: Page, *, driver_waits: bool) -> None:
        """Begin an action in ``page``. ``driver_waits``: Playwright waits for the document that it requests."""
        self._page, self._driver_waits = page, driver_waits
        self._earlier.update(self.open_requests)
        self._asked.clear()
        self._lost = self._aborted = self._refused = None
        self.reached = False

    def _began(self, request: Request) -> None:
        self.requests += 1
        if request.method not in ("GET", "HEAD") or _of_main_frame(request):
            self._asked[request] = True

    def _answered(self, response: Response) -> None:
        request = response.request
        self._earlier.discard(request)
        if request.is_navigation_request():
            self.reached = True
        if request in self._asked:
            self._over(request)
            if response.status >= SERVER_ERROR or response.status in _BUSY:
                self._refused = MissingAnswer(described(request), "error", response.status)

    def _failed(self, request: Request) -> None:
        self._earlier.discard(request)
        if (was_open := self._asked.get(request)) is None:
            return
        self._over(request)
        if _ABORTED.fullmatch(request.failure or ""):
            # A request that was already answered has become a download or an empty page.
            self._aborted = described(request) if was_open else self._aborted
        elif not self._blocked(request):
            self._lost = described(request)

    def _over(self, request: Request) -> None:
        self._asked[request] = False
        self._changed.set()

    @property
    def open_requests(self) -> list[Request]:
        return [each for each, is_open in self._asked.items() if is_open]

    def awaits(self, page: Page) -> bool:
        return any(_of_main_frame(each) and _page_of(each) is page for each in self.open_requests)

    def crashed(self, page: Page) -> None:
        """Record that a page crashed: its requests are lost, also those that were never reported."""
        if page is self._page:
            self._lost = self._lost or "what the page had sent"
        for request in self.open_requests:
            if _page_of(request) in (page, None):
                self._lost = described(request)
                self._over(request)

    async def missing(self) -> MissingAnswer | None:
        if self._lost is None and self._aborted is not None:
            aborted, self._aborted = self._aborted, None
            if await self._network_died():
                self._lost = aborted
        return MissingAnswer(self._lost, "lost") if self._lost is not None else None

    async def awaited(self, *, every: bool, stopped: Callable[[], bool]) -> MissingAnswer | None:
        """Wait for the document that the action requested, or with ``every`` for the answers to all its requests; return a missing one.

        ``stopped`` returns True if a dialog blocks the page. A server error is reported only with ``every``.
        """
        if not self._driver_waits and not stopped():
            await self._flush()
        while (late := self._late(every=every)) is not None and not stopped():
            if self._deadline.over() or (self._page is not None and self._page.is_closed()):
                return await self.missing() or MissingAnswer(described(late), "late")
            await self._change()
        return await self.missing() or (self._refused if every else None)

    async def at_rest(self, *, earlier: bool, stopped: Callable[[], bool]) -> bool:
        """Wait until the page's tasks are done and all requests of the action are answered; return True if that is so in time.

        With ``earlier``, also wait for the requests of earlier actions.
        """
        if not stopped():
            await self._flush()
        while (on_its_way := bool(self.open_requests or (earlier and self._earlier))) and not stopped():
            if self._deadline.over() or (self._page is not None and self._page.is_closed()):
                break
            await self._change()
        return not on_its_way and not self._deadline.over()

    async def _change(self) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(LOOK_SECONDS, self._deadline.left())):
                await self._changed.wait()

    def _late(self, *, every: bool) -> Request | None:
        mine = (each for each in self.open_requests if _of_main_frame(each) and _page_of(each) is self._page)
        return next(iter(self.open_requests if every else mine), None)

    async def _flush(self) -> None:
        """Wait until the page's own tasks are done and their requests are reported."""
        if self._page is None:
            return
        try:
            async with self._deadline.limit():
                await _WAIT.on(self._page)
                while not await _WAITED.on(self._page):
                    pass
                # Chromium reports earlier events of the page before it answers this.
                await _WAITED.on(self._page)
        except (TimeoutError, SiteError):
            return
        except Error as error:
            if playwright_errors.kind_of(error) == "crashed":
                self.crashed(self._page)

    async def _network_died(self) -> bool:
        """Return True if Chromium's network process is another one than before, or if that is uncertain."""
        try:
            async with asyncio.timeout(NETWORK_SECONDS):
                before, now = await self._process, await self._network()
        except TimeoutError:
            before = now = None
        if before is not None and before == now:
            return False
        self._process.cancel()
        self._process = asyncio.ensure_future(self._network())
        return True

    def close(self) -> None:
        self._process.cancel()


def described(request: Request) -> str:
    return f"{request.method} {origins.without_query(request.url)}"


def _page_of(request: Request) -> Page | None:
    try:
        return request.frame.page
    except Error:
        # Playwright does not know the frame yet (the first document of a tab that opens by itself), or the request is a worker's.
        return None


def _of_main_frame(request: Request) -> bool:
    if not request.is_navigation_request():
        return False
    try:
        return request.frame.parent_frame is None
    except Error:
        return True
