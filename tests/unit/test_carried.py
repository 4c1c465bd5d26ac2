"""Values of an earlier turn of a loop: the error that refuses one says how to carry it."""

from __future__ import annotations

import re

import pytest

from runtime.language import reader
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid

LOOP = """\
version: 1
inputs: {{flag: {{type: boolean, default: true}}}}
nodes:
  - id: each
    type: iterate
    over: [1, 2, 3]
    as: item
    nodes:
{}
"""


def read(*nodes: str) -> list[Diagnostic]:
    """The mistakes in a loop with these nodes."""
    try:
        reader.parse(LOOP.format("\n".join(f"      - {each}" for each in nodes)), "flow.yaml")
    except WorkflowInvalid as error:
        return list(error.diagnostics)
    return []


LATER = '{id: later, type: transform, expr: "{{ item }}"}'
MAYBE = '{id: maybe, type: transform, expr: "{{ item }}", when: "{{ inputs.flag }}"}'


@pytest.mark.parametrize(
    ("nodes", "wrong", "code"),
    [
        (['{id: sum, type: transform, expr: "{{ later + item }}"}', LATER], "later", "later-reference"),
        ([MAYBE, '{id: sum, type: transform, expr: "{{ maybe + item }}"}'], "maybe", "unguarded-reference"),
        (['{id: sum, type: transform, expr: "{{ sum + item }}"}'], "sum", "later-reference"),
    ],
)
def test_a_value_of_an_earlier_turn(nodes: list[str], wrong: str, code: str) -> None:
    """The error gives the node that keeps the value and the way to read it, and with both the file is valid."""
    [found] = read(*nodes)
    assert found.code == code
    keeps, reads = re.findall(r"`([^`]*)`", found.help[-1])
    repaired = [each.replace(f"{{{{ {wrong} ", f"{{{{ {reads.replace('…', '0')} ") for each in nodes]
    assert repaired != nodes
    assert read(*repaired, keeps) == []


def test_the_values_of_all_turns_so_far() -> None:
    """A loop that reads its own value is told how to collect over the turns, and that is valid."""
    [found] = read('{id: sum, type: transform, expr: "{{ each | length }}"}', LATER)
    assert found.code == "later-reference"
    [keeps] = re.findall(r"`([^`]*)`", found.help[-1])
    repaired = '{id: sum, type: transform, expr: "{{ vars.each_so_far | default([]) | length }}"}'
    assert read(repaired, LATER, keeps.replace("VALUE", "later")) == []


def test_a_variable_that_the_first_turn_lacks() -> None:
    """The error gives the node that sets it before the loop."""
    [found] = read('{id: sum, type: transform, expr: "{{ vars.total }}"}', "{id: keep, type: context, set: {total: 1}}")
    assert "set it before the loop: `{id: first_total, type: context, set: {total: …}}`" in found.help[-1]


def test_outside_a_loop_nothing_is_carried() -> None:
    """Without a loop around both places, the error says nothing of turns."""
    text = 'version: 1\nnodes:\n  - {id: a, type: transform, expr: "{{ b }}"}\n  - {id: b, type: transform, expr: 1}\n'
    with pytest.raises(WorkflowInvalid) as raised:
        reader.parse(text, "flow.yaml")
    [found] = raised.value.diagnostics
    assert (found.code, found.help) == ("later-reference", ())
