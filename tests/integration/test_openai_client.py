"""Behaviour of the openai client against the fake server, on which ``runtime/models/client/client.py`` depends.

If a test here fails after an upgrade, the client has changed: check what the adapter can drop, or must add.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import openai
import pydantic
import pytest

from runtime.testing import responses, scripted_model
from runtime.testing.responses import Server

pytestmark = pytest.mark.anyio

TLS = ssl.create_default_context()
"""One for all clients, because reading the machine's certificates takes longer than most tests here."""


@pytest.fixture
def anyio_backend() -> str:
    """The client runs on asyncio, as in the command."""
    return "asyncio"


class Order(pydantic.BaseModel):
    category: str


@asynccontextmanager
async def client_of(
    server: Server, *, retries: int = 0, deadline: float = 30.0, key: str | None = None
) -> AsyncGenerator[openai.AsyncOpenAI]:
    """A default client, with retries off unless given, and ``deadline`` as its timeout."""
    web = openai.DefaultAsyncHttpxClient(verify=TLS)
    async with openai.AsyncOpenAI(
        base_url=server.url, api_key=key or server.key, max_retries=retries, timeout=deadline, http_client=web
    ) as client:
        yield client


async def streamed(client: openai.AsyncOpenAI, seen: list[str] | None = None) -> list[Any]:
    """All events of a raw stream; text deltas are appended to ``seen`` as they arrive."""
    events = list[Any]()
    async for event in await client.responses.create(model="any", input="Hello", stream=True):
        events.append(event)
        if seen is not None and event.type == "response.output_text.delta":
            seen.append(event.delta)
    return events


async def test_every_field_of_a_response_is_there() -> None:
    """The fake server's answers fit the client's types field by field: plain, streamed, fetched, cancelled, and listed."""
    said = scripted_model.thought("so") + scripted_model.text("yes") + scripted_model.call("look", {})
    with responses.serve([said, said, said.in_background()], strict=True, models=("any",)) as server:
        async with client_of(server) as client:
            tool: Any = {"type": "function", "name": "look", "parameters": None, "strict": False}
            plain = await client.responses.create(model="any", input="Hello", tools=[tool])
            events = await streamed(client)
            queued = await client.responses.create(model="any", input="Hello", background=True)
            fetched = await client.responses.retrieve(queued.id)
            cancelled = await client.responses.cancel(queued.id)
            listed = [model async for model in client.models.list()]
    # The client does not validate its models. Here each is validated, and has no field unknown to its type, except
    # `store`, which the API sends and the client's type lacks.
    for each in (plain, queued, fetched, cancelled, *listed, *events):
        type(each).model_validate(each.to_dict())
    assert [each.model_extra for each in (plain, fetched)] == [{"store": True}] * 2
    assert not [event for event in events if event.model_extra]
    assert not [item for item in plain.output if item.model_extra]
    assert [item.type for item in plain.output] == ["reasoning", "message", "function_call"]
    assert (queued.status, fetched.status, cancelled.status) == ("queued", "in_progress", "cancelled")
    assert [model.id for model in listed] == ["any"]


async def test_the_helper_for_streams_and_for_parsing_works() -> None:
    """The client's stream helper and its parsing give the scripted answer."""
    said = scripted_model.text({"category": "refund"})
    with responses.serve([said, said], strict=True) as server:
        async with client_of(server) as client:
            async with client.responses.stream(model="any", input="Hello", text_format=Order) as stream:
                final = await stream.get_final_response()
            parsed = await client.responses.parse(model="any", input="Hello", text_format=Order)
    assert final.output_parsed == parsed.output_parsed == Order(category="refund")


async def test_its_own_retries_send_no_idempotency_key() -> None:
    """The client's retries send no Idempotency-Key, so the server cannot recognise them, and both requests are paid."""
    with responses.serve([scripted_model.rate_limited(milliseconds=1), scripted_model.text("yes")]) as server:
        async with client_of(server, retries=1) as client:
            await client.responses.create(model="any", input="Hello")
        first, again = server.requests
    assert first.body == again.body
    assert again.headers["x-stainless-retry-count"] == "1"
    assert not [name for each in (first, again) for name in each.headers if "idempotency" in name]


async def test_its_own_retries_repeat_a_hopeless_quota() -> None:
    """A 429 for an exhausted quota is retried like any other; only its code, insufficient_quota, distinguishes it."""
    with responses.serve([scripted_model.quota(), scripted_model.quota()]) as server:
        async with client_of(server, retries=1) as client:
            with pytest.raises(openai.RateLimitError) as raised:
                await client.responses.create(model="any", input="Hello")
        assert len(server.requests) == 2
    assert raised.value.code == raised.value.type == "insufficient_quota"


