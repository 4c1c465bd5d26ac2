"""Proxy that lets a browser reach only some origins.

A browser that is driven without a protocol of its own tells nobody of a redirect before it follows it. But it cannot load
a document without a connection, and all its connections come here: so an origin is refused before a byte is sent to it.
Of TLS only the host and the port are seen; nothing is decrypted.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import urllib.parse
from collections.abc import Callable

from runtime.browser import origins

HEAD_BYTES = 256 * 1024  # most bytes of the head of a request or an answer
CHUNK = 64 * 1024
CONNECT_SECONDS = 30.0  # seconds that a site may take to accept a connection

_TLS = b"\x16"  # first byte of a connection that begins with TLS

_END = b"\r\n\r\n"

_HOP = ("proxy-connection:", "proxy-authorization:", "connection:", "keep-alive:")
"""Beginnings of header lines that are meant for the proxy, not for the site."""

_BROKEN = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError)
"""Errors of a connection that breaks off, or of a browser that says what we do not understand."""


class OriginProxy:
    """HTTP proxy on loopback. ``allows`` returns True for an origin that may be reached now."""

    def __init__(self, allows: Callable[[str], bool]) -> None:
        self._allows = allows
        self._server: asyncio.Server | None = None
        self._tunnels: dict[asyncio.StreamWriter, str] = {}
        """Open tunnels, by the origin that they lead to."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: list[str] = []
        """Targets of the requests until ``begin``; all of them are refused."""
        self._keeps_asked = True

    async def start(self) -> str:
        """Start to listen; return the proxy's address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_BYTES)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def begin(self) -> None:
        """Let through what is allowed, from now on."""
        self._keeps_asked = False

    def recheck(self) -> None:
        """Close the tunnels to origins that are no longer allowed."""
        for writer, origin in list(self._tunnels.items()):
            if not self._allows(origin):
                writer.close()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(*_BROKEN, asyncio.CancelledError):
                await self._answer(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(_END)).decode("latin-1")
        line, _, rest = head.partition("\r\n")
        method, target, _version = line.split(" ")
        if self._keeps_asked:
            self.asked.append(target)
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0" + _END)
        elif method == "CONNECT":
            await self._tunnel(target, reader, writer)
        else:
            await self._pass_on(method, target, rest, reader, writer)

    async def _tunnel(self, place: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known = {scheme: origins.origin(f"{scheme}://{place}") or "" for scheme in ("https", "http")}
        if not any(map(self._allows, known.values())):
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0" + _END)
            return
        host, _, port = place.rpartition(":")
        try:
            site_reader, site_writer = await _connected(host, int(port))
        except (OSError, TimeoutError):
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0" + _END)
            return
        try:
            writer.write(b"HTTP/1.1 200 Connection established" + _END)
            first = await reader.read(CHUNK)
            # A WebSocket without TLS is tunnelled, too.
            origin = known["https" if first.startswith(_TLS) else "http"]
            if not first or not self._allows(origin):
                return
            site_writer.write(first)
            self._tunnels[writer] = origin
            await _both_ways(reader, writer, site_reader, site_writer)
        finally:
            self._tunnels.pop(writer, None)
            site_writer.close()

    async def _pass_on(
        self, method: str, url: str, rest: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send one request on and its answer back; then the connection ends, so every request is looked at."""
        parts = urllib.parse.urlsplit(url)
        origin = origins.origin(url)
        if parts.scheme.lower() != "http" or origin is None or not self._allows(origin):
            # An answer, even of an error, would be shown as a document of that origin.
            return
        lines = [each for each in rest.split("\r\n") if each]
        switches = any(each.lower().startswith("upgrade:") for each in lines)
        if any(each.lower().startswith("transfer-encoding:") for each in lines):
            # Browsers send bodies of unknown length over HTTP/2 only.
            return
        kept = [each for each in lines if not each.lower().startswith(_HOP)]
        path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        head = [f"{method} {path} HTTP/1.1", *kept, f"Connection: {'Upgrade' if switches else 'close'}"]
        site_reader, site_writer = await _connected(parts.hostname or "", parts.port or 80)
        try:
            site_writer.write("\r\n".join(head).encode("latin-1") + _END)
            sending = asyncio.ensure_future(_copy(reader, site_writer, _length(lines)))
            try:
                switched = await _answer_head(site_reader, writer)
                if switched:
                    await sending
                    await _both_ways(reader, writer, site_reader, site_writer)
                else:
                    await sending
                    await _both_ways(reader, writer, site_reader, site_writer, answers_only=True)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        finally:
            site_writer.close()


async def _connected(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(CONNECT_SECONDS):
        return await asyncio.open_connection(host.strip("[]"), port, limit=HEAD_BYTES)


def _length(lines: list[str]) -> int:
    said = [each.partition(":")[2].strip() for each in lines if each.lower().startswith("content-length:")]
    return int(said[0]) if said else 0


async def _answer_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send the head of an answer on, as one after which the connection ends; return True if it switches the protocol."""
    while True:
        head = (await reader.readuntil(_END)).decode("latin-1")
        line, _, rest = head.partition("\r\n")
        status = re.match(r"HTTP/1\.[01] (\d{3})", line)
        if status is None:
            raise ValueError("the site does not answer in HTTP/1")
        code = int(status[1])
        if code == 101:
            writer.write(head.encode("latin-1"))
            return True
        if code >= 200:
            kept = [each for each in rest.split("\r\n") if each and not each.lower().startswith(_HOP)]
            writer.write("\r\n".join([line, *kept, "Connection: close"]).encode("latin-1") + _END)
            return False


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None) -> None:
    """Copy so many bytes, or all until the end."""
    while length is None or length > 0:
        data = await reader.read(CHUNK if length is None else min(CHUNK, length))
        if not data:
            return
        if length is not None:
            length -= len(data)
        writer.write(data)
        await writer.drain()


async def _drop(reader: asyncio.StreamReader) -> None:
    while await reader.read(CHUNK):
        pass


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    site_reader: asyncio.StreamReader,
    site_writer: asyncio.StreamWriter,
    *,
    answers_only: bool = False,
) -> None:
    """Copy in both directions until either side ends; with ``answers_only``, drop what the browser sends."""
    ways = [
        asyncio.ensure_future(_drop(reader) if answers_only else _copy(reader, site_writer, None)),
        asyncio.ensure_future(_copy(site_reader, writer, None)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in ways:
            each.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
