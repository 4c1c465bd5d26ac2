"""Browsers for tests: opened as the engine opens them, without external settings."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path

import psutil

from runtime.browser import open as open_browser
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard
from runtime.browser.devtools.downloads import DownloadManager
from runtime.browser.options import BrowserOptions, Engine, Mode
from runtime.browser.session import Session


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Browser settings."""

    browser: Path | None = None
    browser_mode: Mode | None = None
    browser_engine: Engine | None = None
    browser_url: str | None = None
    headed: bool = False
    keep_browser: bool = False
    linger: float = 0.0


@contextlib.asynccontextmanager
async def opened(
    private: Path,
    *origins: str,
    options: BrowserOptions | None = None,
    mode: Mode | None = None,
    url: str | None = None,
    linger: float = 0.0,
    seconds: float = 10.0,
) -> AsyncGenerator[Session]:
    """A fresh browser that may load documents of ``origins``; closed with the block. ``url`` is that of a browser of others."""
    chosen = Chosen(browser_mode=mode, browser_url=url, linger=linger)
    browser = await open_browser.open_browser(options, origins=origins, private=private, settings=chosen)
    browser.bound(seconds)
    try:
        yield browser
    finally:
        await browser.close()


def connection(browser: Session) -> devtools_connection.Connection:
    """Our own connection to the Chromium of a session."""
    assert isinstance(browser._guard, origin_guard.Guard)
    found = browser._guard._connection
    assert isinstance(found, devtools_connection.Connection)
    return found


def downloads(browser: Session) -> DownloadManager:
    """What receives the files of a Chromium."""
    assert isinstance(browser.downloads, DownloadManager)
    return browser.downloads


async def until_async(holds: Callable[[], Awaitable[object]], seconds: float = 10.0) -> None:
    """Wait until ``await holds()`` is true; fails when it does not become true in time."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


async def until(holds: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until ``holds()`` is true; fails when it does not become true in time."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


@contextlib.contextmanager
def driver_stopped() -> Generator[None]:
    """Playwright's driver is suspended meanwhile, as on an overloaded machine."""
    drivers: list[psutil.Process] = []
    for each in psutil.Process().children(recursive=True):
        # Children of other tests may be ending just now.
        with contextlib.suppress(psutil.Error):
            if Path(each.exe()).name == "node":
                drivers.append(each)
    assert drivers, "Playwright's driver is a process of node"
    for each in drivers:
        each.suspend()
    try:
        yield
    finally:
        for each in drivers:
            each.resume()
