"""Killed at twelve crash points that a seed draws: the command as a process, a real Chromium, a model behind the real client, the shop's ledger as a judge.

``tests/kills/asked.py`` does it at every crash point with a page that is faked.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import random
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nodes.values import Json
from runtime import history, log, store
from runtime.testing import responses, scripted
from tests import shop_flows, warm
from tests.command import Project, warm_server
from tests.kills import disk, mortal
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
TWELVE = 12
"""So many times a run is killed in all."""

TRIALS, KILLS = 4, 3
"""In so many trials, each so often; there are more where one came to its end before."""

LATEST = 14
"""The last crash point at which a resume is killed; hardly one passes fewer."""

SECONDS = 180.0
"""How long a command may take. None does; one that hangs is to be seen."""

NOTHING_SENT = ("requested", "request-synced")
"""Crash points at which a request is announced, and nothing is sent."""


class Voice:
    """The model. Its first answer to the second order does not fit, and the first request of all comes in a rush hour."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, asked: scripted.Asked) -> scripted.Scripted:
        """What it says to a request."""
        if not self.refused:
            self.refused = True
            return scripted.rate_limited(milliseconds=1)
        question = scripted.text_of(asked.items[0])
        if '"pieces"' in question:
            return scripted.text({"value": ORDERS}).in_background(polls=0)
        if "-2" in question and len(asked.items) == 1:
            return scripted.text("Hm.").in_background(polls=0)
        answer = scripted.thought("Let me see.") + scripted.text({"article": "first"})
        return answer.in_background(polls=int(len(asked.items) == 1))


@dataclasses.dataclass
class Trial:
    """One run in a folder of its own, which is killed and gone on with to its end."""

    name: str
    folder: Path
    shop: Shop
    server: warm.Warm
    background: bool
    kills: list[str] = dataclasses.field(default_factory=list)
    """The crash points at which it died."""
    on_the_way: int = 0
    """In how many deaths a request was sent, and nothing had come of it."""
    answers: int = 0
    """How many answers the model gave."""
    output: Json = None
    wrong: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the folder."""
        self.folder.mkdir()
        self.orders = [f"{self.name}-{number}" for number in range(1, ORDERS + 1)]
        self._project = Project(self.folder, SHOP_PASSWORD=self.shop.password, RUNOPS_LINGER="120")
        self._project.write("flow.yaml", FLOW)
        given = {"base_url": self.shop.url, "references": self.orders}
        self._project.write("inputs.json", json.dumps(given))
        self._record = self.folder.parent / f"{self.name}.record"

    @property
    def passed(self) -> list[str]:
        """The crash points that were passed so far, in order."""
        return [each["point"][1] for each in disk.read(self._record) if "point" in each]

    def run(self, deaths: Sequence[int]) -> Trial:
        """Run it to its end. Its lives die at these crash points, each from 1."""
        with responses.serve(Voice()) as model:
            self._project.environment |= {
                "RUNOPS_MODEL": "test-model",
                "RUNOPS_MODEL_BASE_URL": model.url,
                "RUNOPS_MODEL_KEY": model.key,
                "RUNOPS_MODEL_PROFILE": "openai",
                "RUNOPS_MODEL_BACKGROUND": str(self.background).lower(),
            }
            for deadly in (*deaths, 0):
                if self._life(deadly):
                    break
            self.answers = sum(each.status == 200 for each in model.asked)
            self.wrong += model.problems
        self._judge()
        return self

    def _life(self, deadly: int) -> bool:
        """Begin or go on; whether it came to its end."""
        begins = not any(b"\n" in each.read_bytes() for each in self.folder.glob(".runops/conversations/*.jsonl"))
        arguments = (
            ["run", "flow.yaml", "--inputs", "inputs.json", "--json"] if begins else ["resume", "last", "--json"]
        )
        fate = mortal.Fate(str(self._record), any=deadly, begins=begins)
        environment = {**self._project.environment, **fate.environment()}
        with self.server.start(arguments, self.folder, environment) as process:
            ended = process.result(SECONDS)
        if ended.returncode == -signal.SIGKILL:
            self.kills.append(self.passed[-1])
            sent = self.kills[-1] not in NOTHING_SENT
            self.on_the_way += sent and any(row.status == "open" for row in self._history().ledger.rows)
            return False
        if ended.returncode != 0:
            self.wrong.append(f"exit {ended.returncode}: {ended.stderr[-1500:]}")
            return True
        told = json.loads(ended.stdout)
        self.output = told.get("runs", [told])[0]["output"]
        return True

    def _entries(self) -> list[log.AnyEntry]:
        kept = store.FileStore(self.folder / ".runops")
        return [entry for run in kept.ids() for entry in kept.read(run).entries]

    def _history(self) -> history.History:
        return history.History(self._entries())

    def _judge(self) -> None:
        past = self._history()
        self.wrong += [f"the call {each.call.call} is open" for each in past.open_calls()]
        paid = [row.response for row in past.ledger.rows if row.status == "ok" and row.source == "model"]
        self.wrong += [
            f"{each} was paid {times} times" for each, times in collections.Counter(paid).items() if times > 1
        ]
        due = [{"ref": ref, "pieces": "1", "wish": "first"} for ref in self.orders]
        if self.output != {"orders": due, "sum": ORDERS}:
            self.wrong.append(f"the output is {self.output}")
        for ref in self.orders:
            times = len(self.shop.ledger("cart", ref))
            if times != 1:
                self.wrong.append(f"{ref} was put into the cart {times} times")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop for all runs."""
    with Shop.start(tmp_path_factory.mktemp("shop")) as started:
        yield started


names = itertools.count(1)


def test_no_answer_is_paid_twice_and_no_deed_done_twice(
    shop: Shop, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Wherever the run dies, it ends as one that was left alone: what the log has is not paid again, and nothing is asked that the protocol forbids."""
    server = warm_server()
    if server is None:
        pytest.skip("this system cannot fork commands")
    seed: int = pytestconfig.option.randomly_seed
    chance = random.Random(seed)

    def trial(*, background: bool) -> Trial:
        name = f"m{next(names)}"
        return Trial(name, tmp_path / name, shop, server, background)

    alone = trial(background=False).run([])
    assert alone.wrong == []
    # Each trial dies first in another part of the run.
    moments, killed = len(alone.passed) // TRIALS, 0
    for number in itertools.count():
        first = number % TRIALS * moments + chance.randint(1, moments)
        later = [chance.randint(1, LATEST) for _ in range(KILLS - 1)]
        done = trial(background=number % 2 == 1).run([first, *later][: TWELVE - killed])
        told = f"seed {seed}: killed at {done.kills}, background {done.background}"
        assert done.wrong == [], told
        # An answer that was on its way may be asked for again; in the background it is fetched.
        twice = 0 if done.background else done.on_the_way
        assert alone.answers <= done.answers <= alone.answers + twice, told
        assert done.kills, told
        killed += len(done.kills)
        if killed == TWELVE:
            return
