"""A session without a command: its log in memory, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from director.session import open as open_session
from director.session.state import SessionState
from runtime.log import entries, session
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.secrets import masking
from runtime.testing import memory_store
from tests.now import now

HEADER = entries.SessionHeader(purpose="build", versions={})

SHOP = """\
version: 1
name: Pay the open orders
description: Every open order is paid.
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
secrets: [SHOP_PASSWORD]
nodes:
  - id: sign_in
    type: group
    nodes:
      - {id: open_login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
      - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - id: orders
    type: browser_query
    query: extract
    target: {css: "#orders tbody tr"}
    fields: {number: td.no}
  - id: each_order
    type: iterate
    over: "{{ orders }}"
    as: order
    key: "{{ order.number }}"
    nodes:
      - id: pay
        type: browser_action
        action: click
        target: {role: button, name: Pay}
        confirm:
          nodes:
            - {id: status, type: browser_query, query: text, target: {test_id: status}}
          done: "{{ status == 'paid' }}"
"""
"""A workflow whose nodes, in the order of the text, are sign_in, open_login, pass, orders, each_order, pay, status."""


def begun(
    folder: Path, known: Mapping[str, str] | None = None, store: log_store.Store | None = None
) -> LogWriter[session.Session]:
    """A new session that knows these secrets."""
    return now(open_session.begin(store or memory_store.MemoryStore(folder), HEADER, masking.Masker(known or {})))


def state_of(folder: Path, known: Mapping[str, str] | None = None) -> SessionState:
    """The state of a new session."""
    return SessionState(begun(folder, known))
