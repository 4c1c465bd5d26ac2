"""Words that people write by habit from other tools: each is told in the words of the language."""

from __future__ import annotations

import pytest

from director.scouting import given
from nodes import registry, rules
from nodes.base import Retry
from nodes.errors import ModelError
from nodes.targets import Target
from runtime.language import reader, words
from runtime.language.diagnostics import WorkflowInvalid
from runtime.secrets.masking import Masker

CLICK = "{id: a, type: browser_action, action: click, target: {css: b}, verify: [%s]}"


def fixes(node: str) -> list[str]:
    """What the first mistake of a file with this node says to do."""
    with pytest.raises(WorkflowInvalid) as caught:
        reader.parse(f"version: 1\nnodes:\n  - {node}\n", "x.yaml")
    first = caught.value.diagnostics[0]
    return [*first.help, first.message]


@pytest.mark.parametrize(
    ("node", "fix"),
    [
        (CLICK % "{exists: {css: a}}", "write `visible: …`"),
        (CLICK % "{not_visible: {css: a}}", "write `hidden: …`"),
        (CLICK % "{value: {target: {css: a}, equals: x}}", "the `target` of `value` stands beside it: {value: \"8\", target: {label: Copies}}"),
        (CLICK % "{value: x}", "`value` needs a `target` beside it: {value: \"8\", target: {label: Copies}}"),
        (CLICK % "{contains: paid}", "write `text: …`"),
        (CLICK % "{text: paid, target: {selector: a}}", "write `css: …`"),
        ("{id: a, type: browser_action, action: navigate, url: x}", "write `type: browser_action` and `action: goto`"),
        ("{id: a, type: navigate, url: x}", "write `type: browser_action` and `action: goto`"),
        ("{id: a, type: browser_action, action: right_click, target: {css: a}}", "write `action: click` with `button: right`"),
        ("{id: a, type: browser_action, action: wait, seconds: 3}", "write `verify: …`"),
        ("{id: a, type: browser_action, action: fill, selector: a, value: b}", "write `target: …`"),
        ("{id: a, type: browser_action, action: type, target: {css: a}, text: b}", "write `value: …`"),
        ("{id: a, type: browser_query, query: is_visible, target: {css: a}}", "write `type: browser_query` and `query: exists`"),
        ("{id: a, type: foreach, over: [1], as: x, nodes: []}", "write `type: iterate`"),
        ("{id: a, type: transform, expr: '{{ len([1]) }}'}", "use `x | length`"),
    ],
)  # fmt: skip
def test_a_word_of_another_tool_is_told_in_ours(node: str, fix: str) -> None:
    """The first fix for a field, action, query, type or function of other tools says what is written here."""
    assert fixes(node)[0] == fix


def test_every_word_leads_to_one_that_exists() -> None:
    """No word of the tables is one of the language at its place, and each that stands for one names one that exists."""
    variants = {each for kind in registry.node_types().values() for each in kind.variants} | set(registry.node_types())
    assert {each for each in words.CHOICES.values() if " " not in each} <= variants
    fields = {each for kind in registry.node_types().values() for model in kind.models for each in model.model_fields}
    assert set(words.OF_NODES.values()) <= fields
    for part in (rules.Rule, Target, Retry):
        assert not set(words.OF[part]) & set(part.model_fields)
        assert {each for each in words.OF[part].values() if " " not in each} <= set(part.model_fields)


@pytest.mark.parametrize(("text", "fix"), [("{selector: a}", "selector write `css: …`"), ("{css: a, index: 1}", "index write `nth: …`")])  # fmt: skip
def test_a_target_of_a_tool_has_the_same_words(text: str, fix: str) -> None:
    """A target that a model gives to a tool is told as one in a file."""
    with pytest.raises(ModelError) as caught:
        given.target(text, Masker({}))
    assert caught.value.message == fix
