"""The fake Responses server over plain HTTP: its answers, its record, and the protocol that it enforces."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from runtime.testing import responses, scripted_model
from tests.asking import ask, said_by, send

STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
LOOK = {"type": "function", "name": "look", "parameters": STRICT, "strict": True}


def test_the_script_answers_in_order() -> None:
    """Each request gets the next scripted answer, also after a fault, and is recorded with its response."""
    script = [scripted_model.text("one"), scripted_model.server_error(), scripted_model.text({"n": 3})]
    with responses.serve(script, strict=True) as server:
        got = [ask(server, f"request {number}") for number in range(3)]
        assert [status for status, _headers, _body in got] == [200, 500, 200]
        assert said_by(got[0][2]) == "one"
        assert said_by(got[2][2]) == '{"n": 3}'
        assert [each.body["input"] for each in server.requests] == ["request 0", "request 1", "request 2"]
        assert [json.loads(each.sent) for each in server.asked] == [body for _status, _headers, body in got]


def test_the_record_has_each_received_byte() -> None:
    """The raw record of a request is the sent bytes, from its first line to the end of its body."""
    line = b"POST /v1/responses?x=1 HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer "
    body = json.dumps({"model": "any", "input": "grüße"}, ensure_ascii=False).encode()
    with responses.serve([scripted_model.text("yes")]) as server:
        whole = line + server.key.encode() + b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
        url = urlsplit(server.url)
        with socket.create_connection((f"{url.hostname}", url.port or 0), timeout=30) as connection:
            connection.sendall(whole)
            while connection.recv(4096):
                pass
        assert server.requests[0].raw == whole
        assert server.requests[0].complete


def test_answers_are_deterministic() -> None:
    """Two servers with the same script answer the same requests with the same bytes, ids and times included."""

    def recorded() -> list[object]:
        script = [scripted_model.text("one"), scripted_model.thought("so") + scripted_model.call("look", {"name": "x"})]
        with responses.serve(script) as server:
            _status, headers, first = ask(server)
            ask(server, "again", previous_response_id=first["id"], tools=[LOOK])
            return [headers, *(each.sent for each in server.requests)]

    assert recorded() == recorded()


def test_a_script_that_has_ended_says_so() -> None:
    """A request beyond the script gets a 500 that says so, and is listed as a problem."""
    with responses.serve([]) as server:
        status, _headers, body = ask(server)
        assert (status, body["error"]["code"]) == (500, "script")
        assert "no answer left for request 1" in body["error"]["message"]
        assert server.problems == ["the script has no answer left for request 1"]


def test_several_threads_get_an_answer_each() -> None:
    """Each scripted answer is given once, even to concurrent requests."""
    with responses.serve([scripted_model.text(f"{number}") for number in range(20)], strict=True) as server:
        got = list[str]()
        threads = [threading.Thread(target=lambda: got.append(said_by(ask(server)[2]))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got, key=int) == [f"{number}" for number in range(20)]


def test_strict_raises_at_the_end() -> None:
    """With strict, problems of the client are raised when the block ends; without it, they are only listed."""
    missing = "request 1: 400 Missing required parameter: 'model'"
    with pytest.raises(AssertionError, match=missing), responses.serve([], strict=True) as server:
        send(server, {"input": "Hello"})


def test_nothing_is_left_when_it_closes() -> None:
    """Closing ends all threads, also those of hanging and idle connections, and frees the port."""
    before = set(threading.enumerate())
    with responses.serve([scripted_model.hang(), scripted_model.text("yes")]) as server:
        url = urlsplit(server.url)
        idle = http.client.HTTPConnection(f"{url.hostname}", url.port, timeout=30)
        idle.connect()
        hanging = http.client.HTTPConnection(f"{url.hostname}", url.port, timeout=30)
        hanging.request(
            "POST", "/v1/responses", b'{"model": "m", "input": "x"}', {"Authorization": f"Bearer {server.key}"}
        )
        server.wait(1)
    assert set(threading.enumerate()) <= before
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        hanging.getresponse()
    idle.close()
    hanging.close()
    with responses.serve([scripted_model.text("yes")], port=url.port or 0) as server:
        assert ask(server)[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        ({"input": "x"}, 400, "missing_required_parameter", "Missing required parameter: 'model'."),
        ({"model": "any"}, 400, "missing_required_parameter", 'One of "input" or "previous_response_id" must be'),
        ({"model": "other", "input": "x"}, 404, "model_not_found", "The requested model 'other' does not exist."),
        ({"model": "any", "input": "x", "max_output_tokens": 15}, 400, "integer_below_min_value", "Expected a value >= 16, but got 15"),
        ({"model": "any", "input": "x", "max_output_tokens": True}, 400, "invalid_type", "expected an integer, but got a boolean"),
        ({"model": "any", "input": "x", "temprature": 1}, 400, "unknown_parameter", "Unknown parameter: 'temprature'."),
        ({"model": "any", "input": "x", "background": True, "store": False}, 400, "invalid_value", "requires 'store' to be true"),
        ({"model": "any", "input": "x", "previous_response_id": "resp_9"}, 400, "previous_response_not_found", "Previous response with id 'resp_9' not found."),
        ({"model": "any", "input": [{"type": "shout"}]}, 400, "invalid_value", "Invalid value: 'shout'."),
        ({"model": "any", "input": [{"role": "robot", "content": "x"}]}, 400, "invalid_value", "Invalid value: 'robot'."),
        ({"model": "any", "input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}, 400, "invalid_value", "Supported values are: 'output_text', 'refusal'."),
        ({"model": "any", "input": [{"type": "function_call", "name": "x", "arguments": "{}"}]}, 400, "missing_required_parameter", "'input[0].call_id'"),
        ({"model": "any", "input": [{"type": "function_call", "call_id": "c", "name": "x", "arguments": {}}]}, 400, "invalid_type", "'input[0].arguments': expected a string, but got an object"),
        ({"model": "any", "input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "output_text", "text": "x"}]}]}, 400, "invalid_value", "Supported values are: 'input_text', 'input_image', 'input_file'."),
        ({"model": "any", "input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image"}]}]}, 400, "missing_required_parameter", "'input[0].output[0].image_url'"),
        ({"model": "any", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="}]}]}, 400, "invalid_value", "Expected a base64-encoded data URL"),
        ({"model": "any", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://a.test/x.png", "detail": "huge"}]}]}, 400, "invalid_value", "Invalid value: 'huge'."),
        ({"model": "any", "input": "x", "tools": [{"type": "function", "name": "a b"}]}, 400, "invalid_value", "does not match pattern"),
        ({"model": "any", "input": "x", "text": {"format": {"type": "json_object"}}}, 400, None, "must contain the word 'json'"),
        ({"model": "any", "input": "x", "text": {"format": "json"}}, 400, "invalid_type", "'text.format': expected an object"),
        (b"{", 400, None, "could not parse the JSON body"),
        ([], 400, None, "could not parse the JSON body"),
    ],
)  # fmt: skip
def test_a_request_that_the_api_refuses(body: object, status: int, code: str | None, message: str) -> None:
    """A request that the API refuses gets the same status, code and message, without using a scripted answer."""
    with responses.serve([scripted_model.text("still mine")], models=("any",)) as server:
        found, _headers, answer = send(server, body)
        assert (found, answer["error"]["code"]) == (status, code)
        assert message in answer["error"]["message"]
        assert bool(server.problems) == (code != "model_not_found")
        assert said_by(ask(server)[2]) == "still mine"


CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "seen"}
USER = {"role": "user", "content": "Hello"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([USER, CALL], "No tool output found for function call c1."),
        ([USER, CALL, USER], "No tool output found for function call c1."),
        ([USER, OUTPUT], "No tool call found for function call output with call_id c1."),
        ([USER, OUTPUT, CALL], "No tool call found for function call output with call_id c1."),
        ([USER, CALL, CALL, OUTPUT], "Duplicate function call with call_id c1."),
        ([USER, CALL, OUTPUT, OUTPUT], "Duplicate function call output with call_id c1."),
        ([USER, THOUGHT, CALL, OUTPUT], "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
        ([USER, {**THOUGHT, "encrypted_content": "x"}, USER], "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
    ],
)  # fmt: skip
def test_a_thread_that_the_api_refuses(items: list[Any], message: str) -> None:
    """Each call needs one later output, each output one call, and reasoning needs its content and a following item."""
    with responses.serve([]) as server:
        status, _headers, answer = ask(server, items)
        assert status == (404 if "not found. Items" in message else 400)
        assert answer["error"]["message"].startswith(message)
        assert len(server.problems) == 1


def test_a_complete_thread_is_accepted() -> None:
    """A thread with reasoning, calls and outputs in order is answered, and the script sees the items since the last answer."""
    seen = list[scripted_model.AskedFor]()

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        seen.append(asked)
        return scripted_model.text("done")

    thread = [USER, {**THOUGHT, "encrypted_content": "x"}, CALL, OUTPUT, {"role": "user", "content": "Well?"}]
    with responses.serve(model, strict=True) as server:
        assert ask(server, thread, instructions="Be brief.", tools=[LOOK])[0] == 200
    assert (seen[0].instructions, seen[0].newest, seen[0].outputs) == ("Be brief.", "seen\nWell?", {"c1": "seen"})


def schema(**more: object) -> dict[str, Any]:
    """An object with one property of this type."""
    return {"type": "object", "properties": {"x": more}, "required": ["x"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"type": "array", "items": {"type": "string"}}, "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'."),
        (schema(oneOf=[{"type": "string"}]), "In context=('properties', 'x'), 'oneOf' is not permitted."),
        (schema(type="string", default="y"), "In context=('properties', 'x'), 'default' is not permitted."),
        (schema(type="string", format="colour"), "In context=('properties', 'x'), 'colour' is not a valid format."),
        (schema(enum=["a"]), "In context=('properties', 'x'), schema must have a 'type' key."),
        (schema(type="array"), "In context=('properties', 'x'), array schema missing items."),
        (schema(type=["object", "null"], properties={}, required=[]), "'additionalProperties' is required to be supplied and to be false."),
        ({**schema(type="string"), "required": []}, "In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'x'."),
        ({**schema(type="string"), "required": ["x", "y"]}, "Extra required key 'y' supplied."),
        (schema(**{"$ref": "#/$defs/none"}), "reference to component '#/$defs/none' which was not found."),
        (schema(**{"$ref": "#", "description": "y"}), "$ref cannot have keywords {'description'}."),
        ({**schema(type="string"), "anyOf": []}, "not have 'anyOf' at the top level"),
    ],
)  # fmt: skip
def test_a_schema_that_strict_refuses(asked: dict[str, Any], message: str) -> None:
    """A schema invalid in strict mode is refused with its place, for text formats and tools; otherwise it is accepted."""
    form = {"type": "json_schema", "name": "answer", "schema": asked}
    tool = {"type": "function", "name": "look", "parameters": asked}
    with responses.serve([scripted_model.text("{}")] * 2) as server:
        status, _headers, answer = ask(server, text={"format": {**form, "strict": True}})
        assert (status, answer["error"]["code"]) == (400, "invalid_json_schema")
        assert answer["error"]["message"].startswith("Invalid schema for response_format 'answer': ")
        assert message in answer["error"]["message"]
        status, _headers, answer = ask(server, tools=[{**tool, "strict": True}])
        assert (status, answer["error"]["code"]) == (400, "invalid_function_parameters")
        assert message in answer["error"]["message"]
        assert ask(server, text={"format": form})[0] == 200
        assert ask(server, tools=[tool])[0] == 200


def nested(levels: int) -> dict[str, Any]:
    """Nested objects of this depth."""
    return schema(type="string") if levels == 1 else schema(**nested(levels - 1))


def test_a_schema_that_strict_accepts() -> None:
    """References, unions, nullable fields, lists and nested objects are accepted up to the depth limit."""
    good = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]},
            "b": {"type": "array", "items": {"$ref": "#/$defs/leaf"}, "minItems": 1},
            "c": {"type": ["number", "null"], "minimum": 0},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
        "$defs": {"leaf": schema(type="string", pattern="^x", description="a leaf")},
    }
    with responses.serve([scripted_model.text("{}")] * 2) as server:
        for asked, status in ((good, 200), (nested(9), 200), (nested(10), 400)):
            form = {"type": "json_schema", "name": "answer", "schema": asked, "strict": True}
            assert ask(server, text={"format": form})[0] == status


def test_the_key() -> None:
    """A wrong or missing key gets a 401 that does not show it; the header of Azure's clients is accepted too."""
    with responses.serve([]) as server:
        status, _headers, body = send(server, {}, key="sk-wrong-key-of-somebody")
        assert (status, body["error"]["code"]) == (401, "invalid_api_key")
        assert "wrong-key" not in body["error"]["message"]
        assert send(server, path="/models", method="GET")[0] == 200
        url = urlsplit(server.url)
        for headers, wanted in (({}, 401), ({"api-key": server.key}, 200)):
            connection = http.client.HTTPConnection(f"{url.hostname}", url.port, timeout=30)
            connection.request("GET", "/v1/models?api-version=v1", headers=headers)
            assert connection.getresponse().status == wanted
            connection.close()
        assert server.problems == []


def test_an_incomplete_request_uses_no_answer() -> None:
    """Half a request is recorded but neither answered nor a problem, and the next request gets the next answer."""
    with responses.serve([scripted_model.text("Hello.")], strict=True) as server:
        url = urlsplit(server.url)
        with socket.create_connection((str(url.hostname), url.port or 0), timeout=30) as dying:
            dying.sendall(
                b'POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"model": "m",'
            )
            dying.shutdown(socket.SHUT_WR)
            assert dying.recv(1) == b""
        assert [(each.status, each.gone.is_set()) for each in server.asked] == [(None, True)]
        assert said_by(ask(server)[2]) == "Hello."
