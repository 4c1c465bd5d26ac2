"""Edits a YAML text by whole lines: those of a list item or map entry with its comments. Other lines stay as they are."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from nodes.errors import ModelError
from nodes.values import Json
from runtime.language import writer, yaml_text
from runtime.language.yaml_text import Document, Path

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_DASH = re.compile(r"( *)-(?=\s|\Z)")
_PROPERTIES = re.compile(r"(?:[&!][^\s\[\]{},]*\s+)*")


class Span(NamedTuple):
    """The lines of an item or an entry, counted from 0."""

    column: int  # column of its dash or key
    head: int  # first line of the comments right above it
    own: int
    stop: int  # first line after it and after comments below it that are indented further


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    data: Json
    lines: Sequence[str]  # at the left margin, without line ends, comments above included
    commented: bool  # True if it begins with a comment


def data_at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def opening(document: Document, path: Path) -> str:
    """Return the first character of a value, after its anchor: ``{`` for braces, ``[`` for brackets, ``*`` for an alias."""
    text = document.source.text
    found = _PROPERTIES.match(text, document.values[path].start)
    return text[found.end() : found.end() + 1] if found is not None else ""


def ended(text: str) -> str:
    """Return the text with a line end after its last line: otherwise appended text could change its last value."""
    return text if text.endswith(("\n", "\r")) else text + ("\r\n" if "\r\n" in text else "\n")


def unsuited(reason: str) -> ModelError:
    return ModelError(
        "edit-not-possible",
        f"{reason}, so this cannot be done in the text as it is written",
        fix="do it in several calls, or write the whole container anew: `update_node` with its id and its text",
    )


def merged(old: Sequence[Any], new: Mapping[int, Sequence[Any]], gone: Container[int]) -> list[Any]:
    made: list[Any] = []
    for number in range(len(old) + 1):
        made += new.get(number, ())
        if number < len(old) and number not in gone:
            made.append(old[number])
    return made


def shifted(lines: Sequence[str], by: int) -> list[str]:
    """Indent lines, or dedent each by at most its own indent. Lines of blanks move, too: they count in a multi-line text."""
    if by >= 0:
        return [" " * by + each if each else "" for each in lines]
    return [each[min(-by, len(each) - len(each.lstrip(" "))) :] for each in lines]


class Lines:
    """The lines of a text. Raises ModelError ``edit-not-possible`` for items and entries that share a line with others."""

    def __init__(self, document: Document) -> None:
        """The last line of the text must have a line end."""
        self.document = document
        self.all = _LINE.findall(document.source.text)
        self.end = self.all[0][len(self.all[0].rstrip("\r\n")) :]

    def span(self, path: Path) -> Span:
        """Return the lines of the item or entry at ``path``, which must not be in brackets."""
        key = isinstance(path[-1], str)
        mark = (self.document.keys if key else self.document.values)[path]
        own = mark.line - 1
        column = mark.column - 1
        if not key:
            while (dash := _DASH.match(self.all[own])) is None and own:
                own -= 1
            column = len(dash[1]) if dash is not None else column
        if self.all[own][:column].strip():
            raise unsuited("it shares a line with something else")
        head = own
        while head and self._begins(head - 1) == (column, "#"):
            head -= 1
        stop = own + 1
        for number in range(own + 1, len(self.all)):
            indent, first = self._begins(number)
            if not first or (first == "#" and indent <= column):
                continue
            if indent < column or (indent == column and not (key and first == "-")):
                break
            stop = number + 1
        return Span(column, head, own, stop)

    def _begins(self, number: int) -> tuple[int, str]:
        line = self.all[number]
        return len(line) - len(line.lstrip(" ")), line.strip()[:1]

    def item(self, path: Path, head: int | None = None) -> Item:
        """Return an item or entry from the line ``head`` on, by default with the comments right above it."""
        span = self.span(path)
        head = span.head if head is None else head
        lines = [each.rstrip("\r\n") for each in self.all[head : span.stop]]
        return Item(data_at(self.document.data, path), shifted(lines, -span.column), span.head < span.own)

    def around(self, span: Span, *, below: bool = False) -> range:
        head, stop = span.head, span.stop
        while not below and head and not self.all[head - 1].strip():
            head -= 1
        while below and stop < len(self.all) and not self.all[stop].strip():
            stop += 1
        return range(head, stop)

    def edited(self, new: Mapping[int, Sequence[str]], gone: Container[int]) -> str:
        """Return the text without the lines ``gone``, and with the ``new`` lines, each list before the line of that number."""
        ended = {number: [each + self.end for each in lines] for number, lines in new.items()}
        return "".join(merged(self.all, ended, gone))


def in_lines(document: Document, path: Path) -> Document:
    """Return the document with the list or map at ``path`` in block style: brackets of it or around it are rewritten."""
    within = (path[:number] for number in range(len(path) + 1))
    first = next((each for each in within if opening(document, each) in ("{", "[", "*")), None)
    if first is None:
        return document
    if opening(document, first) == "*":
        raise unsuited("it is written as an alias")
    value = data_at(document.data, first)
    text = writer.text(value) if not first else _unfolded(document, first, value)
    made = yaml_text.read(document.source.name, text)
    if made.data != document.data:
        raise unsuited("its brackets are written in no usual way")
    return made


def _unfolded(document: Document, path: Path, value: Json) -> str:
    """Return the text with a value in block style; a comment after its brackets is kept."""
    lines = Lines(document)
    span = lines.span(path)
    new = shifted(written(path[-1], value), span.column)
    rest = document.source.text[document.values[path].stop :].lstrip(" \t").splitlines()
    if rest and rest[0].startswith("#"):
        new[0] += f"  {rest[0]}"
    return lines.edited({span.own: new}, range(span.own, span.stop))


def written(step: str | int, value: Any) -> list[str]:
    """Return a map entry or list item as lines at the left margin; each key or node in it begins a line."""
    if isinstance(step, str) and isinstance(value, dict):
        entries = [writer.text({name: each}).strip("\n").split("\n") for name, each in value.items()]
        return [f"{step}:", *(f"  {line}" if line else "" for each in entries for line in each)]
    lines = writer.text({"nodes": value if isinstance(step, str) else [value]}).split("\n")[2:-1]
    return [f"{step}:", *lines] if isinstance(step, str) else shifted(lines, -2)
