"""The reference of the file language: the models' docstrings are enough to write a file."""

from __future__ import annotations

import re

import pytest

from nodes import registry
from nodes.errors import UsageError
from runtime.language import reference

ENTRIES = list(
    {
        entry.name: entry
        for name in [*reference.PARTS, *(kind.name for kind in registry.BUILT_IN)]
        for top in [reference.entry(name)]
        for one in [top, *top.kinds]
        for entry in [one, *one.parts]
    }.values()
)
"""All entries, each once, because several kinds of step share parts."""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_everything_is_described_in_sentences(entry: reference.Entry) -> None:
    """Each node, kind and part begins with a sentence, and so does each of its fields except `type`."""
    assert re.match(r"[A-Z].*[.:]", reference.sentence(entry.text))
    mute = [each.name for each in entry.fields if not re.fullmatch(r"[A-Z`].*[.…]", each.text) and each.name != "type"]
    assert mute == []


@pytest.mark.parametrize(
    "kind", [kind for kind in registry.BUILT_IN if not kind.base.container], ids=lambda kind: kind.name
)
def test_every_step_describes_its_value(kind: registry.NodeType) -> None:
    """Each kind of step has the form of its value and its effect class."""
    entry = reference.entry(kind.name)
    assert [each.name for each in entry.kinds if each.value is None] == []
    assert all(each.effect in ("read", "idempotent", "effect") for each in entry.kinds or [entry])


def test_a_kind_is_found_by_its_own_name_and_after_its_type() -> None:
    """`click`, `browser_action.click` and `browser_action click` are the same entry; a near miss is suggested."""
    assert (
        reference.entry("click")
        == reference.entry("browser_action.click")
        == reference.entry("browser_action", "click")
    )
    with pytest.raises(UsageError) as raised:
        reference.entry("browser_action", "clik")
    assert raised.value.fix == "did you mean `browser_action.click`?"


def test_shared_fields_are_listed_once() -> None:
    """No kind of node repeats a field of the step or container around it."""
    for entry in ENTRIES:
        if entry.around:
            shared = {each.name for each in reference.entry(entry.around).fields}
            assert not shared & {each.name for each in entry.fields}
