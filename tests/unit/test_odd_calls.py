"""Tool calls of a server that calls itself compatible, streamed or not, over real HTTP through the real client: each is a call or Failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.values import Json
from runtime.messages.messages import Answer, Tool, ToolCall, Usage
from runtime.models.client.errors import Failed
from runtime.models.turns import call_checks
from runtime.testing import responses, scripted_model
from tests import models
from tests.rig import Rig
from tests.unit.test_cognition import ASK, GOOD, REFUND
from tests.unit.test_odd_servers import FORM, answering, asked, body, ended, message, stream

LOOK: dict[str, Json] = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "{}"}
GONE = object()


def calling(**changed: Any) -> list[Json]:
    """The output of a response with one call with these changes; a ``GONE`` field is left out."""
    return [{name: value for name, value in {**LOOK, **changed}.items() if value is not GONE}]


async def answered(streamed: bool, output: list[Json], kind: str = "completed", **changed: Json) -> Answer:
    """The client's answer to a response with this output. Raises Failed."""
    if not streamed:
        async with answering(body(output=output, **changed)) as url:
            return await asked(url)
    async with answering(stream(ended(kind, output=output, **changed)), kind="text/event-stream") as url:
        return await asked(url, "vllm")


UNFIT: dict[str, list[Json]] = {
    "no id": calling(call_id=GONE),
    "the id is null": calling(call_id=None),
    "the id is empty": calling(call_id=""),
    "the id is a number": calling(call_id=7),
    "the name is a list": calling(name=["look"]),
    "the second has no id": [*calling(), *calling(call_id=None)],
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", UNFIT)
async def test_a_call_that_cannot_be_answered_fails_without_a_retry(name: str, streamed: bool) -> None:
    """A call without an id, or with a name that is no text, fails with its tokens counted, because no output could refer to it."""
    with pytest.raises(Failed) as caught:
        await answered(streamed, UNFIT[name])
    assert (caught.value.error.code, caught.value.again) == ("model-failed", False)
    assert FORM in caught.value.error.message
    assert caught.value.usage == Usage(5, 0, 3, 0)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["", None, GONE], ids=["empty", "null", "left out"])
async def test_a_call_without_a_name_is_one_of_an_unknown_tool(name: object, streamed: bool) -> None:
    """A call without a name is an unknown tool, which the model can fix, because its id identifies the call."""
    found = await answered(streamed, calling(name=name, arguments=""))
    assert found.calls == (ToolCall("a", "unnamed", ""),)
    refused = call_checks.of(found.calls[0], [Tool("look", "Looks.", {"type": "object"})], holds_secret=False)
    assert refused is not None
    assert refused.code == "tool-unknown"
    assert "look" in (refused.fix or "")


ARGUMENTS: dict[str, tuple[Any, str]] = {
    "an object": ({"ref": "e1", "text": "é"}, '{"ref": "e1", "text": "é"}'),
    "left out": (GONE, "{}"),
    "null": (None, "{}"),
    "a list": ([1], "[1]"),
    "a number": (5, "5"),
    "empty": ("", ""),
    "no JSON": ("{no", "{no"),
    "half a character": ('{"ref": "\ud800"}', '{"ref": "\ud800"}'),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ARGUMENTS)
async def test_arguments_are_text_however_they_come(name: str, streamed: bool) -> None:
    """Arguments that are no text become their JSON, and missing ones an empty object; the turn checks them later."""
    sent, text = ARGUMENTS[name]
    found = await answered(streamed, calling(arguments=sent))
    assert found.calls == (ToolCall("a", "look", text),)
    assert found.text == ""


@pytest.mark.parametrize("streamed", [False, True])
async def test_text_and_calls_come_together(streamed: bool) -> None:
    """An answer has its text and every call in order; a name that the API would refuse is changed into one that it accepts."""
    output = [*message({"type": "output_text", "text": "I look."}), *calling(), *calling(call_id="b", name="look at/é")]
    found = await answered(streamed, output)
    assert found.text == "I look."
    assert [(each.id, each.name) for each in found.calls] == [("a", "look"), ("b", "look_at__")]


@pytest.mark.parametrize("streamed", [False, True])
async def test_calls_of_an_answer_that_is_cut_short_are_not_done(streamed: bool) -> None:
    """An answer cut short fails without any call, because its last call may be incomplete."""
    details: dict[str, Json] = {"reason": "max_output_tokens"}
    with pytest.raises(Failed) as caught:
        await answered(streamed, calling(), "incomplete", status="incomplete", incomplete_details=details)
    assert (caught.value.error.code, caught.value.again) == ("model-cut-short", False)


@pytest.mark.parametrize("streamed", [False, True])
async def test_calls_of_a_response_that_failed_are_not_done(streamed: bool) -> None:
    """A response that failed fails without any call."""
    error: dict[str, Json] = {"code": "server_error", "message": "no"}
    with pytest.raises(Failed) as caught:
        await answered(streamed, calling(), "failed", status="failed", error=error)
    assert caught.value.error.code == "model-failed"


@pytest.mark.parametrize(
    "settings", [{}, {"model_store": True}, {"model_background": True}, {"model_profile": "compatible"}]
)
async def test_a_call_without_offered_tools_is_an_answer_that_does_not_fit(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model sees that its answer does not fit, but no call output, and fixes it, even if the server stores the conversation. Nothing is executed."""
    with responses.serve(
        [scripted_model.call("look", {}).in_background(polls=0), GOOD.in_background(polls=0)], strict=True
    ) as server:
        rig = Rig(tmp_path, ASK, settings=models.asked_at(server, monkeypatch, **settings))
        over = await rig.start()
        assert (over.status, over.output) == ("passed", REFUND), over.error
        assert len(server.asked) == 2
        assert "does not fit" in server.asked[1].body["input"][-1]["content"]
    assert [each for each in rig.history.all_attempts() if each.call.asked is not None] == []
