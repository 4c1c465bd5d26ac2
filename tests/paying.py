"""A scripted build on the shop: every open order is paid, and listed."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.testing import scripted_model
from tests.builds_rig import plan, use

GOAL = "Pay every open order, and say which were paid"

SIGN_IN = """
- id: sign_in
  type: group
  description: Signs in as the clerk.
  nodes:
    - {id: open_login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
    - {id: user, type: browser_action, action: fill, target: {label: Username}, value: "{{ inputs.user }}"}
    - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
    - {id: submit, type: browser_action, action: click, target: {role: button, name: Sign in}, effect: idempotent, verify: [{url: "**/orders"}]}
"""

ORDERS = """
- id: orders
  type: group
  description: Reads the orders that are open.
  nodes:
    - {id: rows, type: browser_query, query: extract, target: {css: "#orders tbody tr"}, fields: {number: td.no, status: td.status}}
    - {id: open_ones, type: transform, expr: "{{ rows | selectattr('status', 'eq', 'unpaid') | map(attribute='number') | list }}"}
"""

PAY = """
- id: paying
  type: iterate
  description: Pays each of them.
  over: "{{ open_ones }}"
  as: number
  key: "{{ number }}"
  nodes:
    - id: pay
      type: browser_action
      action: click
      target: {role: button, name: Pay, within: {role: row, has_text: "{{ number }}"}}
      effect: effect
      verify: [{text: paid, target: {css: td.status, within: {role: row, has_text: "{{ number }}"}}}]
  collect: "{{ number }}"
"""


def script(url: str) -> Iterator[scripted_model.Answer]:
    """The model's answers, one by one."""
    yield plan() + use("debug_navigate", tab="shop", url=f"{url}/login", reason="to see it")
    yield use("create_nodes", yaml=SIGN_IN, after=None, dry_run=None, reason="it begins there") + execute("sign_in")
    yield use("create_nodes", yaml=ORDERS, after=None, dry_run=None, reason="what is open") + execute("orders")
    yield (
        use("create_nodes", yaml=PAY, after=None, dry_run=None, reason="the goal")
        + use("update_node", id="workflow", yaml='output: "{{ paying }}"', reason="the goal")
        + use("patch_plan_task", task_id="1", status="completed", notes=None, reason="it stands")
    )
    yield finish()


def execute(nodes: str) -> scripted_model.Answer:
    """The model tries nodes."""
    return use("execute_nodes", nodes=nodes, mode=None, item=None, reason="to see", **{"from": None})


def finish(**more: str | bool) -> scripted_model.Answer:
    """A `finish` of the model."""
    given = {
        "done": True,
        "summary": "Pays every open order; yields their numbers.",
        "unproved": None,
        "reason": "done",
    }
    return use("finish", **{**given, **more})
