"""One mistake gives one error with its fix: what follows from a guess is not reported."""

from __future__ import annotations

import pytest

from runtime.language import reader
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid

HEAD = 'version: 1\nallowed_origins: ["http://a.test"]\n'
CLICK = "type: browser_action, action: click, target: {css: a}"
FILL = "type: browser_action, action: fill"
INNER = '[{id: b, type: transform, expr: "{{ x }}"}]'
PLAIN = "[{id: b, type: transform, expr: 1}]"


def mistakes(text: str) -> list[Diagnostic]:
    """The errors of a file."""
    try:
        reader.parse(text, "flow.yaml")
    except WorkflowInvalid as error:
        return list(error.diagnostics)
    return []


SLIPS = [
    # A misspelt type or action.
    ("type: action, action: click, target: {css: a}", "no type `action`", "`browser_action`"),
    ("type: browser_actions, action: click, target: {css: a}", "no type", "`browser_action`"),
    ("type: click, target: {css: a}", "not a node type", "`type: browser_action` and `action: click`"),
    ("action: click, target: {css: a}", "needs `type`", "`type: browser_action` and `action: click`"),
    ("type: wait, seconds: 5", "not a node type", "`action: wait`"),
    ("type: foreach, over: [1], as: x, nodes: " + INNER, "not a node type", "iterate"),
    ("type: browser_action, action: fil, target: {css: a}", "no action `fil`", "`fill`"),
    ("type: browser_action, action: tap_on, target: {css: a}, speed: 5", "no action `tap_on`", "`tap`"),
    ("type: browser_action, action: text, target: {css: a}", "not a `browser_action` action", "`query: text`"),
    ("type: browser_query, query: click, target: {css: a}", "not a `browser_query` query", "`action: click`"),
    ("type: browser_action, query: text, target: {css: a}", "needs `action`", "`query: text`"),
    ("type: browser_query, action: text, target: {css: a}", "needs `query`", "`query: text`"),
    ("type: browser_action, do: click, target: {css: a}", "needs `action`", "`action: click`"),
    ("type: browser_action, acton: click, target: {css: a}", "`acton`", "`action`"),
    # A misspelt field, whatever its value.
    (f"{FILL}, target: {{css: a}}, vlaue: x", "`vlaue`", "`value`"),
    (f"{FILL}, target: {{css: a}}, values: [x]", "`values`", "`value`"),
    (f"{FILL}, target: {{css: a}}, valu: {{x: 1}}", "`valu`", "`value`"),
    (f"{FILL}, traget: a, value: a", "`traget`", "`target`"),
    (f"{CLICK}, timeuot: ten", "`timeuot`", "`timeout`"),
    (f"{CLICK}, buton: middel", "`buton`", "`button`"),
    (f"{CLICK}, modifers: [Shft, 5]", "`modifers`", "`modifiers`"),
    ("type: iterate, ovr: 5, as: x, nodes: " + INNER, "`ovr`", "`over`"),
    ("type: iterate, over: [1], as: x, node: {}", "`node`", "`nodes`"),
    ('type: transform, expression: "{{ 1 }}"', "`expression`", "`expr`"),
    ("type: cognition, instruction: x, outpt: 5", "`outpt`", "`output`"),
    # Another word for a field that must be there.
    (f"{FILL}, target: {{css: a}}, text: x", "`text`", "write `value: …`"),
    (f"{FILL}, selector: a, value: a", "`selector`", "write `target: …`"),
    ("type: browser_action, action: goto, href: http://a.test", "`href`", "write `url: …`"),
    ("type: browser_action, action: select, target: {css: a}, option: x", "`option`", "needs `value`"),
    ("type: browser_action, action: dialog, accept: yes", "`accept`", "needs `answer`"),
    ("type: browser_query, query: extract, rows: {css: a}, fields: {a: b}", "`rows`", "needs `target`"),
    ("type: iterate, over: [1], as: x, steps: " + INNER, "`steps`", "write `nodes: …`"),
    ("type: iterate, each: [1], as: x, nodes: " + INNER, "`each`", "needs `over`"),
    ("type: iterate, over: [1], item: x, nodes: " + INNER, "`item`", "needs `as`"),
    ("type: route, branches: [{name: x, if: true, nodes: " + PLAIN + "}]", "`if`", "needs `when`"),
    ("type: handle, nodes: " + PLAIN + ", catch: [{id: c, type: transform, expr: 1}]", "`nodes`", "needs `try`"),
    ("type: cognition, prompt: x", "`prompt`", "needs `instruction` and `output`"),
    # Several that are lacking.
    ("type: cognition", "needs `instruction` and `output`", ""),
    # A wrong type or value.
    (f"{FILL}, target: a, value: a", "must be a map", "`{css: …}`"),
    (f"{FILL}, target: {{css: a}}, value: [5]", "must be text", ""),
    ("type: browser_action, action: press, key: [1]", "item 1 of `key` must be text", '"1"'),
    (f"{CLICK}, modifiers: Shift", "must be a list", "`[Shift]`"),
    (f"{CLICK}, retry: often", "must be a map", "`retry: {attempts: 3, delay: 1}`"),
    (f"{CLICK}, retry: {{times: 3}}", "`times`", "write `attempts: …`"),
    (f"{CLICK}, timeout: 10s", "must be a number", "`10`"),
    (f"{CLICK}, verify: {{url: x}}", "must be a list", "`-`"),
    (f"{CLICK}, verify: [{{visible: a}}]", "must be a map", "`{css: …}`"),
    ("type: browser_action, action: click, target: {role: item}", "write `listitem`", ""),
    ("type: browser_action, action: click, target: {role: card}", "find it by `css`", ""),
    (f"{CLICK}, button: middel", "cannot be `middel`", "`middle`"),
    (f"{CLICK}, url: x", "`url`", "`browser_action goto`"),
    (f"{CLICK}, at: {{x: 1}}", "needs `y`", ""),
    ("type: browser_query, query: extract, target: {css: a}, fields: [a]", "must be a map", ""),
    ("type: browser_query, query: extract, target: {css: a}, fields: {no: b}, key: nu, scroll: until_end", "no field `nu`", ""),
    ("type: browser_query, query: table, target: {css: a}, columns: {no: No}, key: No, next: {css: b}", "no field `No`", ""),
    ("type: context, ask: {who: {questoin: x}}", "`questoin`", "`question`"),
    ("type: agent, goal: x, max_steps: many", "`max_steps`", "`max_turns`"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "says", "fix"), SLIPS)
