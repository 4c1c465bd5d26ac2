"""A run that asks a model dies anywhere and resumes: ``make crash`` kills it at each point, this test at some."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from tests import breadth
from tests.kills import asked


@pytest.mark.parametrize("way", asked.WAYS)
def test_an_answer_is_paid_once_wherever_the_run_dies(way: str, tmp_path: Path, chance: random.Random) -> None:
    """Killed at any point, and again on resume, the run has the same output, and pays no logged answer twice."""
    numbers = [chance.randint(1, 1000) for _ in range(breadth.of(6, 12))]
    reports = asked.examine(way, numbers, chance, tmp_path)
    assert [asked.as_json(each) for each in reports if each.wrong] == []


@pytest.mark.drawn(0)
def test_a_run_that_ignores_its_logged_answers_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: if logged answers are not looked up, the harness reports that an answer was paid twice."""
    monkeypatch.setattr("runtime.log.ledger.Ledger.answer", lambda *_given: None)
    with contextlib.closing(asked.examine("live", None, random.Random(1), tmp_path)) as reports:
        # One report is enough.
        assert any("answers were given" in each for report in reports for each in report.wrong)
