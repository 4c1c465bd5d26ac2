"""The tools that edit the draft, and the one that shows how to write its nodes."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from typing_extensions import override

from director.draft import draft as drafts
from director.draft import edits, header, renames
from director.draft.draft import Draft
from director.draft.goal import Goal
from director.editing import due, limits, lint, reference, unused_values
from director.tools import begin
from director.tools.build_context import BuildContext
from director.tools.toolbox import CHANGED, FLAG, PERHAPS, READ, REASON, TEXT, Simple, Toolset, of, tool
from nodes.errors import ModelError, RunOpsError
from nodes.targets import Target
from nodes.values import Json
from runtime.language import workflow
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log import threads
from runtime.messages.messages import Tool, ToolCall
from runtime.models.turns import call_checks, turn
from runtime.secrets import masking

MOST_PROBLEMS = 10  # limit of the mistakes reported for one edit
MOST_NODES = 25  # limit of the nodes reported for one edit, a line each


def toolsets(build: BuildContext) -> Sequence[Toolset]:
    edits_of = _Edits(build)
    after = of(PERHAPS, "Node id; `ID/` or `ID/BLOCK`: first in that block; null: last.")
    flag = of(FLAG, "Only check.")
    nodes = of(
        TEXT, "A YAML list of nodes; of the first ones also a map: keys of the head (`inputs`, `output`) and `nodes`."
    )
    one = of(TEXT, "The node's whole text; of the head only keys to change.")
    ids: dict[str, Json] = {"type": "array", "items": TEXT}
    node = of(PERHAPS, "`workflow`: the head; null: each node given replaces the one with its id.")
    changing = (
        Edit(tool("create_nodes", "Adds nodes to the draft; the first ones begin it.", {"yaml": nodes, "after": after, "dry_run": flag, "reason": REASON}), edits_of.create, edits_of),
        Edit(tool("update_node", "Replaces a node.", {"id": node, "yaml": one, "reason": REASON}), edits_of.update, edits_of),
        Edit(tool("move_nodes", "Moves nodes after another, or into a block.", {"ids": ids, "after": after, "reason": REASON}), edits_of.move, edits_of),
        Edit(tool("delete_nodes", "Deletes nodes, and those in them.", {"ids": ids, "reason": REASON}), edits_of.delete, edits_of),
    )  # fmt: skip
    edits_of.offer(changing)
    how = tool("get_node_type", "How to write a node type, `browser_action.click`, or `targets`, `rules`, `references`, `workflow`.", {"type": TEXT})  # fmt: skip
    return (Simple(how, READ, lambda arguments: reference.render(str(arguments["type"]))), *changing)


Make = Callable[[Draft | None], Draft]
"""Makes an edit. An unchecked draft stays unchecked; the first nodes begin a checked one."""

OF_REFERENCES = frozenset({
    "unknown-reference", "later-reference", "unguarded-reference", "unknown-variable", "unknown-input", "unknown-secret",
})  # fmt: skip
"""Codes of mistakes that another edit may resolve."""


class Edit(Toolset):
    """A tool that edits the draft. A mistake in a reference is none if the edits right after it in the same answer resolve it."""

    kind = "edit"

    def __init__(self, offered: Tool, make: Callable[[dict[str, Json]], Make], edits: _Edits) -> None:
        super().__init__(offered, CHANGED)
        self.make, self._edits = make, edits

    @override
    def needs(self, arguments: Mapping[str, Json], failed: str, theirs: Mapping[str, Json]) -> bool:
        """What was to be replaced is not deleted, nothing is added where something else was to come first, and nothing names a node that is not there."""
        if self.tool.name == "delete_nodes":
            return failed != "delete_nodes"
        if failed == "create_nodes":
            lacking = set(edits.IDS.findall(str(theirs.get("yaml"))))
            named = set(
                re.findall(
                    r"[A-Za-z_][\w-]*", f"{arguments.get('id')} {arguments.get('after')} {arguments.get('yaml')}"
                )
            )
            if self.tool.name != "create_nodes" and lacking & named:
                return True
        return self.tool.name == failed == "create_nodes" and arguments.get("after") == theirs.get("after")

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        text, due_now = self._edits.done(self, arguments, place)
        text = "\n".join([text, *await self._edits.tried(due_now)])
        return turn.Outcome(text, text)


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """An edit that the model asked for."""

    make: Make
    reason: str


class _Edits:
    def __init__(self, build: BuildContext) -> None:
        self._build = build
        self._tools: Mapping[str, Edit] = {}
        self._renamed: list[str] = []  # what the last edit reads or names otherwise than given

    def offer(self, tools: Sequence[Edit]) -> None:
        self._tools = {each.tool.name: each for each in tools}

    def create(self, arguments: dict[str, Json]) -> Make:
        given, after = str(arguments["yaml"]), cast("str | None", arguments["after"] or None)

        def make(before: Draft | None) -> Draft:
            text = self._meant(given, lambda _text: before.ids() if before is not None else ())
            if before is not None and not (edits.has_head(text) and begin.is_of_another(self._build, before)):
                return before.with_nodes(text, after)
            if after is not None and after != "/":
                raise ModelError("node-unknown", "there is no draft yet", fix="its first nodes have `after` null")
            return Draft.begun(header.begun(self._build.goal), text, self._build.state.files)

        return make

    def update(self, arguments: dict[str, Json]) -> Make:
        given, node = str(arguments["yaml"]), cast("str | None", arguments["id"])

        def make(before: Draft | None) -> Draft:
            draft = _begun(before)
            if node == "workflow":
                text, said = edits.by_habit(given, head=True)
                self._renamed += said
                return draft.with_head(text)
            text = self._meant(given, lambda text: draft.ids([node] if node is not None else edits.ids_of(text)))
            return draft.with_updates(text, node)

        return make

    def _meant(self, given: str, others: Callable[[str], Collection[str]]) -> str:
        """Return given nodes as they can only be meant, with ids that they can have; ``others`` returns the ids of other nodes."""
        text, read = edits.by_habit(given)
        text, renamed = renames.of(text, others(text))
        self._renamed += [*read, *renamed]
        return text

    def move(self, arguments: dict[str, Json]) -> Make:
        ids, after = _texts(arguments["ids"]), cast("str | None", arguments["after"] or None)
        return lambda before: _begun(before).with_moved(ids, after)

    def delete(self, arguments: dict[str, Json]) -> Make:
        ids = _texts(arguments["ids"])
        return lambda before: _begun(before).without(ids)

    async def tried(self, found: Mapping[str, tuple[str, Target]]) -> list[str]:
        """Return what is to be said of the targets on the pages that are open: those that match nothing, or several elements."""
        return [*await self._build.observer.tried(found)] if found else []

    def _due(self, before: Draft | None, made: Draft) -> Mapping[str, tuple[str, Target]]:
        if not hasattr(self._build, "observer"):
            return {}
        pages = {each.where: each.url for each in self._build.observer.tabs() if each.current}
        bench = pages.get("bench")
        marks = self._build.bench.marks() if bench is not None else {}
        return due.targets(before, made, self._build.goal, marks, bench, pages.get("scout"))

    def done(
        self, edit: Edit, arguments: dict[str, Json], place: turn.Place
    ) -> tuple[str, Mapping[str, tuple[str, Target]]]:
        """Make the edit, store it as a version unless it is only checked, and return the report, and the targets to try."""
        state, dry = self._build.state, bool(arguments.get("dry_run"))
        began = not state.history.versions("draft")
        begin.with_draft(self._build)
        asked = _Asked(edit.make(arguments), str(arguments["reason"]))
        before, self._renamed = state.draft, []
        masker = self._build.writer.masker
        if not dry and self._was_resolving(place):
            return f"done in version {len(state.history.versions('draft'))}, with an edit before it", {}
        calls, index = self._answer(place) if not dry else ([], 0)
        every = [asked, *self._from(calls[index + 1 :])]
        again = self._taken_again(every) if not dry else None
        if again is not None:
            before, made = again
        else:
            try:
                made = self._made(before, every)[0]
            except WorkflowInvalid as error:
                raise refused(error, masker, first=before is None) from None
            if not dry:
                begin.fixed(self._build)
                state.write_draft(made, reason=asked.reason)
                self._build.listener.changed("draft", "")
        head = "it would be valid; nothing was changed" if dry else f"version {len(state.history.versions('draft'))}"
        told = begin.told(self._build) if began and not dry else None
        lines = [
            head,
            *([told] if told is not None else []),
            *dict.fromkeys(self._renamed),
            # Moved nodes are reported even if they say the same.
            render_changes(before, made, _texts(arguments.get("ids"))),
            *_constant(before, made),
            *advised(before, made, self._build.goal),
        ]
        return masker.text("\n".join(lines)), self._due(before, made)

    def _made(self, before: Draft | None, asked: Sequence[_Asked]) -> tuple[Draft, int]:
        """Return the draft after the first edit, and after as many of the others as its references need; and their number.

        Raises WorkflowInvalid with the mistakes of the first one alone.
        """
        try:
            return self._checked(asked[0].make(before), before), 1
        except WorkflowInvalid as error:
            if before is None or any(each.code not in OF_REFERENCES for each in error.diagnostics):
                raise
            with contextlib.suppress(ModelError):
                made = asked[0].make(before.unchecked())
                for number, each in enumerate(asked[1:], 2):
                    made = each.make(made)
                    with contextlib.suppress(WorkflowInvalid):
                        return self._checked(made.check(), before), number
            raise

    def _checked(self, made: Draft, before: Draft | None) -> Draft:
        modules = self._build.here.settings.python_modules
        if problems := limits.refused(made, before, self._build.goal, modules):
            raise WorkflowInvalid([made.layout.located(each) for each in problems], drafts.NAME)
        return made

    def _answer(self, place: turn.Place) -> tuple[list[ToolCall], int]:
        """Return the calls of the answer that asks for this one, and its index; no calls if an edit before it failed."""
        said = self._build.writer.history.thread(place.thread).said
        latest = next((each for each in reversed(said) if isinstance(each, threads.Exchange)), None)
        calls = [*self._build.writer.calls_of(latest.answer)] if latest is not None else []
        index = next((index for index, each in enumerate(calls) if each.id == place.asked), None)
        if latest is None or index is None:
            return [], 0
        results = [latest.done[each.id].result for each in calls[:index] if each.name in self._tools]
        return ([], 0) if any(each is not None and each.error is not None for each in results) else (calls, index)

    def _from(self, calls: Sequence[ToolCall]) -> list[_Asked]:
        """Return the edits with which these calls begin."""
        found: list[_Asked] = []
        for call in calls:
            tool = self._tools.get(call.name)
            if tool is None or call_checks.of(call, [tool.tool], holds_secret=masking.MASK in call.arguments):
                break
            given: Any = call_checks.arguments(call, [tool.tool])
            if given.get("dry_run"):
                break
            found.append(_Asked(tool.make(given), str(given["reason"])))
        return found

    def _was_resolving(self, place: turn.Place) -> bool:
        """Return whether the last version has this edit already: one before it in the same answer needed it."""
        calls, index = self._answer(place)
        for number in range(index):
            asked = self._from(calls[number:])
            taken = self._versions(asked[0]) if len(asked) > index - number else None
            if taken is not None:
                with contextlib.suppress(RunOpsError):
                    made, count = self._made(taken[0], asked)
                    if count > index - number and made.text == taken[1].text:
                        return True
        return False

    def _versions(self, asked: _Asked) -> tuple[Draft | None, Draft] | None:
        """Return the draft before and after the last version, if it has the reason of this edit."""
        state = self._build.state
        versions = state.history.versions("draft")
        said = state.masker.text(" ".join(asked.reason.split()))
        if not versions or versions[-1].reason != said or versions[-1].by != "model" or versions[-1].cleared:
            return None
        older = versions[-2] if len(versions) > 1 and not versions[-2].cleared else None
        before = Draft.of(str(self._build.writer.value_of(older)), state.files) if older is not None else None
        now = state.draft
        return (before, now) if now is not None else None

    def _taken_again(self, asked: Sequence[_Asked]) -> tuple[Draft | None, Draft] | None:
        """Return the draft before and after this edit if it is the last version: a crash came before its answer, so it is not repeated."""
        taken = self._versions(asked[0])
        if taken is not None:
            before, now = taken
            with contextlib.suppress(RunOpsError):
                if self._made(before, asked)[0].text == now.text:
                    return before, now
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
    # Nodes of a `confirm` are not run by their position.
    lines = [
        f"{'' if 'confirm' in each.path else each.position:>3} {'  ' * each.depth}{each}"
        for each in made.layout.nodes
        if each.id in touched
    ]
    if len(lines) > MOST_NODES:
        lines = [*lines[:MOST_NODES], f"… and {len(lines) - MOST_NODES} more"]
    gone = [each for each in was if each not in now]
    if gone:
        lines.append(f"gone: {', '.join(gone[:MOST_NODES])}{' …' if len(gone) > MOST_NODES else ''}")
    lines += header.differences(before.loaded.document.data, made.loaded.document.data) if before is not None else []
    return "\n".join([*(lines or ["only layout or comments changed"]), f"{len(made.layout.nodes)} nodes in all"])


def _said(draft: Draft | None) -> dict[str, dict[str, Json]]:
    return {each.id: workflow.plain(each) for each in draft.loaded.nodes()} if draft is not None else {}


def _constant(before: Draft | None, made: Draft) -> list[str]:
    """Return what ``finish`` will refuse of the output that this edit writes."""
    was = unused_values.constant_outputs(before.loaded) if before is not None else ()
    new = [each for each in unused_values.constant_outputs(made.loaded) if each not in was]
    return [
        f"{unused_values.constant(each)}, which `finish` refuses: yield what a query reads on the site" for each in new
    ]


def advised(before: Draft | None, made: Draft, goal: Goal) -> list[str]:
    was: Mapping[str, str] = before.loaded.fingerprints if before is not None else {}
    found = [each for each in lint.hints(made, goal) if was.get(each.node) != made.loaded.fingerprints[each.node]]
    return [f"hint: {each}" for each in lint.shown(found)]
