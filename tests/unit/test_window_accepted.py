"""The openai client's own types accept the requests that windows become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pydantic
import pytest
from hypothesis import HealthCheck, assume, given, settings
from openai.types import responses
from openai.types.responses import response_input_param

from nodes.errors import ModelError
from runtime.context import window
from runtime.models.client import client as model_client
from runtime.models.client import profiles
from tests import breadth
from tests import window_draws as draws
from tests.windows import request

KINDS: dict[str, pydantic.TypeAdapter[Any]] = {
    "message": pydantic.TypeAdapter(responses.EasyInputMessageParam),
    "reasoning": pydantic.TypeAdapter(responses.ResponseReasoningItemParam),
    "function_call": pydantic.TypeAdapter(responses.ResponseFunctionToolCallParam),
    "function_call_output": pydantic.TypeAdapter(response_input_param.FunctionCallOutput),
}
"""The client's type of each kind of item; their union would accept nearly anything, because some have no required field."""

TOOL = pydantic.TypeAdapter(responses.FunctionToolParam)


def read(item: dict[str, Any]) -> dict[str, Any]:
    """The item as validated by the client's types, without unknown fields."""
    read = KINDS[item.get("type", "message")].validate_python(item, strict=True)
    # Pydantic reads an iterable only when it is asked for.
    return {name: [*value] if isinstance(value, Iterator) else value for name, value in read.items()}


@settings(
    max_examples=breadth.of(12, 25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(draws.cases())
def test_the_types_of_the_client_accept_every_request(case: draws.Case) -> None:
    """Each input item, the state after them, and each tool pass the client's types unchanged."""
    talk, around, limits = case
    try:
        built = window.build(talk.items, around, limits)
    except ModelError:
        assume(False)
        return
    client = model_client.Client("http://127.0.0.1:9/v1", "none", profiles.PROFILES["openai"])
    body = client._body(request(built), model_client.ClientOptions())
    assert [read(each) for each in body["input"]] == body["input"]
    assert [TOOL.validate_python(each, strict=True) for each in body.get("tools", ())] == body.get("tools", [])
    assert len(body["input"]) == len(built.items) + bool(built.state)


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "function_call_output", "call_id": "a", "output": 7},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": None},
        {"role": "robot", "content": "x"},
    ],
)
def test_the_types_of_the_client_refuse_invalid_items(wrong: dict[str, Any]) -> None:
    """An output that is no text, a call without arguments, and an unknown role are refused."""
    with pytest.raises(pydantic.ValidationError):
        read(wrong)
