"""The last lines of a command with several cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from runtime.cli import foreground_run
from runtime.display import costs, escapes
from runtime.display.text import duration, one_line
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


def lines(ended: Sequence[results.Outcome]) -> list[str]:
    tally = Counter(each.state for each in ended)
    counts = [f"{tally[state]} {word.lower()}" for state, word in STATES.items() if tally[state]]
    shown = [f"{', '.join(counts)}  {duration(sum(each.seconds for each in ended))}"]
    names = [escapes.line(each.case.id) for each in ended]
    wide = max(map(len, names))
    for each, name in zip(ended, names, strict=True):
        ran = f"{each.run}  {duration(each.seconds)}" if each.run is not None else ""
        why = one_line(f"{each.step or ''}  {(each.problem or {}).get('message', '')}")
        shown.append(f"  {STATES[each.state]:<11}  {name:<{wide}}  {ran}  {why}".rstrip())
    spent = [each.ended.costs for each in ended if each.ended is not None and each.ended.costs is not None]
    if spent:
        shown.append(f"  cost   {costs.render(ledger.together(spent))}")
    stopped = next((each for each in ended if each.run is not None and each.state != "passed"), None)
    if stopped is not None:
        again = {"again": f"runops resume {stopped.run}"} if stopped.state == "interrupted" else {}
        following = foreground_run.next_step(stopped.ended) if stopped.ended is not None else again
        shown.append(f"  look   runops show {stopped.run}")
        shown += [f"  {name:<6} {following[name]}" for name in ("again", "answer") if name in following]
    return shown
