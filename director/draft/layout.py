"""The nodes of a workflow text by position, with their source text. Texts with mistakes are read as far as possible."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from nodes import errors
from nodes.errors import ModelError
from nodes.values import Json
from runtime.language import yaml_text
from runtime.language.diagnostics import Mark, Source
from runtime.language.node_tree import Anatomy, NodeSource
from runtime.language.workflow import Workflow

HEAD = "workflow"
"""Name of the head of a file, used next to the ids of nodes."""

RECENT = 5
"""Number of recent nodes."""

_COMMENT = re.compile(r"[ \t]+#[^\r\n]*")
_PROPERTIES = re.compile(r"(?:[&!][^\s\[\]{},]*\s+)*")
_TEXT = re.compile(r"(?:[&!]\S*\s+)*[|>](?P<how>[-+0-9]*)[ \t]*(?:#[^\r\n]*)?(?=[\r\n])")
_EMPTY = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))+")
_RANGE = re.compile(r"([0-9]{1,6})\s*(?:[-–]\s*([0-9]{1,6}))?")


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A node in its file."""

    position: int
    """From 1, over all nodes of the file in text order, nested ones included."""
    depth: int
    id: str
    kind: str
    action: str
    """Its action or query, or the file that it uses; empty if none."""
    block: str
    """The block of its container, unless it is ``nodes``: ``catch``, ``otherwise``, the name of a branch."""
    line: int
    """Line of the text, from 1."""
    start: int
    stop: int
    """Offsets in the text."""

    def __str__(self) -> str:
        where = f"{self.block}/" if self.block else ""
        return f"{where}{self.id}  {' '.join(filter(None, (self.kind, self.action)))}"


class Layout:
    """The node layout of one text."""

    def __init__(self, document: yaml_text.Document) -> None:
        """``document`` is the result of ``yaml_text.read``; it may hold mistakes."""
        self._document = document
        self.nodes: list[Placed] = []
        self.blocks: dict[str, dict[str, yaml_text.Path]] = {}
        """The blocks of each container by its id: name of the block, as in ``Placed.block``, and path of its list."""
        data: Json = document.data
        self._anatomy: Anatomy | None = None
        if isinstance(data, dict):
            self._anatomy = anatomy = Anatomy(cast("dict[str, Json]", data), Workflow)
            found = self._placed(anatomy, anatomy.units, 0, ("nodes",), {})
            self.nodes = [dataclasses.replace(each, position=number) for number, each in enumerate(found, 1)]

    def _placed(
        self, anatomy: Anatomy, units: Sequence[NodeSource], depth: int, block: tuple[str | int, ...], owner: Any
    ) -> Iterator[Placed]:
        for unit in units:
            path = anatomy.written(unit.path)
            mark = self._document.values[path]
            stop = end_of(self._document, path)
            action = unit.text("action") or unit.text("query") or unit.text("use") or ""
            label = _label(block, owner)
            yield Placed(0, depth, unit.id or "?", unit.type, action, label, mark.line, mark.start, stop)
            named = {
                _label(block[len(unit.path) :], unit.data): anatomy.written(block) for block, _inner in unit.blocks
            }
            self.blocks[unit.id or "?"] = named | ({"confirm": (*path, "confirm", "nodes")} if unit.confirm else {})
            for block_path, inner in unit.blocks:
                yield from self._placed(anatomy, inner, depth + 1, block_path[len(unit.path) :], unit.data)
            yield from self._placed(anatomy, unit.confirm, depth + 1, ("confirm",), unit.data)

    def secrets(self) -> list[str]:
        """Return the secrets that the file declares, as far as it can be read."""
        declared = self._anatomy.clean.get("secrets") if self._anatomy is not None else None
        named: list[Json] = declared if isinstance(declared, list) else []
        return [each for each in named if isinstance(each, str)]

    def outline(self, more: Callable[[Placed], str] = lambda _placed: "") -> str:
        """Return the nodes as a short tree, one a line; ``more`` returns the text appended to a line."""
        lines: list[str] = []
        for each in self.nodes:
            said = more(each)
            lines.append(f"{each.position:>3} {'  ' * each.depth}{each}{f'  {said}' if said else ''}")
        return "\n".join(lines)

    def kinds(self) -> str:
        """Return the number of nodes, by type: ``7 (browser_action 4, iterate 1 …)``."""
        by = Counter(each.kind for each in self.nodes)
        return f"{len(self.nodes)} ({', '.join(f'{kind} {number}' for kind, number in by.most_common())})"

    def selected(self, which: str, kind: str | None = None, recent: Sequence[str] = ()) -> list[Placed]:
        """Return the selected nodes: ``1-10``, ``3``, ``2,5-7``, an id, ``all``, or ``recent``.

        ``recent`` means the ids in ``recent``, or the last nodes of the file if there are none.
        Raises ModelError ``node-unknown`` if nothing is selected, with the closest id.
        """
        chosen = self._chosen(which.strip(), recent)
        if kind is None:
            return chosen
        known = {each.kind for each in self.nodes}
        if kind not in known:
            close = errors.near(kind, known)
            raise _unknown(
                f"there is no node of type `{kind[:80]}`",
                f"did you mean `{close}`?" if close else f"these types are there: {', '.join(sorted(known)) or 'none'}",
            )
        return [each for each in chosen if each.kind == kind]

    def _chosen(self, which: str, recent: Sequence[str]) -> list[Placed]:
        if which in ("all", ""):
            return self.nodes
        if which == "recent":
            return [each for each in self.nodes if each.id in recent] or self.nodes[-RECENT:]
        chosen: set[int] = set()
        for part in filter(None, (each.strip() for each in which.split(","))):
            chosen |= self._part(part)
        return [each for each in self.nodes if each.position in chosen]

    def _part(self, part: str) -> set[int]:
        ids = {each.id: each.position for each in self.nodes}
        if part in ids:
            return {ids[part]}
        if (found := _RANGE.fullmatch(part)) is None:
            close = errors.near(part, ids)
            fix = (
                f"did you mean `{close}`?"
                if close
                else "say positions (`1-10`, `3`), `all`, `recent`, an id, or `workflow`, its head"
            )
            raise _unknown(f"there is no node `{part[:80]}`", fix)
        first, last = int(found[1]), int(found[2] or found[1])
        within = {each.position for each in self.nodes if first <= each.position <= last}
        if not within:
            raise _unknown(f"there is no node at {part}", f"the positions are 1 to {len(self.nodes)}")
        return within

    def told(self, chosen: Sequence[Placed]) -> str:
        """Return the source text of these nodes, each once: a node within another selected one appears only there."""
        lines: list[str] = []
        told_to = 0
        for each in chosen:
            if each.stop <= told_to:
                continue
            told_to = each.stop
            lines += [f"# {each.position}  line {each.line}", self.text_of(each)]
        return "\n".join(lines)

    def read(self, which: str, kind: str | None = None, recent: Sequence[str] = ()) -> str:
        """Return the source of the nodes that ``selected`` returns; for ``workflow``, of everything but the nodes."""
        if which.strip() == HEAD and not any(each.id == HEAD for each in self.nodes):
            return self.head
        return self.told(self.selected(which, kind, recent))

    @property
    def head(self) -> str:
        """Return the file without its nodes."""
        text, key = self._document.source.text, self._document.keys.get(("nodes",))
        if key is None:
            return text
        start = max(text.rfind("\n", 0, key.start), text.rfind("\r", 0, key.start)) + 1
        return f"{text[:start].rstrip()}\n{text[end_of(self._document, ('nodes',)) :].strip()}".strip()

    def text_of(self, placed: Placed) -> str:
        """Return a node's source as a list item at the left margin."""
        return item(self._document.source.text, placed.start, placed.stop)


