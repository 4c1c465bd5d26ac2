"""Builds that fix an existing workflow: they begin with the file as draft, and end with a patch next to the failed run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from director.draft import output_files
from director.effects import effects
from director.proving import proofs
from director.repair import patch_files
from director.tools import begin
from nodes.errors import ModelError
from nodes.values import Json
from runtime.context import briefs
from runtime.language import workflow

if TYPE_CHECKING:
    from director.draft.goal import Goal
    from director.tools.build_context import BuildContext

UNCHANGED = "change what the fix needs; where it passes as it is, or nothing in the file would fix it, finish with `done` false and say so"


def equip(build: BuildContext) -> None:
    """Make the file the first draft, if this is a repair without one.

    Raises UsageError ``file-not-found``, ModelError ``secret-refused`` if it contains a secret, WorkflowInvalid.
    """
    if build.goal.repairs is not None:
        begin.with_draft(build)


def unchanged(build: BuildContext) -> bool:
    draft = build.state.draft
    return build.goal.repairs is not None and draft is not None and draft.text == _before(build)


def _before(build: BuildContext) -> str:
    return str(build.writer.value_of(build.state.history.versions("draft")[0]))


def missed(build: BuildContext, loaded: workflow.Loaded, ran: Sequence[proofs.Ran]) -> ModelError | None:
    """Return the error if no run reached the step to be fixed, so that no fix is proved; None if one did, or this is no repair.

    If the draft no longer has that step, each run must have passed.
    """
    repairs = build.goal.repairs
    if repairs is None:
        return None
    key = effects.key_of(loaded, repairs.path)
    kept = loaded.find(repairs.path) is not None
    if any(each.became(key) != "not reached" for each in ran) if kept else all(each.status == "passed" for each in ran):
        return None
    step = briefs.ours(repairs.path)
    withheld = next((briefs.ours(each.withheld) for each in ran if each.withheld is not None), None)
    why = f"they were held at {withheld}" if withheld is not None else "they passed by it"
    return ModelError(
        "fix-not-reached",
        f"not done: no proof run reached `{step}`, the step that is to be fixed: {why}",
        fix="make a run reach it; if that needs an action that is held, finish with `done` false and say so",
    )


def command(goal: Goal) -> str | None:
    """Return the command that writes the fix into the file; None if this is no repair."""
    return f"runops repair --run {goal.repairs.run} --apply" if goal.repairs is not None else None


def leave(
    build: BuildContext, every: Sequence[proofs.Effect], ran: Sequence[proofs.Ran], *, summary: str
) -> dict[str, Json] | None:
    """Store the change as a patch next to the failed run, for ``runops repair --apply``; return the report. None if this is no repair.

    Raises LogError if it cannot be written.
    """
    repairs, draft = build.goal.repairs, build.state.draft
    if repairs is None or draft is None:
        return None
    whole = all(each.status == "passed" for each in ran)
    done = [each.key for each in every if each.done or each.alone]
    change = patch_files.Patch(build.goal.place, _before(build), output_files.patched(draft.text, repairs.run))
    known = patch_files.KnownPatch("proved" if whole else "held", [change], done, ran[-1].run)
    withheld = next((each.withheld for each in ran if each.withheld is not None), None)
    step: dict[str, Json] = {"path": repairs.path, "what": summary, "file": repairs.file}
    return patch_files.keep(build.here.reader, repairs.run, known, [step], withheld)
