"""Actions of a draft that a person must approve, or that are withheld, for tests."""

from __future__ import annotations

import textwrap
from pathlib import Path

from director.draft import draft
from director.draft.goal import Policy
from director.effects import effects
from director.tools.build_context import BuildContext
from nodes import registry
from nodes.base import Leaf
from runtime.engine import run_state
from tests import build_contexts

SITE = "http://127.0.0.1:8765"


TEXT = textwrap.dedent("""
    version: 1
    inputs:
      base_url: {type: string, default: "http://127.0.0.1:8765"}
      who: {type: string, default: Ann}
    allowed_origins: ["{{ inputs.base_url }}"]
    nodes:
      - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}
      - {id: orders, type: browser_query, query: extract, target: {css: tr}, fields: {no: td}}
      - id: each
        type: iterate
        over: "{{ orders }}"
        as: order
        nodes:
          - {id: pay, type: browser_action, action: click, target: {role: button, name: "Pay for {{ inputs.who }}"}, timeout: 5}
      - {id: note, type: browser_action, action: press, key: Enter}
      - {id: work, type: agent, goal: Tidy up.}
""")


async def holds(build: BuildContext, place: str = "1_run_draft", **given: str) -> run_state.Withholds:
    """The withheld ones of all actions of the draft."""
    draft_now = build.state.draft
    assert draft_now is not None
    wanted = effects.actions_of(draft_now.loaded)
    return await build.effects.demand(wanted, place=place, inputs=given or None)


def leaf(build: BuildContext, name: str) -> Leaf:
    """A leaf of the draft."""
    assert build.state.draft is not None
    found = build.state.draft.loaded.index[name][0]
    assert isinstance(found, Leaf)
    return found


def asking(folder: Path, *answers: str, text: str = TEXT, policy: Policy = "ask") -> tuple[BuildContext, list[str]]:
    """A build context whose person gives these answers, and the questions to that person."""
    who = build_contexts.Answering(*answers)
    return build_contexts.opened(folder, SITE, text, policy=policy, who=who), who.asked


def edited(build: BuildContext, old: str, new: str) -> None:
    """Replace a text in the draft."""
    assert build.state.draft is not None
    assert old in build.state.draft.text
    build.state.write_draft(draft.Draft.of(build.state.draft.text.replace(old, new)), reason=f"{new} is right")


def click() -> Leaf:
    """A click by an agent itself."""
    found = registry.parse_node({"id": "click", "type": "browser_action", "action": "click", "target": {"text": "Pay"}})
    assert isinstance(found, Leaf)
    return found
