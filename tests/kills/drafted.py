"""The goal of the builds that are killed, and a model that answers from its request alone."""

from __future__ import annotations

import re
import threading
from typing import Any

from runtime.testing import scripted_model
from tests.kills import said

GOAL = "Put an article into the cart"

NODES = """\
- id: choose
  type: group
  description: Puts the first article into the cart.
  nodes:
    - {id: cart, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ inputs.ref }}"}
    - {id: before, type: browser_query, query: text, target: {test_id: pieces}}
    - {id: articles, type: browser_action, action: goto, url: "{{ inputs.base_url }}/articles?for={{ inputs.ref }}"}
    - id: add
      type: browser_action
      action: click
      target: {role: button, name: Add to cart, within: {css: "#articles tbody tr", nth: 0}}
      confirm:
        settle: 0.5
        nodes:
          - {id: see, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ inputs.ref }}"}
          - {id: shown, type: browser_query, query: text, target: {test_id: pieces}}
        done: "{{ (shown | number) > (before | number) }}"
- id: look
  type: group
  description: Counts what is in the cart.
  nodes:
    - {id: checkout, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ inputs.ref }}"}
    - {id: pieces, type: browser_query, query: text, target: {test_id: pieces}}
"""

SIGN_IN = """\
- id: sign_in
  type: group
  description: Signs in.
  nodes:
    - {id: open_login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
    - {id: user, type: browser_action, action: fill, target: {label: Username}, value: admin}
    - {id: password, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
    - {id: submit, type: browser_action, action: click, target: {role: button, name: Sign in}, effect: idempotent, verify: [{url: "**/orders"}]}
"""

HEAD = 'output: "{{ pieces }}"\n'

STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("plan", "update_plan", {"plan": said.PLANNED, "reason": "it is new"}),
    ("make", "create_nodes", {"yaml": SIGN_IN + NODES, "after": None, "dry_run": False, "reason": "it was asked for"}),
    ("head", "update_node", {"id": "workflow", "yaml": HEAD, "reason": "this was asked for"}),
    (
        "try",
        "execute_nodes",
        {"nodes": "all", "mode": "flow", "from": "fresh", "item": None, "reason": "to see it work"},
    ),
    ("done", "finish", {"done": True, "summary": "It puts one article into the cart.", "reason": "it works"}),
)
"""The calls of the model, one per answer, each with the prefix of its id."""

AGAIN = ("done",)
"""Calls that it repeats after an interruption; for any other it inspects the outcome and continues."""

_INTERRUPTED = re.compile(r"interrupted")


def is_interrupted(item: dict[str, Any]) -> bool:
    """True if the item reports a call as interrupted."""
    return item.get("type") == "function_call_output" and bool(_INTERRUPTED.search(scripted_model.text_of(item)))


class Voice:
    """A model that uses only the current request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        """All requests, in order."""
        self.items: list[dict[str, Any]] = []
        """The items of the last request, with those that the server keeps."""
        self._lock = threading.Lock()

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The answer to a request."""
        with self._lock:
            self.requests.append(dict(asked.body))
            self.items = [dict(each) for each in asked.items]
        outputs = asked.outputs
        called = [str(each["call_id"]) for each in asked.items if each.get("type") == "function_call"]
        for name, tool, arguments in STEPS:
            mine = [each for each in called if each.startswith(f"{name}-")]
            last = outputs.get(mine[-1]) if mine else None
            if last is None or (name in AGAIN and _INTERRUPTED.search(last)):
                return scripted_model.thought("So.") + scripted_model.call(
                    tool, arguments, call_id=f"{name}-{len(mine) + 1}"
                )
            if _INTERRUPTED.search(last) and f"look-{name}" not in called:
                return scripted_model.call("get_workflow_summary", {}, call_id=f"look-{name}")
        return scripted_model.text("There is nothing left to do.")
