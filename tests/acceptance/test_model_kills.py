"""Runs killed at six random crash points (twelve in `make test-all`): a real command, Chromium, model client and shop ledger.

``tests/kills/asked.py`` covers every crash point with a faked page.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing import scripted_model
from tests import breadth, shop_flows
from tests.command import warm_server
from tests.kills import modelled
from tests.shop_process import Shop

FLOW = (
    shop_flows.sign_in("Order what is wished", f"{shop_flows.BASE_URL}, references: {{type: list}}")
    + """
  - id: each
    type: iterate
    over: "{{ inputs.references }}"
    as: ref
    key: "{{ ref }}"
    collect: {ref: "{{ ref }}", pieces: "{{ pieces }}", wish: "{{ wish.article }}"}
    nodes:
      - {id: articles, type: browser_action, action: goto, url: "{{ inputs.base_url }}/articles?for={{ ref }}"}
      - {id: seen, type: browser_query, query: text, target: {css: "#articles tbody tr", nth: 0}}
      - id: wish
        type: cognition
        instruction: Say which article the customer wishes.
        input: {order: "{{ ref }}", article: "{{ seen }}"}
        output: {article: [first, none]}
      - id: add
        type: browser_action
        action: click
        when: "{{ wish.article == 'first' }}"
        target: {role: button, name: Add to cart, within: {css: "#articles tbody tr", nth: 0}}
        verify: [{text: "1", target: {test_id: in-cart}}]
        confirm:
          settle: 1
          nodes:
            - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ ref }}"}
            - {id: shown, type: browser_query, query: text, target: {test_id: pieces}}
          done: "{{ (shown | number) >= 1 }}"
      - {id: checkout, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ ref }}"}
      - {id: pieces, type: browser_query, query: text, target: {test_id: pieces}}
  - {id: sum, type: cognition, instruction: Count the orders., input: "{{ each }}", output: integer}
output: {orders: "{{ each }}", sum: "{{ sum }}"}
"""
)

ORDERS = 2
TIMES = breadth.of(4, 12)
"""Total number of kills of a run."""

TRIALS, KILLS = breadth.of(2, 4), 3
"""Number of trials, and kills in each; more where a trial ended early."""

LATEST = 14
"""The last crash point at which a resume is killed; few resumes pass fewer."""


class Voice:
    """The model. Its first answer to the second order is invalid, and the very first request is rate-limited."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The answer to a request."""
        if not self.refused:
            self.refused = True
            return scripted_model.rate_limited(milliseconds=1)
        question = scripted_model.text_of(asked.items[0])
        if '"pieces"' in question:
            return scripted_model.text({"value": ORDERS}).in_background(polls=0)
        if "-2" in question and len(asked.items) == 1:
            return scripted_model.text("Hm.").in_background(polls=0)
        answer = scripted_model.thought("Let me see.") + scripted_model.text({"article": "first"})
        return answer.in_background(polls=int(len(asked.items) == 1))


PLOT = modelled.Plot(
    FLOW,
    ORDERS,
    due=lambda orders: {"orders": [{"ref": ref, "pieces": "1", "wish": "first"} for ref in orders], "sum": ORDERS},
    voice=Voice,
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop for all runs."""
    with Shop.start(tmp_path_factory.mktemp("shop")) as started:
        yield started


names = itertools.count(1)


def test_no_answer_is_paid_twice_and_no_action_done_twice(shop: Shop, tmp_path: Path, seed: int) -> None:
    """A killed run ends like an uninterrupted one: no logged answer is paid again, and no request violates the protocol."""
    server = warm_server()
    if server is None:
        pytest.skip("this system cannot fork commands")
    chance = random.Random(seed)

    def trial(*, background: bool) -> modelled.Trial:
        name = f"m{next(names)}"
        return modelled.Trial(name, tmp_path / name, PLOT, shop, server, background)

    alone = trial(background=False).run([])
    assert alone.wrong == []
    # Each trial first dies in a different part of the run.
    moments, killed = len(alone.passed) // TRIALS, 0
    for number in itertools.count():
        first = number % TRIALS * moments + chance.randint(1, moments)
        later = [chance.randint(1, LATEST) for _ in range(KILLS - 1)]
        done = trial(background=number % 2 == 1).run([first, *later][: TIMES - killed])
        trace = f"seed {seed}: killed at {done.kills}, background {done.background}"
        assert done.wrong == [], trace
        # An answer still on its way may be requested again; in the background it is fetched.
        twice = 0 if done.background else done.on_the_way
        assert alone.answers <= done.answers <= alone.answers + twice, trace
        assert done.kills, trace
        killed += len(done.kills)
        if killed == TIMES:
            return
