"""Playwright's driver: a separate process, started out of reach of Ctrl-C in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
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


async def start_with(starting: Awaitable[launch.Chromium]) -> tuple[launch.Chromium, asyncio.Future[Playwright]]:
    """Start Chromium, and in parallel a driver, which may still be starting on return. If Chromium fails to start, the driver is ended."""
    driving = asyncio.ensure_future(start())
    try:
        return await starting, driving
    except BaseException:
        await stop(driving)
        raise


async def stop(driving: asyncio.Future[Playwright]) -> None:
    """End a driver once it has started. Ignores the error of a failed start: the caller that awaited the start has it."""
    with contextlib.suppress(Exception):
        await (await driving).stop()
