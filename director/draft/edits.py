"""Adds, changes, moves and deletes nodes of a draft. Each edit is the new text and the data that this text must yield."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from director.draft import layout, lines, node_lists
from director.draft import splices as draft_splices
from director.draft.node_lists import Item, Items
from director.draft.splices import Patched, Splice
from nodes import errors
from nodes.errors import ModelError
from nodes.values import Json
from runtime.language import yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.language.yaml_text import Document, Path

GIVEN = "yaml"
"""Name of the text given for an edit, in diagnostics."""


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """An edit of a text."""

    patched: Patched
    data: Json


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """Nodes as they were given."""

    items: Sequence[Item]
    gaps: Sequence[str] = ()
    """The lines between them."""

    @property
    def data(self) -> list[Any]:
        """Return the data of the nodes."""
        return [each.data for each in self.items]

    @property
    def ids(self) -> list[str]:
        """Return the ids of those that have one."""
        return [each.data["id"] for each in self.items if isinstance(each.data.get("id"), str)]


def given(text: str, *, whole: bool = False) -> Given:
    """Return the nodes of a text: a list, a single node, a map with only ``nodes``, or (``whole``) the nodes of a file.

    Raises WorkflowInvalid if it is not YAML or holds no nodes.
    """
    document = read(text)
    data: Any = document.data
    path: Path = ()
    if isinstance(data, dict) and (set(data) == {"nodes"} or (whole and is_whole(data))):
        path, data = ("nodes",), data["nodes"]
    elif isinstance(data, dict) and is_whole(data):
        raise _no_nodes(document, ("nodes",), "this is a whole file", HEAD)
    elif isinstance(data, dict) and data:
        return Given([node_lists.alone(document, ())])
    if not isinstance(data, list) or not data:
        raise _no_nodes(document, path, "this is no list of nodes", "write `- id: …` for each node")
    wrong = [number for number, each in enumerate(data) if not isinstance(each, dict)]
    if wrong:
        raise _no_nodes(document, (*path, wrong[0]), "this is no node", "a node is a map: `id`, `type`, and its fields")
    found = Items(document, path)
    return Given(found.all, [] if found.flow else found.gaps())


def is_whole(data: Mapping[str, Json]) -> bool:
    """Return whether this is a file, rather than a node with nodes in it."""
    return "nodes" in data and "type" not in data


def read(text: str) -> Document:
    """Read the given text, without a Markdown fence around it. Raises WorkflowInvalid if it is not YAML, or empty."""
    document = yaml_text.read(GIVEN, draft_splices.ended(_FENCE.sub("", text)))
    if any(each.code == "empty-file" for each in document.problems):
        raise _no_nodes(document, (), "nothing was given", "write `- id: …` for each node")
    if document.problems:
        raise WorkflowInvalid(document.problems, GIVEN)
    return document


_FENCE = re.compile(r"\A\s*?```\w*(?=[\r\n])|^```\s*\Z", re.MULTILINE)
"""The fence lines around a text in Markdown. The lines between them keep their numbers."""

HEAD = "give only what stands under `nodes:`; what stands above it is changed by `update_node` with the id `workflow`"


def _no_nodes(document: Document, path: Path, what: str, fix: str) -> WorkflowInvalid:
    problem = document.source.diagnostic(
        "not-a-list", what, document.mark(path) or document.source.mark(0, 0), help=[fix]
    )
    return WorkflowInvalid([problem], GIVEN)


class Editor:
    """Edits one valid text."""

    def __init__(self, document: Document, places: Mapping[str, Path], laid: layout.Layout) -> None:
        """``places`` maps each node to its path."""
        self._document, self._places, self._layout = document, places, laid

    def created(self, new: Given, after: str | None) -> Edit:
        """Add nodes.

        ``after``: a node, followed in its block; ``ID/`` or ``ID/BLOCK``: first in that block; ``/``: first in the file; None: last.
        Raises ModelError ``node-unknown``, ``block-unknown``, ``edit-not-possible``.
        """
        path, at = self._spot(after)
        data = copy.deepcopy(self._document.data)
        lines.data_at(data, path)[at:at] = new.data
        return self._edit(Items(self._document, path).inserted(at, new.items, new.gaps), data)

    def updated(self, new: Given, node: str | None) -> Edit:
        """Replace ``node`` by one node; None: each node with the same id. Raises ModelError as ``created``, and ``update-unclear``."""
        if node is not None and len(new.items) != 1:
            raise ModelError(
                "update-unclear",
                f"{len(new.items)} nodes were given for the one `{node[:80]}`",
                fix="give one; with `id` null each replaces the node with its own id; `create_nodes` adds further ones",
            )
        if node is None and (
            nameless := next((each for each in new.items if not isinstance(each.data.get("id"), str)), None)
        ):
            mark = nameless.source.mark(nameless.start, nameless.stop)
            raise ModelError(
                "update-unclear",
                f"the node in line {mark.line} has no `id`, so it replaces none",
                fix="give each node the id of the one that it replaces",
            )
        names = [node] if node is not None else new.ids
        if twice := {each for each in names if names.count(each) > 1}:
            raise ModelError("update-unclear", f"`{min(twice)}` is given twice", fix="give each node once")
        paths = [self._place(each) for each in names]
        self._refuse_nested(names, paths)
        data: Any = copy.deepcopy(self._document.data)
        splices: list[Splice] = []
        for path, item in zip(paths, new.items, strict=True):
            lines.data_at(data, path[:-1])[path[-1]] = item.data
            splices += self._items(path[:-1]).replaced(int(path[-1]), item)
        return self._edit(splices, data)

    def moved(self, ids: Sequence[str], after: str | None) -> Edit:
        """Move nodes, in the order given; ``after`` as in ``created``. Raises ModelError as there, and ``move-unclear``, ``block-empty``."""
        chosen = self._chosen(ids)
        paths = list(chosen.values())
        self._refuse_nested(list(chosen), paths)
        path, at = self._spot(after)
        for each, start in chosen.items():
            if path[: len(start)] == start or (after or "").partition("/")[0] == each:
                raise ModelError(
                    "move-unclear",
                    f"`{each}` cannot be moved behind itself, or into itself",
                    fix="`after` is a node that stays where it is",
                )
        self._refuse_emptied(chosen, but=path)
        data: Any = copy.deepcopy(self._document.data)
        nodes = [lines.data_at(data, each) for each in paths]
        homes = [lines.data_at(data, each[:-1]) for each in paths]
        target: list[Any] = lines.data_at(data, path)
        staying = [each for each in target[:at] if not any(each is node for node in nodes)]
        for home, node in zip(homes, nodes, strict=True):
            del home[_index(home, node)]
        place = _index(target, staying[-1]) + 1 if staying else 0
        target[place:place] = nodes
        return self._edit(self._move(paths, path, at), data)

    def _move(self, paths: Sequence[Path], path: Path, at: int) -> list[Splice]:
        here = [int(each[-1]) for each in paths if each[:-1] == path]
        items = self._items(path)
        if len(here) == len(paths):
            order = [number for number in range(at) if number not in here] + here
            return items.ordered(order + [number for number in range(at, len(items.all)) if number not in here])
        if len(here) == len(items.all):
            raise ModelError(
                "move-unclear", "all nodes of that block are moved, and others into it", fix="move those into it first"
            )
        while at and at - 1 in here:
            at -= 1
        moved = [self._items(each[:-1]).all[int(each[-1])] for each in paths]
        return [*items.inserted(at, moved), *self._gone(paths)]

    def deleted(self, ids: Sequence[str]) -> Edit:
        """Delete these nodes and those in them. Raises ModelError ``node-unknown``, ``block-empty``, ``edit-not-possible``."""
        chosen = self._chosen(ids)
        # A node within another one of them is deleted with it.
        chosen = {
            each: path
            for each, path in chosen.items()
            if not any(path != outer and path[: len(outer)] == outer for outer in chosen.values())
        }
        paths = list(chosen.values())
        self._refuse_emptied(chosen)
        data: Any = copy.deepcopy(self._document.data)
        for each in sorted(paths, key=lambda path: self._document.values[path].start, reverse=True):
            del lines.data_at(data, each[:-1])[each[-1]]
        return self._edit(self._gone(paths), data)

    def _gone(self, paths: Sequence[Path]) -> list[Splice]:
        by_list: dict[Path, list[int]] = {}
        for each in paths:
            by_list.setdefault(each[:-1], []).append(int(each[-1]))
        return [splice for path, numbers in by_list.items() for splice in self._items(path).without(numbers)]

    def _edit(self, splices: Sequence[Splice], data: Json) -> Edit:
        return Edit(draft_splices.spliced(self._document.source, splices), data)

    def _items(self, path: Path) -> Items:
        return Items(self._document, path)

    def _place(self, node: str) -> Path:
        found = self._places.get(node)
        if found is None:
            close = errors.near(node, self._places)
            raise ModelError(
                "node-unknown",
                f"the draft has no node `{node[:80]}`",
                fix=f"did you mean `{close}`?" if close else "the outline (`get_workflow_summary`) lists the nodes",
            )
        return found

    def _spot(self, after: str | None) -> tuple[Path, int]:
        """Return the list, and the index in it, that ``after`` means."""
        if after is None:
            return ("nodes",), len(lines.data_at(self._document.data, ("nodes",)))
        node, slash, block = after.partition("/")
        if not slash:
            path = self._place(node)
            return path[:-1], int(path[-1]) + 1
        if not node:
            return ("nodes",), 0
        self._place(node)
        blocks = self._layout.blocks.get(node, {})
        path = blocks.get(block) or (next(iter(blocks.values()), None) if not block else None)
        if path is None:
            named = ", ".join(f"`{node}/{each}`" for each in blocks)
            raise ModelError(
                "block-unknown",
                f"`{node}` has no block `{block[:80]}`" if block else f"`{node}` has no nodes in it",
                fix=f"it has {named}" if named else f"`update_node` writes `{node}` anew with nodes in it",
            )
        return path, 0

    def _chosen(self, ids: Sequence[str]) -> dict[str, Path]:
        if not ids:
            raise ModelError("node-unknown", "no node is named", fix="give the ids of nodes")
        return {each: self._place(each) for each in ids}

    @staticmethod
    def _refuse_nested(names: Sequence[str], paths: Sequence[Path]) -> None:
        for name, path in zip(names, paths, strict=True):
            for other, outer in zip(names, paths, strict=True):
                if outer != path and path[: len(outer)] == outer:
                    raise ModelError(
                        "update-unclear",
                        f"`{name}` stands within `{other}`",
                        fix=f"give `{other}` with `{name}` in it, or name only one of them",
                    )

    def _refuse_emptied(self, chosen: Mapping[str, Path], but: Path | None = None) -> None:
        for path in {each[:-1] for each in chosen.values()}:
            every: list[Any] = lines.data_at(self._document.data, path)
            inside = [node for node, each in chosen.items() if each[:-1] == path]
            if path == but or len(every) > len(inside):
                continue
            owner = next((each for each, blocks in self._layout.blocks.items() if path in blocks.values()), None)
            where = f"the block of `{owner}`" if owner else "the draft"
            fix = (
                f"take `{owner}` away as a whole, or write it anew: `update_node`"
                if owner
                else "replace its nodes in one call: `update_node` with `id` null, or `create_nodes` first"
            )
            raise ModelError("block-empty", f"without {_named(inside)} {where} would be empty", fix=fix)


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return ", ".join(f"`{each[:80]}`" for each in ids[:3]) + more


def _index(among: Sequence[Any], one: Any) -> int:
    return next(number for number, each in enumerate(among) if each is one)
