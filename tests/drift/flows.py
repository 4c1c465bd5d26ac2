"""The workflows whose site changes. Their steps have short timeouts, so that they fail soon."""

from __future__ import annotations

SIGN_IN = """version: 1
name: Drift
inputs:
  base_url: {type: string}
  order: {type: string, default: "1003"}
secrets: [SHOP_PASSWORD]
allowed_origins: ["{{ inputs.base_url }}"]

nodes:
  - id: sign_in
    type: group
    nodes:
      - {id: open_login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
      - {id: user, type: browser_action, action: fill, target: {label: Username}, value: admin, timeout: 1.5}
      - {id: password, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}", timeout: 1.5}
      - id: submit
        type: browser_action
        action: click
        target: {role: button, name: Sign in}  # the only one
        effect: idempotent
        timeout: 1.5
        verify: [{url: "**/orders"}]
"""

ROW = (
    SIGN_IN
    + """
  - {id: open_list, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders?status=open"}
  - id: pay
    type: browser_action
    action: click
    target: {role: button, name: Pay, within: {role: row, has_text: "{{ inputs.order }}"}}
    timeout: 1.5
    verify: [{text: "Order {{ inputs.order }} is paid."}]
"""
)
"""Pays an order in its row of the list."""

LIST = (
    SIGN_IN
    + """
  - {id: open_list, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders?status=open"}
  - id: orders
    type: browser_query
    query: extract
    target: {css: "#orders tbody tr"}
    timeout: 1.5
    fields: {number: "td.no", total: {css: "td.total", type: number}}
output: "{{ orders | length }}"
"""
)
"""Reads the open orders."""

ORDER = (
    SIGN_IN
    + """
  - {id: open_order, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.order }}", timeout: 3}
  - id: pay
    type: browser_action
    action: click
    target: {role: button, name: Pay}
    timeout: 1.5
    verify: [{text: paid, target: {test_id: status}}]
"""
)
"""Pays an order on its own page."""

CARD = ORDER.replace(
    "target: {role: button, name: Pay}", "target: {role: button, name: Pay, within: {css: section.card}}"
)
"""The same, in the card of the order."""

STATUS = (
    SIGN_IN
    + """
  - {id: open_order, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.order }}", timeout: 3}
  - {id: status, type: browser_query, query: text, target: {test_id: status}, timeout: 1.5}
  - {id: is_open, type: browser_query, query: assert, rules: [{text: unpaid, target: {css: dl}}], timeout: 1.5}
output: "{{ status }}"
"""
)
"""Reads the status of an order, and computes whether it is open."""

NOTE = (
    SIGN_IN
    + """
  - {id: open_order, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.order }}"}
  - {id: text, type: browser_action, action: fill, target: {label: Note}, value: "A note.", timeout: 1.5}
  - id: keep
    type: browser_action
    action: click
    target: {role: button, name: Add note}
    timeout: 1.5
"""
)
"""Writes a note, without `verify`."""

FILTER = (
    SIGN_IN
    + """
  - {id: go, type: browser_action, action: click, target: {role: link, name: Open orders}, timeout: 1.5}
  - {id: orders, type: browser_query, query: count, target: {css: "#orders tbody tr"}}
output: "{{ orders }}"
"""
)
"""Goes to the open orders by a link, and counts them, without `verify`. The shop names the link `Open`, beside `All`, and another one `Orders`."""

FILTER_BAR = FILTER.replace("name: Open orders}", "name: Open orders, within: {role: navigation, name: Filter}}")
"""The same, in the bar of the list."""

USER_PASSWORD = SIGN_IN.replace("label: Password", "label: User password")
"""Signs in; the shop has a `Username`, and a `Password`."""

TABLE = (
    SIGN_IN
    + """
  - id: orders
    type: browser_query
    query: table
    target: {css: "#orders"}
    timeout: 1.5
    columns: {number: No., amount: {header: Amount, type: number}}
output: "{{ orders | sum(attribute='amount') }}"
"""
)
"""Reads the table of the orders, in which the shop names the amount `Total`."""

TOTALS = TABLE.replace("header: Amount", "header: Total price")

FLOWS = {
    "row": ROW,
    "list": LIST,
    "order": ORDER,
    "card": CARD,
    "status": STATUS,
    "note": NOTE,
    "filter": FILTER,
    "bar": FILTER_BAR,
    "password": USER_PASSWORD,
    "table": TABLE,
    "totals": TOTALS,
}
