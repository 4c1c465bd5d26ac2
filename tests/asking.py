"""Plain HTTP requests to a fake Responses server, without any client of OpenAI's."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from runtime.testing import scripted_model
from runtime.testing.responses import Server


def send(
    server: Server, body: object = None, path: str = "/responses", method: str = "POST", key: str | None = None
) -> tuple[int, dict[str, str], Any]:
    """One request on its own connection: status, headers by name in lower case, and the JSON."""
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(f"{url.hostname}", url.port, timeout=30)
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    try:
        connection.request(method, url.path + path, data, {"Authorization": f"Bearer {key or server.key}"})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, json.loads(answer.read())
    finally:
        connection.close()


def ask(server: Server, said: object = "Hello", **fields: object) -> tuple[int, dict[str, str], Any]:
    """A request to the model."""
    return send(server, {"model": "any", "input": said, **fields})


def said_by(response: dict[str, Any]) -> str:
    """The text of a response."""
    return "".join(scripted_model.text_of(item) for item in response["output"] if item["type"] == "message")


def stream(server: Server, path: str = "/responses", method: str = "POST", **fields: object) -> list[dict[str, Any]]:
    """The events of a streamed request. Their names on the wire are compared with their types."""
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(f"{url.hostname}", url.port, timeout=30)
    data = (
        json.dumps({"model": "any", "input": "Hello", "stream": True, **fields}).encode() if method == "POST" else None
    )
    try:
        connection.request(method, url.path + path, data, {"Authorization": f"Bearer {server.key}"})
        answer = connection.getresponse()
        assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        blocks = answer.read().decode().split("\n\n")
    finally:
        connection.close()
    assert blocks.pop() == ""
    events = list[dict[str, Any]]()
    for block in blocks:
        name, value = block.split("\n")
        events.append(json.loads(value.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events
