"""The state of the fake Responses server: stored responses, streams, background work and token counts."""

from __future__ import annotations

import datetime as dt
import http.client
import inspect
import re
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from runtime.testing import responses, scripted_model
from runtime.testing.responses import shapes
from tests.asking import ask, said_by, send, stream
from tests.pages import ROOT


def poll(server: responses.Server, name: str) -> tuple[int, dict[str, str], Any]:
    return send(server, path=f"/responses/{name}", method="GET")


def test_a_response_that_follows_another_one() -> None:
    """The model sees the earlier input, its answer and the new input, with the instructions of the new request."""
    seen = list[scripted_model.AskedFor]()

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        seen.append(asked)
        return scripted_model.call("look", {}) if asked.number == 1 else scripted_model.text("I see.")

    with responses.serve(model, strict=True) as server:
        first = ask(server, "one", instructions="First.")[2]
        output = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "a page"}
        second = ask(server, [output], previous_response_id=first["id"])[2]
        third = ask(server, "three", previous_response_id=second["id"])[2]
        assert third["previous_response_id"] == second["id"]
    kinds = [item.get("role") or item["type"] for item in seen[2].items]
    assert kinds == ["user", "function_call", "function_call_output", "assistant", "user"]
    assert [asked.instructions for asked in seen] == ["First.", "", ""]
    assert seen[1].outputs == {first["output"][0]["call_id"]: "a page"}


def test_an_open_call_is_refused_through_a_chain() -> None:
    """A request that follows a response with a call, but has no output for it, is refused."""
    with responses.serve([scripted_model.call("look", {})]) as server:
        first = ask(server)[2]
        status, _headers, body = ask(server, "and now?", previous_response_id=first["id"])
        assert status == 400
        assert body["error"]["message"].startswith("No tool output found for function call call_")


def test_a_response_that_is_not_stored_is_not_found() -> None:
    """Unstored, deleted and forgotten responses can be neither fetched nor followed. Only forgetting is not the client's problem."""
    with responses.serve([scripted_model.text("x")] * 3) as server:
        loose = ask(server, store=False)[2]["id"]
        deleted = ask(server)[2]["id"]
        lost = ask(server)[2]["id"]
        assert poll(server, lost)[0] == 200
        assert send(server, path=f"/responses/{deleted}", method="DELETE")[2]["deleted"] is True
        server.forget()
        for name in (lost, loose, deleted):
            assert poll(server, name)[0] == 404
            status, _headers, body = ask(server, previous_response_id=name)
            assert (status, body["error"]["code"]) == (400, "previous_response_not_found")
        assert len(server.problems) == 4
        assert not [problem for problem in server.problems if lost in problem]


def test_a_server_that_ignores_unknown_fields() -> None:
    """The profile ignores `previous_response_id`, `store` and `background`: the model sees only the new input."""
    seen = list[int]()

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        seen.append(len(asked.items))
        return scripted_model.text("x")

    with responses.serve(model, strict=True, profile=responses.IGNORING) as server:
        first = ask(server, store=True)[2]
        status, _headers, second = ask(server, previous_response_id=first["id"], background=True, nonsense=1)
        assert (status, second["status"], second["previous_response_id"], seen) == (200, "completed", None, [1, 1])
        assert poll(server, first["id"])[0] == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_0001"),
        ("store", False),
        ("background", True),
        ("text", {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}),
    ],
)
def test_a_server_that_refuses_what_it_does_not_know(field: str, value: object) -> None:
    """The profile answers 400 to stored state, background and schemas, and names the field."""
    with responses.serve([], profile=responses.REFUSING) as server:
        status, _headers, body = ask(server, **{field: value})
        assert (status, body["error"]["param"].split(".")[0]) == (400, field)


