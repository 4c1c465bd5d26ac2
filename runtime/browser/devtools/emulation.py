"""Options that mode *own* sets in every tab over the DevTools protocol, because Chromium has no switch for them.

Chromium pauses a new tab until it is set up. But a popup in its opener's process resumes as soon as any client answers, and
Playwright is another client. So there are two rules:

- Send all settings at once when the tab appears. If Playwright answers first, the guard still holds the tab's first document
back. On the same connection, the settings precede the command that lets it load.
- Resume the tab only after Playwright listens to it. Otherwise Playwright would miss events, such as a dialog, which would
then stay open unanswered.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from playwright.async_api import Error

from runtime.browser import origins
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import user_agent
from runtime.browser.options import BrowserOptions
from runtime.browser.port import LostTab

DEADLINE_SECONDS = 5.0  # seconds that a browser's tabs may take to be set up or closed

FREED_SECONDS = 1.0
"""Seconds that a tab may take to answer once stuck tabs are closed: a dialog stops every page of its process."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Tab:
    """Our session with a tab; ``ready`` completes when all its first commands are answered."""

    session: str
    url: str
    ready: asyncio.Future[Any]


class Emulation:
    """Sets up every tab and foreign frame of one Chromium."""

    def __init__(self, connection: devtools_connection.Connection, options: BrowserOptions) -> None:
        self._connection = connection
        self._options = options
        self._tabs: dict[str, _Tab] = {}
        self._headers = dict(options.headers)
        self._current: str | None = None
        self._resuming: set[asyncio.Task[None]] = set()
        self.others_ready: Callable[[], Awaitable[None]] | None = None
        """Returns once the other client knows every tab that has appeared; None if it is not connected yet."""

    async def start(self, seconds: float = DEADLINE_SECONDS, current: str | None = None) -> None:
        """Set up the existing tabs, ``current`` first, and from now on each new one. Waits at most ``seconds`` for the existing ones."""
        connection, end = self._connection, asyncio.get_running_loop().time() + seconds
        self._current = current
        connection.on("Target.attachedToTarget", self._attached)
        connection.on("Target.detachedFromTarget", self._detached)
        await connection.send("Target.setAutoAttach", _ATTACH)
        await self._set_locale(seconds)
        if self._tabs:
            left = end - asyncio.get_running_loop().time()
            await asyncio.wait([tab.ready for tab in self._tabs.values()], timeout=max(0.0, left))

    async def _set_locale(self, seconds: float) -> None:
        """Set the locale of the existing tabs.

        Chromium accepts it from one tab of a process and refuses it from the others, although it applies to them too. Only
        the tab that set it keeps it in another process.
        """
        if self._options.locale is None or self._current is None:
            return
        own = {"locale": self._options.locale}
        first = self._tabs.get(self._current)
        if first is not None:
            setting = self._connection.post("Emulation.setLocaleOverride", own, first.session)
            await asyncio.wait([setting], timeout=seconds)
        for tab in self._tabs.values():
            if tab is not first:
                self._connection.post("Emulation.setLocaleOverride", own, tab.session)

    def _attached(self, params: devtools_connection.Params, _session: str) -> None:
        target, session = params["targetInfo"], params["sessionId"]
        posted: list[asyncio.Future[devtools_connection.Params]] = []
        if target["type"] in ("page", "iframe"):
            is_tab = target["type"] == "page"
            awaits_turn = is_tab and self._current is not None and not params["waitingForDebugger"]
            for method, arguments in self._commands(is_tab=is_tab, locale=not awaits_turn):
                posted.append(self._connection.post(method, arguments, session))
            if not params["waitingForDebugger"]:
                # The browser answers the commands above; this one shows if the page itself answers.
                posted.append(self._connection.post("Runtime.evaluate", {"expression": "1"}, session))
            # Foreign frames and workers report to their tab, not to the browser.
            self._connection.post("Target.setAutoAttach", _ATTACH, session)
        else:
            for method, arguments in self._network():
                self._connection.post(method, arguments, session)
        if target["type"] == "page" and params["waitingForDebugger"] and self.others_ready is not None:
            resuming = asyncio.create_task(self._resume(self.others_ready, session))
            self._resuming.add(resuming)
            resuming.add_done_callback(self._resuming.discard)
        else:
            self._connection.post("Runtime.runIfWaitingForDebugger", session=session)
        if target["type"] == "page":
            self._tabs[target["targetId"]] = _Tab(
                session, target.get("url", ""), asyncio.gather(*posted, return_exceptions=True)
            )

    async def _resume(self, others_ready: Callable[[], Awaitable[None]], session: str) -> None:
        # Without the other client there is nothing to wait for.
        with contextlib.suppress(Error):
            await others_ready()
        self._connection.post("Runtime.runIfWaitingForDebugger", session=session)

    def _detached(self, params: devtools_connection.Params, _session: str) -> None:
        self._tabs.pop(params.get("targetId", ""), None)

    def _commands(self, *, is_tab: bool, locale: bool) -> Iterator[tuple[str, devtools_connection.Params]]:
        options = self._options
        if is_tab:
            yield "Emulation.setDeviceMetricsOverride", _metrics(options)
            # Tabs in the background behave as if focused, as with Playwright.
            yield "Emulation.setFocusEmulationEnabled", {"enabled": True}
        if options.touch:
            yield "Emulation.setTouchEmulationEnabled", {"enabled": True}
        if options.bypass_csp:
            yield "Page.setBypassCSP", {"enabled": True}
        if locale and options.locale is not None:
            yield "Emulation.setLocaleOverride", {"locale": options.locale}
        if options.geolocation is not None:
            yield "Emulation.setGeolocationOverride", options.geolocation.model_dump()
        if not options.java_script:
            yield "Emulation.setScriptExecutionDisabled", {"value": True}
        yield from self._network()

    def _network(self) -> Iterator[tuple[str, devtools_connection.Params]]:
        """Yield what holds for the requests of every target, workers included."""
        options = self._options
        if options.user_agent is not None:
            # The switch sets the user agent from the first request on, but not what Chromium tells beside it.
            hints = user_agent.hints(options.user_agent, mobile=options.mobile)
            override = {"userAgent": options.user_agent, "userAgentMetadata": hints}
            yield "Emulation.setUserAgentOverride", override
        if self._headers or options.offline:
            yield "Network.enable", {}
        if self._headers:
            yield "Network.setExtraHTTPHeaders", {"headers": self._headers}
        if options.offline:
            yield "Network.emulateNetworkConditions", _OFFLINE

    async def close_stuck(self, current: str, names: Mapping[str, str], seconds: float) -> list[LostTab]:
        """Close every tab that was not set up in time because its page is stuck in a dialog or an endless script.

        A tab that waits for a site does not answer either. It must stop loading, within ``seconds``, and keeps its document;
        without a document it is closed too. Returns the closed tabs, by their name in ``names``. Raises CurrentTabLost if
        ``current`` is among them or missing, TimeoutError if a tab cannot be closed, and Disconnected.
        """
        stuck = await self._stop_loading(seconds)
        mine = stuck.pop(current, None)
        async with asyncio.timeout(DEADLINE_SECONDS):
            for target, tab in stuck.items():
                # Interrupt an endless script: otherwise Chromium would wait for it before it closes the tab.
                self._connection.post("Runtime.terminateExecution", {}, tab.session)
                with contextlib.suppress(devtools_connection.Refused):
                    await self._connection.send("Target.closeTarget", {"targetId": target})
            while not self._tabs.keys().isdisjoint(stuck):  # noqa: ASYNC110 - their ends are events of the protocol
                await asyncio.sleep(0.01)
        if mine is not None and stuck:
            await asyncio.wait([mine.ready], timeout=FREED_SECONDS)
        if current not in self._tabs:
            raise CurrentTabLost("the tab that the run was in is closed")
        if mine is not None and (not mine.ready.done() or await self._is_unborn(mine)):
            where = origins.without_query(self._tabs[current].url)
            raise CurrentTabLost(f"the tab that the run was in ({where}) {WHY_STUCK}")
        return [LostTab(names.get(target), origins.without_query(tab.url)) for target, tab in stuck.items()]

    async def _stop_loading(self, seconds: float) -> dict[str, _Tab]:
        """Stop loading in tabs that do not answer; return those that remain unusable, by target id."""
        loading = {target: tab for target, tab in self._tabs.items() if not tab.ready.done()}
        if not loading:
            return {}
        for tab in loading.values():
            self._connection.post("Page.stopLoading", {}, tab.session)
        await asyncio.wait([tab.ready for tab in loading.values()], timeout=seconds)
        return {target: tab for target, tab in loading.items() if not tab.ready.done() or await self._is_unborn(tab)}

    async def _is_unborn(self, tab: _Tab) -> bool:
        """Return True if the tab never had a document: Playwright would wait for a first one that never comes."""
        try:
            tree = await self._connection.send("Page.getFrameTree", {}, tab.session)
        except devtools_connection.Refused:
            return True
        return tree["frameTree"]["frame"]["url"] in ("", ":")


class CurrentTabLost(Exception):
    """The run's current tab is gone or does not answer; the message says which."""


WHY_STUCK = "does not answer: it waits in a dialog, or computes without end"

_OFFLINE: devtools_connection.Params = {
    "offline": True,
    "latency": 0,
    "downloadThroughput": -1,
    "uploadThroughput": -1,
}

_ATTACH: devtools_connection.Params = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}


def _metrics(options: BrowserOptions) -> devtools_connection.Params:
    screen = options.screen or options.viewport
    wide = screen.width > screen.height
    # A desk's screen is called landscape whatever its shape, as with Playwright.
    upright = {"angle": 0, "type": "portraitPrimary" if options.mobile else "landscapePrimary"}
    return {
        "width": options.viewport.width,
        "height": options.viewport.height,
        "screenWidth": screen.width,
        "screenHeight": screen.height,
        "deviceScaleFactor": options.device_scale_factor or 1,
        "mobile": options.mobile,
        "screenOrientation": {"angle": 90, "type": "landscapePrimary"} if options.mobile and wide else upright,
    }
