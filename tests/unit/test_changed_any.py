"""Random runs that died or failed, resumed with a randomly changed file: it is refused, or the run equals a new run of it."""

from __future__ import annotations

import asyncio
import collections
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from runtime.recovery import compatibility
from tests import breadth, changed_flows

FEW = range(1, 31)
"""Seeds whose cases include accepted and refused ones."""


def outcome_of(seed: int) -> changed_flows.Outcome | None:
    """The outcome of the seed's case, or None without a case. Raises AssertionError if the outcome is wrong."""
    case = changed_flows.case_of(seed)
    if case is None:
        return None
    with tempfile.TemporaryDirectory() as home:
        return asyncio.run(changed_flows.examine(case, Path(home)))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=breadth.of(6, 40), deadline=None)
def test_a_changed_file_is_refused_or_equals_a_new_run(seed: int) -> None:
    """No action repeats. An accepted file gives output and actions of a new run; a refused one writes nothing, and the run continues unchanged."""
    outcome = outcome_of(seed)
    assume(outcome not in (None, "over"))
    event(str(outcome))


def test_some_are_accepted_and_some_refused() -> None:
    """The cases include accepted and refused changes."""
    counted = collections.Counter(outcome_of(seed) for seed in FEW)
    assert counted["accepted"] >= 5
    assert counted["refused"] >= 2


def no(_comparison: object, _path: str) -> bool:
    """Replaces a check."""
    return False


@pytest.mark.parametrize(("check", "seed"), [("differs", 4), ("differs", 5), ("stays", 9), ("stays", 10)])
def test_a_removed_check_is_detected(check: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ignored change or a repeated finished step changes the run, so the property can fail."""
    outcome_of(seed)
    monkeypatch.setattr(compatibility._Comparison, check, no)
    with pytest.raises(AssertionError):
        outcome_of(seed)


def test_an_action_that_does_not_count_is_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no attempt counts as an action, the site's record shows a repetition, so the property can fail."""
    monkeypatch.setattr(compatibility, "_happened", lambda _attempt: False)
    with pytest.raises(AssertionError, match="done twice"):
        outcome_of(89)