def test_the_order_of_events() -> None:
    """A stream opens, sends each item in deltas that join to the whole, and ends with the response of a plain request."""
    said = (
        scripted_model.thought("Let me see.")
        + scripted_model.text("Here it is: 42.")
        + scripted_model.call("look", {"name": "basket"})
    )
    with responses.serve([said, said], strict=True) as server:
        events = stream(server)
        plain = ask(server)[2]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"].removeprefix("response.") for event in events if not event["type"].endswith("delta")]
    assert kinds == [
        "created", "in_progress",
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    for index, whole in enumerate(("Let me see.", "Here it is: 42.", '{"name": "basket"}')):
        pieces = [
            event["delta"] for event in events if event["type"].endswith("delta") and event["output_index"] == index
        ]
        assert len(pieces) > 1
        assert "".join(pieces) == whole
    opened = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert [scripted_model.text_of(item) for item in opened] == ["", "", "look()"]
    ended = events[-1]["response"]
    assert ended["status"] == "completed"
    assert [item["type"] for item in ended["output"]] == [item["type"] for item in plain["output"]]
    assert ended["usage"] == plain["usage"]


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        (scripted_model.incomplete("so fa"), "response.incomplete"),
        (scripted_model.incomplete("", "content_filter"), "response.incomplete"),
        (scripted_model.failed("rate_limit_exceeded", "Slow down."), "response.failed"),
        (scripted_model.refusal("I won't."), "response.completed"),
        (scripted_model.error_event("so fa"), "error"),
        (scripted_model.cut("so fa"), "response.output_text.delta"),
    ],
)
def test_a_stream_ends_as_scripted(answer: scripted_model.Scripted, last: str) -> None:
    """The last event is the scripted one, even if it does not end the stream properly."""
    with responses.serve([answer]) as server:
        assert stream(server)[-1]["type"] == last


