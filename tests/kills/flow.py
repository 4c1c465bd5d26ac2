"""The workflow that is killed: five orders on the shop, each with two actions and steps between them, and a receipt that is downloaded."""

from __future__ import annotations

from typing import Literal

from tests import shop_flows

How = Literal["confirm", "verify", "nothing"]
"""The means by which the author lets the engine find out whether an action happened."""

By = Literal["click", "press", "type"]
"""The action that pays an order: a click on the button, Enter in a form field, or a line break after typed text."""

ORDERS = 5

START, END = "start", "end"
"""The parts of a checkout before its first order and after its last one; each order is a part by its number."""


def part_of(path: str, event: str) -> str | None:
    """The part that begins with an entry of a scope; None if none does."""
    loop, _slash, inner = path.partition("/")
    if inner or not loop.startswith("each"):
        return None
    if loop == "each":
        return END if event == "committed" else None
    return loop.rpartition("-")[2].removesuffix("]") if event == "opened" else None


_VERIFY = {
    "add": '[{text: "1", target: {test_id: in-cart}}]',
    "pay": '[{url: "**/receipts/*"}]',
}
_CONFIRM = {
    "add": ("pieces", "{{ (shown_for_add | number) >= 1 }}"),
    "pay": ("status", "{{ shown_for_pay == 'paid' }}"),
}
"""The element of the order page that shows the outcome, by test id, and the condition for *done*."""


_PAY: dict[By, str] = {
    "click": "action: click\n            target: {role: button, name: Pay}",
    "press": "action: press\n            key: Enter\n            target: {label: Name}",
    "type": 'action: type\n            value: "Ada {{ ref }}\\n"\n            target: {label: Name}',
}


def text(how: How, timeout: float = 10, by: By = "click") -> str:
    """The workflow file; ``timeout`` is that of its actions, in seconds."""
    return (
        _TEXT.replace("PAY-BY", _PAY[by])
        .replace("TIMEOUT", f"{timeout:g}")
        .replace("ADD-KNOWS", _knows("add", how))
        .replace("PAY-KNOWS", _knows("pay", how))
    )


def _knows(action: Literal["add", "pay"], how: How) -> str:
    """The fields by which the action's outcome can be found out."""
    lines: list[str] = []
    if how != "nothing":
        lines.append(f"verify: {_VERIFY[action]}")
    if how == "confirm":
        place, done = _CONFIRM[action]
        page = "{{ inputs.base_url }}/checkouts/{{ ref }}"
        lines += [
            "confirm:",
            "  settle: 1",
            "  nodes:",
            f'    - {{id: look_for_{action}, type: browser_action, action: goto, url: "{page}"}}',
            f"    - {{id: shown_for_{action}, type: browser_query, query: text, target: {{test_id: {place}}}}}",
            f'  done: "{done}"',
        ]
    return "".join(f"\n            {line}" for line in lines)


_TEXT = (
    shop_flows.sign_in("Check out", f"{shop_flows.BASE_URL}, references: {{type: list}}")
    + """  - id: each
    type: iterate
    over: "{{ inputs.references }}"
    as: ref
    key: "{{ ref }}"
    collect: {order: "{{ ref }}", receipt: "{{ receipt }}", file: "{{ fetch.name }}", sha256: "{{ fetch.sha256 }}"}
    nodes:
      - id: order
        type: group
        nodes:
          - {id: articles, type: browser_action, action: goto, url: "{{ inputs.base_url }}/articles?for={{ ref }}"}
          - id: add
            type: browser_action
            action: click
            timeout: TIMEOUT
            target: {role: button, name: Add to cart, within: {css: "#articles tbody tr", nth: 0}}ADD-KNOWS
          - {id: cart, type: browser_action, action: goto, url: "{{ inputs.base_url }}/cart/{{ ref }}"}
          - {id: name, type: browser_action, action: fill, target: {label: Name}, value: "Ada {{ ref }}"}
          - {id: note, type: browser_action, action: fill, target: {label: Delivery note}, value: "Ring at {{ ref }}"}
          - id: pay
            type: browser_action
            timeout: TIMEOUT
            PAY-BYPAY-KNOWS
          # An action that was found to have happened leaves the page elsewhere: what follows goes where it must be.
          - {id: open_receipt, type: browser_action, action: goto, url: "{{ inputs.base_url }}/receipts/{{ ref }}-1"}
          - {id: receipt, type: browser_query, query: text, target: {test_id: receipt}}
      - {id: fetch, type: browser_action, action: download, target: {role: link, name: Download receipt}}
output: {orders: "{{ each }}"}
"""
)
