"""A page that a test lends, with its browser context: a run works there, and leaves both open.

The context was made by somebody else, with options that cannot be changed later, so a file that needs others is refused. Its files are
taken from Playwright's own downloads, and its guard goes through Playwright's own connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, cast

from playwright.async_api import BrowserContext, Download, Error, Page, Request, Route

from nodes.errors import UsageError
from nodes.values import sound
from runtime.browser import own, playwright_internals, shared
from runtime.browser.devtools import downloads, origin_guard
from runtime.browser.devtools.playwright_wire import PlaywrightWire
from runtime.browser.engines import guard as engine_guard
from runtime.browser.options import BrowserOptions, Engine
from runtime.browser.run_pages import DocumentGuard
from runtime.browser.session import Session

_IN_PROTOCOL = {
    "timezone_id": "timezoneId",
    "ignore_https_errors": "ignoreHTTPSErrors",
    "java_script_enabled": "javaScriptEnabled",
    "bypass_csp": "bypassCSP",
    "extra_http_headers": "extraHTTPHeaders",
}
"""Options of a context whose names in the protocol are not those of Python in camel case."""


class LentPage:
    """Implements ``runtime.runs.run.Browsers`` over the page of a test."""

    def __init__(self, page: Page, options: BrowserOptions | None, allowed: Sequence[str], *, secrets: bool) -> None:
        """``allowed`` are the origins whose documents may load; ``secrets``: a page may show a secret of the run."""
        self._page = page
        self._options = options or BrowserOptions()
        self._allowed = allowed
        self._secrets = secrets

    async def open(self) -> Session:
        """Raises UsageError ``page-lacks`` if the file needs another browser."""
        context = self._page.context
        engine = cast("Engine", context.browser.browser_type.name if context.browser is not None else "chromium")
        made_with = playwright_internals.context_options(context)
        _demand(self._options, made_with, engine)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(playwright_internals.leave, context)
            guarded, guard, name = await _guard(self._page, self._options, self._allowed, engine, stack)
            files = LentDownloads(context)
            ending = stack.pop_all()

        async def end(_keep: bool) -> None:
            for tab in session.tabs.all():
                tab.overlook()
                with contextlib.suppress(Error):
                    await tab.leave()
            await ending.aclose()

        session = Session(
            context,
            guarded,
            guard,
            files,
            end,
            context_id=name,
            touch=bool(made_with.get("hasTouch")),
            engine=engine,
            pictures=engine == "chromium" or not self._secrets,
        )
        await session.begin_with(self._page)
        return session

    async def reattach(self) -> None:
        """Return None: the page is lent for one run."""


async def _guard(
    page: Page, options: BrowserOptions, allowed: Sequence[str], engine: Engine, stack: contextlib.AsyncExitStack
) -> tuple[origin_guard.GuardedTarget, DocumentGuard, str | None]:
    """Guard the context of the page until the stack ends."""
    context = page.context
    if engine != "chromium":
        guarded = origin_guard.GuardedTarget(allowed)
        routes = RouteGuard(guarded)
        await routes.start(context)
        stack.push_async_callback(routes.stop, context)
        return guarded, routes, None
    wire = await PlaywrightWire.open(context)
    stack.push_async_callback(wire.close)
    guard = origin_guard.Guard(wire, on_lost=lambda: None, everything=False)
    await guard.start()
    name = guard.context_of(await own.target_id(context, page))
    return await guard.guarded(allowed, own.credentials(options), context=name), guard, name


class RouteGuard:
    """Guards a context of Firefox or WebKit by a route. A redirect is noticed only when it was sent: the step then fails."""

    lost = False

    def __init__(self, guarded: origin_guard.GuardedTarget) -> None:
        self._guarded = guarded

    async def start(self, context: BrowserContext) -> None:
        context.on("request", self._requested)
        await context.route(self._elsewhere, self._decide)

    async def stop(self, context: BrowserContext) -> None:
        with contextlib.suppress(Error):
            await context.unroute(self._elsewhere, self._decide)

    def _elsewhere(self, url: str) -> bool:
        return not self._guarded.allowed.document(url)

    def _requested(self, request: Request) -> None:
        if request.redirected_from is not None and request.is_navigation_request():
            self._guarded.check(request.url, "redirect")

    async def _decide(self, route: Route) -> None:
        with contextlib.suppress(Error):
            if route.request.is_navigation_request():
                self._guarded.check(route.request.url, await engine_guard.kind_of(route.request))
                await route.abort("blockedbyclient")
            else:
                await route.fallback()

    async def tabs(self, context: str | None) -> frozenset[str]:
        del context  # nothing tells of tabs before Playwright does
        return frozenset()

    async def network_process(self) -> int | None:
        return 0


def _demand(wanted: BrowserOptions, made_with: Any, engine: Engine) -> None:
    """Refuse a file whose own options the context lacks. Raises UsageError ``page-lacks``."""
    own_options = wanted.model_fields_set
    if "engine" in own_options and wanted.engine != engine:
        raise _differs("engine", f"the page is of {engine}", f"run pytest with `--browser {wanted.engine}`")
    if wanted.switches:
        fix = "give them as `args` by the fixture `browser_type_launch_args`"
        raise _differs("switches", "the browser of the page runs already", fix)
    whole = wanted.resolved()
    named = shared.for_playwright(whole)
    defaults = shared.for_playwright(BrowserOptions())
    for name, value in named.items():
        if name == "accept_downloads" or value == defaults.get(name):
            continue
        if made_with.get(in_protocol(name)) != _as_protocol(name, value):
            fix = f"give the page the same: `@pytest.mark.browser_context_args({name}={value!r})`, or the fixture `browser_context_args`"
            raise _differs(_in_file(name), "the context of the page was made without it", fix)


def _differs(option: str, why: str, fix: str) -> UsageError:
    return UsageError(
        "page-lacks", f"the file needs `{option}` of `browser`, and {why}", fix=f"{fix}; or leave it out of the file"
    )


def _in_file(name: str) -> str:
    names = {"timezone_id": "timezone", "extra_http_headers": "headers", "java_script_enabled": "java_script"}
    others = {"is_mobile": "mobile", "has_touch": "touch"}
    return (names | others).get(name, name)


def in_protocol(name: str) -> str:
    """Return the protocol's name for an option of a context."""
    first, *others = name.split("_")
    return _IN_PROTOCOL.get(name) or first + "".join(each.capitalize() for each in others)


