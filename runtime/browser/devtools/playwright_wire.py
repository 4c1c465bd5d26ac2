"""Chromium's protocol through the Playwright that holds the browser: for a browser that lets nobody else connect."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Error, Frame, Page

from runtime.browser import playwright_errors
from runtime.browser.devtools import connection
from runtime.browser.devtools.connection import Handler, Params

_ATTACH, _DETACH = "Target.attachToTarget", "Target.detachFromTarget"


class PlaywrightWire:
    """Implements ``connection.Wire`` by DevTools sessions of Playwright: one for the browser, and one for each tab or frame while it is asked."""

    def __init__(self, context: BrowserContext, browser: CDPSession) -> None:
        self._context = context
        self._browser = browser
        self._sessions: dict[str, CDPSession] = {}
        self._tasks: set[asyncio.Task[Params]] = set()
        self.on_gone: Callable[[], None] | None = None
        browser.on("close", self._gone)

    @classmethod
    async def open(cls, context: BrowserContext) -> PlaywrightWire:
        browser = context.browser
        assert browser is not None, "a context that a test makes has its browser"
        return cls(context, await browser.new_browser_cdp_session())

    def _gone(self, _session: CDPSession) -> None:
        if self.on_gone is not None:
            self.on_gone()

    def on(self, event: str, handler: Handler) -> None:
        def take(params: Params) -> None:
            handler(params, "")

        self._browser.on(event, take)

    async def send(self, method: str, params: Params | None = None, session: str = "") -> Params:
        return await self.post(method, params, session)

    def post(self, method: str, params: Params | None = None, session: str = "") -> asyncio.Future[Params]:
        task = asyncio.get_running_loop().create_task(self._send(method, params or {}, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # The caller may ignore the future, so an unread error must not be reported.
        task.add_done_callback(connection.seen)
        return task

    async def _send(self, method: str, params: Params, session: str) -> Params:
        try:
            if method == _ATTACH:
                return {"sessionId": await self._attach(params["targetId"])}
            if method == _DETACH:
                await self._sessions.pop(params["sessionId"]).detach()
                return {}
            to: Any = self._sessions[session] if session else self._browser
            return await to.send(method, params)
        except Error as error:
            if playwright_errors.kind_of(error) == "gone":
                raise connection.Disconnected(playwright_errors.head(error)) from None
            raise connection.Refused(playwright_errors.head(error)) from None

    async def _attach(self, target: str) -> str:
        for page in self._context.pages:
            for place in (page, *page.frames[1:]):
                session = await self._session(place)
                if session is None:
                    continue
                info: Any = await session.send("Target.getTargetInfo")  # pyright: ignore[reportUnknownMemberType]
                if info["targetInfo"]["targetId"] == target:
                    self._sessions[target] = session
                    return target
                await session.detach()
        raise connection.Refused("no tab or frame of the context is that target")

    async def _session(self, place: Page | Frame) -> CDPSession | None:
        """Return a session with a tab or frame; None for a frame that shares the process of its tab, or is gone."""
        with contextlib.suppress(Error):
            return await self._context.new_cdp_session(place)
        return None

    async def close(self) -> None:
        self.on_gone = None
        for session in (*self._sessions.values(), self._browser):
            with contextlib.suppress(Error):
                await session.detach()
        self._sessions.clear()