async def test_a_rate_limit_has_retry_after() -> None:
    """A 429 is a RateLimitError with Retry-After as sent, and with a code other than that of a quota."""
    with responses.serve([scripted_model.rate_limited(7)]) as server:
        async with client_of(server) as client:
            with pytest.raises(openai.RateLimitError) as raised:
                await client.responses.create(model="any", input="Hello")
    assert (raised.value.code, raised.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "7")


async def test_a_stream_without_a_terminal_event_raises_nothing() -> None:
    """A raw stream that ends without a terminal event raises nothing: the text looks complete."""
    with responses.serve([scripted_model.cut("Your order is")]) as server:
        async with client_of(server) as client:
            events = await streamed(client)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Your order is"
    assert events[-1].type == "response.output_text.delta"


async def test_the_stream_helper_misses_the_end_without_a_name() -> None:
    """For a cut, failed or incomplete stream get_final_response raises a bare RuntimeError, and the partial text is lost."""
    script = [
        scripted_model.cut("Your"),
        scripted_model.incomplete("Your"),
        scripted_model.failed(said="Your"),
        scripted_model.error_event("Your"),
    ]
    with responses.serve(script) as server:
        async with client_of(server) as client:
            for _each in script:
                async with client.responses.stream(model="any", input="Hello") as stream:
                    with pytest.raises(RuntimeError, match="Didn't receive a `response"):
                        await stream.get_final_response()


async def test_an_error_event_of_a_raw_stream_raises_nothing() -> None:
    """An ``error`` event as the API documents it arrives like any other event."""
    with responses.serve([scripted_model.error_event("Your", code="server_error", message="Oh.")]) as server:
        async with client_of(server) as client:
            events = await streamed(client)
    assert (events[-1].type, events[-1].code, events[-1].message) == ("error", "server_error", "Oh.")


async def test_an_error_event_raises_where_its_fields_are_nested() -> None:
    """Only fields nested below ``error`` make the client raise: a bare APIError with code and message."""
    with responses.serve([scripted_model.error_event("Your", code="overloaded", message="Oh.", nested=True)]) as server:
        async with client_of(server) as client:
            with pytest.raises(openai.APIError, match=r"Oh\.") as raised:
                await streamed(client)
    assert type(raised.value) is openai.APIError
    assert raised.value.code == "overloaded"


async def test_a_failed_response_raises_nothing() -> None:
    """A failed response is returned, plain or streamed; only its status and error show the failure."""
    with responses.serve([scripted_model.failed("server_error", "Oh.")] * 2) as server:
        async with client_of(server) as client:
            plain = await client.responses.create(model="any", input="Hello")
            events = await streamed(client)
    ended: Any
    for ended in (plain, events[-1].response):
        assert ended.status == "failed"
        assert ended.error.to_dict() == {"code": "server_error", "message": "Oh."}


async def test_a_refusal_and_a_cut_answer_raise_nothing() -> None:
    """A refusal is completed with empty output_text; a cut answer has text, and only its status shows it."""
    with responses.serve([scripted_model.refusal("No."), scripted_model.incomplete('{"category": "ref')]) as server:
        async with client_of(server) as client:
            refused = await client.responses.create(model="any", input="Hello")
            short = await client.responses.create(model="any", input="Hello")
    assert (refused.status, refused.output_text) == ("completed", "")
    assert (short.status, short.output_text) == ("incomplete", '{"category": "ref')


async def test_parsing_loses_the_whole_response() -> None:
    """If text or arguments do not fit, parse raises an error without the response, its id, or its usage."""
    tool: Any = openai.pydantic_function_tool(Order, name="sort")
    tool = {"type": "function", **tool["function"]}
    with responses.serve(
        [scripted_model.text('{"category": '), scripted_model.call("sort", '{"category": ')]
    ) as server:
        async with client_of(server) as client:
            with pytest.raises(pydantic.ValidationError) as text:
                await client.responses.parse(model="any", input="Hello", text_format=Order)
            with pytest.raises((pydantic.ValidationError, json.JSONDecodeError)) as arguments:
                await client.responses.parse(model="any", input="Hello", tools=[tool])
        assert all(each.complete and b"total_tokens" in each.sent for each in server.requests)
    for raised in (text, arguments):
        assert not isinstance(raised.value, openai.OpenAIError)
        assert not hasattr(raised.value, "response")
        assert "resp_000" not in str(raised.value)