def test_a_failed_response() -> None:
    """A plain answer reports truncation, failure and refusal in the API's fields."""
    script = [
        scripted_model.incomplete("so fa"),
        scripted_model.failed("server_error", "Oh."),
        scripted_model.refusal("I won't."),
    ]
    with responses.serve(script) as server:
        short, failed, refused = (ask(server)[2] for _ in range(3))
    assert (short["status"], short["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert said_by(short) == "so fa"
    assert (failed["status"], failed["error"]) == ("failed", {"code": "server_error", "message": "Oh."})
    assert refused["output"][0]["content"] == [{"type": "refusal", "refusal": "I won't."}]


def test_token_counts() -> None:
    """Usage counts instructions, items and schema as input, text and reasoning as output, unless the script sets or omits it."""
    form = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}
    answer = scripted_model.thought("well") + scripted_model.text("one two")
    script = [answer, answer, answer.using(input=100, cached=60, output=9, reasoning=3), answer.without_usage()]
    with responses.serve(script, tokens=lambda text: len(text.split())) as server:
        usage = ask(server, "a b c")[2]["usage"]
        assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (3, 3, 6)
        assert usage["output_tokens_details"] == {"reasoning_tokens": 1}
        more = ask(server, "a b c", instructions="d e", text={"format": form})[2]["usage"]
        assert more["input_tokens"] == 5 + len(['{"type":', '"object"}'])
        own = ask(server)[2]["usage"]
        assert own["input_tokens_details"]["cached_tokens"] == 60
        assert (own["input_tokens"], own["output_tokens"], own["total_tokens"]) == (100, 9, 109)
        assert ask(server)[2]["usage"] is None
    assert (shapes.four_bytes(""), shapes.four_bytes("abcd"), shapes.four_bytes("abcdé")) == (0, 1, 2)


def test_an_answer_longer_than_allowed_is_a_problem() -> None:
    """A scripted answer above `max_output_tokens` is a problem, as no server would send it."""
    with responses.serve([scripted_model.text("x" * 68), scripted_model.text("x" * 64)]) as server:
        ask(server, max_output_tokens=16)
        assert len(server.problems) == 1
        assert "has 17 tokens, and the request allowed 16" in server.problems[0]
        ask(server, max_output_tokens=16)
        assert len(server.problems) == 1


def test_in_the_background() -> None:
    """A background response is queued, in progress for the set number of polls, then completed; only then it can be followed."""
    with responses.serve([scripted_model.text("done").in_background(polls=2), scripted_model.text("next")]) as server:
        first = ask(server, background=True)[2]
        assert (first["status"], first["output"]) == ("queued", [])
        assert ask(server, previous_response_id=first["id"])[0] == 400
        assert [poll(server, first["id"])[2]["status"] for _ in range(4)] == ["in_progress"] * 2 + ["completed"] * 2
        assert said_by(poll(server, first["id"])[2]) == "done"
        assert ask(server, previous_response_id=first["id"])[0] == 200


def test_the_background_waits_for_a_gate_and_for_time() -> None:
    """The response stays in progress until its gate is set or its seconds have passed; faults answer the first polls."""
    gate, now = threading.Event(), [0.0]
    script = [
        scripted_model.text("one").in_background(polls=0).held(gate),
        scripted_model.text("two").in_background(polls=0, seconds=5.0, faults=[scripted_model.server_error(503)]),
    ]
    with responses.serve(script, strict=True, clock=lambda: now[0]) as server:
        one, two = (ask(server, background=True)[2]["id"] for _ in range(2))
        assert poll(server, one)[2]["status"] == "in_progress"
        gate.set()
        assert poll(server, one)[2]["status"] == "completed"
        assert [poll(server, two)[0] for _ in range(2)] == [503, 200]
        now[0] = 4.9
        assert poll(server, two)[2]["status"] == "in_progress"
        now[0] = 5.0
        assert poll(server, two)[2]["status"] == "completed"


def test_a_cancelled_response_stays_cancelled() -> None:
    """Cancelling stops a background response, leaves a completed one, and is refused for a plain one."""
    with responses.serve([scripted_model.text("x").in_background(polls=0)] * 3) as server:
        running, done = (ask(server, background=True)[2]["id"] for _ in range(2))
        plain = ask(server)[2]["id"]
        poll(server, done)

        def cancel(name: str) -> tuple[int, dict[str, str], Any]:
            return send(server, path=f"/responses/{name}/cancel")

        assert [cancel(running)[2]["status"] for _ in range(2)] == ["cancelled"] * 2
        assert poll(server, running)[2]["status"] == "cancelled"
        assert cancel(done)[2]["status"] == "completed"
        assert (cancel(plain)[0], cancel("resp_none")[0]) == (400, 404)


def test_a_background_stream_can_be_resumed() -> None:
    """A background stream can be read again from after a named event."""
    with responses.serve([scripted_model.text("a longer answer")], strict=True) as server:
        events = stream(server, background=True)
        assert [event["type"] for event in events[:3]] == [
            "response.created",
            "response.queued",
            "response.in_progress",
        ]
        name = events[0]["response"]["id"]
        assert stream(server, f"/responses/{name}?stream=true&starting_after=4", "GET") == events[5:]
        assert poll(server, name)[2]["status"] == "completed"


def test_the_form_of_the_faults() -> None:
    """Rate limits, quota and server errors have the status, code and headers of the API."""
    when = dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    faults = [
        (scripted_model.rate_limited(), 429, "rate_limit_exceeded", {}),
        (scripted_model.rate_limited(2), 429, "rate_limit_exceeded", {"retry-after": "2"}),
        (
            scripted_model.rate_limited(when),
            429,
            "rate_limit_exceeded",
            {"retry-after": "Wed, 02 Jan 2030 03:04:05 GMT"},
        ),
        (scripted_model.rate_limited(milliseconds=1500), 429, "rate_limit_exceeded", {"retry-after-ms": "1500"}),
        (scripted_model.quota(), 429, "insufficient_quota", {}),
        (scripted_model.server_error(), 500, None, {}),
        (scripted_model.server_error(503), 503, None, {}),
        (scripted_model.chain_lost(), 400, "previous_response_not_found", {}),
        (scripted_model.error_event(code="overloaded"), 500, "overloaded", {}),
    ]
    with responses.serve([fault for fault, *_rest in faults], strict=True) as server:
        for _fault, status, code, wanted in faults:
            found, headers, body = ask(server)
            retry = {name: value for name, value in headers.items() if name.startswith("retry-after")}
            assert (found, body["error"]["code"], retry) == (status, code, wanted)


def spans(page: str) -> list[str]:
    """The inline code in the page's section about models."""
    text = page.split("## Models", 1)[1]
    outside = "".join(part for number, part in enumerate(text.split("```")) if number % 2 == 0)
    return re.findall(r"`([^`]+)`", outside)


def test_the_examples_of_the_manual_work() -> None:
    """Each expression on the page evaluates and answers a request, and the page has each function that makes answers."""
    page = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {**vars(scripted_model), "a_datetime": dt.datetime(2030, 1, 1, tzinfo=dt.UTC)}
    names |= {"scripted": scripted_model, "responses": responses}
    scripts = list[Any]()
    for span in spans(page):
        if span.split("(")[0] in vars(scripted_model) and "(" in span:
            scripts.append([eval(span, names)])
        elif span.startswith("scripted.first_of("):
            scripts.append(eval(span, names))
        elif span.startswith("responses.serve(lambda"):
            with eval(span, names) as server:
                assert said_by(ask(server)[2]) == "HELLO"
    functions = {
        name: made for name, made in vars(scripted_model).items() if inspect.isfunction(made) and name[0] != "_"
    }
    kinds = ("Answer", "Failure", "Broken")
    makers = [name for name, made in functions.items() if inspect.signature(made).return_annotation in kinds]
    assert len(makers) > 10
    assert not [name for name in makers if f"`{name}(" not in page]
    # An answer that hangs is not requested.
    for script in scripts:
        if isinstance(script, list) and isinstance(script[0], scripted_model.Broken):
            continue
        with responses.serve(script, strict=True) as server:
            url = urlsplit(server.url)
            connection = http.client.HTTPConnection(f"{url.hostname}", url.port, timeout=30)
            body = b'{"model": "any", "input": "Hello"}'
            connection.request("POST", "/v1/responses", body, {"Authorization": f"Bearer {server.key}"})
            assert connection.getresponse().read()
            connection.close()


def test_rules_choose_what_the_model_says() -> None:
    """The first rule that matches the newest input answers; if none matches, the error says so."""
    late = scripted_model.when("late", scripted_model.text("delay"))
    tool = scripted_model.when(lambda asked: bool(asked.body.get("tools")), scripted_model.call("look", {}))
    with responses.serve(scripted_model.first_of(late, tool, otherwise=scripted_model.text("other"))) as server:
        first = ask(server, "It is late.")[2]
        assert said_by(first) == "delay"
        assert said_by(ask(server, "It is early.", previous_response_id=first["id"])[2]) == "other"
    with responses.serve(scripted_model.first_of(late)) as server:
        assert ask(server, "It is early.")[0] == 500
        assert "no rule fits: 'It is early.'" in server.problems[0]


def test_an_answer_waits_for_its_gate() -> None:
    """An answer is sent only after its gate is set; other requests are answered meanwhile."""
    gate = threading.Event()
    with responses.serve(
        [scripted_model.text("now").held(gate), scripted_model.text("on time")], strict=True
    ) as server:
        got = list[str]()
        waiting = threading.Thread(target=lambda: got.append(said_by(ask(server)[2])))
        waiting.start()
        (waiting_request,) = server.wait(1)
        assert said_by(ask(server)[2]) == "on time"
        assert (waiting_request.status, got) == (None, [])
        gate.set()
        waiting.join()
        assert got == ["now"]


def test_a_client_that_disconnects_is_recorded() -> None:
    """If a client disconnects while its answer waits, the request is marked as gone and incomplete."""
    with responses.serve([scripted_model.text("now").held(threading.Event())], strict=True) as server:
        url = urlsplit(server.url)
        connection = http.client.HTTPConnection(f"{url.hostname}", url.port, timeout=30)
        body = b'{"model": "any", "input": "Hello"}'
        connection.request("POST", "/v1/responses", body, {"Authorization": f"Bearer {server.key}"})
        (waiting,) = server.wait(1)
        assert not waiting.gone.is_set()
        connection.close()
        assert waiting.gone.wait(30)
        assert not waiting.complete


def test_waiting_for_requests_ends() -> None:
    """Waiting for a missing request times out with the number that came."""
    with responses.serve([]) as server, pytest.raises(TimeoutError, match="0 of 1 requests came"):
        server.wait(1, timeout=0.01)


def test_a_reset_drops_the_connection() -> None:
    """A reset connection sends no bytes and raises ConnectionResetError."""
    with responses.serve([scripted_model.reset()], strict=True) as server:
        with pytest.raises(ConnectionResetError) as raised:
            ask(server)
        # http.client has its own subclass for a connection that closes normally.
        assert type(raised.value) is ConnectionResetError
        (dropped,) = server.wait(1)
        assert (dropped.status, dropped.sent, dropped.complete) == (None, b"", False)
