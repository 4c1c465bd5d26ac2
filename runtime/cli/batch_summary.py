"""The last lines of a command with several cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from runtime.cli import foreground_run
from runtime.display import costs, escapes
from runtime.display.text import count, duration, one_line
from runtime.log import ledger
from runtime.runs import results

STATES: dict[results.State, str] = {
    "passed": "passed",
    "flaky": "flaky",
    "failed": "FAILED",
    "paused": "PAUSED",
    "interrupted": "INTERRUPTED",
    "out-of-budget": "OUT OF BUDGET",
    "replaced": "REPLACED",
    "error": "NOT RUN",
    "begun": "BEGUN",
    "skipped": "skipped",
}


def retry(outcome: results.Outcome, retries: int) -> str:
    """Announce another run of a case that has failed."""
    last = outcome.last
    assert last is not None
    where = f" at {one_line(outcome.step)}" if outcome.step else ""
    case = escapes.line(outcome.case.id)
    return f"-- retry {len(outcome.runs)}/{retries} of {case} (run {last.id} failed{where})"


def why(outcome: results.Outcome) -> str:
    """Return what a person must know of an outcome beside its state, on one line."""
    if outcome.state == "flaky":
        first = next(each for each in outcome.runs if each.state == "failed")
        problem = (first.ended.error if first.ended is not None else None) or {}
        step = first.ended.path if first.ended is not None else None
        shown = f"run {first.id} failed  {step or ''}  {problem.get('message', '')}"
    else:
        times = f"  ({count(len(outcome.runs), 'run')})" if len(outcome.runs) > 1 else ""
        shown = f"{outcome.step or ''}  {(outcome.problem or {}).get('message', '')}{times}"
    return one_line("  ".join(filter(None, [shown.strip(), *outcome.notes])))


def line(outcome: results.Outcome, wide: int = 0) -> str:
    ran = f"{outcome.run}  {duration(outcome.seconds)}" if outcome.run is not None else ""
    name = escapes.line(outcome.case.id)
    return f"  {STATES[outcome.state]:<11}  {name:<{wide}}  {ran}  {why(outcome)}".rstrip()


NAMED = 3
"""Cases that did not pass whose next commands are shown; the runs of all are in the lines above."""

OVERLAP = 1.5
"""How much longer the runs together must have taken than the command, to be named beside it."""


def lines(ended: Sequence[results.Outcome], elapsed: float) -> list[str]:
    """Sum up the cases of a command that took ``elapsed`` seconds."""
    tally = Counter(each.state for each in ended)
    counts = [f"{tally[state]} {word.lower()}" for state, word in STATES.items() if tally[state]]
    worked = sum(each.seconds for each in ended)
    together = f"  ({duration(worked)} of runs)" if worked > OVERLAP * elapsed else ""
    shown = [f"{', '.join(counts)}  {duration(elapsed)}{together}"]
    wide = max(len(escapes.line(each.case.id)) for each in ended)
    shown += [line(each, wide) for each in ended]
    runs = [run.ended for each in ended for run in each.runs if run.ended is not None]
    spent = [each.costs for each in runs if each.costs is not None]
    if spent:
        shown.append(f"  cost   {costs.render(ledger.together(spent))}")
    stopped = [each for each in ended if each.run is not None and each.state not in ("passed", "flaky")]
    for each in stopped[:NAMED]:
        case = f"   # {escapes.line(each.case.id)}" if len(stopped) > 1 else ""
        shown += [f"  look   runops show {each.run}{case}", *_following(each)]
    for each in [one for one in ended if one.state == "flaky"][:NAMED]:
        failed = next(run for run in reversed(each.runs) if run.state == "failed")
        shown.append(f"  look   runops diff {failed.id} {each.run}   # {escapes.line(each.case.id)}")
    # Each that was interrupted is named: nothing else says how to continue it.
    for each in stopped[NAMED:]:
        shown += _following(each) if each.state == "interrupted" else []
    return shown


def _following(outcome: results.Outcome) -> list[str]:
    again = {"again": f"runops resume {outcome.run}"} if outcome.state == "interrupted" else {}
    following = foreground_run.next_step(outcome.ended) if outcome.ended is not None else again
    return [f"  {name:<6} {following[name]}" for name in ("again", "answer") if name in following]
