"""Converts YAML text to plain data, with the place of every key and value.

Scalars follow YAML 1.2: `on`, `no`, `1:30`, `012` and dates stay text. Surprising constructs are refused: duplicate keys,
keys that are not text, tags, several documents, and anything too large or too deep.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml
from yaml import events

from nodes.values import LARGEST_INTEGER, Json
from runtime.language.diagnostics import Diagnostic, Mark, Source

LARGEST_FILE = 1 << 20  # bytes
DEEPEST = 64  # levels of lists and maps
MOST_NODES = 100_000  # lists, maps and scalars; an alias counts as all nodes that it repeats
LONGEST_SCALAR = 256 << 10  # characters of one text
Path = tuple[str | int, ...]  # path of a value: `("nodes", 0, "target", "css")`

NULL = frozenset({"", "~", "null", "Null", "NULL"})
BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
UNPRINTABLE = re.compile("[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

CORE = "tag:yaml.org,2002:"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclasses.dataclass(slots=True)
class Document:
    source: Source
    data: Json = None
    values: dict[Path, Mark] = dataclasses.field(default_factory=dict)  # place of each value
    keys: dict[Path, Mark] = dataclasses.field(default_factory=dict)  # place of the key of each value
    problems: list[Diagnostic] = dataclasses.field(default_factory=list)
    readable: bool = True  # true if `data` is the whole text: no mistake made the rest unreadable

    def mark(self, path: Path, *, key: bool = False) -> Mark | None:
        """Return the place of a value (or its key), or else of the nearest thing around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path not in self.values and path:
            path = path[:-1]
            if path in self.keys:
                return self.keys[path]
        return self.values.get(path)

    def problem(self, code: str, message: str, path: Path, *help: str | None, key: bool = False) -> Diagnostic:
        """Return the diagnostic of a value, or of its key."""
        return self.source.diagnostic(code, message, self.mark(path, key=key), help=help)

    def within(self, path: Path, value: str, start: int, end: int) -> Mark | None:
        """Return the place in the file of characters ``start`` to ``end`` of the text ``value`` at ``path``.

        The file may write the text differently (quotes, escapes, folded lines), so this finds the same occurrence of the same word.
        If that fails, returns the place of the whole text.
        """
        mark = self.values.get(path)
        if mark is None:
            return self.mark(path)
        raw = self.source.text[mark.start : mark.stop]
        word = value[start:end]
        if not word or raw.count(word) != value.count(word):
            return mark
        at = -len(word)
        for _ in range(value.count(word, 0, start) + 1):
            at = raw.find(word, at + len(word))
        return self.source.mark(mark.start + at, mark.start + at + len(word))


DATA = "a workflow is small: data belongs in an input (`--input NAME=@FILE`), blocks that repeat into a file of their own (`use:`)"
"""Fix for a file that is too large."""

BRACES = "a value that begins with `{{` must be in quotes"


def read(name: str, content: bytes | str) -> Document:
    """Return the data of a YAML text, called ``name`` in its diagnostics. Never raises for invalid content."""
    document = Document(Source(name, ""))
    try:
        document.source = Source(name, _decoded(name, content))
        _Builder(document).run()
    except _Stop as stop:
        document.problems.append(stop.problem)
        document.readable = False
    return document


def _decoded(name: str, content: bytes | str) -> str:
    if len(content) > LARGEST_FILE:
        message = f"a workflow file has at most {LARGEST_FILE >> 20} MiB"
        raise _Stop(Diagnostic("file-too-large", message, name, help=(DATA,)))
    if isinstance(content, bytes):
        if b"\0" in content and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
            help = ("name a workflow file: YAML text that begins with `version: 1`",)
            raise _Stop(Diagnostic("not-text", "this is a binary file: it holds a NUL byte", name, help=help))
        try:
            content = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            source = Source(name, content[: error.start].decode())
            end = source.mark(len(source.text), len(source.text))
            problem = source.diagnostic("not-text", "the file is not in UTF-8", end, help=["save it as UTF-8"])
            raise _Stop(problem) from None
    text = content.removeprefix("\ufeff")
    if found := UNPRINTABLE.search(text):
        source = Source(name, text)
        character = "NUL" if found[0] == "\0" else f"U+{ord(found[0]):04X}"
        message = f"the control character {character} is not allowed in YAML"
        help = ['in a quoted text it can be written as an escape: "\\x1b"']
        raise _Stop(source.diagnostic("not-text", message, source.mark(*found.span()), help=help))
    return text


