"""The error of a false condition over values has the values that it read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.values import Json
from runtime.engine import conditions
from runtime.language.expressions import references
from runtime.secrets.masking import MASK, Masker
from tests.rig import Rig

KNOWN: dict[str, Json] = {
    "price": 9.3,
    "text": "9.3",
    "nothing": None,
    "order": {"total": 7, "lines": [{"sku": "TEA"}]},
    "rows": [{"name": "a\nlong name " * 9}] * 9,
    "inputs": {"most": 9, "api_key": "sk-4711", "door": "knock-knock-knock"},
    "signed": {"password": "hunter2", "name": "Ada"},
}


def read(condition: str) -> list[str]:
    """The values that a condition reads."""
    masker = Masker({"DOOR": "knock-knock-knock", "PIN": "81726354"})
    return [*conditions.values(references.compile(f"{{{{ {condition} }}}}"), KNOWN, masker)]


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("price <= inputs.most", ["price = 9.3", "inputs.most = 9"]),
        ("text == price", ['text = "9.3"', "price = 9.3"]),
        ("price > 1 and price < 9", ["price = 9.3"]),
        ("order.total == order['lines'][0].sku", ["order.total = 7", 'order.lines[0].sku = "TEA"']),
        ("nothing or later == 1", ["nothing = null", "later = no value"]),
        ("1 > 2", []),
    ],
)
def test_each_reference_is_shown_with_its_value(condition: str, values: list[str]) -> None:
    """References are named as written, once each; a text is in quotes, and one without a value says so."""
    assert read(condition) == values


@pytest.mark.parametrize(
    ("condition", "computed"),
    [
        ("rows | length == inputs.most + 1", ["rows | length = 9", "inputs.most + 1 = 10"]),
        ("not (price * 2 < 10 and (text | length) in [1, 2])", ["price * 2 = 18.6", "text | length = 3"]),
        (
            "order.lines | map(attribute='sku') | list != ['TEA']",
            ["order.lines | map(attribute='sku') | list = [\"TEA\"]"],
        ),
        ("price > 1 and 'a' in text", []),
        ("(price + 1) * (price - 1) < 1 < 2", ["(price + 1) * (price - 1) = 85.49000000000001"]),
        ("nothing is not none and text is defined", ["nothing is not none = false", "text is defined = true"]),
        ("1 == (2 if price > 1 else 3)", ["2 if price > 1 else 3 = 2"]),
        ("later | length > 2 or price | upper == 1", ['price | upper = "9.3"']),
        ("rows | length", []),
        ("price ~ now() == 'x'", []),
        ("inputs.door | length == 3 or inputs.api_key[:2] == 'x' or signed | length == 5", []),
    ],
)
def test_each_computed_side_is_shown(condition: str, computed: list[str]) -> None:
    """What a comparison, `and`, `or` or `not` joins is shown with its value if it is computed; never from a time or a masked value."""
    shown = read(condition)
    names = [f"{name} = " for name, _ in references.compile(f"{{{{ {condition} }}}}").values_read(KNOWN)]
    assert [each for each in shown if not each.startswith(tuple(names))] == computed
    assert shown[: len(computed)] == computed


def test_a_long_value_is_cut_to_one_line() -> None:
    """A list is shown on one line of at most 200 columns."""
    (shown,) = read("rows == 3")
    assert shown.startswith("rows = [{")
    assert shown.endswith("…")
    assert len(shown) <= conditions.LONGEST
    assert "\n" not in shown


def test_no_secret_is_shown() -> None:
    """Secrets are masked before a value is cut; values with hidden names are hidden, also within a map."""
    assert read("inputs.door == 'x' and inputs.api_key == 'y'") == [
        f'inputs.door = "{MASK}"',
        f'inputs.api_key = "{MASK}"',
    ]
    assert read("signed == 1") == [f'signed = {{"password": "{MASK}", "name": "Ada"}}']
    long = {"long": "x" * (conditions.LONGEST - 15) + "knock-knock-knock"}
    (shown,) = conditions.values(references.compile("{{ long }}"), long, Masker({"DOOR": "knock-knock-knock"}))
    assert "knock" not in shown


@pytest.mark.parametrize(
    "node",
    [
        "{id: it, type: transform, expr: 1, verify: [{expr: '{{ true }}'}, {expr: '{{ price <= inputs.most }}'}]}",
        "{id: it, type: browser_query, query: assert, rules: [{expr: '{{ price <= inputs.most }}'}]}",
        "{id: it, type: browser_action, action: wait, timeout: 1, verify: [{expr: '{{ price <= inputs.most }}'}]}",
    ],
)
async def test_a_false_condition_fails_with_its_values(tmp_path: Path, node: str) -> None:
    """In `verify`, `assert` and `wait` the message has the condition as written, and the evidence its values alone."""
    flow = f"version: 1\nname: t\ninputs: {{most: {{type: number, default: 9}}}}\nnodes:\n  - {{id: price, type: transform, expr: 9.3}}\n  - {node}\n"
    ended = await Rig(tmp_path, flow, inputs={"most": 9}).start()
    assert ended.error is not None
    said: dict[str, Any] = ended.error
    assert said["message"] == "the condition `{{ price <= inputs.most }}` is false"
    assert said["evidence"] == {"values": ["price = 9.3", "inputs.most = 9"]}, json.dumps(said)
