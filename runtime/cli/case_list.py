"""``runops run --list``: the cases that would run, with what is known of their last runs."""

from __future__ import annotations

from runtime.batch import planning, selection
from runtime.cli import console
from runtime.display import escapes
from runtime.display.text import count, duration
from runtime.report import endings
from runtime.runs import results

HEAD = ["case", "last", "took", "tags"]


def show(plan: planning.Plan, *, as_json: bool) -> int:
    """Print the list; return the exit code, which is the worst of the cases that cannot run."""
    broken = [each for each in plan.outcomes if each.refused is not None]
    for each in broken:
        assert each.refused is not None
        console.say(console.failure(each.refused, place=each.case.id))
    code = results.worst(each.refused.exit for each in broken if each.refused is not None)
    if as_json:
        listed = [_listed(plan, each) for each in plan.outcomes]
        shard = endings.shard_of(plan.shard)
        console.result(endings.CaseList(exit=code, shard=shard, selected=[*plan.selected], cases=listed).as_json())
        return code
    if plan.note is not None:
        console.say(plan.note)
    if plan.outcomes:
        console.result("\n".join(console.table([HEAD, *(_row(plan, each) for each in plan.outcomes)])))
        of = f" of {len(plan.selected)}" if plan.shard is not None else ""
        console.say(f"{len(plan.outcomes)}{of} cases" if of else count(len(plan.outcomes), "case"))
    return code


def _row(plan: planning.Plan, outcome: results.Outcome) -> list[str]:
    last, case = plan.earlier.get(outcome.case.id), outcome.case
    state = "cannot run" if outcome.refused is not None else last.state if last is not None else ""
    took = plan.seconds.get(case.id, last.seconds if last is not None else None)
    return [
        escapes.line(case.id),
        state,
        duration(took) if took is not None else "",
        " ".join(selection.tags_of(case)),
    ]


def _listed(plan: planning.Plan, outcome: results.Outcome) -> endings.ListedCase:
    last, case = plan.earlier.get(outcome.case.id), outcome.case
    run = (
        endings.LastRun(run=last.id, state=last.state, started=last.started, seconds=last.seconds)
        if last is not None
        else None
    )
    return endings.ListedCase(
        case=case.id,
        file=str(case.file),
        name=case.name,
        row=case.row,
        tags=selection.tags_of(case),
        last=run,
        seconds=plan.seconds.get(case.id),
        error=endings.ErrorReport.raised(outcome.refused),
    )
