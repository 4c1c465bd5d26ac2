"""The nodes of a workflow text by position, with their source text. Invalid texts are read as far as possible."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast

from director.draft.lines import Lines, opening
from nodes import errors
from nodes.errors import ModelError
from nodes.values import Json
from runtime.display.text import cut
from runtime.language import yaml_text
from runtime.language.diagnostics import Diagnostic
from runtime.language.node_tree import Anatomy, NodeSource
from runtime.language.workflow import Workflow
from runtime.language.yaml_text import Path

NAMED = frozenset({"id", "type", "action", "query", "use", "description"})  # fields that an outline shows by themselves
HEAD = "workflow"  # name of the head of a file, used next to the ids of nodes
CONFIGURATION = 300  # limit of a node's configuration in an outline, in characters
RECENT = 10  # number of recent nodes

_RANGE = re.compile(r"([0-9]{1,6})\s*(?:[-–]\s*([0-9]{1,6}))?")


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    position: int  # from 1, over all nodes of the file in text order, nested ones included
    depth: int
    id: str
    kind: str
    action: str  # its action or query, or the file that it uses; empty if none
    block: str  # the block of its container, unless it is `nodes`: `catch`, `otherwise`, the name of a branch
    line: int  # line of the text, from 1
    path: Path

    def __str__(self) -> str:
        where = f"{self.block}/" if self.block else ""
        return f"{where}{self.id}  {' '.join(filter(None, (self.kind, self.action)))}"


class Layout:
    def __init__(self, document: yaml_text.Document) -> None:
        """``document`` is the result of ``yaml_text.read``; it may hold mistakes."""
        self._document = document
        self.nodes: list[Placed] = []
        self.blocks: dict[str, dict[str, Path]] = {}
        """The blocks of each container by its id: name of the block, as in ``Placed.block``, and path of its list."""
        data: Json = document.data
        self._units: dict[Path, NodeSource] = {}
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
            action = unit.text("action") or unit.text("query") or unit.text("use") or ""
            line = self._document.values[path].line
            self._units[path] = unit
            yield Placed(0, depth, unit.id or "?", unit.type, action, _label(block, owner), line, path)
            named = {
                _label(block[len(unit.path) :], unit.data): anatomy.written(block) for block, _inner in unit.blocks
            }
            self.blocks[unit.id or "?"] = named | ({"confirm": (*path, "confirm", "nodes")} if unit.confirm else {})
            for block_path, inner in unit.blocks:
                yield from self._placed(anatomy, inner, depth + 1, block_path[len(unit.path) :], unit.data)
            yield from self._placed(anatomy, unit.confirm, depth + 1, ("confirm",), unit.data)

    def secrets(self) -> list[str]:
        declared = self._anatomy.clean.get("secrets") if self._anatomy is not None else None
        named: list[Json] = declared if isinstance(declared, list) else []
        return [each for each in named if isinstance(each, str)]

    def outline(self, more: Callable[[Placed], str] = lambda _placed: "", configuration: int = 0) -> str:
        """Return a line for each node, with ``more``, and its description and configuration in at most so many characters."""
        lines: list[str] = []
        for each in self.nodes:
            configured = cut(self.configuration(each), configuration) if configuration else ""
            parts = [f"{each.position:>3} {'  ' * each.depth}{each}", more(each), configured]
            lines.append("  ".join(filter(None, parts)))
        return "\n".join(lines)

    def configuration(self, placed: Placed) -> str:
        """Return a node's description and its own fields as JSON, without the nodes in it."""
        unit = self._units[placed.path]
        inner = {path[len(unit.path) :] for path, _nodes in unit.blocks} | {("confirm", "nodes")}
        own = {name: each for name, each in unit.data.items() if name not in NAMED}
        fields = _without(own, inner, ())
        said = " ".join(str(unit.data.get("description") or "").split())
        return "  ".join(filter(None, (said, json.dumps(fields, ensure_ascii=False) if fields else "")))

    def kinds(self) -> str:
        """Return the number of nodes, by type: ``7 (browser_action 4, iterate 1 …)``."""
        by = Counter(each.kind for each in self.nodes)
        return f"{len(self.nodes)} ({', '.join(f'{kind} {number}' for kind, number in by.most_common())})"

    def selected(self, which: str, kind: str | None = None, recent: Sequence[str] = ()) -> list[Placed]:
        """Return the selected nodes: ``1-10``, ``3``, ``2,5-7``, an id, ``all``, or ``recent``.

        ``recent`` means the ids in ``recent``, or the last nodes of the file if there are none.
        Raises ModelError ``node-unknown`` if nothing is selected, with the closest id.
        """
        which = which.strip()
        if which in ("all", ""):
            selected = self.nodes
        elif which == "recent":
            selected = [each for each in self.nodes if each.id in recent] or self.nodes[-RECENT:]
        else:
            parts = [self._part(each.strip()) for each in which.split(",") if each.strip()]
            selected = [each for each in self.nodes if any(each.position in part for part in parts)]
        return [each for each in selected if kind in (None, each.kind)]

    def _part(self, part: str) -> range:
        ids = {each.id: each.position for each in self.nodes}
        if part in ids:
            return range(ids[part], ids[part] + 1)
        if (found := _RANGE.fullmatch(part)) is None:
            close = errors.near(part, ids)
            raise _unknown(
                f"there is no node `{part[:80]}`",
                f"did you mean `{close}`?"
                if close
                else "say positions (`1-10`, `3`), `all`, `recent`, an id, or `workflow`, its head",
            )
        within = range(max(int(found[1]), 1), min(int(found[2] or found[1]), len(self.nodes)) + 1)
        if not within:
            raise _unknown(f"there is no node at {part}", f"the positions are 1 to {len(self.nodes)}")
        return within

    def render(self, selected: Sequence[Placed]) -> str:
        """Return the source text of these nodes; a node within another selected one appears only there."""
        lines: list[str] = []
        outer: Path | None = None
        for each in selected:
            if outer is None or each.path[: len(outer)] != outer:
                outer = each.path
                lines += [f"# {each.position}  line {each.line}", self.text_of(each)]
        return "\n".join(lines)

    def read(self, which: str, kind: str | None = None, recent: Sequence[str] = ()) -> str:
        if which.strip() == HEAD and not any(each.id == HEAD for each in self.nodes):
            return self.head
        selected = self.selected(which, kind, recent)
        if kind is not None and not selected:
            return f"(no node of type `{kind[:80]}` is among them; the workflow has {self.kinds()})"
        return self.render(selected)

    @property
    def head(self) -> str:
        if ("nodes",) not in self._document.keys or opening(self._document, ()) == "{":
            return self._document.source.text
        lines = Lines(self._document)
        span = lines.span(("nodes",))
        above, below = "".join(lines.all[: span.own]), "".join(lines.all[span.stop :])
        return f"{above.rstrip()}\n{below.strip()}".strip()

    def text_of(self, placed: Placed) -> str:
        if opening(self._document, placed.path[:-1]) == "[":
            mark = self._document.values[placed.path]
            return f"- {self._document.source.text[mark.start : mark.stop]}"
        lines = Lines(self._document)
        return "\n".join(lines.item(placed.path, lines.span(placed.path).own).lines)

    def where(self, offset: int) -> str:
        """Return the node and the field at an offset of the text, such as ``pay.target``; empty for the head."""
        marks = [*self._document.keys.items(), *self._document.values.items()]
        _start, _length, path = max((mark.start, -len(path), path) for path, mark in marks if mark.start <= offset)
        ids = {each.path: each.id for each in self.nodes}
        node = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in ids), ())
        return ".".join(map(str, (ids.get(node, ""), *path[len(node) :]))).strip(".")

    def located(self, problem: Diagnostic) -> Diagnostic:
        """Return a mistake with its node and field in the message: the model has not seen the draft's lines."""
        own = problem.file == self._document.source.name
        where = self.where(problem.mark.start) if problem.mark is not None and own else ""
        return dataclasses.replace(problem, message=f"`{where}`: {problem.message}") if where else problem


def _without(value: Any, inner: Collection[Path], path: Path) -> Any:
    """Return data without what is at these paths."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if (*path, name) not in inner}
        return {name: _without(each, inner, (*path, name)) for name, each in kept.items()}
    if isinstance(value, list):
        return [_without(each, inner, (*path, number)) for number, each in enumerate(value)]
    return value


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
