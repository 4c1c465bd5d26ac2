"""Responses of a server that calls itself compatible, over real HTTP through the real client: each is an answer or Failed, and can be logged."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nodes.values import Json
from runtime.log import entries
from runtime.messages.messages import Answer, Message, Request, Usage
from runtime.models.client import client as model_client
from runtime.models.client import profiles
from runtime.models.client.errors import Failed
from runtime.secrets.masking import Masker
from runtime.testing import responses, scripted_model

ASKED = Request("m", "Say.", (Message("user", "tea"),), None, 100)
USED = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
KEY = "key-of-nobody-0123456789"
FORM = "not of the form of the Responses API"


def message(*content: Json) -> list[Json]:
    """The output of a response with one message."""
    return [{"type": "message", "content": [*content]}]


GOOD: dict[str, Json] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": message({"type": "output_text", "text": "hi"}),
    "usage": {**USED},
}


def body(**changed: Json) -> bytes:
    """A good response with these changes."""
    return json.dumps(GOOD | changed).encode()


def stream(*events: Json) -> bytes:
    """A stream of these events."""
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def delta(**fields: Json) -> Json:
    """The event of a piece of text."""
    return {"type": "response.output_text.delta", **fields}


def ended(kind: str = "completed", **changed: Json) -> Json:
    """The event that ends a stream."""
    return {"type": f"response.{kind}", "response": GOOD | changed}


@asynccontextmanager
async def answering(sent: bytes, head: str = "200 OK", kind: str = "application/json") -> AsyncGenerator[str]:
    """The address of a server that answers everything with this."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        length = next((line for line in asked.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        await reader.readexactly(int(length.partition(b":")[2]))
        lines = f"HTTP/1.1 {head}\r\nContent-Type: {kind}\r\nContent-Length: {len(sent)}\r\nConnection: close\r\n\r\n"
        writer.write(lines.encode() + sent)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def asked(url: str, profile: str = "compatible", background: bool = False) -> Answer:
    """The client's answer, which is also encoded as a log entry."""
    client = model_client.Client(url, KEY, profiles.PROFILES[profile])
    try:
        found = await (client.fetch("resp_1", 30) if background else client.ask(ASKED, 30))
        assert found is not None
    except Failed as failed:
        json.dumps(failed.error.as_json())
        logged(failed.usage)
        raise
    finally:
        await client.close()
    entries.Assistant(
        thread="t", key="k", source="model", model=found.model, response=found.id or None, text=found.text
    )
    logged(found.usage)
    return found


def logged(usage: Usage | None) -> None:
    """Raise if the log does not accept the usage."""
    if usage is not None:
        entries.Usage(**dataclasses.asdict(usage))


UNREADABLE: dict[str, bytes] = {
    "output is a map": body(output={"a": 1}),
    "output is a text": body(output="hi"),
    "output of null": body(output=[None]),
    "output of a text": body(output=["hi"]),
    "content is a text": body(output=[{"type": "message", "content": "hi"}]),
    "content is a map": body(output=[{"type": "message", "content": {"type": "output_text", "text": "hi"}}]),
    "content of a text": body(output=message("hi")),
    "text is null": body(output=message({"type": "output_text", "text": None})),
    "no text": body(output=message({"type": "output_text"})),
    "text is a number": body(output=message({"type": "output_text", "text": 5})),
    "summary is a text": body(output=[{"type": "reasoning", "summary": "thought"}]),
    "summary of a text": body(output=[{"type": "reasoning", "summary": ["thought"]}]),
    "error is a text": body(status="failed", error="boom"),
    "details are a text": body(status="incomplete", incomplete_details="max"),
}


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_unreadable_response_fails_without_a_retry(name: str, background: bool) -> None:
    """An unreadable response is Failed with a message and its tokens, without a retry; a background response is over."""
    async with answering(UNREADABLE[name]) as url:
        with pytest.raises(Failed) as caught:
            await asked(url, background=background)
    failed = caught.value
    assert (failed.error.code, failed.again, failed.over) == ("model-failed", False, background)
    assert FORM in failed.error.message
    assert failed.usage == Usage(5, 0, 3, 0)
    assert failed.sent


UNKNOWN: dict[str, Json] = {
    "null": None,
    "empty": {},
    "a list": [1],
    "a truth": True,
    "a text": "many",
    "other names": {"prompt_tokens": 5, "completion_tokens": 3},
    "null fields": {"input_tokens": None, "output_tokens": None},
    "only one": {"input_tokens": 5},
    "negative": {"input_tokens": -50000, "output_tokens": 3},
    "texts": {"input_tokens": "5", "output_tokens": "3"},
    "fractions": {"input_tokens": 1.5, "output_tokens": 2.5},
    "truths": {"input_tokens": True, "output_tokens": True},
    "too many": {"input_tokens": 10**30, "output_tokens": 3},
}


@pytest.mark.parametrize("name", UNKNOWN)
async def test_usage_that_cannot_be_read_is_unknown(name: str) -> None:
    """An answer with unreadable usage is accepted, and its usage is unknown, neither zero nor negative."""
    async with answering(body(usage=UNKNOWN[name])) as url:
        found = await asked(url)
    assert (found.text, found.usage) == ("hi", None)


@pytest.mark.parametrize("odd", [None, [1], {"cached_tokens": -5}, {"cached_tokens": "5"}, {"cached_tokens": None}])
async def test_details_of_usage_that_cannot_be_read_lower_no_price(odd: Json) -> None:
    """Unreadable details count no tokens as cached, and cached tokens never exceed the input."""
    async with answering(body(usage={**USED, "input_tokens_details": odd})) as url:
        assert (await asked(url)).usage == Usage(5, 0, 3, 0)
    async with answering(body(usage={**USED, "input_tokens_details": {"cached_tokens": 99}})) as url:
        assert (await asked(url)).usage == Usage(5, 5, 3, 0)


