"""When a case gets another run, when no further case is begun, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import SetupError
from runtime import events
from runtime.batch.policy import Policy
from runtime.language import reader
from runtime.runs import results

EXITS: dict[events.RunStatus, int] = {
    "passed": 0, "failed": 1, "paused": 4, "interrupted": 130, "out-of-budget": 5, "replaced": 75,
}  # fmt: skip
STATUSES = st.sampled_from([*EXITS])


def outcome(*statuses: events.RunStatus, head: str = "", code: int | None = None) -> results.Outcome:
    """A case with runs that ended so."""
    loaded = reader.parse(f"version: 1\n{head}nodes: [{{id: a, type: transform, expr: 1}}]\n", "x.yaml")
    one = results.Outcome(results.Case(Path("x.yaml"), loaded))
    for number, status in enumerate(statuses):
        exit_code = EXITS[status] if code is None else code
        one.begin().end(events.RunEnded(f"R{number}", status, exit_code, 1.0), exit_code)
    return one


@pytest.mark.parametrize("status", EXITS)
def test_only_a_failed_run_is_retried(status: events.RunStatus) -> None:
    """One that waits, was interrupted, has no budget or another owner is not: a new run would change nothing, or do something twice."""
    assert Policy(retries=1).retries_now(outcome(status)) is (status == "failed")


def test_a_run_that_failed_by_our_fault_or_its_file_is_not_retried() -> None:
    """Only exit code 1 is the workflow's failure. A case without a run has nothing to retry."""
    assert not Policy(retries=1).retries_now(outcome("failed", code=70))
    assert not Policy(retries=1).retries_now(outcome())
    refused = outcome()
    refused.begin().refuse(SetupError("browser-not-found", "none"))
    assert not Policy(retries=1).retries_now(refused)


@given(st.integers(0, 5))
def test_a_case_that_always_fails_has_one_run_more_than_retries(retries: int) -> None:
    policy, ran = Policy(retries=retries), list[events.RunStatus](["failed"])
    while policy.retries_now(outcome(*ran)):
        ran.append("failed")
    assert len(ran) == retries + 1


def test_a_file_can_forbid_retries_and_the_case_says_so() -> None:
    """It says so only where a retry was asked for and could have followed."""
    never = outcome("failed", head="rerun: never\n")
    assert not Policy(retries=2).retries_now(never)
    Policy().note(never)
    assert never.notes == []
    Policy(retries=2).note(never)
    assert never.notes == ["not retried: its file says `rerun: never`"]
    passed = outcome("passed", head="rerun: never\n")
    Policy(retries=2).note(passed)
    assert passed.notes == []


@given(st.lists(STATUSES, max_size=8), st.integers(1, 4))
def test_enough_failures_end_the_command_and_pauses_never_do(statuses: Sequence[events.RunStatus], most: int) -> None:
    failed = sum(status not in ("passed", "paused") for status in statuses)
    ended = [outcome(status) for status in statuses]
    assert Policy(max_failures=most).is_over(ended) is (failed >= most)
    assert not Policy().is_over(ended)


def test_a_case_that_is_retried_is_no_failure_yet() -> None:
    assert not Policy(retries=1, max_failures=1).is_over([outcome("failed")])
    assert Policy(retries=1, max_failures=1).is_over([outcome("failed", "failed")])


def test_flaky_cases_pass_unless_they_may_not() -> None:
    """A flaky case has exit code 0, and 1 with `--fail-on-flaky`, where it also counts as a failure, and says why."""
    lenient, strict = Policy(max_failures=1), Policy(fail_on_flaky=True, max_failures=1)
    for policy, code, notes in ((lenient, 0, []), (strict, 1, ["it counts as failed: `--fail-on-flaky`"])):
        flaky = outcome("failed", "passed")
        policy.note(flaky)
        assert (flaky.state, flaky.exit, policy.codes([flaky]), flaky.notes) == ("flaky", code, [code], notes)
        assert policy.is_over([flaky]) == bool(code)
    assert strict.codes([outcome("passed"), outcome()]) == [0]
