"""Values hidden from models by their names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodes.values import Json
from runtime.secrets import hidden_names

NAMES = hidden_names.DEFAULT


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("password", True),
        ("userPassword", True),
        ("SHOP_PASSWORD", True),
        ("inputs.password", True),
        ("X-API-Key", True),
        ("apiKey2", True),
        ("Set-Cookie", True),
        ("Authorization", True),
        ("max_output_tokens", False),
        ("secretary", False),
        ("passport", False),
        ("", False),
    ],
)
def test_a_name_says_so_with_whole_words(name: str, hidden: bool) -> None:
    """Words are told apart by case, digits and signs; a part of a word says nothing."""
    assert NAMES.named(name) is hidden


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"email": "a@b", "password": "hunter2"}, {"email": "a@b", "password": "[hidden]"}),
        ([{"token": 12}, {"token": ""}], [{"token": "[hidden]"}, {"token": ""}]),
        ({"has_password": True, "secret": None}, {"has_password": True, "secret": None}),
        ({"cookies": [{"name": "sid", "value": "x"}]}, {"cookies": "[hidden]"}),
        ('{"api_key": "sk-1", "n": 1}', '{"api_key": "[hidden]", "n": 1}'),
        ({"password": "{{ secrets.P }}"}, {"password": "{{ secrets.P }}"}),
        ('{"password": "{{ secrets.P }}", "token": {"a": 1}}', '{"password": "{{ secrets.P }}", "token": "[hidden]"}'),
        ("Bearer of news", "Bearer of news"),
    ],
)
def test_values_are_hidden_within_maps_lists_and_json_texts(value: Json, told: Json) -> None:
    """What reveals nothing stays: true, false, null, empty values."""
    assert NAMES.json(value) == told


def test_a_value_is_hidden_by_its_own_name() -> None:
    """Whatever kind of value it is."""
    assert NAMES.json("sk-1", "api_key") == NAMES.json(["a"], "api_key") == NAMES.json(7, "vars.api_key") == "[hidden]"


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_json_in_a_text_is_hidden_at_any_depth_of_escapes(depth: int) -> None:
    """Strings with quotes in them, numbers, lists and maps; what stands around them stays."""
    inner: Any = {"password": 'hunter"2', "n": 1, "token": [1, {"x": "hunter2]"}], "secret": -2.5}
    text = json.dumps(inner)
    for _ in range(depth):
        text = json.dumps({"text": text, "last": 1})
    told: Any = NAMES.text(f"Before: {text} after")
    assert "hunter" not in told
    assert told.endswith(" after")
    told = json.loads(told.removeprefix("Before: ").removesuffix(" after"))
    for _ in range(depth):
        assert told["last"] == 1
        told = json.loads(told["text"])
    assert told == {"password": "[hidden]", "n": 1, "token": "[hidden]", "secret": "[hidden]"}


@pytest.mark.parametrize("end", range(1, 40))
def test_a_text_that_was_cut_shows_no_part_of_a_value(end: int) -> None:
    """Wherever it was cut, the next line stays."""
    text = '{"password": "hunter2", "n": [1]}'[:end]
    told = NAMES.text(f"creds = {text}…\nother = 1")
    assert "hun" not in told
    assert told.endswith("\nother = 1")


def test_names_can_be_set() -> None:
    """Others than the default ones, or none."""
    assert hidden_names.HiddenNames(("pin code",)).json({"pinCode": 1234, "password": "x"}) == {
        "pinCode": "[hidden]",
        "password": "x",
    }
    assert hidden_names.HiddenNames(()).json({"password": "x"}) == {"password": "x"}


def test_the_texts_that_are_hidden_are_known() -> None:
    """So that they can be looked for elsewhere."""
    value = {"creds": {"password": "hunter2", "n": 1}, "text": '{"token": 12345}', "list": [{"secret": ["a", None]}]}
    assert [*NAMES.within(value)] == ["hunter2", "12345", "a"]