def test_a_slip_in_a_node(fields: str, says: str, fix: str) -> None:
    """A slip in a node gives exactly one error, which names it and its fix."""
    [found] = mistakes(f"{HEAD}nodes:\n  - {{id: a, {fields}}}\n")
    assert says in found.message
    assert fix in " ".join(found.help)


@pytest.mark.parametrize(
    ("text", "says", "fix"),
    [
        (f"version: 1\nsteps: {PLAIN}\n", "`steps`", "needs `nodes`"),
        (f"version: 1\ninput: 5\nnodes: {PLAIN}\n", "`input`", "`inputs`"),
        (
            f"version: 1\nparams: {{x: {{type: integer}}}}\nnodes: {INNER.replace(' x ', ' inputs.x ')}\n",
            "`params`",
            "inputs",
        ),
        (f"version: 1\nnodes: [{{name: a, {CLICK}}}]\n", "`name`", "needs `id`"),
        (f"version: 1\nnodes: {PLAIN}\noutputs: '{{{{ b }}}}'\n", "`outputs`", "`output`"),
    ],
)
def test_a_slip_in_the_head(text: str, says: str, fix: str) -> None:
    """A slip in a field of the file gives exactly one error too."""
    [found] = mistakes(text)
    assert says in found.message
    assert fix in " ".join(found.help)


def test_what_is_inside_a_guessed_field_is_checked() -> None:
    """Nodes in a misspelt block are read all the same: their own mistakes are reported."""
    found = mistakes(
        f"{HEAD}nodes:\n  - {{id: a, type: group, nodse: [{{id: b, type: transform, exprr: 1}}, {{id: c, {CLICK}, at: 5}}]}}\n"
    )
    assert [each.code for each in found] == ["unknown-field", "unknown-field", "wrong-type"]


def test_two_slips_are_two_errors() -> None:
    """Slips that have nothing to do with one another are all reported at once."""
    found = mistakes(
        f"{HEAD}nodes:\n  - {{id: a, {CLICK}, buton: left, timeout: 10s}}\n  - {{id: a, {FILL}, target: {{css: a}}}}\n"
    )
    assert [each.code for each in found] == ["unknown-field", "wrong-type", "missing-field", "duplicate-id"]
