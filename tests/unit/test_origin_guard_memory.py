"""What the guard on origins remembers of a browser that many runs share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any, cast

from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard


class Connection:
    """Chromium's end of the protocol, with the tabs and frames of the moment."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[Any, str], None]] = {}
        self.frames: dict[str, list[str]] = {}
        """The frames within each tab."""
        self.said: list[tuple[str, Any]] = []
        """What the guard has answered."""
        self.answered = asyncio.Event()

    def on(self, event: str, handler: Callable[[Any, str], None]) -> None:
        """Tell of an event."""
        self.handlers[event] = handler

    def post(self, method: str, params: Any = None, **_more: Any) -> None:
        """Take a word that needs no answer."""
        self.said.append((method, params))
        if method.startswith("Fetch."):
            self.answered.set()

    async def send(self, method: str, params: Any = None, session: str = "") -> Any:
        """Answer."""
        await asyncio.sleep(0)
        if method == "Target.attachToTarget":
            return {"sessionId": params["targetId"]}
        if method == "Page.getFrameTree":
            inside = [{"frame": {"id": each}} for each in self.frames[session]]
            return {"frameTree": {"frame": {"id": session}, "childFrames": inside}}
        return {}

    async def told(self, event: str, **params: Any) -> list[tuple[str, Any]]:
        """Tell of something that happened; what the guard answers."""
        self.said.clear()
        if event.startswith("Fetch."):
            self.answered.clear()
            self.handlers[event](params, "")
            await self.answered.wait()
        else:
            self.handlers[event](params, "")
        return [*self.said]

    async def opened(self, tab: str, context: str) -> None:
        """Have a tab open in a browser context."""
        self.frames[tab] = []
        info = {"targetId": tab, "type": "page", "url": "http://a.test/", "browserContextId": context}
        await self.told("Target.targetCreated", targetInfo=info)

    async def loads(self, frame: str) -> str:
        """Have a frame load a document; what the guard says to it."""
        request = {"url": "http://a.test/frame", "headers": {}}
        said = await self.told(
            "Fetch.requestPaused", requestId=frame, frameId=frame, resourceType="Document", request=request
        )
        return next(method for method, _ in said if method.startswith("Fetch."))

    async def asks(self, request: str, frame: str) -> str:
        """Have a site ask for a password; what the guard answers."""
        challenge = {"source": "Server", "origin": "http://a.test"}
        said = await self.told("Fetch.authRequired", requestId=request, frameId=frame, authChallenge=challenge)
        return next(
            params["authChallengeResponse"]["response"]
            for _, params in said
            if params and "authChallengeResponse" in params
        )


def held(root: object) -> int:
    """How many items are in everything that it holds."""
    seen, pending, found = set[int](), [root], 0
    while pending:
        each = pending.pop()
        if id(each) in seen or not isinstance(
            each, dict | set | frozenset | list | tuple | origin_guard.Guard | origin_guard.GuardedTarget
        ):
            continue
        seen.add(id(each))
        found += len(cast("list[object]", each)) if isinstance(each, dict | set | frozenset | list) else 0
        pending += gc.get_referents(each)
    return found


async def started() -> tuple[origin_guard.Guard, Connection]:
    """A guard over a browser without tabs."""
    connection = Connection()
    one = origin_guard.Guard(cast("devtools_connection.Connection", connection), lambda: None)
    await one.start()
    return one, connection


async def test_runs_that_are_over_leave_nothing() -> None:
    """After many runs, each with a tab, a frame and a password, as much is remembered as after a few."""
    one, chromium = await started()
    sizes: list[int] = []
    for number in range(40):
        context, tab, frame = f"c{number}", f"t{number}", f"f{number}"
        await one.guarded(["http://a.test"], [origin_guard.Credentials("me", "secret")], context)
        await chromium.opened(tab, context)
        chromium.frames[tab].append(frame)
        assert await chromium.loads(frame) == "Fetch.continueRequest"
        assert await chromium.asks(f"r{number}", frame) == "ProvideCredentials"
        assert await chromium.asks(f"r{number}", frame) == "CancelAuth"
        await chromium.told("Target.targetDestroyed", targetId=tab)
        one.dismiss(context)
        await asyncio.sleep(0)
        chromium.said.clear()
        sizes.append(held(one))
    assert sizes[5] == sizes[-1]


async def test_frames_that_are_gone_are_forgotten() -> None:
    """A page whose frames come and go for hours is guarded with what is known of the frames that are there."""
    one, chromium = await started()
    await one.guarded(["http://a.test"], context="c")
    await chromium.opened("tab", "c")
    sizes: list[int] = []
    for number in range(40):
        chromium.frames["tab"] = [f"f{number}"]
        assert await chromium.loads(f"f{number}") == "Fetch.continueRequest"
        await asyncio.sleep(0)
        chromium.said.clear()
        sizes.append(held(one))
    assert sizes[5] == sizes[-1]
