"""A run that asks a model dies anywhere and continues: ``make crash`` kills it everywhere, this at a few moments of each way."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from tests import breadth
from tests.kills import asked


@pytest.mark.parametrize("way", asked.WAYS)
def test_an_answer_is_paid_once_wherever_the_run_dies(way: str, tmp_path: Path, chance: random.Random) -> None:
    """Killed at any crash point, and again on the way back, the run comes to the same output, and pays no answer twice that its log has."""
    numbers = [chance.randint(1, 1000) for _ in range(breadth.of(6, 12))]
    reports = asked.examine(way, numbers, chance, tmp_path)
    assert [asked.as_json(each) for each in reports if each.wrong] == []


def test_a_run_that_forgets_its_answers_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: where the log's answers are not looked up, the same harness says that something was paid twice."""
    monkeypatch.setattr("runtime.log.ledger.Ledger.answer", lambda *_given: None)
    with contextlib.closing(asked.examine("live", None, random.Random(1), tmp_path)) as reports:
        # Found out once it is found out.
        assert any("answers were given" in each for report in reports for each in report.wrong)
