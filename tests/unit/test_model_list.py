"""The list of a server's models through the real client, including servers that have no list or are no model servers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from runtime.models.client import client as model_client
from runtime.models.client import probing
from runtime.models.client.errors import Failed
from runtime.testing import responses, scripted_model


@asynccontextmanager
async def answering(status: str, kind: str, body: bytes) -> AsyncGenerator[model_client.Client]:
    """A client of a server that answers everything with this."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = model_client.Client(url, "key-of-nobody", probing.PLAIN)
        try:
            yield client
        finally:
            await client.close()


async def test_the_models_of_a_server_are_listed_by_name() -> None:
    """Models are sorted whatever the server's order, each with its end date if it has one."""
    with responses.serve([scripted_model.text("unused")], models=("b", "a"), ending={"a": "2026-12-11"}) as server:
        client = model_client.Client(server.url, server.key, probing.PLAIN)
        assert [*(await client.models(30)).items()] == [("a", "2026-12-11"), ("b", None)]
        await client.close()


@pytest.mark.parametrize(
    ("status", "kind", "body", "code"),
    [
        ("404 Not Found", "application/json", b'{"error": {"message": "no such path"}}', "model-unknown"),
        ("401 Unauthorized", "application/json", b'{"error": {"message": "bad key"}}', "model-key-refused"),
        ("200 OK", "text/html", b"<html>welcome</html>", "model-unknown"),
        ("200 OK", "application/json", b'{"object": "list", "data": []}', "model-unknown"),
        ("200 OK", "application/json", b'{"object": "list", "data": null}', "model-unknown"),
        ("200 OK", "application/json", b'{"object": "list", "data": [{"name": "a"}]}', "model-unknown"),
        ("200 OK", "application/json", b'{"object": "list", "data": 7}', "model-unknown"),
        ("200 OK", "application/json", b'["a", "b"]', "model-unknown"),
        ("200 OK", "application/json", b"{", "model-unknown"),
    ],
)
async def test_a_server_without_a_list_is_reported(status: str, kind: str, body: bytes, code: str) -> None:
    """The client fails with the right code, never with an internal error or an empty list."""
    async with answering(status, kind, body) as client:
        with pytest.raises(Failed) as failed:
            await client.models(30)
    assert failed.value.error.code == code
