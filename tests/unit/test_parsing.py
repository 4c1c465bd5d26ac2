"""Unused inputs and page-independent outputs of a draft."""

from __future__ import annotations

import pytest

from director.editing import unused_values
from runtime.language import reader, workflow

HEAD = """
version: 1
inputs:
  a: {type: string, default: x}
  b: {type: string, default: y}
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://127.0.0.1:1/{{ inputs.a }}"}
  - {id: seen, type: browser_query, query: text, target: {test_id: t}}
  - {id: fixed, type: transform, expr: "{{ 'paid' }}"}
  - {id: again, type: transform, expr: "{{ fixed ~ inputs.a }}"}
  - {id: made, type: transform, expr: "{{ seen ~ fixed }}"}
  - {id: kept, type: context, set: {k: "{{ made }}"}}
  - {id: each, type: iterate, over: "{{ [1, 2] }}", as: it, nodes: [{id: sum, type: transform, expr: "{{ it + 1 }}"}]}
  - {id: many, type: iterate, over: "{{ [made] }}", as: one, nodes: [{id: same, type: transform, expr: "{{ one }}"}]}
"""


def loaded(output: str) -> workflow.Loaded:
    """The workflow with this output."""
    return reader.parse(f"{HEAD}output: {output}\n", "t.yaml")


@pytest.mark.parametrize(
    ("output", "fixed"),
    [
        ("{x: '{{ seen }}', y: '{{ inputs.a }}'}", []),
        ("{x: '{{ seen }}', y: done}", ["y"]),
        ("{x: '{{ inputs.a }}', y: '{{ again }}'}", ["x", "y"]),
        ("'{{ fixed }}'", ["output"]),
        ("{x: '{{ made }}', y: '{{ vars.k }}', z: '{{ many }}'}", []),
        ("{x: '{{ made }}', y: '{{ each }}'}", ["y"]),
        ("{x: '{{ now() }}', y: ['{{ seen }}', 1]}", []),
        ("'{{ run.taken }}'", []),
    ],
)
def test_an_output_that_depends_on_no_page_is_found(output: str, fixed: list[str]) -> None:
    """An output that no page contributes to is found through nodes, variables and loops; one that may depend on the run is not."""
    assert unused_values.constant_outputs(loaded(output)) == fixed


def test_an_input_that_nothing_reads_is_found() -> None:
    """An input counts as read if a node, the output or the list of origins uses it."""
    assert unused_values.unread(loaded("'{{ seen }}'"), ["a", "b"]) == ["b"]
    assert unused_values.unread(loaded("'{{ inputs.b ~ seen }}'"), ["a", "b"]) == []
    assert unused_values.unread(loaded("'{{ inputs }}'"), ["a", "b"]) == []
