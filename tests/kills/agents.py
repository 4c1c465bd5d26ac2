"""Kill a run with a cognition, an ai_extract and an agent at each of its crash points: a real command, Chromium and shop ledger.

The agent's model is careless: it clicks again unless its conversation says that it clicked. So only the runtime prevents a second action.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from nodes.values import Json
from runtime.testing import scripted_model
from tests import shop_flows, warm
from tests.kills import modelled
from tests.shop_process import Shop

Way = Literal["confirm", "ask"]
"""The agent has a `confirm`, or a person is asked."""

WAYS: tuple[tuple[Way, bool], ...] = (("confirm", True), ("confirm", False), ("ask", True), ("ask", False))
"""Each with whether the browser outlives the process."""

CONFIRM = """
        confirm:
          settle: 0.5
          nodes:
            - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ ref }}"}
            - {id: shown, type: browser_query, query: text, target: {test_id: pieces}}
          done: "{{ (shown | number) >= 1 }}"
"""


def flow(way: Way) -> str:
    """The workflow."""
    return (
        shop_flows.sign_in("Order what is wished", f"{shop_flows.BASE_URL}, references: {{type: list}}").replace(
            "secrets:", 'allowed_origins: ["{{ inputs.base_url }}"]\nsecrets:'
        )
        + """
  - id: each
    type: iterate
    over: "{{ inputs.references }}"
    as: ref
    key: "{{ ref }}"
    collect: {ref: "{{ ref }}", pieces: "{{ put.pieces }}", wish: "{{ wish.article }}"}
    nodes:
      - {id: articles, type: browser_action, action: goto, url: "{{ inputs.base_url }}/articles?for={{ ref }}"}
      - id: seen
        type: browser_query
        query: ai_extract
        instruction: Say what the first article is called.
        target: {css: "#articles"}
        output: {article: string}
      - id: wish
        type: cognition
        instruction: Say which article the customer wishes.
        input: {order: "{{ ref }}", article: "{{ seen.article }}"}
        output: {article: [first, none]}
      - id: put
        type: agent
        goal: "Put the first article into the cart for {{ ref }}, once."
        tools: [look, find, click, goto]
        max_turns: 12
        success: [{text: "1", target: {test_id: in-cart}}]
        output: {pieces: integer}
"""
        + (CONFIRM if way == "confirm" else "")
        + """
  - {id: sum, type: cognition, instruction: Count the orders., input: "{{ each }}", output: integer}
output: {orders: "{{ each }}", sum: "{{ sum }}"}
"""
    )


def due(orders: Sequence[str]) -> Json:
    """The expected output of the workflow."""
    return {"orders": [{"ref": ref, "pieces": 1, "wish": "first"} for ref in orders], "sum": len(orders)}


class Voice:
    """The model of all three. The very first request is rate-limited; the agent calls two tools at once where it can."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The answer to a request."""
        if not self.refused:
            self.refused = True
            return scripted_model.rate_limited(milliseconds=1)
        if asked.body.get("tools"):
            return self._works(asked)
        question = scripted_model.text_of(asked.items[0])
        if '"pieces"' in question:
            return scripted_model.text({"value": 1})
        if '"order"' in question:
            return scripted_model.thought("Let me see.") + scripted_model.text({"article": "first"})
        name = re.search(r'row "([^"]+?) \d', question) or re.search(r'cell "([A-Za-z][^"]+)"', question)
        return scripted_model.text({"article": name[1] if name else None})

    @staticmethod
    def _works(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        calls = [item for item in asked.items if item.get("type") == "function_call"]
        clicked = [item for item in calls if item["name"] == "click"]
        given = asked.outputs
        reached = "goal was reached" in " ".join(scripted_model.text_of(item) for item in asked.items)
        if reached or any("\ndone" in f"\n{given[each['call_id']]}" for each in clicked):
            return scripted_model.call("finish", {"done": True, "note": "It is in the cart.", "output": {"pieces": 1}})
        seen = next((found for text in reversed(given.values()) if (found := _button(text))), None)
        if seen is None or "ref-gone" in next(reversed(given.values())):
            look = scripted_model.call("look", {"ref": None})
            return look + scripted_model.call(
                "find", {"role": "button", "name": "Add to cart", "row": None, "text": None}
            )
        return scripted_model.call("click", {"ref": seen})


def _button(text: str) -> str | None:
    found = re.search(r'button "Add to cart".*?\[ref=(\w+)\]', text)
    return found[1] if found else None


ORDERS = 1


def plot(way: Way) -> modelled.Plot:
    """The runs of a variant."""
    return modelled.Plot(flow(way), ORDERS, due, Voice)


_names = itertools.count(1)


@dataclasses.dataclass
class Bench:
    """The place of trials."""

    folder: Path
    shop: Shop
    server: warm.Warm

    def run(self, way: Way, deaths: Sequence[int], *, survives: bool) -> modelled.Trial:
        """One run to its end."""
        name = f"a{next(_names)}"
        return modelled.Trial(name, self.folder / name, plot(way), self.shop, self.server, survives=survives).run(
            deaths
        )


def examine(
    bench: Bench, way: Way, numbers: Sequence[int] | None, chance: random.Random, *, survives: bool, jobs: int
) -> Iterator[modelled.Trial]:
    """Kill a run at each of its crash points, or at those with these numbers. Some resumes are killed once, too."""
    alone = bench.run(way, [], survives=survives)
    yield alone
    count = len(alone.passed)
    chosen = range(1, count + 1) if numbers is None else [1 + (each - 1) % count for each in numbers]
    again = {each: [chance.randint(1, 20)] if chance.random() < 0.5 else [] for each in chosen}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(lambda each: bench.run(way, [each, *again[each]], survives=survives), chosen):
            if done.answers > alone.answers + done.on_the_way + _AFRESH * len(done.kills):
                done.wrong.append(f"{done.answers} answers were given, and {alone.answers} without a crash")
            yield done


_AFRESH = 6
"""Number of answers of a conversation that starts afresh: by then the model sees another page."""
