"""What the site answers to the present action: requests that may change something on it, and documents.

A request counts from its beginning to its first answer. One that is open when its page or Chromium's network process dies is lost: it may have
been carried out. One that the page itself gave up is not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from playwright.async_api import BrowserContext, Error, Page, Request, Response

from nodes.errors import SiteError
from runtime.browser import isolated_world, origins, playwright_errors
from runtime.browser.deadline import Deadline
from runtime.browser.port import MissingAnswer

SERVER_ERROR = 500

LOOK_SECONDS = 0.05
"""Between two looks whether a dialog or the end of the page keeps an answer from coming."""

NETWORK_SECONDS = 1.0
"""How long Chromium's network process may take to show that it lives."""

_BLOCKED = "net::ERR_BLOCKED_BY_CLIENT"
"""A request that the guard refused."""

_ABORTED = "net::ERR_ABORTED"
"""A request that the page or a newer navigation gave up, or that went down with Chromium's network process."""

_BUSY = (408, 429)

_WAIT = isolated_world.Script[None](
    "() => { globalThis._runopsWaited = false; setTimeout(() => { globalThis._runopsWaited = true; }); }", None
)

_WAITED = isolated_world.Script[bool]("() => globalThis._runopsWaited !== false", bool)
"""Whether what the page had set itself to do at once, a form to be sent among it, is done; in another document it is."""


class Answers:
    """Listens to one browser context."""

    def __init__(
        self, context: BrowserContext, deadline: Deadline, network: Callable[[], Awaitable[int | None]]
    ) -> None:
        """``network`` tells the process id of Chromium's network process; None where it cannot."""
        self._deadline = deadline
        self._network = network
        self._process = asyncio.ensure_future(network())
        """The network process as it was known last."""
        self._page: Page | None = None
        """Where the present action works."""
        self._driver_waits = True
        self._asked: dict[Request, bool] = {}
        """The requests since the present action began, and whether they are still without an answer."""
        self._earlier: set[Request] = set()
        """Those of earlier actions that are still without an answer."""
        self._changed = asyncio.Event()
        self._lost: str | None = None
        self._aborted: str | None = None
        """A request that was given up, by the page or by a network process that died."""
        self._refused: MissingAnswer | None = None
        self.reached = False
        """Whether a navigation was answered since the present action began, if only with a redirect."""
        context.on("request", self._began)
        context.on("requestfailed", self._failed)
        context.on("response", self._answered)

    def begin(self, page: Page, *, driver_waits: bool) -> None:
        """An action begins in ``page``. ``driver_waits``: Playwright waits for the document that it asks for."""
        self._page, self._driver_waits = page, driver_waits
        self._earlier.update(self._open)
        self._asked.clear()
        self._lost = self._aborted = self._refused = None
        self.reached = False

    def _began(self, request: Request) -> None:
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
        if request.failure == _ABORTED:
            # One that had its answer has become a download, or an empty page.
            self._aborted = described(request) if was_open else self._aborted
        elif request.failure != _BLOCKED:
            self._lost = described(request)

    def _over(self, request: Request) -> None:
        self._asked[request] = False
        self._changed.set()

    @property
    def _open(self) -> list[Request]:
        return [each for each, is_open in self._asked.items() if is_open]

    def awaits(self, page: Page) -> bool:
        """Whether a navigation of ``page`` since the action began is without an answer."""
        return any(_of_main_frame(each) and _page_of(each) is page for each in self._open)

    def crashed(self, page: Page) -> None:
        """A page has crashed: what it had asked for is lost, also what nobody has heard of."""
        if page is self._page:
            self._lost = self._lost or "what the page had sent"
        for request in self._open:
            if _page_of(request) in (page, None):
                self._lost = described(request)
                self._over(request)

    async def missing(self) -> MissingAnswer | None:
        """The answer that was lost since the action began, if one was."""
        if self._lost is None and self._aborted is not None:
            aborted, self._aborted = self._aborted, None
            if await self._network_died():
                self._lost = aborted
        return MissingAnswer(self._lost, "lost") if self._lost is not None else None

    async def awaited(self, *, every: bool, stopped: Callable[[], bool]) -> MissingAnswer | None:
        """Wait until the document that the action asked for is answered; with ``every`` every request of it. What is missing then.

        ``stopped`` tells whether a dialog keeps the page from going on. Only with ``every`` an error of the server is told.
        """
        if not self._driver_waits and not stopped():
            await self._flush()
        while (late := self._late(every=every)) is not None and not stopped():
            if self._deadline.over() or (self._page is not None and self._page.is_closed()):
                return await self.missing() or MissingAnswer(described(late), "late")
            await self._change()
        return await self.missing() or (self._refused if every else None)

    async def at_rest(self, *, earlier: bool, stopped: Callable[[], bool]) -> bool:
        """Wait until the page has done what the action set off, and all that it sent is answered; return whether it came to that in time.

        With ``earlier`` what the actions before it sent counts too.
        """
        if not stopped():
            await self._flush()
        while (on_its_way := bool(self._open or (earlier and self._earlier))) and not stopped():
            if self._deadline.over() or (self._page is not None and self._page.is_closed()):
                break
            await self._change()
        return not on_its_way and not self._deadline.over()

    async def _change(self) -> None:
        """Wait until something is answered, or for a moment."""
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(LOOK_SECONDS, self._deadline.left())):
                await self._changed.wait()

    def _late(self, *, every: bool) -> Request | None:
        mine = (each for each in self._open if _of_main_frame(each) and _page_of(each) is self._page)
        return next(iter(self._open if every else mine), None)

    async def _flush(self) -> None:
        """Have the page's own tasks done and what they ask for told of."""
        if self._page is None:
            return
        try:
            async with self._deadline.limit():
                await _WAIT.on(self._page)
                while not await _WAITED.on(self._page):
                    pass
                # What Chromium hears of the page meanwhile it tells before this is answered.
                await _WAITED.on(self._page)
        except (TimeoutError, SiteError):
            return
        except Error as error:
            if playwright_errors.kind_of(error) == "crashed":
                self.crashed(self._page)

    async def _network_died(self) -> bool:
        """Whether Chromium has another network process than before; in doubt it has."""
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
        """Listen no more."""
        self._process.cancel()


def described(request: Request) -> str:
    """Method and address, without the query."""
    return f"{request.method} {origins.without_query(request.url)}"


def _page_of(request: Request) -> Page | None:
    try:
        return request.frame.page
    except Error:
        # Playwright does not know the frame yet: the first document of a tab that opens by itself; or it is a worker's.
        return None


def _of_main_frame(request: Request) -> bool:
    if not request.is_navigation_request():
        return False
    try:
        return request.frame.parent_frame is None
    except Error:
        return True
