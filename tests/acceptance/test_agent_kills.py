"""A run with a cognition, an ai_extract and an agent, killed at random crash points; ``make crash`` kills it at each of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import breadth
from tests.command import warm_server
from tests.kills import agents
from tests.shop_process import Shop

EACH = breadth.of(1, 2)
"""Number of kills for each of the four combinations."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop for all runs."""
    with Shop.start(tmp_path_factory.mktemp("shop")) as started:
        yield started


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("way", "survives"), agents.WAYS)
def test_a_killed_agent_repeats_no_action(
    way: agents.Way, survives: bool, shop: Shop, tmp_path: Path, seed: int
) -> None:
    """A model that would repeat its actions causes none twice: after a kill the runtime consults the conversation, the site or a person."""
    server = warm_server()
    if server is None:
        pytest.skip("this system cannot fork commands")
    chance = random.Random(f"{seed} {way} {survives}")
    numbers = [chance.randint(1, 1000) for _ in range(EACH)]
    bench = agents.Bench(tmp_path, shop, server)
    for done in agents.examine(bench, way, numbers, chance, survives=survives, jobs=1):
        assert done.wrong == [], f"seed {seed}: killed at {done.kills}"
