"""Guard on origins for a browser context of Firefox or WebKit.

Two layers: a route of Playwright's refuses each request of a document before it is sent, and knows what asked for it; the
proxy refuses what no route sees, such as a redirect. Scripts, styles, pictures and reads from other origins are fetched for
the page, beside the proxy. Requests that may change something go to allowed origins only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import NoReturn

from playwright.async_api import APIRequestContext, BrowserContext, Error, Page, Request, Route

from nodes.errors import SetupError
from runtime.browser import origins, run_pages
from runtime.browser.devtools.downloads import PendingDownloads
from runtime.browser.devtools.origin_guard import GuardedTarget
from runtime.browser.engines.proxy import OriginProxy
from runtime.browser.options import Engine

PROBE_MILLISECONDS = 10_000.0

PARTS = frozenset({"stylesheet", "script", "image", "media", "font", "texttrack", "xhr", "fetch", "manifest"})
"""Kinds of requests that are no documents. An unknown kind may be one, such as that of an ``object``."""

_READS = ("GET", "HEAD")


class ContextGuard:
    """Guards one browser context, whose proxy is ``proxy``."""

    lost = False  # the proxy is a part of this process, and without it the browser reaches nothing

    def __init__(self, guarded: GuardedTarget, proxy: OriginProxy, fetching: APIRequestContext) -> None:
        """``fetching`` sends requests beside the proxy."""
        self._guarded = guarded
        self._fetching = fetching
        guarded.changed = proxy.recheck

    async def start(self, context: BrowserContext) -> None:
        """Guard the context from now on. No page may have loaded anything before."""
        context.on("request", self._requested)
        await context.route(lambda url: not self._guarded.allowed.document(url), self._decide)

    def _requested(self, request: Request) -> None:
        # Playwright asks no route about a redirect; the proxy refuses it.
        if request.redirected_from is not None and request.is_navigation_request():
            self._guarded.check(request.url, "redirect")

    async def _decide(self, route: Route) -> None:
        request = route.request
        # A page that goes away takes its requests along.
        with contextlib.suppress(Error):
            if request.is_navigation_request() or request.resource_type not in PARTS:
                self._guarded.check(request.url, await kind_of(request))
                await route.abort("blockedbyclient")
            elif request.method in _READS:
                await self._fetch(route)
            else:
                await route.abort("blockedbyclient")

    async def _fetch(self, route: Route) -> None:
        request = route.request
        try:
            headers = await request.all_headers()
            answer = await self._fetching.fetch(request.url, method=request.method, headers=headers)
        except Error:
            await route.abort("failed")
            return
        try:
            # From a cache it could be shown as a document, unseen by the proxy.
            await route.fulfill(response=answer, headers={**answer.headers, "cache-control": "no-store"})
        finally:
            await answer.dispose()

    async def tabs(self, context: str | None) -> frozenset[str]:
        del context  # nothing tells of tabs before Playwright does
        return frozenset()

    async def network_process(self) -> int | None:
        # The network of these browsers ends with them.
        return 0


async def kind_of(request: Request) -> str:
    try:
        frame = request.frame
    except Error:
        return "popup"
    if frame.parent_frame is not None or not request.is_navigation_request():
        return "sub frame"
    is_new = origins.is_blank(frame.url) and await frame.page.opener() is not None
    return "popup" if is_new else "main frame"


async def probe(page: Page, proxy: OriginProxy, engine: Engine) -> None:
    """Make sure that the browser connects through the proxy only, to this machine and to others.

    ``page`` is a blank page that nothing guards yet. Raises SetupError ``browser-unguarded``.
    """
    reached = asyncio.Event()

    def come(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        writer.close()

    bait = await asyncio.start_server(come, "127.0.0.1", 0)
    async with bait:
        port = bait.sockets[0].getsockname()[1]
        places = [f"127.0.0.1:{port}", f"localhost:{port}", "runops.invalid:80"]
        for each in places:
            with contextlib.suppress(Error):
                await page.goto(f"http://{each}/", timeout=PROBE_MILLISECONDS)
    unseen = [each for each in places if not any(each.removesuffix(":80") in asked for asked in proxy.asked)]
    if reached.is_set() or unseen:
        raise SetupError(
            "browser-unguarded",
            f"{engine} connects past our proxy, which keeps documents of other origins out"
            + (f" (to {unseen[0]})" if unseen else ""),
            fix="run the file in Chromium: leave `engine` out of `browser`, and the flag `--engine`",
        )
    proxy.begin()


class NoDownloads:
    """Takes no files: the browser refuses them."""

    def __init__(self, engine: Engine) -> None:
        self._engine: Engine = engine

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[PendingDownloads]:
        self._refuse()
        yield  # pyright: ignore[reportReturnType] - it is never reached

    def _refuse(self) -> NoReturn:
        raise run_pages.lacks(self._engine, "download")

    def cancel(self, guid: str) -> None:
        del guid

    async def close(self) -> None:
        pass
