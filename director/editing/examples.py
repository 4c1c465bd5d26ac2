"""An example of every node type for a model: short, valid, with the most used fields."""

from __future__ import annotations

EXAMPLES: dict[str, str] = {
    "browser_action": """\
- {id: submit, type: browser_action, action: click, target: {role: button, name: Pay, within: {role: row, has_text: "{{ order.no }}"}}, verify: [{text: paid}]}""",
    "browser_query": """\
- {id: orders, type: browser_query, query: extract, target: {css: "#orders tbody tr"}, fields: {no: td.no, total: {css: td.total, type: number}}}""",
    "transform": """\
- {id: open_ones, type: transform, expr: "{{ orders | selectattr('status', 'eq', 'open') | list }}"}""",
    "cognition": """\
- {id: kind, type: cognition, instruction: "Which kind of complaint is it?", input: "{{ letter }}", output: {kind: [damaged, late, other]}}""",
    "iterate": """\
- id: each_order
  type: iterate
  over: "{{ orders }}"
  as: order
  key: "{{ order.no }}"
  nodes:
    - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ order.no }}"}
  collect: {no: "{{ order.no }}"}""",
    "route": """\
- id: by_stock
  type: route
  branches:
    - {name: there, when: "{{ stock > 0 }}", nodes: [{id: buy, type: browser_action, action: click, target: {role: button, name: Buy}}]}
  otherwise: [{id: note, type: transform, expr: sold out}]""",
    "handle": """\
- id: safely
  type: handle
  try: [{id: shut, type: browser_action, action: click, target: {role: button, name: Close}, timeout: 2}]
  on: [target-not-found]
  catch: [{id: none_there, type: transform, expr: "{{ error.code }}"}]""",
    "context": """\
- {id: started, type: context, set: {page: 1}}""",
    "group": """\
- id: sign_in
  type: group
  description: Signs in as the clerk.
  nodes:
    - {id: user, type: browser_action, action: fill, target: {label: Username}, value: "{{ inputs.user }}"}
    - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}""",
    "agent": """\
- {id: find, type: agent, goal: Find the newest order., max_turns: 10, budget: "tokens=50k", output: {no: string}, success: [{url: "**/orders/*"}]}""",
}
"""By type."""

CONFIRM = """\
- id: pay
  type: browser_action
  action: click
  target: {role: button, name: Pay}
  verify: [{text: paid, target: {test_id: status}}]
  confirm:
    nodes:
      - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.no }}"}
      - {id: status, type: browser_query, query: text, target: {test_id: status}}
    done: "{{ status == 'paid' }}\""""
"""An action with a ``confirm`` on the site."""

CARD: dict[str, str] = {
    "browser_action": """\
- {id: pay, type: browser_action, action: click, target: {role: button, name: Pay, within: {role: row, has_text: "{{ order.no }}"}}, verify: [{visible: {text: paid}}], confirm: {nodes: [{id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}, {id: paid, type: browser_query, query: exists, target: {text: paid}}], done: "{{ paid }}"}}  # goto url, fill/select/press …""",
    "browser_query": """\
- {id: orders, type: browser_query, query: extract, target: {css: "#orders tbody tr"}, fields: {no: td.no}}  # `min: 0` where there may be none; text, table, count, exists, assert …""",
    "transform": """\
- {id: big, type: transform, expr: "{{ orders | selectattr('total', 'gt', 9) | list }}"}  # or fields, sql""",
    "iterate": """\
- {id: each, type: iterate, over: "{{ orders }}", as: order, key: "{{ order.no }}", nodes: [ … ], collect: {no: "{{ order.no }}"}}
- {id: pages, type: iterate, until: "{{ not more }}", max: 50, nodes: [{id: rows, type: browser_query, query: table, target: {role: table}}, {id: more, type: browser_query, query: exists, target: {role: link, name: Next}}, {id: next, type: browser_action, action: click, target: {role: link, name: Next}, when: "{{ more }}", effect: read}], collect: "{{ rows }}"}  # a list for each turn: `pages | flatten`""",
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
"""By type, in a line; `[ … ]` are nodes."""
