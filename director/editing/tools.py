"""The tools that edit the draft, and the one that tells how its nodes are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from director import draft as drafts
from director.draft import Draft
from director.editing import edits, heads, limits, reference
from director.tools import CHANGED, READ, Kit, Simple
from director.workshop import Workshop
from nodes.errors import ModelError
from nodes.values import Json
from runtime.language.diagnostics import WorkflowInvalid
from runtime.models.exchange import Tool

MOST_PROBLEMS = 10
"""Mistakes that are told of one edit."""

MOST_NODES = 25
"""Nodes that are told of one edit, a line each."""

_TEXT: dict[str, Json] = {"type": "string"}
_PERHAPS: dict[str, Json] = {"type": ["string", "null"]}


def kits(shop: Workshop) -> Sequence[Kit]:
    """The tools, in order of weight."""
    edit = _Edits(shop)
    reason = _of(_TEXT, "Why, in a sentence.")
    after = _of(_PERHAPS, "Node id; `ID/` or `ID/BLOCK`: first in that block; null: last.")
    flag: dict[str, Json] = {"type": ["boolean", "null"], "description": "Only check."}
    nodes = _of(_TEXT, "A YAML list of nodes.")
    one = _of(_TEXT, "The node's whole text; of the head only keys to change.")
    node = _of(_PERHAPS, "`workflow`: the head; null: each node given replaces the one with its id.")
    return (
        _kit("get_node_type", "How to write a node type, `browser_action.click`, or `targets`, `rules`, `references`, `workflow`.", {"type": _TEXT}, edit.reference, READ),
        _kit("create_nodes", "Adds nodes to the draft; the first ones begin it.", {"yaml": nodes, "after": after, "dry_run": flag, "reason": reason}, edit.create),
        _kit("update_node", "Writes a node anew.", {"id": node, "yaml": one, "reason": reason}, edit.update),
    )  # fmt: skip


def _kit(
    name: str, description: str, fields: dict[str, Json], do: Callable[[dict[str, Json]], str], modes: Any = CHANGED
) -> Kit:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": fields,
        "required": list[Json](fields),
        "additionalProperties": False,
    }
    return Simple(Tool(name, description, schema), modes, do)


def _of(schema: dict[str, Json], description: str) -> dict[str, Json]:
    return {**schema, "description": description}


class _Edits:
    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    def reference(self, arguments: dict[str, Json]) -> str:
        return reference.told(str(arguments["type"]))

    def create(self, arguments: dict[str, Json]) -> str:
        text, after = str(arguments["yaml"]), cast("str | None", arguments["after"])

        def make(before: Draft | None) -> Draft:
            if before is not None:
                return before.with_nodes(text, after, self._limits(before))
            if after is not None and after != "/":
                raise ModelError("node-unknown", "there is no draft yet", mend="its first nodes have `after` null")
            return Draft.begun(heads.begun(self._shop.wish), text, None, self._limits(None))

        return self._done(make, arguments, bool(arguments["dry_run"]))

    def update(self, arguments: dict[str, Json]) -> str:
        text, node = str(arguments["yaml"]), cast("str | None", arguments["id"])

        def make(before: Draft | None) -> Draft:
            return self._begun(before).with_updates(text, node, self._limits(before))

        return self._done(make, arguments)

    def _begun(self, draft: Draft | None) -> Draft:
        if draft is None:
            raise ModelError("draft-missing", "there is no draft yet", mend="begin it: `create_nodes`")
        return draft

    def _limits(self, before: Draft | None) -> drafts.Limits:
        return lambda made: limits.refused(made, before, self._shop.wish)

    def _done(self, make: Callable[[Draft | None], Draft], arguments: dict[str, Json], dry: bool = False) -> str:
        """Make the edit, and keep it as a version; what is told of it."""
        desk = self._shop.desk
        reason = str(arguments["reason"])
        before, made = self._made(make, reason)
        if dry:
            return f"It would be valid; nothing was changed.\n{told(before, made)}"
        desk.write_draft(made, reason=reason, by="model")
        self._shop.listener.changed("draft", "")
        return f"version {len(desk.history.versions('draft'))}\n{told(before, made)}"

    def _made(self, make: Callable[[Draft | None], Draft], reason: str) -> tuple[Draft | None, Draft]:
        """The draft that is edited, and the one that it becomes."""
        before = self._shop.desk.draft
        try:
            return before, make(before)
        except WorkflowInvalid as error:
            raise refused(error) from None


def refused(error: WorkflowInvalid) -> ModelError:
    """Every mistake of an edit as a model is told it."""
    every = error.diagnostics
    shown = [each.render() for each in every[:MOST_PROBLEMS]]
    more = [f"… and {len(every) - MOST_PROBLEMS} more"] if len(every) > MOST_PROBLEMS else []
    what = "a mistake" if len(every) == 1 else f"{len(every)} mistakes"
    where = f"`{edits.GIVEN}` is what was given, `{drafts.NAME}` the draft as it is"
    return ModelError("draft-invalid", f"nothing was changed, for {what}:\n" + "\n".join([*shown, *more]), mend=where)


def told(before: Draft | None, made: Draft) -> str:
    """What an edit has done: the nodes that are new, changed or gone, with their positions now."""
    was: Mapping[str, str] = before.loaded.fingerprints if before is not None else {}
    now = made.loaded.fingerprints
    touched = {each for each, mark in now.items() if was.get(each) != mark}
    lines = [f"{each.position:>3} {'  ' * each.depth}{each}" for each in made.layout.nodes if each.id in touched]
    if len(lines) > MOST_NODES:
        lines = [*lines[:MOST_NODES], f"… and {len(lines) - MOST_NODES} more"]
    gone = [each for each in was if each not in now]
    if gone:
        lines.append(f"gone: {', '.join(gone[:MOST_NODES])}")
    return "\n".join([*lines, f"{len(made.layout.nodes)} nodes in all"])
