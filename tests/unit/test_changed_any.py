"""Random workflows that died or failed, changed at random, and resumed: the changed file is refused, or the run is what a new run of it would be."""

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
"""Seeds among whose cases there are some of each kind."""


def outcome_of(seed: int) -> changed_flows.Outcome | None:
    """What came of the case of a seed; None where there is none. Raises AssertionError where it is not what it should be."""
    case = changed_flows.case_of(seed)
    if case is None:
        return None
    with tempfile.TemporaryDirectory() as home:
        return asyncio.run(changed_flows.examine(case, Path(home)))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=breadth.of(6, 40), deadline=None)
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


def no(_comparison: object, _path: str) -> bool:
    """In the place of a check."""
    return False


@pytest.mark.parametrize(("check", "seed"), [("differs", 4), ("differs", 5), ("stays", 9), ("stays", 10)])
def test_without_a_check_it_is_seen(check: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is not seen, or a finished step that does not stay, makes another run: the property can fail."""
    outcome_of(seed)
    monkeypatch.setattr(compatibility._Comparison, check, no)
    with pytest.raises(AssertionError):
        outcome_of(seed)


def test_an_action_that_is_not_known_as_one_is_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger tells where an action counts for nothing: the property can fail."""
    monkeypatch.setattr(compatibility, "_happened", lambda _attempt: False)
    with pytest.raises(AssertionError, match="done twice"):
        outcome_of(89)
