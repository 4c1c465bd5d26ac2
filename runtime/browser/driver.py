"""Playwright's driver: a process of its own, started so that Ctrl-C in the terminal does not reach it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable

from playwright.async_api import Playwright, async_playwright

from runtime.browser import launch


async def start() -> Playwright:
    """A running driver; ``await playwright.stop()`` ends it.

    It stands in our process group, so the terminal's interrupt would end it under us, and what was going on would look like a failure
    instead of an interruption. A child inherits which signals are blocked: ours are held back meanwhile and delivered afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return await async_playwright().start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def start_with(starting: Awaitable[launch.Chromium]) -> tuple[launch.Chromium, Playwright]:
    """Chromium and a driver, started at the same time; when one of them fails, or we are interrupted, the other is ended."""
    launching, driving = asyncio.ensure_future(starting), asyncio.ensure_future(start())
    try:
        return await asyncio.gather(launching, asyncio.shield(driving))
    except BaseException:
        launching.cancel()
        # A driver can only be stopped once it has started.
        chromium, playwright = await asyncio.gather(launching, driving, return_exceptions=True)
        if not isinstance(chromium, BaseException):
            await chromium.end()
        if not isinstance(playwright, BaseException):
            await playwright.stop()
        raise
