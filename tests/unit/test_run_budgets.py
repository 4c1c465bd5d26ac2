"""Budgets of whole runs: where they stop a run, how it continues, and that actual use never exceeds them."""

from __future__ import annotations

import json
import random
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime import events
from runtime.messages import tokens
from runtime.models import requests
from runtime.settings import settings
from runtime.testing import responses, scripted_model
from tests import models
from tests.rig import Rig

NOTES = ["one", "two", "three", "four", "five"]

LOOP = """
version: 1
name: Sort
inputs:
  notes: {type: list}
nodes:
  - id: each
    type: iterate
    over: "{{ inputs.notes }}"
    as: note
    key: "{{ note }}"
    collect: "{{ kind }}"
    nodes:
      - {id: kind, type: cognition, instruction: Sort it., input: "{{ note }}", output: [a, b], max_output: 200}
output: "{{ each }}"
"""

ONE = """
version: 1
name: One
nodes:
  - {id: kind, type: cognition, instruction: Sort it., input: tea, output: [a, b], max_output: 200MORE}
output: "{{ kind }}"
"""

PRICES = {"test-model": {"input": 1, "output": 1}}
FIT = scripted_model.text({"value": "a"}).using(input=100, output=150)
UNFIT = scripted_model.text("Hm.").using(input=100, output=150)


def budgeted(server: responses.Server, patch: pytest.MonkeyPatch, budget: str | None, **more: Any) -> settings.Settings:
    """The settings of a run that uses the server, at a dollar for a million tokens."""
    return models.asked_at(server, patch, budget=budget, prices=PRICES, **more)


def paid(rig: Rig) -> int:
    """The number of answered requests."""
    return sum(row.status == "ok" and row.source == "model" for row in rig.history.ledger.rows)


def reached(ended: events.RunEnded) -> dict[str, Any]:
    """The evidence of a run that is out of budget."""
    assert (ended.status, ended.exit) == ("out-of-budget", 5)
    assert ended.error is not None
    assert ended.error["code"] == "budget-reached"
    return ended.error["evidence"]


