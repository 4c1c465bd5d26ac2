"""Playwright's driver: a process of its own, started so that Ctrl-C in the terminal does not reach it."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Awaitable, Mapping

from playwright.async_api import Playwright, async_playwright

from runtime.browser import playwright_internals
from runtime.browser.chromium import launch


async def start() -> Playwright:
    """A running driver; ``await playwright.stop()`` ends it.

    In our process group the terminal's interrupt would end it under us: what was going on would look like a failure instead of an
    interruption, and nothing could be closed in order. Node takes back what a parent blocks or ignores, so it has a session of its own.
    """
    loop = asyncio.get_running_loop()
    async with _locks.setdefault(loop, asyncio.Lock()):
        with playwright_internals.driver_apart(loop, lambda given: _with_compile_cache(given or os.environ)):
            return await async_playwright().start()


async def started(playwright: Playwright) -> Playwright:
    """One that has started already."""
    return playwright


def _with_compile_cache(environment: Mapping[str, str]) -> dict[str, str]:
    """The driver's environment: node keeps what it compiled in the person's cache folder, which saves a quarter of its start."""
    home = environment.get("HOME")
    caches = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    kept = {} if caches is None else {"NODE_COMPILE_CACHE": f"{caches}/runops/driver"}
    return {**kept, **environment}


_locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()


async def start_with(starting: Awaitable[launch.Chromium]) -> tuple[launch.Chromium, Playwright]:
    """Chromium and a driver, started at the same time; when one of them fails, or we are interrupted, the other is ended."""
    launching, driving = asyncio.ensure_future(starting), asyncio.ensure_future(start())
    try:
        return await asyncio.gather(launching, asyncio.shield(driving))
    except BaseException as error:
        # An interruption has reached the start of Chromium already; a second one would take it away from its tidying up.
        if not isinstance(error, asyncio.CancelledError):
            launching.cancel()
        # A driver can only be stopped once it has started.
        chromium, playwright = await asyncio.gather(launching, driving, return_exceptions=True)
        if not isinstance(chromium, BaseException):
            await chromium.end()
        if not isinstance(playwright, BaseException):
            await playwright.stop()
        raise
