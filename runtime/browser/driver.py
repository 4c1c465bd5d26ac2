"""Playwright's driver: a process of its own, started so that Ctrl-C in the terminal does not reach it."""

from __future__ import annotations

import signal

from playwright.async_api import Playwright, async_playwright


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
