"""What mode *own* sets in every tab over the DevTools protocol, because Chromium has no switch for it.

Chromium holds a new tab until we have set it up. Only a popup that shares its opener's process is let go by whichever client answers first
(Playwright is another), so the guard holds back its first document request until everything is in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from runtime.browser import cdp
from runtime.browser.options import BrowserOptions

PATIENCE_SECONDS = 5.0
"""How long a document waits for its tab to be set up. A tab that takes longer is going away."""


class Emulation:
    """Sets up every tab and foreign frame of one Chromium. Implements ``guard.Preparation``."""

    def __init__(self, connection: cdp.Connection, options: BrowserOptions) -> None:
        self._connection = connection
        self._options = options
        self._ready: dict[str, asyncio.Future[None]] = {}
        self._tabs: dict[str, str] = {}
        """Session of each tab."""
        self._headers = dict(options.headers)

    @property
    def headers(self) -> dict[str, str]:
        """Headers that go with every request."""
        return self._headers

    async def start(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Set up the tabs that are there, waiting for them no longer than ``seconds``; and from now on each new one."""
        connection = self._connection
        connection.on("Target.attachedToTarget", self._attached)
        connection.on("Target.detachedFromTarget", self._detached)
        await connection.send("Target.setAutoAttach", _ATTACH)
        await asyncio.wait([*self._ready.values()] or [connection.post("Target.getTargets")], timeout=seconds)

    def _attached(self, params: cdp.Params, _session: str) -> None:
        target, session = params["targetInfo"], params["sessionId"]
        posted: list[asyncio.Future[cdp.Params]] = []
        if target["type"] in ("page", "iframe"):
            for method, arguments in self._commands(is_tab=target["type"] == "page"):
                posted.append(self._connection.post(method, arguments, session))
            if not params["waitingForDebugger"]:
                # The rest is the browser's to answer: this tells whether the page itself does.
                posted.append(self._connection.post("Runtime.evaluate", {"expression": "1"}, session))
            # Foreign frames and workers report to their tab, not to the browser.
            self._connection.post("Target.setAutoAttach", _ATTACH, session)
        elif self._headers:
            self._connection.post("Network.setExtraHTTPHeaders", {"headers": self._headers}, session)
        self._connection.post("Runtime.runIfWaitingForDebugger", session=session)
        if target["type"] == "page":
            self._tabs[target["targetId"]] = session
        if target["type"] == "page" and (not params["waitingForDebugger"] or target.get("canAccessOpener")):
            done = asyncio.gather(*posted, return_exceptions=True)
            ready = self._ready.setdefault(target["targetId"], asyncio.get_running_loop().create_future())
            done.add_done_callback(lambda _done: ready.done() or ready.set_result(None))

    def _detached(self, params: cdp.Params, _session: str) -> None:
        self._tabs.pop(params.get("targetId", ""), None)
        ready = self._ready.pop(params.get("targetId", ""), None)
        if ready is not None and not ready.done():
            ready.set_result(None)

    def _commands(self, *, is_tab: bool) -> Iterator[tuple[str, cdp.Params]]:
        options = self._options
        if is_tab:
            metrics: cdp.Params = {
                "width": options.viewport.width,
                "height": options.viewport.height,
                "screenWidth": options.viewport.width,
                "screenHeight": options.viewport.height,
                "deviceScaleFactor": options.device_scale_factor or 1,
                "mobile": False,
            }
            yield "Emulation.setDeviceMetricsOverride", metrics
            # A tab in the background behaves as if it were looked at, as Playwright has it.
            yield "Emulation.setFocusEmulationEnabled", {"enabled": True}
        if options.locale is not None:
            yield "Emulation.setLocaleOverride", {"locale": options.locale}
        if options.geolocation is not None:
            yield "Emulation.setGeolocationOverride", options.geolocation.model_dump()
        if not options.java_script:
            yield "Emulation.setScriptExecutionDisabled", {"value": True}
        if self._headers:
            yield "Network.enable", {}
            yield "Network.setExtraHTTPHeaders", {"headers": self._headers}

    async def prepared(self, frame: str) -> None:
        """Returns when the tab with this main frame is set up."""
        ready = self._ready.get(frame)
        if ready is not None and not ready.done():
            await asyncio.wait([ready], timeout=PATIENCE_SECONDS)

    async def close_stuck(self, current: str) -> bool:
        """Close every tab that was not set up in time because its page does not answer: one that waits in a dialog, or computes without end.

        Whether ``current`` is there and none of them. Raises TimeoutError where one cannot be closed.
        """
        stuck = {tab for tab, ready in self._ready.items() if tab in self._tabs and not ready.done()}
        lost = current not in self._tabs or current in stuck
        for tab in stuck:
            # A page that computes cannot be closed either.
            self._connection.post("Runtime.terminateExecution", {}, self._tabs[tab])
            await self._connection.send("Target.closeTarget", {"targetId": tab})
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self._tabs.keys().isdisjoint(stuck):  # noqa: ASYNC110 - their ends are events of the protocol
                await asyncio.sleep(0.01)
        return not lost


_ATTACH: cdp.Params = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
