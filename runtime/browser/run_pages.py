"""State that all tabs of a run share: the deadline, the guard on their documents, and the answers of the site."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from playwright.async_api import BrowserContext, Page, Request, Response

from nodes.errors import AuthorError, OriginRefused
from runtime.browser import http_sign_in, in_flight, origins, page_errors, playwright_internals
from runtime.browser.deadline import Deadline
from runtime.browser.devtools import origin_guard
from runtime.browser.devtools.downloads import Incoming
from runtime.browser.dialogs import Dialogs
from runtime.browser.options import Engine, Overlay
from runtime.browser.overlays import Overlays
from runtime.browser.port import Dismissal
from runtime.browser.site_answers import Answers

_BLOCKED = "net::ERR_BLOCKED_BY_CLIENT"  # failure of a request that the guard of Chromium refused
_BY_PROTOCOL = "it goes through Chromium's own protocol"


class DocumentGuard(Protocol):
    """What keeps documents of other origins out of the run's browser context."""

    @property
    def lost(self) -> bool:
        """True if it no longer guards."""
        ...

    async def tabs(self, context: str | None) -> frozenset[str]:
        """Return the present tabs of the context, before Playwright reports them."""
        ...

    async def network_process(self) -> int | None:
        """Return an id that changes when the browser's network dies and begins anew; None if it is unknown."""
        ...


class IncomingFiles(Protocol):
    """What receives the files that the run's browser downloads."""

    def open(self) -> contextlib.AbstractAsyncContextManager[Incoming]: ...

    def cancel(self, guid: str) -> None: ...

    async def close(self) -> None: ...


def lacks(engine: Engine, what: str, why: str = _BY_PROTOCOL, instead: str = "do without this step") -> AuthorError:
    """Return the error of a step that works in Chromium only."""
    return AuthorError(
        "engine-lacks",
        f"{engine} has no {what}: {why}",
        fix=f"{instead}, or run the file in Chromium: leave `engine` out of `browser`, and the flag `--engine`",
    )


class RunPages:
    def __init__(
        self,
        context: BrowserContext,
        allowed: origin_guard.GuardedTarget,
        guard: DocumentGuard,
        downloads: IncomingFiles,
        context_id: str | None,
        touch: bool,
        engine: Engine,
        pictures: bool,
    ) -> None:
        """``allowed`` limits the documents of this context. ``context_id`` names it in ``guard`` if the browser has several.

        ``pictures``: pictures may be taken, since every secret can be found and painted over in them, or there is none.
        """
        self.deadline = Deadline()
        self.downloads = downloads
        self.touch = touch
        self.engine: Engine = engine
        self.pictures = pictures
        self.answers = Answers(context, self.deadline, guard.network_process, self._blocked)
        self.dialogs: weakref.WeakSet[Dialogs] = weakref.WeakSet()
        """Dialogs of all tabs, including those that ``confirm`` uses."""
        self.overlays = Overlays()
        self._context = context
        self._allowed = allowed
        self._guard = guard
        self._context_id = context_id
        self._errors: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        """Error statuses of documents, by Playwright's internal request object."""
        self._asking: weakref.WeakSet[object] = weakref.WeakSet()
        """Requests, likewise, whose answers ask for HTTP credentials."""
        self._secrets: Sequence[str] = ()
        self._reading: asyncio.Task[Any] | None = None
        """Last reading of the browser's state; its caller may have stopped waiting for it."""
        context.on("response", self._answered)

    def _answered(self, response: Response) -> None:
        if response.status >= page_errors.CLIENT_ERROR and response.request.is_navigation_request():
            request = playwright_internals.key_of(response.request)
            self._errors[request] = response.status
            if http_sign_in.asked(response.status, response.headers):
                self._asking.add(request)

    def _blocked(self, request: Request) -> bool:
        """Return True if the guard stopped the request. Chromium says so; elsewhere its address tells."""
        return request.failure == _BLOCKED or (self.engine != "chromium" and not self.allowed.document(request.url))

    def demand_chromium(self, what: str) -> None:
        """Raise AuthorError ``engine-lacks`` in another browser. ``what`` goes through Chromium's own protocol."""
        if self.engine != "chromium":
            raise lacks(self.engine, what)

    def error_for(self, request: object) -> int | None:
        return self._errors.get(request)

    def asked_credentials(self, request: object) -> bool:
        """Return whether the document that answers a request asks for HTTP credentials. Only Chromium can give them."""
        return self.engine == "chromium" and request in self._asking

    def sign_in_fix(self) -> str:
        """Return how the workflow signs in to a site that asks for HTTP credentials."""
        return http_sign_in.fix(self._secrets, given=self._allowed.signs_in)

    def name_secrets(self, names: Sequence[str]) -> None:
        self._secrets = names

    def bound(self, seconds: float, *, quiet: float | None = None) -> None:
        if quiet is not None:
            in_flight.of(self._context)  # it knows the requests that begin from now on
        self.deadline.bound(seconds, quiet)

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
        if not origins.is_error_page(url):
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