class _Stop(Exception):
    """A mistake that makes the rest of the text unreadable."""

    def __init__(self, problem: Diagnostic) -> None:
        self.problem = problem


@dataclasses.dataclass(frozen=True, slots=True)
class _Anchored:
    data: Any
    path: Path
    nodes: int


class _Builder:
    """Builds a document from PyYAML's events. The recursion is at most ``DEEPEST`` levels deep."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._source = document.source
        self._anchors: dict[str | None, _Anchored | None] = {}  # None while the anchored value is being read
        self._nodes = 0
        self._events = self._parsed()

    def run(self) -> None:
        documents = 0
        for event in self._events:
            if isinstance(event, events.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    fix = "a file is one workflow: take the `---` away"
                    self._stop("several-documents", "the file holds several documents", event, fix)
            elif isinstance(event, events.NodeEvent):
                self._document.data = self._value(event, ())
        if documents == 0:
            begin = "a workflow begins with `version: 1` and has `nodes:`; `runops nodes` lists the node types"
            mark = self._source.mark(0, 0)
            raise _Stop(self._source.diagnostic("empty-file", "the file is empty", mark, help=[begin]))

    def _parsed(self) -> Iterator[Any]:
        try:
            yield from yaml.parse(self._source.text, Loader=LOADER)
        except yaml.YAMLError as error:
            raise _Stop(self._syntax(error)) from None
        except (ValueError, OverflowError, RecursionError) as error:
            problem = self._source.diagnostic("yaml-syntax", f"this is not YAML: {error}", self._source.mark(0, 0))
            raise _Stop(problem) from None

    def _syntax(self, error: yaml.YAMLError) -> Diagnostic:
        place = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        index = min(place.index, len(self._source.text)) if place is not None else 0
        problem = getattr(error, "problem", None) or "it cannot be read"
        label = str(getattr(error, "context", None) or "")
        line = self._source.line(self._source.mark(index, index).line)
        hints: list[str | None] = [
            BRACES if re.search(r":\s+\{\{|-\s+\{\{", line) else None,
            "indent with blanks: a tab is not allowed" if "\t" in line[: len(line) - len(line.lstrip())] else None,
            "a text with `: ` in it must be in quotes" if "mapping values are not allowed" in problem else None,
        ]
        return self._source.diagnostic(
            "yaml-syntax", f"this is not YAML: {problem}", self._source.mark(index, index + 1), label=label, help=hints
        )

    def _value(self, event: Any, path: Path) -> Json:
        start, stop = event.start_mark.index, event.end_mark.index
        before = self._nodes
        if isinstance(event, events.AliasEvent):
            value = self._alias(event, path)
        else:
            self._count(event, 1)
            self._anchors[event.anchor] = None
            if isinstance(event, events.ScalarEvent):
                value = self._scalar(event)
            else:
                value, stop = self._collection(event, path)
            self._anchors[event.anchor] = _Anchored(value, path, self._nodes - before)
        while stop > start and self._source.text[stop - 1] in " \t\r\n":
            stop -= 1
        self._document.values[path] = self._source.mark(start, stop)
        return value

    def _collection(self, event: Any, path: Path) -> tuple[Json, int]:
        """Return a map or list, and the offset of its end."""
        mapping = isinstance(event, events.MappingStartEvent)
        if len(path) >= DEEPEST:
            self._stop("too-deep", f"lists and maps nest deeper than {DEEPEST} levels", event, DATA)
        if event.tag not in (None, "!", CORE + ("map" if mapping else "seq")):
            self._refuse_tag(event)
        data: Any = {} if mapping else []
        while not isinstance(inner := next(self._events), events.CollectionEndEvent):
            if not mapping:
                data.append(self._value(inner, (*path, len(data))))
            elif (key := self._key(inner, path, data)) is not None:
                data[key] = self._value(next(self._events), (*path, key))
            else:
                # Mistakes in the value of a refused key are reported. Nothing reads a path with -1.
                self._value(next(self._events), (*path, -1))
        end: Any = inner
        return data, end.end_mark.index

    def _key(self, event: Any, path: Path, data: dict[str, Json]) -> str | None:
        """Return a key of the map ``data``; None for one that is refused."""
        mark = self._mark(event)
        if isinstance(event, events.AliasEvent):
            self._stop("key-not-text", f"an alias, `*{event.anchor}`, cannot be a key", event)
        if not isinstance(event, events.ScalarEvent):
            braces = self._source.text.startswith("{{", mark.start - 1)
            self._stop("key-not-text", "a map or list cannot be a key", event, BRACES if braces else "a key is a text")
        key = self._scalar(event)
        if not isinstance(key, str):
            help = f'write it in quotes: `"{event.value}"`'
            self._problem("key-not-text", f"the key `{event.value}` is not a text", mark, help)
            return None
        self._anchors[event.anchor] = _Anchored(key, (*path, key), 1)
        if key in data:
            first = self._document.keys[*path, key]
            help = f"the first is in line {first.line}, column {first.column}"
            self._problem("duplicate-key", f"`{key}` is a key of the same map twice", mark, help)
            return None
        self._document.keys[*path, key] = mark
        return key

    def _scalar(self, event: Any) -> Json:
        if len(event.value) > LONGEST_SCALAR:
            self._stop("text-too-long", f"a text has at most {LONGEST_SCALAR >> 10} KiB", event, DATA)
        tag = event.tag
        if tag is None:
            return plain(event.value) if event.style in (None, "") and event.implicit[0] else event.value
        if tag in (CORE + "null", CORE + "bool", CORE + "int", CORE + "float"):
            return plain(event.value)
        if tag not in ("!", CORE + "str"):
            self._refuse_tag(event)
        return event.value

    def _alias(self, event: Any, path: Path) -> Json:
        name = event.anchor
        if name not in self._anchors:
            close = difflib.get_close_matches(name, filter(None, self._anchors), n=1)
            quotes = f'a text that begins with `*` must be in quotes: `"*{name}"`'
            fix = f"did you mean `*{close[0]}`?" if close else quotes
            self._stop("unknown-anchor", f"there is no anchor `&{name}` above", event, fix)
        meant = self._anchors[name]
        if meant is None:
            self._stop("recursive-alias", f"`*{name}` is a part of itself", event, "write out what is meant")
        self._count(event, meant.nodes)
        self._borrow_marks(meant.path, path, meant.data)
        return meant.data

    def _borrow_marks(self, source: Path, target: Path, data: Any) -> None:
        pending: list[tuple[Path, Any]] = [((), data)]
        while pending:
            inner, each = pending.pop()
            for table in (self._document.values, self._document.keys):
                if inner and (*source, *inner) in table:
                    table[*target, *inner] = table[*source, *inner]
            if isinstance(each, dict):
                pending += [((*inner, key), item) for key, item in each.items()]
            elif isinstance(each, list):
                pending += [((*inner, index), item) for index, item in enumerate(each)]

    def _count(self, event: Any, more: int) -> None:
        self._nodes += more
        if self._nodes > MOST_NODES:
            message = f"the file has more than {MOST_NODES} values, counting all that aliases repeat"
            self._stop("too-many-values", message, event, DATA)

    def _refuse_tag(self, event: Any) -> None:
        tag = event.tag.removeprefix(CORE)
        name = f"!!{tag}" if tag != event.tag else event.tag
        self._problem("tag", f"the tag `{name}` is not part of the language", self._mark(event), "take it away")

    def _mark(self, event: Any) -> Mark:
        return self._source.mark(event.start_mark.index, event.end_mark.index)

    def _problem(self, code: str, message: str, mark: Mark, help: str) -> None:
        self._document.problems.append(self._source.diagnostic(code, message, mark, help=[help]))

    def _stop(self, code: str, message: str, event: Any, help: str | None = None) -> NoReturn:
        mark = self._source.mark(event.start_mark.index, max(event.end_mark.index, event.start_mark.index + 1))
        raise _Stop(self._source.diagnostic(code, message, mark, help=[help]))


def plain(text: str) -> Json:
    """Convert an unquoted scalar by the core schema of YAML 1.2, decimal numbers only; whole numbers beyond 64 bits stay text."""
    if text in NULL:
        return None
    if text in BOOLEAN:
        return BOOLEAN[text]
    if INTEGER.fullmatch(text):
        number = int(text) if len(text) <= 20 else LARGEST_INTEGER + 1
        return number if abs(number) <= LARGEST_INTEGER else text
    if FLOAT.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else text
    return text
