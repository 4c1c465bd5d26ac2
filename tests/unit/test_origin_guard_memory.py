"""Memory of the origin guard in a browser that many runs share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any, cast

from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard


class Connection:
    """Chromium's end of the protocol, with the current tabs and frames."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[Any, str], None]] = {}
        self.frames: dict[str, list[str]] = {}
        """The frames within each tab."""
        self.said: list[tuple[str, Any]] = []
        """The guard's answers."""
        self.answered = asyncio.Event()

    def on(self, event: str, handler: Callable[[Any, str], None]) -> None:
        """Register the handler of an event."""
        self.handlers[event] = handler

    def post(self, method: str, params: Any = None, **_more: Any) -> None:
        """Record a message that needs no answer."""
        self.said.append((method, params))
        if method.startswith("Fetch."):
            self.answered.set()

    async def send(self, method: str, params: Any = None, session: str = "") -> Any:
        """Answer a command."""
        await asyncio.sleep(0)
        if method == "Target.attachToTarget":
            return {"sessionId": params["targetId"]}
        if method == "Page.getFrameTree":
            inside = [{"frame": {"id": each}} for each in self.frames[session]]
            return {"frameTree": {"frame": {"id": session}, "childFrames": inside}}
        return {}

    async def emit(self, event: str, **params: Any) -> list[tuple[str, Any]]:
        """Emit an event and return the guard's answers."""
        self.said.clear()
        if event.startswith("Fetch."):
            self.answered.clear()
            self.handlers[event](params, "")
            await self.answered.wait()
        else:
            self.handlers[event](params, "")
        return [*self.said]

    async def opened(self, tab: str, context: str) -> None:
        """Open a tab in a browser context."""
        self.frames[tab] = []
        info = {"targetId": tab, "type": "page", "url": "http://a.test/", "browserContextId": context}
        await self.emit("Target.targetCreated", targetInfo=info)

    async def loads(self, frame: str) -> str:
        """Load a document in a frame and return the guard's answer."""
        request = {"url": "http://a.test/frame", "headers": {}}
        said = await self.emit(
            "Fetch.requestPaused", requestId=frame, frameId=frame, resourceType="Document", request=request
        )
        return next(method for method, _ in said if method.startswith("Fetch."))

    async def asks(self, request: str, frame: str) -> str:
        """Ask for a password as a site and return the guard's answer."""
        challenge = {"source": "Server", "origin": "http://a.test"}
        said = await self.emit("Fetch.authRequired", requestId=request, frameId=frame, authChallenge=challenge)
        return next(
            params["authChallengeResponse"]["response"]
            for _, params in said
            if params and "authChallengeResponse" in params
        )


def item_count(root: object) -> int:
    """The number of items in everything that the object holds."""
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
    """The guard remembers as much after many runs, each with a tab, a frame and a password, as after a few."""
    one, chromium = await started()
    sizes: list[int] = []
    for number in range(40):
        context, tab, frame = f"c{number}", f"t{number}", f"f{number}"
        await one.guarded(["http://a.test"], [origin_guard.Credentials("me", "secret")], context=context)
        await chromium.opened(tab, context)
        chromium.frames[tab].append(frame)
        assert await chromium.loads(frame) == "Fetch.continueRequest"
        assert await chromium.asks(f"r{number}", frame) == "ProvideCredentials"
        assert await chromium.asks(f"r{number}", frame) == "CancelAuth"
        await chromium.emit("Target.targetDestroyed", targetId=tab)
        one.dismiss(context)
        await asyncio.sleep(0)
        chromium.said.clear()
        sizes.append(item_count(one))
    assert sizes[5] == sizes[-1]


async def test_frames_that_are_gone_are_forgotten() -> None:
    """A guard of a page whose frames come and go for hours remembers only the frames that are there."""
    one, chromium = await started()
    await one.guarded(["http://a.test"], context="c")
    await chromium.opened("tab", "c")
    sizes: list[int] = []
    for number in range(40):
        chromium.frames["tab"] = [f"f{number}"]
        assert await chromium.loads(f"f{number}") == "Fetch.continueRequest"
        await asyncio.sleep(0)
        chromium.said.clear()
        sizes.append(item_count(one))
    assert sizes[5] == sizes[-1]
