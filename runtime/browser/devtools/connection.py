"""Our own DevTools connection to Chromium: one WebSocket with a session for each target ("flat" mode)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

Params = dict[str, Any]
Handler = Callable[[Params, str], None]
"""Receives an event's parameters and its session ("" is the browser itself). It must not raise."""


class Disconnected(Exception):
    """The connection is closed: Chromium ended, or was ended."""


class Refused(Exception):
    """Chromium refused a command; the message gives the reason. It also refuses commands for a target that is closing."""


class Wire(Protocol):
    """Commands to a browser and its events: over a connection of our own, or through Playwright's."""

    on_gone: Callable[[], None] | None

    def on(self, event: str, handler: Handler) -> None: ...

    async def send(self, method: str, params: Params | None = None, session: str = "") -> Params: ...

    def post(self, method: str, params: Params | None = None, session: str = "") -> asyncio.Future[Params]: ...

    async def close(self) -> None: ...


class Connection:
    """One connection to a browser. Commands may overlap; events arrive in order, before any later answer."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self._waiting: dict[int, asyncio.Future[Params]] = {}
        self._handlers: dict[str, Handler] = {}
        self._outbox: asyncio.Queue[str] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read())
        self._writer = asyncio.create_task(self._write())
        self.on_gone: Callable[[], None] | None = None  # called once if the connection is lost without `close`

    @classmethod
    async def open(cls, address: str, seconds: float) -> Connection:
        """Connect to the browser at ``address``. Raises Disconnected if that fails within ``seconds``."""
        try:
            # Chromium answers no pings while a page blocks it, and an answer may be as large as a page.
            socket = await connect(
                address, open_timeout=seconds, ping_interval=None, max_size=None, compression=None, proxy=None
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Disconnected(str(error)) from None
        return cls(socket)

    def on(self, event: str, handler: Handler) -> None:
        self._handlers[event] = handler

    async def send(self, method: str, params: Params | None = None, session: str = "") -> Params:
        """Send a command and return its result. Raises Refused or Disconnected."""
        return await self.post(method, params, session)

    def post(self, method: str, params: Params | None = None, session: str = "") -> asyncio.Future[Params]:
        """Send a command now, before any later one; the future holds its result."""
        self._last += 1
        message: Params = {"id": self._last, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        future: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        # The caller may ignore the future, so an unread error must not be reported.
        future.add_done_callback(seen)
        if self._reader.done():
            future.set_exception(Disconnected("the connection to the browser is closed"))
            return future
        self._waiting[self._last] = future
        self._outbox.put_nowait(json.dumps(message))
        return future

    async def _write(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._socket.send(await self._outbox.get())

    async def _read(self) -> None:
        try:
            async for text in self._socket:
                self._take(json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            self._writer.cancel()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Disconnected("the connection to the browser is closed"))
            self._waiting.clear()
            if self.on_gone is not None:
                self.on_gone()

    def _take(self, message: Params) -> None:
        if "id" not in message:
            handler = self._handlers.get(message["method"])
            if handler is not None:
                handler(message["params"], message.get("sessionId", ""))
            return
        future = self._waiting.pop(message["id"], None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(Refused(message["error"].get("message", "")))
        else:
            future.set_result(message["result"])

    async def close(self) -> None:
        """Close the connection without calling ``on_gone``."""
        self.on_gone = None
        await self._socket.close()
        await asyncio.wait([self._reader])


def seen(future: asyncio.Future[Params]) -> None:
    if not future.cancelled():
        future.exception()
