"""A build that fixes a workflow which is there: it begins with the file as its draft, and ends with a patch beside the run that failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.draft import draft as drafts
from director.draft import output_files
from director.effects import effects
from director.proving import proofs
from director.repair import patch_files, patches
from nodes.errors import ModelError, UsageError
from nodes.values import Json
from runtime.context import briefs
from runtime.language import workflow
from runtime.system import regular_files

if TYPE_CHECKING:
    from director.draft.goal import Goal
    from director.tools.build_context import BuildContext

UNCHANGED = "change what the fix needs; where it passes as it is, or nothing in the file would fix it, finish with `done` false and say so"


def equip(build: BuildContext) -> None:
    """Put the file that is to be fixed on the desk, as its first draft; nothing where that is done, or nothing is to be fixed.

    Raises UsageError ``file-not-found``, ModelError ``secret-refused`` where a secret stands in it, WorkflowInvalid.
    """
    if build.goal.repairs is None or build.state.history.versions("draft"):
        return
    draft = drafts.Draft.of(text_of(build.goal.place), build.state.files)
    build.state.write_draft(draft, reason="the workflow as it failed", by="person")


def text_of(file: Path) -> str:
    """A workflow's file as it is, ends of lines and a byte order mark included. Raises UsageError ``file-not-found``."""
    try:
        return regular_files.read(file).decode()
    except (OSError, UnicodeError) as error:
        raise UsageError("file-not-found", f"{file} cannot be read: {error}", fix="name the file") from None


def unchanged(build: BuildContext) -> bool:
    """Whether the draft of a build that fixes says just what the file said."""
    draft = build.state.draft
    return build.goal.repairs is not None and draft is not None and draft.text == _before(build)


def _before(build: BuildContext) -> str:
    """The file's text, as it was when the build began."""
    return str(build.writer.value_of(build.state.history.versions("draft")[0]))


def missed(build: BuildContext, loaded: workflow.Loaded, ran: Sequence[proofs.Ran]) -> ModelError | None:
    """Why runs that went well prove no fix: none of them came to the step that failed. None where one did, or nothing is to be fixed.

    Where the draft has that step no more, each must have gone to its end.
    """
    repairs = build.goal.repairs
    if repairs is None:
        return None
    key = effects.key_of(loaded, repairs.path)
    stands = loaded.find(repairs.path) is not None
    if stands and any(key in each.reached for each in ran):
        return None
    if not stands and all(each.status == "passed" for each in ran):
        return None
    step = briefs.ours(repairs.path)
    held = next((briefs.ours(each.held) for each in ran if each.held is not None), None)
    why = f"they were held at {held}" if held is not None else "they passed by it"
    return ModelError(
        "fix-not-reached",
        f"not done: no proof run came to `{step}`, the step that is to be fixed: {why}",
        fix="see that a run comes to it; where that needs an action that is held, finish with `done` false and say so",
    )


def command(goal: Goal) -> str | None:
    """What writes the fix into the file; None where nothing is to be fixed."""
    return f"runops repair --run {goal.repairs.run} --apply" if goal.repairs is not None else None


def leave(
    build: BuildContext, every: Sequence[proofs.Effect], ran: Sequence[proofs.Ran], *, summary: str
) -> dict[str, Json] | None:
    """Keep the change as a patch beside the run that failed, where ``runops repair --apply`` finds it; what is told of it. None where nothing is to be fixed.

    Raises LogError where the disk does not take it.
    """
    repairs, draft = build.goal.repairs, build.state.draft
    if repairs is None or draft is None:
        return None
    whole = all(each.status == "passed" for each in ran)
    done = [each.key for each in every if each.done or each.alone]
    change = patches.Patch(build.goal.place, _before(build), output_files.patched(draft.text, repairs.run))
    patch = patch_files.unified([change], Path.cwd())
    known = patch_files.KnownPatch("proved" if whole else "held", [change], done, ran[-1].run)
    place = patch_files.keep(build.here.kept, repairs.run, known, patch)
    held = next((each.held for each in ran if each.held is not None), None)
    return {
        "verdict": known.verdict,
        "steps": [{"path": repairs.path, "what": summary, "file": repairs.file}],
        "run": known.proof,
        "reached": held,
        "done": list[Json](done),
        "patch": patch,
        "kept": str(place),
    }
