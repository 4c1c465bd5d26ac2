"""The tools that edit the draft, and the one that shows how to write its nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from director.draft import draft as drafts
from director.draft import edits, header
from director.draft.draft import Draft
from director.draft.goal import Goal
from director.editing import limits, lint, reference
from director.tools import begin
from director.tools.build_context import BuildContext
from director.tools.toolbox import CHANGED, FLAG, PERHAPS, READ, REASON, TEXT, Simple, Toolset, of, tool
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime.language import workflow
from runtime.language.diagnostics import WorkflowInvalid
from runtime.secrets import masking

MOST_PROBLEMS = 10  # limit of the mistakes reported for one edit
MOST_NODES = 25  # limit of the nodes reported for one edit, a line each
MOST_HINTS = 4  # limit of the hints reported for one edit


def toolsets(build: BuildContext) -> Sequence[Toolset]:
    edit = _Edits(build)
    after = of(PERHAPS, "Node id; `ID/` or `ID/BLOCK`: first in that block; null: last.")
    flag = of(FLAG, "Only check.")
    nodes = of(
        TEXT, "A YAML list of nodes; of the first ones also a map: keys of the head (`inputs`, `output`) and `nodes`."
    )
    one = of(TEXT, "The node's whole text; of the head only keys to change.")
    ids: dict[str, Json] = {"type": "array", "items": TEXT}
    node = of(PERHAPS, "`workflow`: the head; null: each node given replaces the one with its id.")
    return (
        Simple(tool("get_node_type", "How to write a node type, `browser_action.click`, or `targets`, `rules`, `references`, `workflow`.", {"type": TEXT}), READ, edit.reference),
        Simple(tool("create_nodes", "Adds nodes to the draft; the first ones begin it.", {"yaml": nodes, "after": after, "dry_run": flag, "reason": REASON}), CHANGED, edit.create),
        Simple(tool("update_node", "Replaces a node.", {"id": node, "yaml": one, "reason": REASON}), CHANGED, edit.update),
        Simple(tool("move_nodes", "Moves nodes after another, or into a block.", {"ids": ids, "after": after, "reason": REASON}), CHANGED, edit.move),
        Simple(tool("delete_nodes", "Deletes nodes, and those in them.", {"ids": ids, "reason": REASON}), CHANGED, edit.delete),
    )  # fmt: skip


class _Edits:
    def __init__(self, build: BuildContext) -> None:
        self._build = build

    def reference(self, arguments: dict[str, Json]) -> str:
        return reference.render(str(arguments["type"]))

    def create(self, arguments: dict[str, Json]) -> str:
        text, after = str(arguments["yaml"]), cast("str | None", arguments["after"] or None)

        def make(before: Draft | None) -> Draft:
            if before is not None and not (edits.has_head(text) and begin.is_of_another(self._build, before)):
                return before.with_nodes(text, after)
            if after is not None and after != "/":
                raise ModelError("node-unknown", "there is no draft yet", fix="its first nodes have `after` null")
            return Draft.begun(header.begun(self._build.goal), text, self._build.state.files)

        return self._done(make, arguments, dry=bool(arguments["dry_run"]))

    def update(self, arguments: dict[str, Json]) -> str:
        text, node = str(arguments["yaml"]), cast("str | None", arguments["id"])

        def make(before: Draft | None) -> Draft:
            draft = _begun(before)
            return draft.with_head(text) if node == "workflow" else draft.with_updates(text, node)

        return self._done(make, arguments)

    def move(self, arguments: dict[str, Json]) -> str:
        ids, after = _texts(arguments["ids"]), cast("str | None", arguments["after"] or None)
        return self._done(lambda before: _begun(before).with_moved(ids, after), arguments, ids)

    def delete(self, arguments: dict[str, Json]) -> str:
        ids = _texts(arguments["ids"])
        return self._done(lambda before: _begun(before).without(ids), arguments)

    def _done(
        self,
        make: Callable[[Draft | None], Draft],
        arguments: dict[str, Json],
        named: Collection[str] = (),
        *,
        dry: bool = False,
    ) -> str:
        """Make the edit, store it as a version unless ``dry``, and return the report. ``named`` nodes are reported even if unchanged."""
        state = self._build.state
        began = not state.history.versions("draft")
        begin.with_draft(self._build)
        reason = str(arguments["reason"])
        before = state.draft
        masker = self._build.writer.masker
        again = self._taken_again(make, reason) if not dry else None
        if again is not None:
            before, made = again
        else:
            try:
                made = make(before)
                modules = self._build.here.settings.python_modules
                if problems := limits.refused(made, before, self._build.goal, modules):
                    raise WorkflowInvalid([made.layout.located(each) for each in problems], drafts.NAME)
            except WorkflowInvalid as error:
                raise refused(error, masker, first=before is None) from None
            if not dry:
                begin.fixed(self._build)
                state.write_draft(made, reason=reason)
                self._build.listener.changed("draft", "")
        head = "it would be valid; nothing was changed" if dry else f"version {len(state.history.versions('draft'))}"
        told = begin.told(self._build) if began and not dry else None
        lines = [
            head,
            *([told] if told is not None else []),
            render_changes(before, made, named),
            *advised(before, made, self._build.goal),
        ]
        return masker.text("\n".join(lines))

    def _taken_again(self, make: Callable[[Draft | None], Draft], reason: str) -> tuple[Draft | None, Draft] | None:
        """Return the draft before and after this edit if it is the last version: a crash came before its answer, so it is not repeated."""
        state = self._build.state
        versions = state.history.versions("draft")
        said = state.masker.text(" ".join(reason.split()))
        if not versions or versions[-1].reason != said or versions[-1].by != "model" or versions[-1].cleared:
            return None
        now = state.draft
        older = versions[-2] if len(versions) > 1 and not versions[-2].cleared else None
        before = Draft.of(str(self._build.writer.value_of(older)), state.files) if older is not None else None
        with contextlib.suppress(RunOpsError):
            made = make(before)
            if now is not None and made.text == now.text:
                return before, made
        return None


def _begun(draft: Draft | None) -> Draft:
    if draft is None:
        raise ModelError(
            "draft-missing",
            "there is no draft yet",
            fix="begin it: `create_nodes`, whose `yaml` may be a map: `inputs: …` and what else the head says, and `nodes: …`",
        )
    return draft


def _texts(value: Json) -> list[str]:
    given: Sequence[Json] = value if isinstance(value, list) else []
    return [str(each) for each in given]


def refused(error: WorkflowInvalid, masker: masking.Masker, *, first: bool = False) -> ModelError:
    """Return the error with the mistakes of an edit; at the ``first`` edit there is no draft yet."""
    every = error.diagnostics
    shown = [each.render() for each in every[:MOST_PROBLEMS]]
    more = [f"… and {len(every) - MOST_PROBLEMS} more"] if len(every) > MOST_PROBLEMS else []
    what = "a mistake" if len(every) == 1 else f"{len(every)} mistakes"
    where = f"`{edits.GIVEN}` is what was given, `{drafts.NAME}` the draft as it would be"
    if any(each.code == "unknown-input" for each in every):
        how = (
            "`yaml` may be a map, `inputs: …` and `nodes: …`"
            if first
            else "`update_node` of `workflow` with `inputs: …`"
        )
        where += f"; an input is declared by {how}, such as `most: {{type: number, default: 100}}`"
    return ModelError(
        "draft-invalid", f"nothing was changed, for {what}:\n" + masker.text("\n".join([*shown, *more])), fix=where
    )


def render_changes(before: Draft | None, made: Draft, named: Collection[str] = ()) -> str:
    was, now = _said(before), _said(made)
    touched = {each for each, said in now.items() if was.get(each) != said} | set(named)
    lines = [f"{each.position:>3} {'  ' * each.depth}{each}" for each in made.layout.nodes if each.id in touched]
    if len(lines) > MOST_NODES:
        lines = [*lines[:MOST_NODES], f"… and {len(lines) - MOST_NODES} more"]
    gone = [each for each in was if each not in now]
    if gone:
        lines.append(f"gone: {', '.join(gone[:MOST_NODES])}{' …' if len(gone) > MOST_NODES else ''}")
    lines += header.differences(before.loaded.document.data, made.loaded.document.data) if before is not None else []
    return "\n".join([*(lines or ["only layout or comments changed"]), f"{len(made.layout.nodes)} nodes in all"])


def _said(draft: Draft | None) -> dict[str, dict[str, Json]]:
    return {each.id: workflow.plain(each) for each in draft.loaded.nodes()} if draft is not None else {}


def advised(before: Draft | None, made: Draft, goal: Goal) -> list[str]:
    was: Mapping[str, str] = before.loaded.fingerprints if before is not None else {}
    found = [each for each in lint.hints(made, goal) if was.get(each.node) != made.loaded.fingerprints[each.node]]
    more = [f"… and {len(found) - MOST_HINTS} more hints"] if len(found) > MOST_HINTS else []
    return [*(f"hint: {each}" for each in found[:MOST_HINTS]), *more]
