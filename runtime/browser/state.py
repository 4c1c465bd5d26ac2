"""Browser state to rebuild from: cookies, storage and IndexedDB of every origin, and the tabs with address and session storage.

It lacks the history of a tab, unsubmitted input, and the answer to a form (its address is loaded anew).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from playwright.async_api import BrowserContext, Error, Page

from nodes.errors import SetupError, SiteError
from runtime.browser import isolated_world, playwright_errors
from runtime.browser.origins import Allowed, origin
from runtime.browser.page import landmarks
from runtime.browser.port import Captured, Differs, Shown

FORMAT = 1

LOAD_SECONDS = 30.0  # seconds that a tab may take to load its address again
ARRIVAL_SECONDS = 1.0  # seconds that a checkpoint waits for the rest of a document

_SESSION_STORAGE = isolated_world.Script[tuple[str, list[tuple[str, str]]]](
    """() => {
  try {
    return [location.origin, Object.entries(sessionStorage)];
  } catch {
    return [location.origin, []];
  }
}""",
    tuple[str, list[tuple[str, str]]],
)

_HAS_OPENER = isolated_world.Script[bool]("() => window.opener !== null", bool)

_FILL_SESSION_STORAGE = """(() => {
  try {
    const kept = (%s)[location.origin];
    if (!kept || sessionStorage.length) return;
    for (const [key, value] of kept) sessionStorage.setItem(key, value);
  } catch {
  }
})()"""
"""Runs before any script of the page. If data is already stored, this is not the tab's first document."""


async def capture(context: BrowserContext, tabs: Mapping[Page, str | None], current: Page) -> Captured:
    """Return the present state of ``context``, with the names of its ``tabs``. Raises SiteError ``checkpoint-failed``."""
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            if len(tabs) > 1 and any([await _HAS_OPENER.on(tab) for tab in tabs]):
                raise failed("a popup is tied to the tab that opened it")
            state = await context.storage_state(indexed_db=True)
            pages = [
                {
                    "name": name,
                    "url": tab.url,
                    "session": await _session_storage(tab),
                    "shown": dataclasses.asdict(await _shown(tab)),
                }
                for tab, name in tabs.items()
            ]
    except (Error, TimeoutError) as error:
        raise failed(
            "it took too long" if isinstance(error, TimeoutError) else playwright_errors.short(error.message, 200)
        ) from None
    written = {
        "format": FORMAT,
        "storage": state,
        "tabs": pages,
        "current": list(tabs).index(current) if current in tabs else 0,
    }
    return Captured(json.dumps(written).encode(), [tab.url for tab in tabs])


def failed(why: str) -> SiteError:
    return SiteError(
        "checkpoint-failed",
        f"the state of the browser could not be read: {why}",
        fix="type runops resume to continue from the checkpoint before",
        phase="after",
    )


async def visit(page: Page, origins: Iterable[str]) -> None:
    """Show Playwright the origins that may have stored data: in a reattached browser it saves only those that it saw loaded.

    Sends nothing to them; ``page`` is a blank tab. Raises SiteError ``checkpoint-failed``.
    """
    try:
        await page.route("**/*", lambda route: route.fulfill(body="<!doctype html>"))
        for each in Allowed(origins):
            await page.goto(f"{each}/", timeout=LOAD_SECONDS * 1000)
    except Error as error:
        raise failed(playwright_errors.short(error.message, 200)) from None


async def _shown(tab: Page) -> Shown:
    until = time.monotonic() + ARRIVAL_SECONDS
    while (shown := await landmarks.shown(tab)) is None:
        if time.monotonic() > until:
            # Half of it would be another page than what a restore shows.
            raise failed("a page still arrives")
        await asyncio.sleep(landmarks.PAUSE)
    return shown


async def _session_storage(tab: Page) -> dict[str, list[tuple[str, str]]]:
    stored: dict[str, list[tuple[str, str]]] = {}
    for frame in tab.frames:
        # A frame may go away, or be loading another document.
        with contextlib.suppress(Error):
            where, entries = await _SESSION_STORAGE.on(frame)
            if entries:
                stored[where] = entries
    return stored


async def restore(context: BrowserContext, first: Page, data: bytes) -> tuple[dict[str, Page], Page, Differs | None]:
    """Restore a fresh ``context``, with its single tab ``first``, to the state in ``data``.

    Return the tabs by name, the current one, and the first that shows another page. Raises SetupError
    ``checkpoint-unreadable``, and SiteError ``navigation-failed`` if a tab's address no longer loads.
    """
    state = await asyncio.to_thread(_read, data)
    try:
        await context.set_storage_state(state["storage"])
        pages = [first]
        pages.extend([await context.new_page() for _tab in state["tabs"][1:]])
        for page, tab in zip(pages, state["tabs"], strict=False):
            await _load(page, tab)
    except Error as error:
        seen = playwright_errors.network_error(error) or playwright_errors.said(error)
        raise playwright_errors.no_address("a tab of the checkpoint", seen, "before", {"seen": seen}) from None
    shown = list(zip(pages, state["tabs"], strict=False))
    names = {tab["name"]: page for page, tab in shown if tab["name"] is not None}
    differs = [
        await landmarks.differs(page, tab["name"], Shown(**tab["shown"])) for page, tab in shown if _has_address(tab)
    ]
    current = pages[state["current"]] if state["tabs"] else first
    return names, current, next((each for each in differs if each is not None), None)


def _has_address(tab: dict[str, Any]) -> bool:
    """Return True if the tab can be loaded again. False for a blank one, and for one that a script or the browser wrote."""
    return origin(tab["url"]) is not None or tab["url"].startswith("data:")


async def _load(page: Page, tab: dict[str, Any]) -> None:
    if not _has_address(tab):
        return
    # Later documents are left alone.
    async with await page.add_init_script(_FILL_SESSION_STORAGE % json.dumps(tab["session"])):
        await page.goto(tab["url"], timeout=LOAD_SECONDS * 1000)


def _read(data: bytes) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(data)
        readable = state["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(
            "checkpoint-unreadable", f"the checkpoint cannot be read: {error}", fix="start a new run"
        ) from None
    if not readable:
        raise SetupError(
            "checkpoint-unreadable",
            f"the checkpoint has format {state['format']}, and this RunOps reads {FORMAT}",
            fix="continue with the RunOps that wrote it",
        )
    return state
