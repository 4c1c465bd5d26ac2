"""A session of 40 messages that builds a workflow for the shop: the messages, the model's steps, and the facts that it needs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence

from nodes.values import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Do:
    """The model calls a tool."""

    name: str
    arguments: dict[str, Json]


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """The model needs a fact, and the tool that has it, where the request does not."""

    fact: str
    name: str
    arguments: dict[str, Json]


@dataclasses.dataclass(frozen=True, slots=True)
class Say:
    """The model answers."""

    text: str


Step = Do | Need | Say

HEAD = """\
version: 1
name: Settle the orders
description: Pays every open order that is no test order, gives back what came damaged, and files the invoice.
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
  damaged: {type: string, default: "1003"}
secrets: [SHOP_PASSWORD]
allowed_origins: ["{{ inputs.base_url }}"]
"""

NODES = (
    '- {id: open_login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}',
    "- {id: user, type: browser_action, action: fill, target: {label: Username}, value: admin}",
    '- {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}',
    """\
- id: sign_in
  type: browser_action
  action: click
  target: {role: button, name: Sign in}
  effect: idempotent
  verify: [{url: "**/orders"}]""",
    '- {id: open_list, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders?status=open"}',
    """\
- id: orders
  type: browser_query
  query: extract
  target: {css: "#orders tbody tr"}
  min: 0
  fields: {number: td.no, customer: td.customer, total: {css: td.total, type: number}}""",
    "- {id: real, type: transform, expr: \"{{ orders | rejectattr('customer', 'equalto', 'Test GmbH') | list }}\"}",
    """\
- id: each_order
  type: iterate
  over: "{{ real }}"
  as: order
  key: "{{ order.number }}"
  nodes:
    - id: pay
      type: browser_action
      action: click
      target: {role: button, name: Pay, within: {role: row, has_text: "{{ order.number }}"}}
      verify: [{text: paid, target: {role: row, has_text: "{{ order.number }}"}}]""",
    '- {id: open_refund, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.damaged }}/refund"}',
    "- {id: paid, type: browser_query, query: text, target: {test_id: paid}, as: number}",
    "- {id: refunded, type: browser_query, query: text, target: {test_id: refunded}, as: number}",
    """\
- id: is_paid
  type: browser_query
  query: assert
  rules: [{expr: "{{ paid > 0 }}"}]""",
    """\
