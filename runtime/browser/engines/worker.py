"""A Firefox or WebKit that runs of this process share. Each run has a context, a proxy and a guard of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shlex
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, BrowserType, Error, Playwright

from nodes.errors import SetupError
from runtime.browser import playwright_errors, shared
from runtime.browser.chromium import driver
from runtime.browser.devtools.origin_guard import GuardedTarget
from runtime.browser.elements import locators
from runtime.browser.engines import bidi_bridge, find
from runtime.browser.engines.guard import ContextGuard, NoDownloads, probe
from runtime.browser.engines.proxy import OriginProxy
from runtime.browser.options import BrowserOptions, Engine
from runtime.browser.session import Session
from runtime.system import files


@dataclasses.dataclass(frozen=True, slots=True)
class Worker:
    """A worker that Playwright has started. ``pictures``: see ``RunPages``."""

    engine: Engine
    playwright: Playwright
    browser: Browser
    end: Callable[[], Awaitable[None]]
    pictures: bool

    @classmethod
    async def start(cls, named: Path | None, options: BrowserOptions, *, headed: bool, pictures: bool) -> Worker:
        """Start a browser for this process. Raises SetupError ``browser-not-found`` and ``browser-not-started``."""
        stack = contextlib.AsyncExitStack()
        try:
            playwright = await driver.start()
            stack.push_async_callback(playwright.stop)
            await locators.register(playwright)
            kind: BrowserType = getattr(playwright, options.engine)
            browser = await _launch(kind, find.find(kind, named), options, headed, stack)
            stack.push_async_callback(_closed, browser)
            return cls(options.engine, playwright, browser, stack.aclose, pictures)
        except BaseException:
            await stack.aclose()
            raise

    @property
    def lost(self) -> bool:
        return not self.browser.is_connected()

    async def session(
        self, options: BrowserOptions, origins: Sequence[str], leave: Callable[[], Awaitable[None]]
    ) -> Session:
        stack = contextlib.AsyncExitStack()

        async def end(_keep: bool) -> None:
            try:
                await stack.aclose()
            finally:
                await leave()

        guarded = GuardedTarget(origins)
        proxy = OriginProxy(lambda origin: origin in guarded.allowed)
        stack.push_async_callback(proxy.close)
        try:
            address = await proxy.start()
            context = await self.browser.new_context(**shared.for_playwright(options), proxy={"server": address})
            stack.push_async_callback(_closed, context)
            trial = await context.new_page()
            await probe(trial, proxy, self.engine)
            fetching = await self.playwright.request.new_context(ignore_https_errors=options.ignore_https_errors)
            stack.push_async_callback(fetching.dispose)
            guard = ContextGuard(guarded, proxy, fetching)
            await guard.start(context)
            page = await context.new_page()
            await trial.close()
            session = Session(
                context,
                guarded,
                guard,
                NoDownloads(self.engine),
                end,
                engine=self.engine,
                pictures=self.pictures,
            )
            await session.begin_with(page)
        except BaseException:
            # The caller leaves by itself.
            await stack.aclose()
            raise
        return session


async def open_shared(
    named: Path | None, options: BrowserOptions, *, origins: Sequence[str], headed: bool, pictures: bool
) -> Session:
    """Open a session in this process's browser of the engine. The first one starts the browser, the last one ends it."""
    start = functools.partial(Worker.start, named, options, headed=headed, pictures=pictures)
    key = (options.engine, named, headed, pictures, options.color_scheme, options.reduced_motion)
    try:
        return await shared.open_in(key, start, options, origins)
    except Error as error:
        raise _not_started(options.engine, error) from None


async def _launch(
    kind: BrowserType, released: Path | None, options: BrowserOptions, headed: bool, stack: contextlib.AsyncExitStack
) -> Browser:
    preferences = find.preferences(options.color_scheme == "dark", options.reduced_motion)
    try:
        if released is not None:
            program = _bridge(released, stack)
            return await kind.launch(
                executable_path=program, channel="moz-firefox", headless=not headed, firefox_user_prefs=preferences
            )
        if options.engine == "firefox":
            return await kind.launch(headless=not headed, firefox_user_prefs=preferences)
        return await kind.launch(headless=not headed)
    except Error as error:
        raise _not_started(options.engine, error) from None


def _bridge(firefox: Path, stack: contextlib.AsyncExitStack) -> Path:
    """Return a program that starts this Firefox behind the bridge; the stack removes it."""
    folder = Path(tempfile.mkdtemp(prefix="runops-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "firefox"
    command = shlex.join([sys.executable, bidi_bridge.__file__, str(firefox)])
    files.write(program, f'#!/bin/sh\nexec {command} "$@"\n'.encode())
    program.chmod(0o700)
    return program


def _not_started(engine: Engine, error: Error) -> SetupError:
    return SetupError(
        "browser-not-started",
        f"{engine} did not start: {playwright_errors.short(playwright_errors.head(error), 300)}",
        fix=f"type: runops install {engine}",
    )


async def _closed(part: Browser | BrowserContext) -> None:
    """Close a part of the browser, which may be gone."""
    with contextlib.suppress(Error):
        await part.close()
