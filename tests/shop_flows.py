"""Workflows on the shop that several tests use: its sign-in, the payment of its open orders, and a step that waits for a file."""

from __future__ import annotations

BASE_URL = "base_url: {type: string}"


def sign_in(name: str, inputs: str = BASE_URL) -> str:
    """The beginning of a workflow file, whose first node signs in."""
    return f"""
version: 1
name: {name}
inputs: {{{inputs}}}
secrets: [SHOP_PASSWORD]
nodes:
  - id: sign_in
    type: group
    nodes:
      - {{id: login, type: browser_action, action: goto, url: "{{{{ inputs.base_url }}}}/login"}}
      - {{id: user, type: browser_action, action: fill, target: {{label: Username}}, value: admin}}
      - {{id: pass, type: browser_action, action: fill, target: {{label: Password}}, value: "{{{{ secrets.SHOP_PASSWORD }}}}"}}
      - {{id: submit, type: browser_action, action: click, target: {{role: button, name: Sign in}}, effect: idempotent, verify: [{{url: "**/orders"}}]}}
"""


PAY_EACH = """
  - id: orders
    type: browser_query
    query: extract
    target: {css: "#orders tbody tr"}
    fields: {number: td.no}
  - id: each
    type: iterate
    over: "{{ orders }}"
    as: order
    key: "{{ order.number }}"
    nodes:
      - id: pay
        type: browser_action
        action: click
        target: {role: button, name: Pay, within: {role: row, has_text: "{{ order.number }}"}}
"""
"""Nodes after the sign-in: every order on the first page is paid. ``VERIFY`` and ``CONFIRM`` may follow, for the payment."""

VERIFY = """
        verify: [{text: paid, target: {role: row, has_text: "{{ order.number }}"}}]
"""

CONFIRM = """
        confirm:
          settle: 2
          nodes:
            - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ order.number }}"}
            - {id: status, type: browser_query, query: text, target: {test_id: status}}
          done: "{{ status == 'paid' }}"
"""

WAITING = """
import pathlib, time

def until_told():
    pathlib.Path("begun").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.02)
    return "told"
"""
"""A python module whose function writes a file when it begins, and waits for the file ``go``."""