- id: give_back
  type: group
  when: "{{ refunded == 0 }}"
  nodes:
    - {id: reason, type: browser_action, action: select, target: {label: Reason}, value: Damaged}
    - {id: ask, type: browser_action, action: click, target: {role: button, name: Refund}, effect: idempotent}
    - {id: say_yes, type: browser_action, action: dialog, answer: accept, text: Refund}""",
    '- {id: open_documents, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.damaged }}/documents"}',
    "- {id: documents, type: browser_query, query: count, target: {role: listitem}}",
)

DESCRIPTION = """\
Each evening: pay every open order of the shop, but none of the customer Test GmbH. Give back the money for the order that came damaged, once,
with the reason Damaged. Then look whether its invoice is filed: there must be two documents. Never pay an order twice; where the shop is not
sure, stop and ask Ms Okafor (extension 4711)."""

PAGES = (
    "/orders",
    "/orders?status=open",
    "/orders/1001",
    "/orders/1003/refund",
    "/orders/1003/documents",
    "/messages",
    "/triage",
    "/prices",
    "/articles?for=b-1",
    "/delivery",
)
TASKS = (
    ("login", "Sign in to the shop", "The password is the secret SHOP_PASSWORD."),
    ("list", "Read the open orders", "Test GmbH is left out by name: its number changes."),
    ("pay", "Pay each of them", "The row says paid when it has worked; no page is opened."),
    ("refund", "Give back the damaged one", "A dialog of the browser asks once more: type Refund."),
    ("papers", "See that the invoice is filed", "Two documents: invoice and note."),
)
VARIABLES = {
    "customers_seen": ["Ada Okafor", "Frank O'Brien", "Klaus Weber", "Priya Raman", "Uma Patel", "Dmitri Volkov"],
    "hint": "The shop closes at 22:00 for its own accounts, and says so in a banner on every page; orders that are paid behind that count for the next day.",
    "house_rule": "Ms Okafor signs refunds above 300 euro herself.",
}
WORDS = 40
BUILT_AT = (4, 5, 6, 7, 10, 11, 13, 16, 18, 20, 21, 22, 25, 28, 31)
"""The messages at which a node is added."""


def _plan(done: int) -> Json:
    tasks: list[Json] = [
        {
            "task_id": name,
            "description": what,
            "status": "completed" if number < done else "pending",
            "notes": notes,
            "node_ids": [],
        }
        for number, (name, what, notes) in enumerate(TASKS)
    ]
    phase: Json = {"phase_name": "Build", "status": "in_progress", "tasks": tasks}
    return {
        "overall_goal": "Settle the orders each evening",
        "current_phase": "Build",
        "phases": [phase],
        "blockers": [],
        "notes": None,
    }


def _nodes(which: str) -> tuple[str, dict[str, Json]]:
    return "get_workflow_nodes", {"which": which, "type": None}


NEEDS: dict[int, tuple[str, Need]] = {
    8: ("Who is to be asked where the shop is not sure?", Need("extension 4711", "get_workflow_description", {})),
    9: ("How was the password to be filled in?", Need("{{ secrets.SHOP_PASSWORD }}", *_nodes("pass"))),
    12: ("Why is Test GmbH not left out by number?", Need("its number changes", "get_current_plan", {})),
    14: ("When does the shop close?", Need("closes at 22:00", "get_workflow_variables", {"key": "hint", "run": None})),
    15: ("Where are we just now?", Need("- main http://", "get_browser_state", {})),
    17: ("What shows that a payment has worked?", Need("The row says paid", "get_current_plan", {})),
    19: ("Which rows are read?", Need("#orders tbody tr", *_nodes("orders"))),
    23: (
        "Who signs large refunds?",
        Need("signs refunds above 300", "get_workflow_variables", {"key": "house_rule", "run": None}),
    ),
    24: ("How many documents must there be?", Need("two documents", "get_workflow_description", {})),
    26: ("What is to be typed into the dialog?", Need("type Refund", "get_current_plan", {})),
    27: ("Which step checks that it was paid?", Need("paid > 0", *_nodes("is_paid"))),
    29: (
        "Which customers did we see?",
        Need("Dmitri Volkov", "get_workflow_variables", {"key": "customers_seen", "run": None}),
    ),
    30: ("What is left to do?", Need("See that the invoice is filed", "get_current_plan", {})),
    32: ("By what is an order paid only once?", Need("{{ order.number }}", *_nodes("each_order"))),
    33: ("Which reason is given for a refund?", Need("with the reason Damaged", "get_workflow_description", {})),
    34: (
        "And behind closing time?",
        Need("count for the next day", "get_workflow_variables", {"key": "hint", "run": None}),
    ),
    36: ("How many steps has it?", Need("open_documents", "get_workflow_summary", {})),
    37: ("What does the sign-in check?", Need('url: "**/orders"', *_nodes("sign_in"))),
    38: ("Where does the browser stand?", Need("- main http://", "get_browser_state", {})),
    39: ("Are all tasks done?", Need("Two documents: invoice and note.", "get_current_plan", {})),
}


def word(number: int) -> tuple[str, Sequence[Step]]:
    """The message with this number, and the model's steps until it answers."""
    look = Do("look", {"path": PAGES[number % len(PAGES)]})
    if number == 1:
        describe = Do("update_workflow_description", {"description": DESCRIPTION, "reason": "It was asked for."})
        return DESCRIPTION, [look, describe, Say("I have written down what you want. Shall I plan it?")]
    if number == 2:
        plan = Do("update_plan", {"plan": _plan(0), "reason": "The work begins."})
        return "Yes, plan it.", [look, plan, Say("There are five tasks: sign in, read, pay, refund, papers.")]
    if number == 3:
        keeps = [
            Do("set_variable", {"name": name, "value": json.dumps(value), "reason": "It was seen."})
            for name, value in VARIABLES.items()
        ]
        return "Keep what you have seen so far.", [look, *keeps, Say("Kept, in three variables.")]
    if number in BUILT_AT:
        node = BUILT_AT.index(number)
        add = Do("add_node", {"yaml": NODES[node], "reason": f"Step {node + 1} of the workflow."})
        task = TASKS[node // 3][0]
        done = Do(
            "patch_plan_task",
            {"task_id": task, "status": "completed", "notes": None, "reason": "Its steps are there."},
        )
        more = [done] if node % 3 == 2 else []
        return (
            f"Go on with step {node + 1}: it belongs to {TASKS[node // 3][1].lower()}.",
            [look, add, look, *more, Say(f"Step {node + 1} is there. I have looked at the page again: it fits.")],
        )
    if number in NEEDS:
        question, need = NEEDS[number]
        return question, [look, need, Say(f"As it was said or built: {need.fact}. The page of the shop agrees.")]
    return "Look once more whether all is as it was.", [look, Say("It is: nothing of it has changed.")]


def summary(said: Iterable[str]) -> str:
    """A summary as a model might write it: the beginnings of the messages, 1,500 characters of them."""
    lines = [each.strip().splitlines()[0][:160] for each in said if each.strip()]
    return "\n".join(f"- {each}" for each in lines)[:1_500]
