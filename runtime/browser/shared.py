"""Mode *shared*: an isolated browser context in a worker's browser, used by several runs of this process at once.

It cannot be reattached after a crash: when the worker dies, its browser is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Sequence
from pathlib import Path
from typing import Any, Protocol

from playwright.async_api import Browser, Error

from runtime.browser import own
from runtime.browser.chromium import driver, launch
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard, user_agent
from runtime.browser.devtools.downloads import DownloadManager
from runtime.browser.options import BrowserOptions
from runtime.browser.session import Session

CONNECT_SECONDS = 10.0

LOST = (devtools_connection.Disconnected, devtools_connection.Refused, Error)
"""Errors of a browser that ends, or loses its connection, while a session is opened."""


class Worker(Protocol):
    """A browser that several runs share: one of this process, or one that somebody else started."""

    @property
    def lost(self) -> bool:
        """True if no more sessions can be opened in it."""
        ...

    @property
    def end(self) -> Callable[[], Awaitable[None]]: ...

    async def session(
        self, options: BrowserOptions, origins: Sequence[str], leave: Callable[[], Awaitable[None]]
    ) -> Session:
        """Open an isolated part of the browser; ``leave`` is awaited when it closes."""
        ...


_NOT_KEPT = "addEventListener('unload', () => {});"
"""Chromium keeps no page that listens to its end."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chromium:
    """A worker that is a Chromium."""

    address: str
    folder: Path | None  # where its downloads go; None if that is on another machine
    guard: origin_guard.Guard
    browser: Browser
    end: Callable[[], Awaitable[None]]
    keeps_pages: bool = False
    """True if it may keep a page that is left, and show it again on the way back: without any event, so that Playwright would wait for ever."""

    @classmethod
    async def start(cls, executable: Path, *, headed: bool, switches: Sequence[str]) -> Chromium:
        """Start a browser for this process. Raises SetupError ``browser-not-started``."""
        starting = launch.start(executable, None, linger=0.0, headed=headed, further=switches)
        chromium, driving = await driver.start_with(starting)
        guard: origin_guard.Guard | None = None

        async def end() -> None:
            await chromium.end()
            if guard is not None:
                await guard.close()
            await driver.stop(driving)

        try:
            address = chromium.alive.address
            connection = await devtools_connection.Connection.open(address, CONNECT_SECONDS)
            guard = origin_guard.Guard(connection, on_lost=chromium.end_soon)
            await guard.start()
            browser = await own.connect_playwright(chromium.alive, await asyncio.shield(driving))
            return cls(address, chromium.alive.downloads, guard, browser, end)
        except BaseException as error:
            await end()
            if isinstance(error, LOST):
                raise own.lost_while_connecting(executable, error) from None
            raise

    @property
    def lost(self) -> bool:
        return self.guard.lost

    async def session(
        self, options: BrowserOptions, origins: Sequence[str], leave: Callable[[], Awaitable[None]]
    ) -> Session:
        guard = self.guard
        context = await self.browser.new_context(**for_playwright(options))
        try:
            if self.keeps_pages:
                await context.add_init_script(_NOT_KEPT)
            page = await context.new_page()
            # No document loads in the context until the guard knows it.
            name = guard.context_of(await own.target_id(context, page))
            allowed = await guard.guarded(origins, own.credentials(options), user_agent.headers(options), name)
        except BaseException:
            with contextlib.suppress(Error):
                await context.close()
            raise

        async def end(_keep: bool) -> None:
            with contextlib.suppress(Error):
                await context.close()
            guard.dismiss(name)
            await leave()

        downloads = DownloadManager(self.address, guard, self.folder, name)
        session = Session(context, allowed, guard, downloads, end, context_id=name, touch=options.touch)
        await session.begin_with(page)
        return session


@dataclasses.dataclass
class _Place:
    starting: asyncio.Task[Worker]
    sessions: int = 0

    async def end(self) -> None:
        if self.starting.done() and not self.starting.cancelled() and self.starting.exception() is None:
            await self.starting.result().end()
        else:
            self.starting.cancel()
            # A cancelled start ends its own processes.
            await asyncio.wait([self.starting])


_keeping: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
"""Event loops whose browsers stay open without a session."""


@contextlib.asynccontextmanager
async def kept() -> AsyncGenerator[None]:
    """Keep browsers of this loop open between runs inside the block. At its end, end those without a session."""
    loop = asyncio.get_running_loop()
    _keeping.add(loop)
    try:
        yield
    finally:
        _keeping.discard(loop)
        places = _places.get(loop, {})
        for key, place in [*places.items()]:
            if not place.sessions:
                del places[key]
                await place.end()


_places: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, _Place]] = weakref.WeakKeyDictionary()


async def open_shared(executable: Path, options: BrowserOptions, *, origins: Sequence[str], headed: bool) -> Session:
    """Open a session in this process's browser of the same switches. The first session starts the browser, the last one ends it."""
    start = functools.partial(Chromium.start, executable, headed=headed, switches=options.switches)
    try:
        return await open_in((executable, headed, *options.switches), start, options, origins)
    except LOST as error:
        raise own.lost_while_connecting(executable, error) from None


async def open_in(
    key: Hashable, start: Callable[[], Coroutine[Any, Any, Worker]], options: BrowserOptions, origins: Sequence[str]
) -> Session:
    """Open a session in the browser of ``key``, which ``start`` starts if there is none. Raises the errors of ``LOST``."""
    loop = asyncio.get_running_loop()
    places = _places.setdefault(loop, {})
    place = before = places.get(key)
    if place is None or (place.starting.done() and _unusable(place.starting)):
        place = places[key] = _Place(asyncio.create_task(start()))
    place.sessions += 1

    async def leave() -> None:
        place.sessions -= 1
        is_present = places.get(key) is place
        if place.sessions or (is_present and loop in _keeping):
            return
        if is_present:
            del places[key]
        await place.end()

    try:
        if before is not None and not before.sessions:
            await before.end()
        # Interrupting one run must not interrupt the start for the others.
        worker = await asyncio.shield(place.starting)
        return await worker.session(options, origins, leave)
    except BaseException:
        await leave()
        raise


def _unusable(started: asyncio.Task[Worker]) -> bool:
    return started.cancelled() or started.exception() is not None or started.result().lost


def for_playwright(options: BrowserOptions) -> dict[str, Any]:
    """Return the options as Playwright names them, without HTTP authentication: Playwright would answer every site that asks."""
    named: dict[str, Any] = {
        "viewport": options.viewport.model_dump(),
        "screen": options.screen.model_dump() if options.screen else None,
        "device_scale_factor": options.device_scale_factor,
        "locale": options.locale,
        "timezone_id": options.timezone,
        "user_agent": options.user_agent,
        "color_scheme": options.color_scheme,
        "reduced_motion": "reduce" if options.reduced_motion else "no-preference",
        "geolocation": options.geolocation.model_dump() if options.geolocation else None,
        "permissions": list(options.permissions),
        "extra_http_headers": options.headers or None,
        "ignore_https_errors": options.ignore_https_errors,
        "java_script_enabled": options.java_script,
        "bypass_csp": options.bypass_csp,
        "is_mobile": options.mobile,
        "has_touch": options.touch,
        "offline": options.offline,
        "accept_downloads": False,
    }
    if options.proxy is not None:
        named["proxy"] = {"server": options.proxy.server, "bypass": ",".join(options.proxy.bypass)}
    return {name: value for name, value in named.items() if value is not None}
