"""The work of reading an answer grows in proportion to the answer, whatever a model writes."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.schema.output import Mismatch, Output


def operation(name: str) -> dict[str, Any]:
    """The schema of an operation on a further expression."""
    return {
        "type": "object",
        "properties": {"op": {"const": name}, "of": {"$ref": "#/$defs/E"}},
        "required": ["op", "of"],
        "additionalProperties": False,
    }


EXPRESSION: Any = {
    "json_schema": {
        "$ref": "#/$defs/E",
        "$defs": {"E": {"anyOf": [operation("add"), operation("mul"), {"type": "integer"}]}},
    }
}


def expression(depth: int, last: str) -> str:
    """An answer of so many nested operations."""
    return '{"value":' + '{"op":"mul","of":' * depth + last + "}" * depth + "}"


def work(output: Output, text: str) -> int:
    """The number of function calls that reading an answer takes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        with contextlib.suppress(Mismatch):
            output.read(text)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("last", ["1.0", '"x"', '{"op":"mul"}'])
def test_reading_takes_a_time_that_grows_with_the_depth(last: str) -> None:
    """With several forms at each level, an answer twice as deep takes about twice the work, whether it fits or not."""
    output = Output.of(EXPRESSION)
    work(output, expression(1, last))
    assert work(output, expression(10, last)) < 3 * work(output, expression(5, last))
    assert work(output, expression(60, last)) < 20 * work(output, expression(5, last))


def test_a_deep_answer_is_read_and_reported_correctly() -> None:
    """The nearest of several possible forms is chosen, and its problems are reported at their place."""
    value = Output.of(EXPRESSION).read(expression(60, "1.0"))
    assert json.dumps(value, separators=(",", ":")) == expression(60, "1")[len('{"value":') : -1]
    with pytest.raises(Mismatch) as caught:
        Output.of(EXPRESSION).read(expression(3, '{"op": "mul", "off": 1}'))
    assert all(each.startswith("$.value.of.of.of") for each in caught.value.problems), caught.value.problems


SAME = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from([0.0, 1.0, "", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(SAME, max_size=5))
def test_items_are_the_same_as_they_are_to_the_library(items: list[Any]) -> None:
    """Uniqueness by content gives the same result as the library's comparison item by item."""
    schema = {"type": "array", "uniqueItems": True}
    fits = jsonschema.Draft202012Validator(schema).is_valid(items)
    try:
        Output.of({"json_schema": schema}).read(json.dumps({"value": items}))
    except Mismatch:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize("many", [{"a": 1}, [1], "x"], ids=["maps", "lists", "texts"])
def test_a_long_list_of_different_items_is_little_work(many: Any) -> None:
    """Twice as many unique items take about twice the work."""
    output = Output.of({"json_schema": {"type": "array", "uniqueItems": True}})

    def items(count: int) -> str:
        made = [{"a": i} if isinstance(many, dict) else [i] if isinstance(many, list) else str(i) for i in range(count)]
        return json.dumps({"value": made})

    work(output, items(1))
    assert work(output, items(400)) < 3 * work(output, items(200))


@pytest.mark.parametrize("blank", [" ", "\n", "` "])
def test_an_unclosed_fence_is_reported_at_once(blank: str) -> None:
    """A megabyte after an unclosed fence is scanned once."""
    with pytest.raises(Mismatch, match="no JSON"):
        Output.of("string").read("```json\n" + blank * 1_000_000 + "x")