async def test_a_plain_request_keeps_bad_arguments() -> None:
    """Without parse, malformed arguments are returned as text."""
    with responses.serve([scripted_model.call("sort", '{"category": ')]) as server:
        async with client_of(server) as client:
            response = await client.responses.create(model="any", input="Hello")
    assert response.output[0].to_dict()["arguments"] == '{"category": '


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_hang_is_a_timeout(streaming: bool) -> None:
    """A server that never answers gives APITimeoutError, an APIConnectionError, after the timeout; the server sees the disconnect."""
    with responses.serve([scripted_model.hang()]) as server:
        async with client_of(server, deadline=0.1) as client:
            with pytest.raises(openai.APITimeoutError) as raised:
                await (streamed(client) if streaming else client.responses.create(model="any", input="Hello"))
        assert server.wait(1)[0].gone.wait(30)
    assert isinstance(raised.value, openai.APIConnectionError)


async def test_a_stall_is_a_timeout_after_the_events() -> None:
    """A silent stream raises APITimeoutError after its events; the timeout measures silence, not the whole."""
    seen = list[str]()
    with responses.serve([scripted_model.stall("Your order")]) as server:
        async with client_of(server, deadline=1.0) as client:
            with pytest.raises(openai.APITimeoutError):
                await streamed(client, seen)
    assert "".join(seen) == "Your order"


async def test_a_reset_is_a_connection_error() -> None:
    """A dropped connection raises APIConnectionError, before the first byte or after the events of a stream."""
    seen = list[str]()
    with responses.serve(
        [scripted_model.reset(), scripted_model.reset("Your order"), scripted_model.reset("Your order")]
    ) as server:
        async with client_of(server) as client:
            with pytest.raises(openai.APIConnectionError) as first:
                await client.responses.create(model="any", input="Hello")
            with pytest.raises(openai.APIConnectionError) as middle:
                await client.responses.create(model="any", input="Hello")
            with pytest.raises(openai.APIConnectionError) as stream:
                await streamed(client, seen)
    assert "".join(seen) == "Your order"
    assert not [each for each in (first, middle, stream) if isinstance(each.value, openai.APITimeoutError)]


async def test_a_closed_port_is_a_connection_error() -> None:
    """A port at which nothing listens gives APIConnectionError."""
    with responses.serve([]) as server:
        pass
    async with client_of(server) as client:
        with pytest.raises(openai.APIConnectionError):
            await client.responses.create(model="any", input="Hello")


async def test_invalid_json_is_no_error_of_the_client() -> None:
    """Invalid JSON raises a bare JSONDecodeError where the content type says JSON, and is returned as text elsewhere."""
    script = [scripted_model.cut("Your order"), scripted_model.not_json(b"data: {\n\n"), scripted_model.not_json()]
    with responses.serve(script) as server:
        async with client_of(server) as client:
            with pytest.raises(json.JSONDecodeError):
                await client.responses.create(model="any", input="Hello")
            with pytest.raises(json.JSONDecodeError):
                await streamed(client)
            assert await client.responses.create(model="any", input="Hello") == "<html>Bad gateway</html>"


async def test_a_lost_chain() -> None:
    """Following an unknown response gives BadRequestError with previous_response_not_found; fetching it gives NotFoundError."""
    with responses.serve([scripted_model.text("one"), scripted_model.chain_lost()], strict=True) as server:
        async with client_of(server) as client:
            first = await client.responses.create(model="any", input="Hello")
            server.forget()
            for _each in range(2):
                with pytest.raises(openai.BadRequestError) as raised:
                    await client.responses.create(model="any", input="Hello", previous_response_id=first.id)
                assert raised.value.code == "previous_response_not_found"
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(first.id)


async def test_wrong_keys_and_models_are_refused() -> None:
    """A wrong key gives AuthenticationError, and an unknown model NotFoundError with model_not_found."""
    with responses.serve([], models=("any",), strict=True) as server:
        async with client_of(server, key="key-of-somebody-else") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.responses.create(model="any", input="Hello")
        async with client_of(server) as client:
            with pytest.raises(openai.NotFoundError) as raised:
                await client.responses.create(model="other", input="Hello")
    assert raised.value.code == "model_not_found"


async def test_a_server_may_ignore_previous_response_id() -> None:
    """A server that ignores previous_response_id causes no error; only the model's knowledge shows it."""
    seen = list[int]()

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        seen.append(len(asked.items))
        return scripted_model.text("yes")

    with responses.serve(model, profile=responses.IGNORING, strict=True) as server:
        async with client_of(server) as client:
            first = await client.responses.create(model="any", input="The word is plum.")
            second = await client.responses.create(model="any", input="Which?", previous_response_id=first.id)
    assert (second.status, seen) == ("completed", [1, 1])


async def test_a_cancelled_request_closes_its_connection() -> None:
    """A task cancelled while it waits closes its connection, and the server sees the disconnect."""
    with responses.serve([scripted_model.text("late").held(threading.Event())]) as server:
        async with client_of(server) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.responses.create(model="any", input="Hello"))
                await anyio.to_thread.run_sync(server.wait, 1)
                tasks.cancel_scope.cancel()
            assert server.wait(1)[0].gone.wait(30)
