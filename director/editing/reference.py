"""A short reference of the node types for a model, generated from the models of the language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodes import registry
from nodes.errors import ModelError, UsageError
from runtime.language import reference
from runtime.language.expressions import builtins, filters

LONGEST = 3_500  # limit of one answer, in characters

TOPICS = {"targets": "target", "rules": "rule", "verify": "rule", "workflow": "file", "head": "file", "inputs": "input"}
"""The entries of the reference by names of topics that differ from them."""

REFERENCES = """\
Text with `{{ … }}` is a reference, in quotes. Exactly one expression gives the value itself (list, number); other text gives text.
Names: inputs.NAME, secrets.NAME (only where a field takes secrets), vars.NAME (set by `context`), a node's id (its value), the `as` name of a loop, loop.index|first|last|key|length, run.id, run.errors.ID, run.taken.ID, run.failures.ID, error (in catch).
What has no value is an error: guard it (`x | default(…)`, `x is defined`, or `when`). Inside `iterate` an id has a value within its own iteration only; outside, read the loop's list.
Expressions are Jinja's: a.b, a['b'], a[0], + - * / // % **, ~ joins, == != < <= > >=, in, and or not, `a if c else b`, is defined, is none; now(), uuid(); totp(secrets.NAME), the one-time code, where a field takes secrets. No {% %}."""

TARGETS = """\
Best first: {role: button, name: Save} · {label: Email} · {test_id: status} · {role: button, name: Pay, within: {role: row, has_text: "{{ order.no }}"}} · {css: "#total"}"""

QUERIES = """\
For an HTML table use `table`: a list of maps by the headings of the columns, as text; `columns: {price: {header: Price, type: number}}` names and types them. `extract` is for rows of anything else. `next`, a target, leads from page to page, `scroll` through a list that draws only a part; both need `key`, the field that tells rows apart. Both queries wait until `min` rows are there (1 by default); `text` and `value` wait for their element. `exists` yields true or false and `count` a number, at once: wait for the page before (a `verify` of the action that leads there)."""

INPUTS = """\
Such as inputs: {no: {type: integer, default: 1007}, user: {type: string, description: Who signs in.}}. The result is `output`: output: {orders: "{{ orders }}", total: "{{ orders | sum(attribute='total') }}"}."""

HEAD = """\
Changed by `update_node` with id `workflow`: keys given replace those keys, `inputs` are merged by name, null removes a key."""


CARD: dict[str, str] = {
    "browser_action": """\
- {id: pay, type: browser_action, action: click, target: {role: button, name: Pay, within: {role: row, has_text: "{{ order.no }}"}}, verify: [{visible: {text: paid}}], confirm: {nodes: [{id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}, {id: paid, type: browser_query, query: exists, target: {text: paid}}], done: "{{ paid }}"}}  # goto url, fill/select/press …""",
    "browser_query": """\
- {id: orders, type: browser_query, query: extract, target: {css: "#orders tbody tr"}, fields: {no: td.no}, next: {role: link, name: Next}, key: no}  # over all pages; `scroll: until_end` if a list draws only a part; `min: 0` where there may be none; `query: table, target: {role: table}`: maps by heading; text, count, exists, assert …""",
    "transform": """\
- {id: big, type: transform, expr: "{{ orders | selectattr('total', 'gt', 9) | list }}"}  # or fields; sql: select no from orders where contains(name, 'x')""",
    "iterate": """\
- {id: each, type: iterate, over: "{{ orders }}", as: order, key: "{{ order.no }}", nodes: [ … ], collect: {no: "{{ order.no }}"}}""",
    "route": """\
- {id: way, type: route, branches: [{name: some, when: "{{ n > 0 }}", nodes: [ … ]}], otherwise: [ … ]}""",
    "handle": """\
- {id: safe, type: handle, try: [ … ], on: [target-not-found], catch: [ … ]}""",
    "group": """\
- {id: sign_in, type: group, description: Signs in., nodes: [ … ]}""",
    "context": """\
- {id: start, type: context, set: {page: 1}}  # vars.page""",
    "cognition": """\
- {id: kind, type: cognition, instruction: Sort it., input: "{{ letter }}", output: {kind: [bill, other]}}""",
    "agent": """\
- {id: find, type: agent, goal: Find it., output: {no: string}, success: [{url: "**/orders/*"}]}""",
}
"""An example of each node type, with the most used fields; `[ … ]` are nodes."""


