"""Runs killed at four random moments of an action (twelve in `make test-all`) and again on resume: a real command, Chromium and shop ledger.

``make crash`` covers every moment.
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
    """A killed checkout ends like an uninterrupted one: each order is paid once. It asks a person only where `confirm` cannot tell."""
    server = warm_server()
    if server is None:
        pytest.skip("this system cannot fork commands")
    case = plan.drawn(seed)[number]
    while case.kills:
        name = f"t{next(names)}"
        report = trial.Trial(case, name, tmp_path / name, shop, server).run()
        assert report.fine, f"seed {seed}: {report}"
        assert report.reached, f"seed {seed}: {report}"
        # A resume repeats no earlier step, so a crash point that it skipped needs its own kill.
        missed = tuple(each for each in case.kills if each not in report.reached)
        case = dataclasses.replace(case, kills=missed, again=())


@pytest.mark.drawn(0)
def test_a_broken_engine_is_detected(shop: Shop, tmp_path: Path, seed: int) -> None:
    """The ledger reveals an engine with one of four seeded defects: it loses an action or repeats one."""
    server = warm_server()
    if server is None:
        pytest.skip("this system cannot fork commands")
    case = plan.CONTROLS[seed % len(plan.CONTROLS)]
    report = trial.Trial(case, f"c{next(names)}", tmp_path / "trial", shop, server).run()
    assert report.lost or report.doubled, report