@pytest.mark.parametrize(("id_", "seen"), [(7, "7"), (None, ""), ([1], ""), ({"a": 1}, ""), (True, ""), ("r", "r")])
async def test_an_id_is_a_text_or_nothing(id_: Json, seen: str) -> None:
    """The log accepts a response whatever its id is."""
    async with answering(body(id=id_)) as url:
        assert (await asked(url)).id == seen


async def test_a_background_response_without_an_id_is_refused() -> None:
    """A background response without an id cannot be fetched, so it is refused."""
    async with answering(body(id=None, status="queued")) as url:
        client = model_client.Client(url, KEY, profiles.PROFILES["openai"])
        with pytest.raises(Failed) as failed:
            await client.submit(ASKED, 30)
        await client.close()
    assert failed.value.error.code == "model-unknown"


@pytest.mark.parametrize("before", range(170, 200, 3))
async def test_a_key_in_a_page_that_is_no_response_is_masked_where_the_page_is_cut(before: int) -> None:
    """A proxy may send back what it got. Cut in the middle of the key, the message is masked like a whole key."""
    async with answering(b"x" * before + KEY.encode(), kind="text/html") as url:
        with pytest.raises(Failed) as failed:
            await asked(url)
    assert KEY[:4] not in Masker({"key": KEY}).text(str(failed.value.error.message))


STREAMS: dict[str, tuple[bytes, str | None]] = {
    "a piece is null": (stream(delta(delta=None), ended()), None),
    "a piece is missing": (stream(delta(), ended()), None),
    "a piece is a number": (stream(delta(delta=5), ended()), None),
    "an event without a type": (stream({"a": 1}, ended()), None),
    "an event's type is a number": (stream({"type": 5}, ended()), None),
    "an end without a response": (stream({"type": "response.completed"}), "model-unknown"),
    "error is a text": (stream(ended("failed", status="failed", error="boom")), "model-failed"),
    "error code is a number": (stream({"type": "error", "code": 500, "message": "x"}), "model-failed"),
    "error code is a list": (stream({"type": "error", "code": [1], "message": "x"}), "model-failed"),
    "error message is null": (stream({"type": "error", "code": "c", "message": None}), "model-failed"),
    "text is null": (
        stream(delta(delta="h"), ended(output=message({"type": "output_text", "text": None}))),
        "model-failed",
    ),
    "an event of brackets": (b"data: " + b"[" * 200_000 + b"\n\n", "model-failed"),
    "events that are no maps": (stream([1], None, "x"), "model-stream-broken"),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_an_odd_stream_is_read_or_fails(name: str) -> None:
    """Events that only show progress are skipped; an unreadable end is Failed, and only a broken stream is retried."""
    sent, code = STREAMS[name]
    async with answering(sent, kind="text/event-stream") as url:
        if code is None:
            assert await asked(url, "vllm") == Answer("hi", Usage(5, 0, 3, 0), "m", "resp_1")
            return
        with pytest.raises(Failed) as failed:
            await asked(url, "vllm")
    assert (failed.value.error.code, failed.value.again) == (code, code == "model-stream-broken")


async def test_partial_text_of_an_odd_stream_is_kept() -> None:
    """The text received before an unreadable end is kept."""
    async with answering(STREAMS["text is null"][0], kind="text/event-stream") as url:
        with pytest.raises(Failed) as failed:
            await asked(url, "vllm")
    assert failed.value.partial == "h"


REFUSALS: dict[str, tuple[str, Any, str, bool]] = {
    "a body of brackets": ("200 OK", b"[" * 200_000, "model-failed", False),
    "an error of brackets": ("500 No", b"[" * 200_000, "model-failed", True),
    "a code that is a list": ("429 No", {"error": {"code": ["x"], "message": "m"}}, "model-rate-limited", True),
    "a type that is a list": ("429 No", {"error": {"code": {"a": 1}, "type": [1]}}, "model-rate-limited", True),
    "an error that is a text": ("500 No", {"error": "boom"}, "model-failed", True),
    "a message that is a list": ("400 No", {"error": {"message": ["x"]}}, "model-request-refused", False),
    "a year that no date has": (
        "429 No\r\nRetry-After: Mon, 01 Jan 99999999999999 00:00:00 GMT",
        {},
        "model-rate-limited",
        True,
    ),
    "a day that no date has": (
        "429 No\r\nRetry-After: Mon, 99999999999999999999999 Jan 2020 00:00:00 GMT",
        {},
        "model-rate-limited",
        True,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_an_odd_refusal_is_read_by_its_status(name: str) -> None:
    """Whatever the body or `Retry-After` contains, the status decides, and neither causes an internal error."""
    head, sent, code, again = REFUSALS[name]
    async with answering(sent if isinstance(sent, bytes) else json.dumps(sent).encode(), head) as url:
        with pytest.raises(Failed) as failed:
            await asked(url)
    assert (failed.value.error.code, failed.value.again, failed.value.wait) == (code, again, None)


async def test_only_the_given_time_limits_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has the time that is given with it, also where the library's own limit (10 minutes) is shorter."""
    monkeypatch.setattr("openai._base_client.DEFAULT_TIMEOUT", 0.05)
    gate = threading.Event()
    with responses.serve([scripted_model.text("hi").held(gate)]) as server:
        client = model_client.Client(server.url, server.key, profiles.PROFILES["compatible"])
        asking = asyncio.create_task(client.ask(ASKED, 30))
        await asyncio.to_thread(server.wait, 1)
        await asyncio.wait([asking], timeout=0.3)
        gate.set()
        assert (await asking).text == "hi"
        await client.close()