def _as_protocol(name: str, value: Any) -> Any:
    if name == "extra_http_headers":
        return [{"name": each, "value": text} for each, text in value.items()]
    return value


class LentDownloads:
    """Files by Playwright's own downloads. Implements ``runtime.browser.run_pages.IncomingFiles``."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._open: set[_Files] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[downloads.Incoming]:
        files = _Files()
        self._open.add(files)
        for page in self._context.pages:
            files.watch(page)
        self._context.on("page", files.watch)
        try:
            yield files
        finally:
            self._open.discard(files)
            self._context.remove_listener("page", files.watch)
            for page in self._context.pages:
                page.remove_listener("download", files.begin)

    def cancel(self, guid: str) -> None:
        for files in self._open:
            files.cancel(guid)

    async def close(self) -> None:
        pass


class _Files:
    def __init__(self) -> None:
        self._begun: dict[str, tuple[downloads.Download, Download]] = {}
        self._paths: dict[str, Path] = {}
        self._cancelling: set[asyncio.Task[None]] = set()

    def watch(self, page: Page) -> None:
        page.on("download", self.begin)

    async def begin(self, given: Download) -> None:
        incoming = downloads.Download(str(len(self._begun)), given.url, sound(given.suggested_filename))
        self._begun[incoming.guid] = (incoming, given)
        try:
            self._paths[incoming.guid] = Path(await given.path())
            incoming.state = "completed"
        except Error:
            incoming.state = "canceled"

    async def first(self) -> downloads.Download | None:
        return next((incoming for incoming, _given in self._begun.values()), None)

    def file(self, incoming: downloads.Download) -> Path:
        return self._paths[incoming.guid]

    def cancel(self, guid: str) -> None:
        task = asyncio.ensure_future(self._begun[guid][1].cancel())
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)
