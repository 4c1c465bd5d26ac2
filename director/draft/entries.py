"""Entries of a map written in lines, such as the head of a file: replaced, added and removed together with their comments."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from director.draft import layout, lines, splices
from director.draft.splices import Cut, Splice
from nodes.errors import ModelError
from nodes.values import Json
from runtime.language import writer
from runtime.language.workflow import Workflow
from runtime.language.yaml_text import Document, Path

ORDER = [field.alias or name for name, field in Workflow.model_fields.items()]
"""The keys of a file, in the order in which they are written."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value."""

    column: int
    head: int
    """Start of the comments right above it, else of its line."""
    own: int
    """Start of its line."""
    tail: int
    """End of its last line. Includes comments on that line, and indented comments below it."""


class Entries:
    """The map at a path. Raises ModelError ``edit-not-possible`` if it is not written in lines."""

    def __init__(self, document: Document, path: Path) -> None:
        self._source, self._path = document.source, path
        data: Any = lines.data_at(document.data, path)
        if layout.opening(document, path) in ("{", "*"):
            raise _unsuited()
        self.all: dict[str, Entry] = {}
        floor = document.keys[path].stop if path else 0
        for key in data:
            found = _entry(document, (*path, key), floor)
            self.all[key] = found
            floor = found.tail

    @property
    def column(self) -> int:
        """Return the column of its keys."""
        return next(iter(self.all.values())).column

    def put(self, key: str, cuts: Sequence[Cut]) -> list[Splice]:
        """Replace or add the entry of a key. ``cuts`` are its lines at ``column``, the last one without a line break."""
        end = splices.newline(self._source.text)
        old = self.all.get(key)
        if old is not None:
            return [Splice(old.own, old.tail, cuts)]
        keys = list(self.all)
        if self._path:
            before: str | None = keys[-1]
        elif key in ORDER:
            known = [each for each in keys if each in ORDER and ORDER.index(each) < ORDER.index(key)]
            before = known[-1] if known else None
        else:
            above = keys[: keys.index("nodes")] if "nodes" in keys else keys
            before = above[-1] if above else None
        if before is None:
            at = self.all[keys[0]].own
            return [Splice(at, at, [*cuts, splices.put(end, self._source, at)])]
        at = self.all[before].tail
        # What follows the nodes stays separate.
        apart = end if before == "nodes" else ""
        return [Splice(at, at, [splices.put(f"{end}{apart}", self._source, at), *cuts])]

    def without(self, key: str) -> list[Splice]:
        """Remove an entry and the comments right above it. Empty lines on both sides become one."""
        old = self.all.get(key)
        if old is None:
            return []
        text = self._source.text
        first = next(iter(self.all)) == key
        start, stop = old.own if first else old.head, lines.after(text, old.tail)
        above = lines.start_of(text, lines.end_before(text, start))
        if start and not text[above:start].strip() and not (lines.at(text, stop) or "").strip():
            start = above
        # Cuts from line end to line end, so that text inserted after it stays.
        return [Splice(lines.end_before(text, start), lines.end_before(text, stop))]


def written(document: Document, path: Path, column: int, end: str) -> list[Cut]:
    """Return the entry at a path as written, indented to ``column``, with line ends ``end``."""
    if layout.opening(document, path[:-1]) == "{":
        return [laid_out(str(path[-1]), lines.data_at(document.data, path), document, path, column, end)]
    found = _entry(document, path, 0)
    start = document.keys[path].start
    moved = splices.shifted(document.source, start, found.tail, column - found.column, end)
    return [splices.put(" " * column, document.source, start), *moved]


def laid_out(key: str, value: Json, document: Document, path: Path, column: int, end: str) -> Cut:
    """Return an entry formatted anew, which replaces the one at ``path``."""
    mark = document.values[path]
    text = writer.text({key: value}).rstrip("\n")
    return Cut(end.join(" " * column + line for line in text.split("\n")), document.source, mark.start, mark.stop)


def _entry(document: Document, path: Path, floor: int) -> Entry:
    text = document.source.text
    key = document.keys[path]
    own = lines.start_of(text, key.start)
    if text[own : key.start].strip() or own < lines.start_of(text, floor):
        raise _unsuited()
    tail = lines.end_with_comments(text, layout.end_of(document, path), key.column - 1)
    head = lines.comments_above(text, own, key.column - 1, floor)
    return Entry(key.column - 1, head, own, tail)


def _unsuited() -> ModelError:
    return ModelError(
        "edit-not-possible",
        "the head of the draft is not written a key a line, so it cannot be changed as it is written",
        fix="ask the person to write it so",
    )