@pytest.mark.parametrize(
    ("few", "stopped_after", "more"),
    [("calls=2", 2, "calls=10"), ("tokens=1200", 3, "tokens=10k"), ("money=0.0012usd", 3, "money=1usd")],
    ids=["calls", "tokens", "money"],
)
async def test_a_run_stops_before_it_spends_too_much_and_continues_with_more(
    few: str, stopped_after: int, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the step and the paid amount; with a larger budget only the remaining requests are made."""
    with responses.serve([FIT] * 5, strict=True) as server:
        rig = Rig(tmp_path, LOOP, inputs={"notes": NOTES}, settings=budgeted(server, monkeypatch, few))
        ended = await rig.start()
        evidence = reached(ended)
        assert (evidence["of"], f"{evidence['part']}={evidence['limit']}") == ("run", few)
        assert ended.path is not None
        assert ended.path.startswith("each[")
        assert ended.path.endswith("/kind")
        assert (len(server.asked), paid(rig)) == (stopped_after, stopped_after)
        rig.settings = budgeted(server, monkeypatch, more)
        ended = await rig.resume()
        assert (ended.status, ended.output) == ("passed", ["a"] * 5)
        assert (len(server.asked), paid(rig)) == (5, 5)


async def test_time_is_that_of_waiting_for_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that used up its waiting time makes no more requests, and continues with more time; no answer is paid twice."""

    def slow(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        time.sleep(0.2)
        return FIT

    with responses.serve(slow) as server:
        rig = Rig(tmp_path, LOOP, inputs={"notes": NOTES}, settings=budgeted(server, monkeypatch, "time=0.5s"))
        assert reached(await rig.start())["part"] == "time"
        first = paid(rig)
        assert first < 5
        assert sum(row.seconds for row in rig.history.ledger.rows) >= 0.499
        rig.settings = budgeted(server, monkeypatch, "time=10m")
        assert (await rig.resume()).output == ["a"] * 5
        assert paid(rig) == 5
        assert server.problems == []


async def test_a_background_answer_is_waited_for_no_longer_than_the_budget_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time budget limits polling too: the response is cancelled at the server, and the run is out of budget."""
    with responses.serve([FIT.in_background(seconds=3600)], strict=True) as server:

        def now() -> float:
            # The time is over once the server has the request, however fast this machine is.
            return time.monotonic() + (600 if server.requests else 0)

        monkeypatch.setattr(requests, "time", types.SimpleNamespace(monotonic=now))
        rig = Rig(
            tmp_path, ONE.replace("MORE", ""), settings=budgeted(server, monkeypatch, "time=10m", model_background=True)
        )
        assert reached(await rig.start())["part"] == "time"
        assert [each.path.rpartition("/")[2] for each in server.requests if each.method == "POST"] == [
            "responses",
            "cancel",
        ]


async def test_a_step_has_a_budget_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step's budget stops it however much the run has left, and the error names the step's budget."""
    text = ONE.replace("MORE", ", budget: {calls: 2}")
    with responses.serve([UNFIT, UNFIT, FIT], strict=True) as server:
        rig = Rig(tmp_path, text, settings=budgeted(server, monkeypatch, "calls=1000"))
        evidence = reached(await rig.start())
        assert (evidence["of"], evidence["part"], evidence["limit"]) == ("step", "calls", "2")
        assert reached(await rig.resume())["of"] == "step"
        assert len(server.asked) == 2
        ended = await rig.resume_changed(text.replace("calls: 2", "calls: 3"))
        assert ended.output == "a"
        # The continued conversation has the paid answers.
        assert [len(each.items) for each in server.asked] == [1, 3, 5]


async def test_a_step_without_a_budget_has_the_default_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless attempts and retries stop after twenty requests."""
    text = ONE.replace("MORE", ", retry: {attempts: 10, delay: 0}")
    with responses.serve(lambda _: scripted_model.rate_limited(milliseconds=0)) as server:
        rig = Rig(tmp_path, text, settings=budgeted(server, monkeypatch, None))
        evidence = reached(await rig.start())
        assert (evidence["of"], evidence["budget"]) == ("step", "tokens=100k,calls=20,time=10m")
        assert len(server.asked) == 20


CATCHING = {
    "on_error": ONE.replace("MORE", ", on_error: continue, retry: {attempts: 2, delay: 0}").partition('output: "')[0],
    "each_error": LOOP.replace('key: "{{ note }}"', 'key: "{{ note }}"\n    each_error: continue'),
    "handle": """
version: 1
name: Caught
nodes:
  - id: guarded
    type: handle
    try:
      - {id: kind, type: cognition, instruction: Sort it., input: tea, output: [a, b]}
    catch:
      - {id: told, type: transform, expr: "{{ error.code }}"}
""",
}


@pytest.mark.parametrize("name", CATCHING)
async def test_nothing_catches_a_budget(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reached budget stops the run whatever error handling its author wrote."""
    with responses.serve([]) as server:
        rig = Rig(
            tmp_path, CATCHING[name], inputs={"notes": NOTES}, settings=budgeted(server, monkeypatch, "tokens=100")
        )
        reached(await rig.start())
        assert server.asked == []
    assert "guarded/catch/told" not in rig.history.attempts


async def test_retry_makes_attempts_with_conversations_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that the model failed is followed by one with a new thread; the budget continues from the first."""
    text = ONE.replace("MORE", ", budget: {calls: 4}, retry: {attempts: 2, delay: 0}")
    with responses.serve([UNFIT] * 3 + [FIT], strict=True) as server:
        rig = Rig(tmp_path, text, settings=budgeted(server, monkeypatch, None))
        assert (await rig.start()).output == "a"
        assert [len(each.items) for each in server.asked] == [1, 3, 5, 1]
    assert rig.calls("kind") == ["error", "ok"]
    assert len({row.thread for row in rig.history.ledger.rows}) == 2


LATE = {
    "hang": (scripted_model.hang(), {}),
    "wait that is asked for": (scripted_model.rate_limited(30), {}),
    "background": (FIT.in_background(seconds=3600), {"model_background": True}),
}


@pytest.mark.parametrize("name", LATE)
async def test_the_timeout_of_a_node_bounds_everything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting, polling and pauses between retries end with the attempt's timeout, and the run reports why it failed."""
    answer, more = LATE[name]
    with responses.serve(lambda _: answer) as server:
        rig = Rig(tmp_path, ONE.replace("MORE", ", timeout: 1"), settings=budgeted(server, monkeypatch, None, **more))
        begun = time.monotonic()
        ended = await rig.start()
        assert time.monotonic() - begun < 25
        assert server.problems == []
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error["code"] in ("model-timeout", "model-rate-limited")


# Actual use

ERROR = 0.05
"""The fraction by which the estimate of a request's input may be too low."""


def counted(factor: float) -> Callable[[str], int]:
    """A server that counts ``factor`` times as many tokens as RunOps does."""
    return lambda text: int(tokens.count(text) * factor)


def really_used(server: responses.Server) -> int:
    """The tokens of all finished responses, by the usage that the server sent."""
    total = 0
    for each in server.asked:
        events_sent = [line[6:] for line in each.sent.decode().splitlines() if line.startswith("data: ")]
        ends = [json.loads(text) for text in events_sent if '"usage"' in text]
        usages = [end["response"]["usage"] for end in ends if end.get("response", {}).get("usage")]
        total += sum(usage["total_tokens"] for usage in usages[-1:])
    return total


def drawn(chance: random.Random) -> scripted_model.Scripted:
    """An answer of any allowed length, or a fault."""
    short = scripted_model.text({"value": chance.choice("ab")})
    ramble = scripted_model.thought("so " * chance.randint(1, 25)) + short
    again = scripted_model.rate_limited(milliseconds=0)
    return chance.choice(
        [short, ramble, ramble, scripted_model.text("no " * chance.randint(1, 30)), again, scripted_model.cut("{")]
    )


async def bounded(chance: random.Random, folder: Path, patch: pytest.MonkeyPatch) -> tuple[int, int, int, int]:
    """A run with a budget: its limit, its use, the allowed error and the number of requests."""
    factor, limit = chance.choice([0.3, 1.0, 1 + ERROR, 1 + ERROR]), chance.randint(400, 3000)
    notes = [" ".join(chance.choices(NOTES, k=chance.randint(1, 400))) + str(number) for number in range(6)]
    script = [drawn(chance) for _ in range(200)]
    with responses.serve(script, tokens=counted(factor)) as server:
        # Short answers: their unused limit must not hide an input that is too large.
        text = LOOP.replace("max_output: 200", "max_output: 40")
        rig = Rig(folder, text, inputs={"notes": notes}, settings=budgeted(server, patch, f"tokens={limit}"))
        ended = await rig.start()
        assert ended.status == "out-of-budget" or really_used(server) <= limit, ended
        assert server.problems == []
        largest = max((row.estimate for row in rig.history.ledger.rows), default=0)
        return limit, really_used(server), int(largest * ERROR) + 1, len(server.asked)


async def test_actual_use_never_exceeds_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chance: random.Random
) -> None:
    """Use exceeds the budget at most by the estimation error of one request's input, if servers count up to 5 % more than RunOps."""
    runs = [await bounded(chance, tmp_path / str(number), monkeypatch) for number in range(12)]
    assert [each for each in runs if each[1] > each[0] + each[2]] == []
    # A budget that allows no request would pass too, and prove nothing.
    assert sum(each[3] for each in runs) > 12
