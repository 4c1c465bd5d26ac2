"""The last lines of a command with several cases."""

from __future__ import annotations

from pathlib import Path

from runtime import events
from runtime.cli import batch_summary
from runtime.runs import results


def outcome(case: str, status: events.RunStatus, code: int, seconds: float = 40.0) -> results.Outcome:
    one = results.Outcome(results.Case(Path(case)))
    one.begin().end(events.RunEnded(f"R-{case}", status, code, seconds), code)
    return one


def test_the_time_is_that_of_the_command() -> None:
    """Runs beside each other took longer together: that is said in words, and only if the difference is large."""
    two = [outcome("a", "passed", 0), outcome("b", "passed", 0)]
    assert batch_summary.lines(two, 45.0)[0] == "2 passed  45 s  (1 min 20 s of runs)"
    assert batch_summary.lines(two, 82.0)[0] == "2 passed  1 min 22 s"


def test_the_first_cases_that_did_not_pass_are_named_with_their_commands() -> None:
    """Three of them, and every one that was interrupted; one alone needs no name."""
    several = [outcome("fine", "passed", 0), *(outcome(name, "failed", 1) for name in "abcd")]
    several.append(outcome("e", "interrupted", 130))
    shown = batch_summary.lines(several, 240.0)[1 + len(several) :]
    looks = [
        line
        for each in "abc"
        for line in (f"  look   runops show R-{each}   # {each}", f"  again  runops resume R-{each}")
    ]
    assert shown == [*looks, "  again  runops resume R-e"]
    assert batch_summary.lines([outcome("a", "failed", 1)], 40.0)[-2:] == [
        "  look   runops show R-a", "  again  runops resume R-a",
    ]  # fmt: skip
