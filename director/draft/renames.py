"""New ids for given nodes whose own a file cannot have: words of the language, and ids in a ``confirm`` that another node has.

Nothing outside of a ``confirm`` reads its nodes, so models give them the same ids in each.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping

from director.draft import edits
from director.draft.lines import data_at
from nodes.values import Json
from runtime.language import writer
from runtime.language.checks import declarations, names
from runtime.language.expressions import references
from runtime.language.expressions.references import ReferenceInvalid
from runtime.language.yaml_text import Document, Path

KEYS: Mapping[str, Collection[str]] = {"run": names.RUN_KEYS, "error": names.ERROR_KEYS, "loop": names.LOOP_KEYS}
"""What the language reads under its words: any other reading of one means the node."""

MAPS = ("inputs", "secrets", "vars")  # words under which any key may be meant


def of(text: str, others: Collection[str]) -> tuple[str, list[str]]:
    """Return nodes with such ids and the references to them renamed, and a sentence for each. ``others`` are ids of other nodes.

    Raises WorkflowInvalid if the text is no YAML.
    """
    document = edits.read(text)
    every = {path: str(each["id"]) for path, each in _nodes(document.data, ())}
    outside = {name for path, name in every.items() if not _scope(path)}
    taken, found = {*others, *outside}, _Found(document)
    for scope, inside in itertools.groupby(every, key=_scope):
        ids = [(path, every[path]) for path in inside]
        for path, name in ids:
            if name in declarations.TAKEN:
                why, wanted = "that is a word of the language", f"{name}_step"
            elif scope and name in taken and [each for _path, each in ids].count(name) == 1:
                why, wanted = "another node has that id", f"{data_at(document.data, scope[:-1]).get('id')}_{name}"
            else:
                continue
            used = {*taken, *every.values()}
            new = next(each for each in (wanted, *map(f"{wanted}_{{}}".format, range(2, 99))) if each not in used)
            if found.change((*path, "id"), name, 0, name, new):
                found.said.append(f"`{name}` is called `{new}`: {why}")
                found.references(scope, name, new)
                taken.add(new)
        taken |= {name for _path, name in ids}
    return found.text, found.said


class _Found:
    def __init__(self, document: Document) -> None:
        self._document, self._changes = document, dict[tuple[int, int], str]()
        self.said: list[str] = []

    @property
    def text(self) -> str:
        text = self._document.source.text
        for (start, stop), new in sorted(self._changes.items(), reverse=True):
            text = text[:start] + new + text[stop:]
        return text

    def change(self, path: Path, text: str, start: int, old: str, new: str) -> bool:
        """Note a change of a word in a text; False if the file writes it otherwise."""
        mark = self._document.within(path, text, start, start + len(old))
        if mark is None or self._document.source.text[mark.start : mark.stop] != old:
            return False
        self._changes[mark.start, mark.stop] = new
        return True

    def references(self, scope: Path, name: str, new: str) -> None:
        for path, text in _texts(data_at(self._document.data, scope), scope):
            try:
                uses = references.compile(text).names if name in text and name not in MAPS else ()
            except ReferenceInvalid:
                continue
            for use in uses:
                ours = name in KEYS and len(use.chain) > 1 and use.chain[1] in KEYS[name]
                if use.root == name and not ours:
                    self.change(path, text, use.offsets[0], name, new)


def _scope(path: Path) -> Path:
    """Return the path of the ``confirm`` around a node; empty if there is none."""
    return path[: path.index("confirm") + 1] if "confirm" in path else ()


def _nodes(data: Json, path: Path) -> Iterator[tuple[Path, dict[str, Json]]]:
    """Yield the nodes of a text, and those in their blocks. A map of fields may have an ``id`` and a ``type``, too, and is none."""
    fields: dict[str, Json] = data if isinstance(data, dict) else {}
    if "type" in fields and isinstance(fields.get("id"), str):
        yield path, fields
    for step, each in _steps(data):
        if isinstance(step, int) or step in writer.BLOCKS:
            yield from _nodes(each, (*path, step))


def _texts(data: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(data, str):
        yield path, data
    for step, each in _steps(data):
        yield from _texts(each, (*path, step))


def _steps(data: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(data, dict):
        yield from data.items()
    elif isinstance(data, list):
        yield from enumerate(data)
