"""Begins to build in a session: what the person wants becomes the goal, and the workflow that the session is about the draft."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from director.draft import draft as drafts
from director.draft import goal as goals
from director.draft import output_files, project_files
from director.session.state import SessionState
from nodes.errors import ModelError
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log import entries

if TYPE_CHECKING:
    from pathlib import Path

    from director.draft.goal import Goal
    from director.tools.build_context import BuildContext

MOST_PROBLEMS = 10

ANEW = "; for a new workflow begin it anew: `create_nodes` with a map, keys of the head (or `inputs: {}`) and `nodes`"
"""How a draft that is still that of another file is replaced."""


def keep_goal(state: SessionState, goal: Goal, *, reason: str, by: str = "model") -> None:
    """Log the goal; a workflow without a file is named after it. It no longer changes with the person's next message."""
    if not goal.is_named and goal.goal.strip():
        place = goals.named(goal.goal, goal.save.parent)
        goal = dataclasses.replace(goal, save=output_files.free_name(place, state.conversation))
    version = entries.Version(of="goal", number=0, reason=reason, by="person" if by == "person" else "model")
    state.keep(version, goal.as_logged().model_dump(mode="json"))


def fixed(build: BuildContext) -> None:
    """Keep the goal as it is now, before the first draft is written."""
    state = build.state
    if not state.history.versions("draft") and not state.is_goal_kept:
        keep_goal(state, state.goal, reason="the first nodes are written")


def with_draft(build: BuildContext) -> None:
    """Take the workflow that the session is about as draft, unless there is a draft, no such workflow, or a new one is wanted.

    Raises ModelError ``draft-invalid``, ``secret-refused``; UsageError ``file-not-found``.
    """
    state, file = build.state, build.file()
    goal = state.goal
    if file is None or state.history.versions("draft") or (goal.anew and goal.repairs is None):
        return
    draft = _read(build, file)
    if goal.repairs is None:
        save = goal.save if goal.is_named else file
        keep_goal(state, dataclasses.replace(goal, save=save), reason=f"the draft begins as {file.name}")
    why = "the workflow as it failed" if goal.repairs is not None else f"the workflow {file.name} as it is"
    state.write_draft(draft, reason=why, by="file")


def _read(build: BuildContext, file: Path) -> drafts.Draft:
    text = project_files.text_of(file)
    repairs = build.goal.repairs is not None
    try:
        return drafts.Draft.of(text if repairs else output_files.without_head(text), project_files.Beside(file.parent))
    except WorkflowInvalid as error:
        if repairs:
            raise
        shown = [each.render() for each in error.diagnostics[:MOST_PROBLEMS]]
        raise ModelError(
            "draft-invalid",
            build.writer.masker.text("\n".join([f"{file.name} is not valid, so no draft begins as it:", *shown])),
            fix="tell the person what to fix in the file; a new workflow is built in a session that is not about this file",
        ) from None


def first_of_file(build: BuildContext) -> drafts.Draft | None:
    """Return the draft as it began as a file; None if it did not, or if that is no longer valid."""
    versions = build.state.history.versions("draft")
    return build.state.draft_of(versions[0]) if versions and versions[0].by == "file" else None


def is_of_another(build: BuildContext, draft: drafts.Draft) -> bool:
    """Return whether the draft is as it began, and is that of another file than the one to be written: it may be begun anew."""
    if build.goal.repairs is not None or is_unchanged(build, build.goal.save):
        return False
    first = first_of_file(build)
    return first is not None and first.text == draft.text


def told(build: BuildContext) -> str | None:
    """Return which file the draft began as, for the model; None if it began empty, or in a repair."""
    versions, draft = build.state.history.versions("draft"), build.state.draft
    if not versions or versions[0].by != "file" or build.goal.repairs is not None or draft is None:
        return None
    return f"The draft began as {versions[0].reason}{ANEW if is_of_another(build, draft) else ''}."


def is_unchanged(build: BuildContext, file: Path) -> bool:
    """Return whether the draft began as this file, and the file is as it was then."""
    versions = build.state.history.versions("draft")
    if not versions or versions[0].by != "file":
        return False
    return file.is_file() and output_files.without_head(project_files.text_of(file)) == str(
        build.writer.value_of(versions[0])
    )
