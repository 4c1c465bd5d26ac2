"""Questions to a person before a proof performs an action on the site, and the effect of a no."""

from __future__ import annotations

import pytest

from director.effects import grants
from director.repair import effects
from runtime.language import reader
from tests import build_contexts

pytestmark = pytest.mark.anyio

FILE = reader.parse(
    """
version: 1
name: Pays
inputs: {base: {type: string, default: "http://127.0.0.1:1"}, number: {type: string, default: "1002"}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/orders/{{ inputs.number }}"}
  - {id: amount, type: browser_action, action: fill, target: {label: Amount}, value: "5"}
  - id: pay
    type: browser_action
    action: click
    target: {role: button, name: Pay, within: {role: region, name: "\\nOrder {{ inputs.number }}"}}
  - {id: keep, type: browser_action, action: click, target: {role: button, name: Keep}}
""",
    "pays.yaml",
)
INPUTS = {"base": "http://127.0.0.1:1", "number": "1002"}
WANTED = effects.after(FILE, "pay")


async def test_a_question_shows_target_inputs_and_page() -> None:
    """The question fills in references, folds blanks, and shows the page, the fields filled before and the relevant inputs."""
    who = build_contexts.Answering("yes", "yes")
    one = effects.Effects("ask", who)
    holds = await one.demand(FILE, WANTED, inputs=INPUTS, at="pay", page="http://127.0.0.1:1/orders/1002?tab=2")
    first, second = who.asked
    assert 'what   click button "Pay" in region "Order 1002"' in first
    assert "with   number = 1002" in first
    assert 'after  fill field "Amount" "5"' in first
    assert "page   http://127.0.0.1:1/orders/1002?tab=2" in first
    assert "  page   http://127.0.0.1:1/orders/1002" in second.splitlines()
    assert [holds(leaf, path) for leaf, path in WANTED] == [False, False]
    assert not one.refused


@pytest.mark.parametrize("answer", [grants.NO, grants.HOLD_ALL])
async def test_a_refused_action_is_withheld_and_asked_for_once(answer: str) -> None:
    """A no withholds that action for every later request; "hold all" withholds every action."""
    who = build_contexts.Answering(answer, "yes")
    one = effects.Effects("ask", who)
    for _again in range(2):
        holds = await one.demand(FILE, WANTED, inputs=INPUTS)
        assert [holds(leaf, path) for leaf, path in WANTED] == [True, answer == grants.HOLD_ALL]
    assert (len(who.asked), one.refused) == (1 if answer == grants.HOLD_ALL else 2, True)