def opening(document: yaml_text.Document, path: yaml_text.Path) -> str:
    """Return the first character of a value, after its anchor: ``{`` for braces, ``[`` for brackets, ``*`` for an alias."""
    text = document.source.text
    found = _PROPERTIES.match(text, document.values[path].start)
    return text[found.end() : found.end() + 1] if found is not None else ""


def end_of(document: yaml_text.Document, path: yaml_text.Path) -> int:
    """Return the end of a value in its text. A comment after it, which the parser counts as part of it, belongs to the next value."""
    data: Json = document.data
    for step in path:
        data = data[step]
    while isinstance(data, dict | list) and data and opening(document, path) not in ("{", "[", "*"):
        values: Json = data
        last: str | int = next(reversed(values)) if isinstance(values, dict) else len(values) - 1
        path, data = (*path, last), values[last]
    mark = document.values[path]
    if (found := _TEXT.match(document.source.text, mark.start)) is not None:
        return _end_of_text(document, path, mark, found)
    if mark.stop > mark.start or not (path and path in document.keys):
        return mark.stop
    # A key without a value.
    return document.source.text.index(":", document.keys[path].stop) + 1


def _end_of_text(document: yaml_text.Document, path: yaml_text.Path, mark: Mark, found: re.Match[str]) -> int:
    """Return the end of a multi-line text, with the trailing blanks that belong to it: on its last line, and on deeper indented lines below."""
    text, how = document.source.text, found["how"]
    behind = _EMPTY.match(text, mark.stop)
    if behind is None:
        return mark.stop + len(text[mark.stop :]) - len(text[mark.stop :].lstrip(" \t"))
    if "+" in how:
        # Empty lines after it belong to it.
        return behind.end() - len(Source.BREAKS.findall(behind[0])[-1])
    said = [each for each in Source.BREAKS.split(text[found.end() : mark.stop])[1:] if each.strip()]
    deep = min((len(each) - len(each.lstrip(" ")) for each in said), default=len(behind[0]))
    if (number := how.strip("-")) and path in document.keys:
        deep = document.keys[path].column - 1 + int(number)
    start, stop = 0, mark.stop
    for each in Source.BREAKS.finditer(behind[0]):
        if not start or each.start() - start > deep:
            stop = mark.stop + each.start()
        start = each.end()
    return stop


def item(text: str, start: int, stop: int) -> str:
    """Return ``text`` between two offsets as a list item at the left margin, with the comment on its last line."""
    behind = _COMMENT.match(text, stop)
    stop = behind.end() if behind is not None else stop
    column = start - (max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1)
    first, *rest = Source.BREAKS.split(text[start:stop])
    return "\n".join([f"- {first}", *(_moved(line, 2 - column) for line in rest)])


def _moved(line: str, by: int) -> str:
    """Indent a line, or dedent it as far as it has blanks. Blank lines move too: in a multi-line text they may count."""
    if by >= 0:
        return " " * by + line if line else ""
    return line[min(-by, len(line) - len(line.lstrip(" "))) :]


def _label(block: tuple[str | int, ...], owner: Any) -> str:
    match block:
        case ("nodes",):
            return ""
        case ("branches", int(number), *_):
            branches: Any = owner.get("branches")
            name = branches[number].get("name") if isinstance(branches[number], dict) else None
            return name if isinstance(name, str) else f"branch {number + 1}"
        case (name, *_):
            return str(name)
        case _:
            return ""


def _unknown(what: str, fix: str) -> ModelError:
    return ModelError("node-unknown", what, fix=fix)
