"""Adds, changes, moves and deletes nodes of a draft. Each edit is the new text and the data that this text must yield."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from director.draft import layout
from director.draft.lines import Item, Lines, data_at, ended, in_lines, merged, shifted
from nodes import errors
from nodes.errors import ModelError
from nodes.values import Json
from runtime.language import writer, yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.language.yaml_text import Document, Path

GIVEN = "yaml"  # name of the text given for an edit, in diagnostics


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    text: str
    data: Json


def given(text: str, *, whole: bool = False) -> list[Item]:
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
        document, data = _as_list(document), [data]
    if not isinstance(data, list) or not data:
        raise _no_nodes(document, path, "this is no list of nodes", "write `- id: …` for each node")
    wrong = [number for number, each in enumerate(data) if not isinstance(each, dict)]
    if wrong:
        raise _no_nodes(document, (*path, wrong[0]), "this is no node", "a node is a map: `id`, `type`, and its fields")
    if not path and document.source.text[document.values[()].start] == "[":
        path, document = ("nodes",), yaml_text.read(GIVEN, writer.text({"nodes": data}))
    lines = Lines(in_lines(document, path))
    spans = [lines.span((*path, number)) for number in range(len(data))]
    heads = [spans[0].head, *(each.stop for each in spans)]
    return [lines.item((*path, number), heads[number]) for number in range(len(data))]


def _as_list(document: Document) -> Document:
    mark, lines = document.values[()], Lines(document)
    first, column = mark.line - 1, mark.column - 1
    line = lines.all[first]
    rest = "".join("  " + each for each in lines.all[first + 1 :])
    return yaml_text.read(GIVEN, "".join([*lines.all[:first], line[:column], "- ", line[column:], rest]))


def is_whole(data: Mapping[str, Json]) -> bool:
    """Return whether this is a file, rather than a node with nodes in it."""
    return "nodes" in data and "type" not in data


def read(text: str) -> Document:
    """Read the given text, without a Markdown fence around it. Raises WorkflowInvalid if it is not YAML, or empty."""
    document = yaml_text.read(GIVEN, ended(_FENCE.sub("", text)))
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
    def __init__(self, document: Document, places: Mapping[str, Path], laid: layout.Layout) -> None:
        self._document, self._places, self._layout = document, places, laid

    def created(self, new: Sequence[Item], after: str | None) -> Edit:
        """Add nodes.

        ``after``: a node, followed in its block; ``ID/`` or ``ID/BLOCK``: first in that block; ``/``: first in the file; None: last.
        Raises ModelError ``node-unknown``, ``block-unknown``, ``edit-not-possible``.
        """
        place = self._spot(after)
        return spliced(self._in_lines([place]), {place: new}, ())

    def updated(self, new: Sequence[Item], node: str | None) -> Edit:
        """Replace ``node`` by one node; None: each node with the same id. Raises ModelError as ``created``, and ``update-unclear``."""
        if node is not None and len(new) != 1:
            raise ModelError(
                "update-unclear",
                f"{len(new)} nodes were given for the one `{node[:80]}`",
                fix="give one; with `id` null each replaces the node with its own id; `create_nodes` adds further ones",
            )
        names = [node] if node is not None else [str(data_at(each.data, ()).get("id") or "") for each in new]
        if "" in names:
            raise ModelError(
                "update-unclear",
                f"node {names.index('') + 1} of those given has no `id`, so it replaces none",
                fix="give each node the id of the one that it replaces",
            )
        if twice := {each for each in names if names.count(each) > 1}:
            raise ModelError("update-unclear", f"`{min(twice)}` is given twice", fix="give each node once")
        paths = {each: self._place(each) for each in names}
        _refuse_nested(paths)
        return _replaced(self._in_lines(paths.values()), dict(zip(paths.values(), new, strict=True)))

    def moved(self, ids: Sequence[str], after: str | None) -> Edit:
        """Move nodes, in the order given; ``after`` as in ``created``. Raises ModelError as there, and ``move-unclear``, ``block-empty``."""
        paths = self._named(ids)
        _refuse_nested(paths)
        place = self._spot(after)
        for each, path in paths.items():
            if place[:-1][: len(path)] == path or (after or "").partition("/")[0] == each:
                raise ModelError(
                    "move-unclear",
                    f"`{each}` cannot be moved behind itself, or into itself",
                    fix="`after` is a node that stays where it is",
                )
        self._refuse_emptied(paths, but=place[:-1])
        lines = self._in_lines([place, *paths.values()])
        return spliced(lines, {place: [lines.item(each) for each in paths.values()]}, paths.values())

    def deleted(self, ids: Sequence[str]) -> Edit:
        """Delete these nodes and those in them. Raises ModelError ``node-unknown``, ``block-empty``, ``edit-not-possible``."""
        paths = self._named(ids)
        outer = {each: path for each, path in paths.items() if not _owner(path, paths)}
        self._refuse_emptied(outer)
        return spliced(self._in_lines(outer.values()), {}, outer.values())

    def _in_lines(self, places: Iterable[Path]) -> Lines:
        document = self._document
        for each in places:
            document = in_lines(document, each[:-1])
        return Lines(document)

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

    def _named(self, ids: Sequence[str]) -> dict[str, Path]:
        if not ids:
            raise ModelError("node-unknown", "no node is named", fix="give the ids of nodes")
        return {each: self._place(each) for each in ids}

    def _spot(self, after: str | None) -> Path:
        """Return the place before which ``after`` puts nodes: the path of a list, and an index in it."""
        if after is None:
            return ("nodes", len(data_at(self._document.data, ("nodes",))))
        node, slash, block = after.partition("/")
        if not slash:
            path = self._place(node)
            return (*path[:-1], int(path[-1]) + 1)
        if not node:
            return ("nodes", 0)
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
        return (*path, 0)

    def _refuse_emptied(self, paths: Mapping[str, Path], but: Path | None = None) -> None:
        for path in {each[:-1] for each in paths.values()}:
            inside = [node for node, each in paths.items() if each[:-1] == path]
            if path == but or len(data_at(self._document.data, path)) > len(inside):
                continue
            owner = next((each for each, blocks in self._layout.blocks.items() if path in blocks.values()), None)
            named = ", ".join(f"`{each[:80]}`" for each in inside[:3]) + (" …" if len(inside) > 3 else "")
            raise ModelError(
                "block-empty",
                f"without {named} {f'the block of `{owner}`' if owner else 'the draft'} would be empty",
                fix=f"take `{owner}` away as a whole, or write it anew: `update_node`"
                if owner
                else "replace its nodes in one call: `update_node` with `id` null, or `create_nodes` first",
            )


def _owner(path: Path, paths: Mapping[str, Path]) -> str | None:
    """Return the node among ``paths`` that contains the one at ``path``."""
    return next((each for each, outer in paths.items() if outer != path and path[: len(outer)] == outer), None)


def _refuse_nested(paths: Mapping[str, Path]) -> None:
    for name, path in paths.items():
        if other := _owner(path, paths):
            raise ModelError(
                "update-unclear",
                f"`{name}` stands within `{other}`",
                fix=f"give `{other}` with `{name}` in it, or name only one of them",
            )


def spliced(lines: Lines, new: Mapping[Path, Sequence[Item]], gone: Collection[Path]) -> Edit:
    """Put ``new`` items before their places in lists, and take those at ``gone`` away."""
    data: Any = copy.deepcopy(lines.document.data)
    lists: dict[Path, list[Any]] = {each[:-1]: data_at(data, each[:-1]) for each in (*new, *gone)}
    put: dict[int, list[str]] = {}
    dropped: set[int] = set()
    for path, every in lists.items():
        spans = [lines.span((*path, number)) for number in range(len(every))]
        blank = [""] if len(spans) > 1 and not any(lines.all[each.head - 1].strip() for each in spans[1:]) else []
        coming = {int(each[-1]): items for each, items in new.items() if each[:-1] == path}
        leaving = {int(each[-1]) for each in gone if each[:-1] == path}
        for at, items in coming.items():
            written = [line for each in items for line in (*(blank if each.lines[0] else ()), *each.lines)]
            if not at:
                written = [*written[len(blank) :], *blank]
            put[spans[at - 1].stop if at else spans[0].head] = shifted(written, spans[0].column)
        for number in leaving:
            dropped |= set(lines.around(spans[number], below=leaving.issuperset(range(number))))
        every[:] = merged(every, {at: [each.data for each in items] for at, items in coming.items()}, leaving)
    return Edit(lines.edited(put, dropped), data)


def _replaced(lines: Lines, new: Mapping[Path, Item]) -> Edit:
    """Replace items. The comments above one stay if the new one has none."""
    data: Any = copy.deepcopy(lines.document.data)
    put: dict[int, list[str]] = {}
    dropped: set[int] = set()
    for path, item in new.items():
        span = lines.span(path)
        start = span.head if item.commented else span.own
        put[start] = shifted([*itertools.dropwhile(lambda line: not line, item.lines)], span.column)
        dropped |= set(range(start, span.stop))
        data_at(data, path[:-1])[path[-1]] = item.data
    return Edit(lines.edited(put, dropped), data)
