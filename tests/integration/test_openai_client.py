"""What the openai client does, pinned against the fake server: what ``runtime/models/client/client.py`` builds on, and what it must do itself.

If a test here fails after an upgrade, the client has changed; see what the adapter can give up, or must add.
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
"""One for all clients: to make it reads all certificates of the machine, which takes longer than most tests here."""


@pytest.fixture
def anyio_backend() -> str:
    """The client runs on asyncio in the command, and so it does here."""
    return "asyncio"


class Order(pydantic.BaseModel):
    category: str


@asynccontextmanager
async def client_of(
    server: Server, *, retries: int = 0, deadline: float = 30.0, key: str | None = None
) -> AsyncGenerator[openai.AsyncOpenAI]:
    """A client as it comes, with retries off unless a test is about them, and ``deadline`` seconds of silence."""
    web = openai.DefaultAsyncHttpxClient(verify=TLS)
    async with openai.AsyncOpenAI(
        base_url=server.url, api_key=key or server.key, max_retries=retries, timeout=deadline, http_client=web
    ) as client:
        yield client


async def streamed(client: openai.AsyncOpenAI, seen: list[str] | None = None) -> list[Any]:
    """All events of a raw stream; the pieces of its text are added to ``seen`` as they come."""
    events = list[Any]()
    async for event in await client.responses.create(model="any", input="Hello", stream=True):
        events.append(event)
        if seen is not None and event.type == "response.output_text.delta":
            seen.append(event.delta)
    return events


async def test_every_field_of_a_response_is_there() -> None:
    """What the fake server answers fits the client's own types, field by field: plain, streamed, fetched, cancelled, and listed."""
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
    # The client builds its models without checking. Here each is checked, and has no field that its type does not name, but for
    # `store`, which the API sends and the client's type has not.
    for each in (plain, queued, fetched, cancelled, *listed, *events):
        type(each).model_validate(each.to_dict())
    assert [each.model_extra for each in (plain, fetched)] == [{"store": True}] * 2
    assert not [event for event in events if event.model_extra]
    assert not [item for item in plain.output if item.model_extra]
    assert [item.type for item in plain.output] == ["reasoning", "message", "function_call"]
    assert (queued.status, fetched.status, cancelled.status) == ("queued", "in_progress", "cancelled")
    assert [model.id for model in listed] == ["any"]


async def test_the_helper_for_streams_and_for_parsing_works() -> None:
    """The client's own accumulation of a stream, and its parsing, come to what the script said."""
    said = scripted_model.text({"category": "refund"})
    with responses.serve([said, said], strict=True) as server:
        async with client_of(server) as client:
            async with client.responses.stream(model="any", input="Hello", text_format=Order) as stream:
                final = await stream.get_final_response()
            parsed = await client.responses.parse(model="any", input="Hello", text_format=Order)
    assert final.output_parsed == parsed.output_parsed == Order(category="refund")


async def test_its_own_retries_send_no_idempotency_key() -> None:
    """With its retries on, the client sends the request again without an Idempotency-Key: a server cannot know it for the same, and both are paid."""
    with responses.serve([scripted_model.rate_limited(milliseconds=1), scripted_model.text("yes")]) as server:
        async with client_of(server, retries=1) as client:
            await client.responses.create(model="any", input="Hello")
        first, again = server.requests
    assert first.body == again.body
    assert again.headers["x-stainless-retry-count"] == "1"
    assert not [name for each in (first, again) for name in each.headers if "idempotency" in name]


async def test_its_own_retries_repeat_a_hopeless_quota() -> None:
    """A 429 for a quota that is spent is sent again like any other 429; only its code tells, insufficient_quota."""
    with responses.serve([scripted_model.quota(), scripted_model.quota()]) as server:
        async with client_of(server, retries=1) as client:
            with pytest.raises(openai.RateLimitError) as raised:
                await client.responses.create(model="any", input="Hello")
        assert len(server.requests) == 2
    assert raised.value.code == raised.value.type == "insufficient_quota"


async def test_a_limit_says_when_to_come_again() -> None:
    """A 429 is a RateLimitError whose response holds Retry-After as the server sent it, and whose code is not that of a quota."""
    with responses.serve([scripted_model.rate_limited(7)]) as server:
        async with client_of(server) as client:
            with pytest.raises(openai.RateLimitError) as raised:
                await client.responses.create(model="any", input="Hello")
    assert (raised.value.code, raised.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "7")


async def test_a_stream_without_a_terminal_event_raises_nothing() -> None:
    """A raw stream that ends after some text, with no event that says how it ended, just ends: the text looks whole."""
    with responses.serve([scripted_model.cut("Your order is")]) as server:
        async with client_of(server) as client:
            events = await streamed(client)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Your order is"
    assert events[-1].type == "response.output_text.delta"


async def test_the_stream_helper_misses_the_end_without_a_name() -> None:
    """The helper's get_final_response raises a bare RuntimeError where a stream is cut, failed, or incomplete: what came is lost."""
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
    """An ``error`` event as the API documents it, with its code and message in the event itself, comes as an event like any other."""
    with responses.serve([scripted_model.error_event("Your", code="server_error", message="Oh.")]) as server:
        async with client_of(server) as client:
            events = await streamed(client)
    assert (events[-1].type, events[-1].code, events[-1].message) == ("error", "server_error", "Oh.")


async def test_an_error_event_raises_where_its_fields_are_nested() -> None:
    """Only where its fields stand below ``error`` does the client raise, a bare APIError without a status, with code and message."""
    with responses.serve([scripted_model.error_event("Your", code="overloaded", message="Oh.", nested=True)]) as server:
        async with client_of(server) as client:
            with pytest.raises(openai.APIError, match=r"Oh\.") as raised:
                await streamed(client)
    assert type(raised.value) is openai.APIError
    assert raised.value.code == "overloaded"


