"""The proxy that lets a browser reach only some origins."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from runtime.browser.engines.proxy import OriginProxy

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Upstream:
    """A site that keeps what it is sent, and answers it."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.heard = b""
        self.origin = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.heard += data
            writer.write(self._answer)
        writer.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi"


@contextlib.asynccontextmanager
async def upstream(answer: bytes = OK) -> AsyncGenerator[Upstream]:
    """A site on loopback."""
    site = Upstream(answer)
    server = await asyncio.start_server(site.talk, "127.0.0.1", 0)
    site.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()
        await server.wait_closed()


@contextlib.asynccontextmanager
async def proxied(allowed: set[str]) -> AsyncGenerator[tuple[OriginProxy, int]]:
    """A proxy that has begun, for these origins, and its port."""
    proxy = OriginProxy(lambda origin: origin in allowed)
    port = int((await proxy.start()).rpartition(":")[2])
    proxy.begin()
    try:
        yield proxy, port
    finally:
        await proxy.close()


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncGenerator[Streams]:
    """A connection to the proxy, which ends within five seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(5):
            yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def say(port: int, text: str) -> bytes:
    """Everything that the proxy answers until it ends the connection."""
    async with connected(port) as (reader, writer):
        writer.write(text.encode())
        return await reader.read()


async def test_a_request_to_an_allowed_origin_arrives_without_the_marks_of_a_proxy() -> None:
    """The site receives path, body and headers, and the browser an answer after which the connection ends."""
    async with upstream() as site, proxied({site.origin}) as (_proxy, port):
        head = (
            f"POST {site.origin}/a?b=c HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\nContent-Length: 3\r\n\r\n"
        )
        async with connected(port) as (reader, writer):
            writer.write(f"{head}abc".encode())
            answer = await reader.readuntil(b"hi")
    assert site.heard == b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"


async def test_a_second_request_on_the_connection_is_not_sent_on() -> None:
    """What follows the body of a request never reaches the site: it may be meant for another."""
    async with upstream() as site, proxied({site.origin}) as (_proxy, port):
        head = f"POST {site.origin}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
        async with connected(port) as (reader, writer):
            writer.write(f"{head}aGET http://elsewhere.test/secret HTTP/1.1\r\n\r\n".encode())
            assert (await reader.readuntil(b"hi")).startswith(b"HTTP/1.1 200 OK")
    assert b"secret" not in site.heard


async def test_another_origin_gets_no_connection_and_the_browser_no_document() -> None:
    """A request to another origin, be it only another port or scheme, ends without an answer and without a byte sent."""
    async with upstream() as site, proxied({"http://127.0.0.1:1", "https://127.0.0.1"}) as (_proxy, port):
        assert await say(port, f"GET {site.origin}/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n") == b""
        refused = await say(port, f"CONNECT {site.origin.removeprefix('http://')} HTTP/1.1\r\n\r\n")
        assert await say(port, "GET http://127.0.0.1/ HTTP/1.1\r\n\r\n") == b""
    assert refused.startswith(b"HTTP/1.1 403 ")
    assert site.heard == b""


@contextlib.asynccontextmanager
async def tunnel(port: int, place: str) -> AsyncGenerator[Streams]:
    """An open tunnel."""
    async with connected(port) as (reader, writer):
        writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        yield reader, writer


async def test_a_tunnel_carries_the_scheme_that_is_allowed_only() -> None:
    """Of a place allowed by http alone a tunnel carries plain bytes, such as those of a WebSocket, and no TLS."""
    async with upstream(b"yes") as site, proxied({site.origin}) as (_proxy, port):
        place = site.origin.removeprefix("http://")
        async with tunnel(port, place) as (reader, writer):
            writer.write(b"\x16\x03\x01 hello of TLS")
            assert await reader.read() == b""
        assert site.heard == b""
        async with tunnel(port, place) as (reader, writer):
            writer.write(b"GET /socket")
            assert await reader.read(3) == b"yes"


async def test_a_tunnel_ends_when_its_origin_is_no_longer_allowed() -> None:
    """When a run is confined to fewer origins, open tunnels to the others are closed, so nothing more is sent there."""
    allowed: set[str] = set()
    async with upstream(b"yes") as site, proxied(allowed) as (proxy, port):
        allowed.add(site.origin)
        async with tunnel(port, site.origin.removeprefix("http://")) as (reader, writer):
            writer.write(b"one")
            assert await reader.read(3) == b"yes"
            proxy.recheck()
            writer.write(b"two")
            assert await reader.read(3) == b"yes"
            allowed.clear()
            proxy.recheck()
            assert await reader.read() == b""
    assert site.heard == b"onetwo"


async def test_nothing_is_let_through_before_the_proxy_begins() -> None:
    """Until it begins, the proxy refuses every request and keeps its target: so the browser's use of it can be told."""
    async with upstream() as site:
        proxy = OriginProxy(lambda _origin: True)
        port = int((await proxy.start()).rpartition(":")[2])
        answer = await say(port, f"GET {site.origin}/ HTTP/1.1\r\n\r\n")
        await proxy.close()
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert (proxy.asked, site.heard) == ([f"{site.origin}/"], b"")
