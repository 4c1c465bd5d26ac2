"""`runops chat`, killed at random written entries and crash points; ``make crash`` kills it at each of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import breadth, warm
from tests.command import warm_server
from tests.kills import controls, said, talked
from tests.shop_process import Shop

EACH = breadth.of(1, 3)
"""Number of kills for each variant."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop for all sessions."""
    with Shop.start(tmp_path_factory.mktemp("shop")) as started:
        yield started


def server() -> warm.Warm:
    """The server that forks the commands."""
    found = warm_server()
    if found is None:
        pytest.skip("this system cannot fork commands")
    return found


CASES = {**{way: talked.Case(way) for way in said.WAYS}, "power": talked.Case("streamed", power=True)}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("way", CASES)
def test_a_killed_session_ends_like_an_uninterrupted_one(way: str, tmp_path: Path, seed: int) -> None:
    """A killed session sends the same requests, repeats none that the log has answered, and shows the same messages, tools, plan, summary, delegates, run and fork."""
    chance = random.Random(f"{seed} {way}")
    bench = talked.Bench(tmp_path, None, server())
    draws = [chance.randrange(10**6) for _ in range(EACH)]
    for done in talked.examine(bench, CASES[way], draws, chance):
        assert done.wrong == [], f"seed {seed}: {done.case}, killed at {done.kills}"


@pytest.mark.drawn(0)
def test_a_run_of_a_killed_session_orders_once(shop: Shop, tmp_path: Path, seed: int) -> None:
    """A killed session resumes its run, with or without a surviving browser, and reports its outcome to the model once."""
    chance = random.Random(seed)
    bench = talked.Bench(tmp_path, shop, server())
    draws = [chance.randrange(10**6) for _ in range(EACH)]
    case = talked.Case("streamed", shop=True, survives=chance.random() < 0.5)
    for done in talked.examine(bench, case, draws, chance):
        assert done.wrong == [], f"seed {seed}: {done.case}, killed at {done.kills}"


@pytest.mark.drawn(0)
@pytest.mark.parametrize("control", talked.CONTROLS)
def test_a_session_that_ignores_its_log_is_detected(control: controls.Control, tmp_path: Path) -> None:
    """The check detects a session that forgets an answer, and requests it again or skips its tools, and one that calls a delegate again."""
    bench = talked.Bench(tmp_path, None, server())
    alone = bench.run(talked.Case("streamed"))
    assert alone.wrong == []
    assert talked.deviations(bench, control, alone)