async def test_a_failed_response_raises_nothing() -> None:
    """A response that failed is returned like a good one, plain or streamed; its status and error tell."""
    with responses.serve([scripted_model.failed("server_error", "Oh.")] * 2) as server:
        async with client_of(server) as client:
            plain = await client.responses.create(model="any", input="Hello")
            events = await streamed(client)
    ended: Any
    for ended in (plain, events[-1].response):
        assert ended.status == "failed"
        assert ended.error.to_dict() == {"code": "server_error", "message": "Oh."}


async def test_a_refusal_and_a_cut_answer_have_no_text_of_their_own() -> None:
    """A refusal leaves output_text empty with the status completed; an answer cut short has text, and only its status tells."""
    with responses.serve([scripted_model.refusal("No."), scripted_model.incomplete('{"category": "ref')]) as server:
        async with client_of(server) as client:
            refused = await client.responses.create(model="any", input="Hello")
            short = await client.responses.create(model="any", input="Hello")
    assert (refused.status, refused.output_text) == ("completed", "")
    assert (short.status, short.output_text) == ("incomplete", '{"category": "ref')


async def test_parsing_loses_the_whole_response() -> None:
    """Where text or arguments do not fit, parse raises an error that holds neither the response, nor its id, nor what was paid."""
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
    """Without parse, malformed arguments come as the text that they are."""
    with responses.serve([scripted_model.call("sort", '{"category": ')]) as server:
        async with client_of(server) as client:
            response = await client.responses.create(model="any", input="Hello")
    assert response.output[0].to_dict()["arguments"] == '{"category": '


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_hang_is_a_timeout(streaming: bool) -> None:
    """A server that never answers is an APITimeoutError after the client's timeout, which is also an APIConnectionError; the server sees it go."""
    with responses.serve([scripted_model.hang()]) as server:
        async with client_of(server, deadline=0.1) as client:
            with pytest.raises(openai.APITimeoutError) as raised:
                await (streamed(client) if streaming else client.responses.create(model="any", input="Hello"))
        assert server.wait(1)[0].gone.wait(30)
    assert isinstance(raised.value, openai.APIConnectionError)


async def test_a_stall_is_a_timeout_after_what_came() -> None:
    """A stream that falls silent raises APITimeoutError after the events that came; the timeout is one of silence, not of the whole."""
    seen = list[str]()
    with responses.serve([scripted_model.stall("Your order")]) as server:
        async with client_of(server, deadline=1.0) as client:
            with pytest.raises(openai.APITimeoutError):
                await streamed(client, seen)
    assert "".join(seen) == "Your order"


async def test_a_reset_is_a_connection_error() -> None:
    """A connection that drops raises APIConnectionError, before a byte as in the middle of a stream, then after the events that came."""
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


async def test_nobody_there_is_a_connection_error() -> None:
    """A port at which nothing listens is an APIConnectionError too."""
    with responses.serve([]) as server:
        pass
    async with client_of(server) as client:
        with pytest.raises(openai.APIConnectionError):
            await client.responses.create(model="any", input="Hello")


async def test_what_is_no_json_is_no_error_of_the_client() -> None:
    """What is no JSON raises a bare JSONDecodeError where an answer or an event calls itself JSON, and is returned as text where it does not."""
    script = [scripted_model.cut("Your order"), scripted_model.not_json(b"data: {\n\n"), scripted_model.not_json()]
    with responses.serve(script) as server:
        async with client_of(server) as client:
            with pytest.raises(json.JSONDecodeError):
                await client.responses.create(model="any", input="Hello")
            with pytest.raises(json.JSONDecodeError):
                await streamed(client)
            assert await client.responses.create(model="any", input="Hello") == "<html>Bad gateway</html>"


async def test_a_lost_chain() -> None:
    """A response that the server no longer knows is a BadRequestError with the code previous_response_not_found when followed, and a NotFoundError when fetched."""
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


async def test_who_is_refused() -> None:
    """A wrong key is an AuthenticationError, a model that is not there a NotFoundError with the code model_not_found."""
    with responses.serve([], models=("any",), strict=True) as server:
        async with client_of(server, key="key-of-somebody-else") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.responses.create(model="any", input="Hello")
        async with client_of(server) as client:
            with pytest.raises(openai.NotFoundError) as raised:
                await client.responses.create(model="other", input="Hello")
    assert raised.value.code == "model_not_found"


async def test_a_server_may_ignore_what_a_request_follows() -> None:
    """Where a server takes previous_response_id and ignores it, nothing the client returns is an error: only what the model knows tells."""
    seen = list[int]()

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        seen.append(len(asked.items))
        return scripted_model.text("yes")

    with responses.serve(model, profile=responses.IGNORING, strict=True) as server:
        async with client_of(server) as client:
            first = await client.responses.create(model="any", input="The word is plum.")
            second = await client.responses.create(model="any", input="Which?", previous_response_id=first.id)
    assert (second.status, seen) == ("completed", [1, 1])


async def test_a_cancelled_request_lets_its_connection_go() -> None:
    """A task that is cancelled while it waits for an answer closes its connection, and the server sees it."""
    with responses.serve([scripted_model.text("late").held(threading.Event())]) as server:
        async with client_of(server) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.responses.create(model="any", input="Hello"))
                await anyio.to_thread.run_sync(server.wait, 1)
                tasks.cancel_scope.cancel()
            assert server.wait(1)[0].gone.wait(30)
