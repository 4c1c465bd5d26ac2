"""A browser that somebody else started, by its DevTools address (`--browser-url`): a run works there in an isolated context.

The browser is never ended. Its other contexts are left alone: their documents load unseen, and their dialogs stay open.
"""

from __future__ import annotations

import asyncio
import functools
import json
import secrets
import shutil
import tempfile
import urllib.parse
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser, Dialog, Error, Playwright

from nodes.errors import SetupError
from runtime.browser import origins, shared
from runtime.browser.chromium import driver, launch
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard
from runtime.browser.elements import locators
from runtime.browser.options import BrowserOptions
from runtime.browser.session import Session

ANSWER_SECONDS = 10.0  # seconds that the browser may take to tell its DevTools address


async def open_remote(url: str, options: BrowserOptions, *, allowed: Sequence[str]) -> Session:
    """Open an isolated context in the browser at ``url``. Raises SetupError ``browser-not-reached``."""
    try:
        return await shared.open_in(url, functools.partial(_connect, url), options, allowed)
    except shared.LOST:
        raise _not_reached(url, "it closed the connection") from None


async def _connect(url: str) -> shared.Chromium:
    address = await _address(url)
    # Made by the first download, with a name that nobody can guess.
    folder = Path(tempfile.gettempdir()) / f"{launch.TEMPORARY}{secrets.token_hex(16)}" if _is_here(address) else None
    driving = asyncio.ensure_future(driver.start())
    guard: origin_guard.Guard | None = None
    browser: Browser | None = None
    disconnecting: set[asyncio.Task[None]] = set()

    def disconnect() -> None:
        # Chromium removes our contexts with the connection that made them.
        if browser is not None:
            disconnecting.add(asyncio.get_running_loop().create_task(browser.close()))

    async def end() -> None:
        if guard is not None:
            await guard.close()
        await driver.stop(driving)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    try:
        connection = await devtools_connection.Connection.open(address, ANSWER_SECONDS)
        guard = origin_guard.Guard(connection, on_lost=disconnect, everything=False)
        await guard.start()
        browser = await _playwright(url, address, await asyncio.shield(driving))
        for context in browser.contexts:
            # Playwright would dismiss a dialog that nobody listens to.
            context.on("dialog", _leave_open)
        return shared.Chromium(address, folder, guard, browser, end, keeps_pages=True)
    except BaseException as error:
        await end()
        if isinstance(error, shared.LOST):
            # The messages of both clients contain the address, and with it a password.
            raise _not_reached(url, "it does not talk the DevTools protocol there") from None
        raise


async def _playwright(url: str, address: str, playwright: Playwright) -> Browser:
    try:
        # With its defaults Playwright would change the tabs of others.
        browser = await playwright.chromium.connect_over_cdp(address, no_defaults=True, timeout=1000 * ANSWER_SECONDS)
    except Error:
        # The guard has reached the browser, and Playwright waits for every tab.
        raise _not_reached(
            url, "one of its tabs does not answer: it waits in a dialog, or computes without end"
        ) from None
    await locators.register(playwright)
    return browser


def _leave_open(_dialog: Dialog) -> None:
    """Leave the dialog of another's page to the person who looks at it."""


async def _address(url: str) -> str:
    """Return the WebSocket of the browser at ``url``: it is the address itself, or the browser tells it over HTTP."""
    given = urllib.parse.urlsplit(url)
    if given.scheme in ("ws", "wss"):
        return url
    told = urllib.parse.urlsplit(await _told(given))
    if told.scheme not in ("ws", "wss") or not told.netloc:
        raise _not_reached(url, "it answers, but not as a browser's DevTools do")
    # Behind a tunnel a browser knows only its own address on loopback, and it never knows the name and password.
    if told.hostname == given.hostname or _is_local(told.hostname):
        told = told._replace(scheme="wss" if given.scheme == "https" else "ws", netloc=given.netloc)
    return told.geturl()


async def _told(given: urllib.parse.SplitResult) -> str:
    import httpx2  # most runs have their own browser

    url = given.geturl()
    version = given._replace(path=f"{given.path.rstrip('/')}/json/version").geturl()
    try:
        async with httpx2.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False) as client:
            answer = await client.get(version)
    except httpx2.HTTPError as error:
        raise _not_reached(url, f"nothing answers there ({type(error).__name__})") from None
    if not answer.is_success:
        raise _not_reached(url, f"it answers {answer.status_code} {answer.reason_phrase}".rstrip())
    try:
        return str(json.loads(answer.content)["webSocketDebuggerUrl"])
    except (ValueError, KeyError, TypeError):
        raise _not_reached(url, "it answers, but not as a browser's DevTools do") from None


def _is_here(address: str) -> bool:
    return _is_local(urllib.parse.urlsplit(address).hostname)


def _is_local(host: str | None) -> bool:
    return host in ("localhost", "::1") or (host or "").startswith("127.")


def _not_reached(url: str, why: str) -> SetupError:
    return SetupError(
        "browser-not-reached",
        f"the browser at {origins.place(url)} cannot be used: {why}",
        fix="look at that browser; one that is started with `--remote-debugging-port=9222` is `--browser-url http://127.0.0.1:9222`",
    )
