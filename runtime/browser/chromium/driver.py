"""Playwright's driver: a separate process, started out of reach of Ctrl-C in the terminal."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Awaitable, Mapping

from playwright.async_api import Playwright, async_playwright

from runtime.browser import playwright_internals
from runtime.browser.chromium import launch


async def start() -> Playwright:
    """Start a driver in a separate session: Ctrl-C must not end it before the run is closed in order."""
    loop = asyncio.get_running_loop()
    async with _locks.setdefault(loop, asyncio.Lock()):
        with playwright_internals.driver_apart(loop, lambda given: _with_compile_cache(given or os.environ)):
            return await async_playwright().start()


def _with_compile_cache(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the driver's environment: node caches compiled code in the user's cache folder, which saves a quarter of its start."""
    home = environment.get("HOME")
    caches = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    kept = {} if caches is None else {"NODE_COMPILE_CACHE": f"{caches}/runops/driver"}
    return {**kept, **environment}


_locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()


async def start_with(starting: Awaitable[launch.Chromium]) -> tuple[launch.Chromium, Playwright]:
    """Start Chromium and a driver in parallel. If one fails, or we are interrupted, the other is ended."""
    launching, driving = asyncio.ensure_future(starting), asyncio.ensure_future(start())
    try:
        return await asyncio.gather(launching, asyncio.shield(driving))
    except BaseException as error:
        # An interruption has already reached Chromium's start; a second one would stop its cleanup.
        if not isinstance(error, asyncio.CancelledError):
            launching.cancel()
        # A driver can be stopped only after its start.
        chromium, playwright = await asyncio.gather(launching, driving, return_exceptions=True)
        if not isinstance(chromium, BaseException):
            await chromium.end()
        if not isinstance(playwright, BaseException):
            await playwright.stop()
        raise
