"""Mode *own*: a Chromium of the run's own, which survives the engine."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from playwright.async_api import Error, async_playwright

from runtime.browser import launch, matching
from runtime.browser.session import Session


async def open_own(executable: Path, private: Path, *, headed: bool) -> Session:
    """Start Chromium, and Playwright's driver meanwhile; the session is its default browser context."""
    starting = asyncio.ensure_future(launch.start(executable, private / "profile", headed=headed))
    playwright = await async_playwright().start()
    chromium = await starting
    browser = await playwright.chromium.connect_over_cdp(chromium.address, no_defaults=True)
    await playwright.selectors.register(matching.ENGINE_NAME, matching.ENGINE, content_script=True)

    async def end(keep: bool) -> None:
        with contextlib.suppress(Error):
            await browser.close()
        if not keep:
            await chromium.end()
        await playwright.stop()

    session = Session(browser.contexts[0], end)
    await session.open()
    return session
