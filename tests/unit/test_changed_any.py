"""Random workflows that died or failed, changed at random, and resumed: the changed file is refused, or the run is what a new run of it would be."""

from __future__ import annotations

import asyncio
import collections
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from runtime.recovery import comparison, compatibility, dependents
from tests import breadth, changed_flows

FEW = range(1, 31)
"""Seeds among whose cases there are some of each kind."""


def outcome_of(seed: int) -> changed_flows.Outcome | None:
    """What came of the case of a seed; None where there is none. Raises AssertionError where it is not what it should be."""
    case = changed_flows.case_of(seed)
    if case is None:
        return None
    with tempfile.TemporaryDirectory() as home:
        return asyncio.run(changed_flows.examine(case, Path(home)))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=breadth.of(20, 40), deadline=None)
def test_a_changed_file_is_refused_or_as_good_as_new(seed: int) -> None:
    """No action is done twice. Accepted: the output, and what each action sent, are those of a new run of the changed file. Refused: nothing is written, and the run continues as it was."""
    outcome = outcome_of(seed)
    assume(outcome not in (None, "over"))
    event(str(outcome))


def test_some_are_accepted_and_some_refused() -> None:
    """Neither answer is the only one."""
    counted = collections.Counter(outcome_of(seed) for seed in FEW)
    assert counted["accepted"] >= 5
    assert counted["refused"] >= 2


def nothing(*_given: object) -> None:
    """In the place of a check."""


@pytest.mark.parametrize(
    ("check", "seed"), [("by_reference", 10), ("by_reference", 22), ("by_page", 5), ("by_page", 9)]
)
def test_without_a_check_it_is_seen(check: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that one of the checks refuses ends wrong without it: the property can fail."""
    assert outcome_of(seed) == "refused"
    monkeypatch.setattr(dependents, check, nothing)
    with pytest.raises(AssertionError):
        outcome_of(seed)


def test_an_action_that_is_not_known_as_one_is_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger tells where an action counts for nothing: the property can fail."""
    for module in (comparison, compatibility):
        monkeypatch.setattr(module, "happened", lambda _attempt: False)
    with pytest.raises(AssertionError, match="done twice"):
        outcome_of(89)