def card() -> str:
    others = [each for each in registry.node_types() if each not in CARD]
    return "\n".join([*CARD.values(), *([f"Other types: {', '.join(others)}."] if others else [])])


def render(name: str) -> str:
    """Return the reference of a type, of a kind of it, or of a topic. Raises ModelError ``type-unknown`` with the closest name."""
    name = name.strip().strip("`")
    if name in ("references", "reference", "filters"):
        return _bounded([REFERENCES, f"Filters: {_filters()}"])
    try:
        entry = reference.entry(TOPICS.get(name, name))
    except UsageError as error:
        fix = (error.fix or "").replace("runops nodes show ", "")
        known = (
            f"types: {', '.join(registry.node_types())}; topics: targets, rules, references, workflow, step, container"
        )
        raise ModelError("type-unknown", error.message, fix=fix if fix.startswith("did you") else known) from None
    return _bounded(_entry(entry))


def _entry(entry: reference.Entry) -> list[str]:
    about = [entry.name if not entry.effect else f"{entry.name} ({entry.effect})", " ".join(entry.text.split())]
    if entry.value:
        about.append(f"Value: {entry.value}")
    lines = [*about, *(_line(each) for each in _shown(entry.fields))]
    lines += [_kind(each) for each in entry.kinds]
    for part in entry.parts:
        lines += [f"a {part.name}: {' '.join(part.text.split())}", *(_line(each, "  ") for each in part.fields)]
    if entry.around == "step":
        lines.append(
            "Also: id, description, when, timeout, retry, on_error, verify, effect, after_crash, confirm (`step`, `rules`, `confirm`)."
        )
    elif entry.around == "container":
        lines.append("Also: id, description, when, value, on_error, on_redo (`container`).")
    lines += {"target": [TARGETS], "confirm": [CARD["browser_action"]], "browser_query": [QUERIES]}.get(entry.name, [])
    if entry.name == "file":
        lines += ["an input:", *(_line(each, "  ") for each in _shown(reference.entry("input").fields)), INPUTS, HEAD]
    return lines


def _shown(fields: Iterable[reference.Field]) -> list[reference.Field]:
    # A node's `type` has one value, its name; an input's is a choice.
    return [each for each in fields if each.name != "type" or "," in each.kind]


def _line(field: reference.Field, indent: str = "") -> str:
    notes = [
        field.kind.replace("`", ""),
        *(each for each in field.notes[1:] if not each.startswith("takes references")),
    ]
    notes += ["secrets too"] if field.secrets else []
    return f"{indent}{field.name} ({'; '.join(notes)}): {field.text.rstrip('.')}".removesuffix(": ")


def _kind(entry: reference.Entry) -> str:
    own = [each for each in _shown(entry.fields) if each.name not in ("action", "query", "tab")]
    fields = ", ".join(each.name if each.required else f"{each.name}?" for each in own)
    return f"{entry.name.rpartition('.')[2]}({fields}): {reference.sentence(entry.text).rstrip('.')}"


def _filters() -> str:
    own = [builtins.usage(name) for name in sorted(filters.OWN) if name != "e"]
    return ", ".join([*own, *sorted(builtins.KEPT)])


def _bounded(lines: Sequence[str]) -> str:
    """Return the text in at most ``LONGEST`` characters: long lines are shortened first."""
    text = "\n".join(lines)
    wide = 200
    while len(text) > LONGEST and wide > 40:
        text = "\n".join(_cut(each, wide) if "\n" not in each else each for each in lines)
        wide -= 20
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _cut(line: str, wide: int) -> str:
    return line if len(line) <= wide else f"{line[: wide - 1].rsplit(' ', 1)[0]}…"
