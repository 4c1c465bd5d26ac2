"""Killed at four moments of actions that a seed draws (at twelve in `make test-all`), killed again as it continues: the command as a process, a real Chromium, the shop's ledger as the judge.

``make crash`` does it at every moment.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import warm_server
from tests.kills import plan, trial
from tests.shop_process import Shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop for all checkouts of this module."""
    with Shop.start(tmp_path_factory.mktemp("shop")) as started:
        yield started


names = itertools.count(1)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", range(6))
def test_no_order_is_paid_twice(number: int, shop: Shop, tmp_path: Path, seed: int) -> None:
    """Wherever it dies, a checkout ends as one that was left alone: each order paid once, without asking where `confirm` can tell, and after a question where nobody can."""
    server = warm_server()
    if server is None:
        pytest.skip("this system cannot fork commands")
    case = plan.drawn(seed)[number]
    while case.kills:
        name = f"t{next(names)}"
        report = trial.Trial(case, name, tmp_path / name, shop, server).run()
        assert report.fine, f"seed {seed}: {report}"
        assert report.reached, f"seed {seed}: {report}"
        # What a resume went through before it died is come to without one.
        missed = tuple(each for each in case.kills if each not in report.reached)
        case = dataclasses.replace(case, kills=missed, again=())


@pytest.mark.drawn(0)
def test_a_broken_engine_is_found_out(shop: Shop, tmp_path: Path, seed: int) -> None:
    """An engine that is wrong in one of four ways, drawn by the seed, loses an action or does it twice, and the ledger shows it."""
    server = warm_server()
    if server is None:
        pytest.skip("this system cannot fork commands")
    case = plan.CONTROLS[seed % len(plan.CONTROLS)]
    report = trial.Trial(case, f"c{next(names)}", tmp_path / "trial", shop, server).run()
    assert report.lost or report.doubled, report
