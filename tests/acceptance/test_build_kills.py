"""`runops build`, killed at random written entries and crash points; ``make crash`` kills it at each of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import breadth, warm
from tests.command import warm_server
from tests.kills import built, controls
from tests.shop_process import Shop

CASES = {
    "streamed": (built.Case("streamed"), breadth.of(2, 20)),
    "chained": (built.Case("chained"), breadth.of(1, 12)),
    "background": (built.Case("background"), breadth.of(1, 12)),
    "power": (built.Case("streamed", power=True), breadth.of(1, 20)),
}
"""Variants of killing a build with a faked page, with the number of kills for each."""

REAL = breadth.of(1, 12)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop for all builds."""
    with Shop.start(tmp_path_factory.mktemp("shop")) as started:
        yield started


def server() -> warm.Warm:
    """The server that forks the commands."""
    found = warm_server()
    if found is None:
        pytest.skip("this system cannot fork commands")
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> built.Trial:
    """A build that is not killed."""
    done = built.Bench(tmp_path_factory.mktemp("alone"), None, server()).run(built.Case())
    assert done.wrong == []
    return done


@pytest.mark.drawn(1)
@pytest.mark.parametrize("way", CASES)
def test_a_killed_build_ends_as_one_that_was_left_alone(
    way: str, alone: built.Trial, tmp_path: Path, seed: int
) -> None:
    """A killed build saves the same file, repeats no call of the model, pays no logged answer again, and performs no action without a call."""
    chance = random.Random(f"{seed} {way}")
    bench = built.Bench(tmp_path, None, server())
    case, times = CASES[way]
    draws = [chance.randrange(10**6) for _ in range(times)]
    for done in built.examine(bench, case, draws, chance, alone=alone):
        assert done.wrong == [], f"seed {seed}: {done.case}, killed at {done.kills}"


@pytest.mark.drawn(0)
def test_a_killed_build_acts_on_the_shop_once_per_call(shop: Shop, tmp_path: Path, seed: int) -> None:
    """With a real browser, the shop's ledger has at most one action for each call."""
    chance = random.Random(seed)
    bench = built.Bench(tmp_path, shop, server())
    draws = [chance.randrange(10**6) for _ in range(REAL)]
    for done in built.examine(bench, built.Case(page="shop"), draws, chance):
        assert done.wrong == [], f"seed {seed}: {done.case}, killed at {done.kills}"


@pytest.mark.drawn(0)
@pytest.mark.parametrize("control", built.CONTROLS)
def test_a_build_that_ignores_its_log_is_detected(
    control: controls.Control, alone: built.Trial, tmp_path: Path
) -> None:
    """The check detects a build that forgets an answer and skips its tools, and one that repeats a call already begun."""
    bench = built.Bench(tmp_path, None, server())
    assert built.deviations(bench, control, alone)
