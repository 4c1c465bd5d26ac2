"""Takes CSS and XPath selectors apart: into the steps that lead to an element, and the words that each step asks of it."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Literal

Way = Literal["css", "xpath"]
Kind = Literal["tag", "id", "class", "attribute", "names", "text"]

_NAME = r"(?:[\w-]|[^\x00-\x7f]|\\.)+"
_PLAIN = re.compile(r"-?[A-Za-z_][\w-]*")  # a name that CSS takes as it is
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_STRING = re.compile(_QUOTED)

_CSS = re.compile(
    rf"""
    (?P<combinator>\s*[>+~]\s*|\s+)
    | \#(?P<id>{_NAME})
    | \.(?P<class>{_NAME})
    | \[\s*(?P<names>{_NAME})\s*(?:(?P<sign>[~|^$*]?=)\s*(?P<attribute>{_QUOTED}|{_NAME})\s*(?:[isIS]\s*)?)?\]
    | :(?:text-is|has-text|text)\(\s*(?P<text>{_QUOTED})\s*\)
    | (?P<pseudo>::?[\w-]+)
    | (?P<tag>{_NAME})
    | \*
    """,
    re.VERBOSE,
)

_LOOSE: dict[Kind, str] = {"id": "[id]", "class": "[class]", "tag": "*", "text": ":is(*)"}

_XPATH_TAG = re.compile(r"[A-Za-z][\w-]*(?![\w:(-])")

_XPATH = re.compile(
    r"""
    @(?P<attribute>[\w:-]+)\s*=\s*(?P<quote1>["'])(?P<equal>.*?)(?P=quote1)
    | contains\(\s*@(?P<part_of>[\w:-]+)\s*,\s*(?P<quote2>["'])(?P<part>.*?)(?P=quote2)\s*\)
    | (?P<function>text\(\)|normalize-space\((?:text\(\)|\.)?\))\s*=\s*(?P<quote3>["'])(?P<text>.*?)(?P=quote3)
    """,
    re.VERBOSE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Word:
    """A word that a step asks of the element, such as ``#save``, from ``start`` to ``end`` of the selector."""

    start: int
    end: int
    kind: Kind
    value: str
    loose: str  # what asks the same of any value, such as `[id]`
    before: str = ""  # what stands before the value
    after: str = ""
    in_quotes: bool = False
    name: str = ""  # of the attribute

    def written(self, value: str) -> str:
        """Return the word with another value."""
        if self.in_quotes:
            return self.before + quoted(value) + self.after
        if self.kind in ("id", "class") and not _PLAIN.fullmatch(value):
            # Escapes would be right too, and hardly anyone reads them.
            return f"[{self.kind}{'=' if self.kind == 'id' else '~='}{quoted(value)}]"
        return self.before + value + self.after


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A part of a selector between two combinators (of an XPath: between two slashes), from ``start``, with its combinator, to ``end``."""

    start: int
    first: int  # where it begins without its combinator
    end: int
    words: tuple[Word, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Selector:
    way: Way
    text: str
    steps: tuple[Step, ...]

    def head(self, number: int) -> str:
        """Return the selector up to the end of a step."""
        return self.text[: self.steps[number].end]

    def said(self, number: int) -> str:
        """Return the step as it is written."""
        return self.text[self.steps[number].start : self.steps[number].end].strip()


def take_apart(way: Way, text: str) -> list[Selector]:
    """Return the selector, one for each alternative of a list; empty if it has a form that is not known here."""
    parts = [text] if way == "xpath" else _outside(text, ",")
    read = _css if way == "css" else _xpath
    found = [read(each.strip()) for each in parts]
    return [each for each in found if each is not None and each.steps] if None not in found else []


def _css(text: str) -> Selector | None:
    steps: list[Step] = []
    words: list[Word] = []
    start = first = place = 0
    while place < len(text):
        match = _CSS.match(text, place)
        if match is None:
            return None
        end = match.end()
        if match["pseudo"] and text[end : end + 1] == "(":
            end = _closing(text, end)
        if match["combinator"]:
            if place > first:
                steps.append(Step(start, first, place, tuple(words)))
                start, words = place, []
            first = end
        else:
            words += _css_words(match)
        place = end
    return Selector("css", text, (*steps, Step(start, first, len(text), tuple(words)))) if first < len(text) else None


def _css_words(match: re.Match[str]) -> list[Word]:
    start, end = match.span()

    def word(kind: Kind, loose: str, **more: Any) -> Word:
        before, after = match.string[start : match.start(kind)], match.string[match.end(kind) : end]
        return Word(start, end, kind, _unquoted(match[kind]), loose, before, after, **more)

    for kind, loose in _LOOSE.items():
        if match[kind]:
            return [word(kind, loose, in_quotes=kind == "text")]
    if not match["names"]:
        return []
    name = match["names"]
    values = [word("attribute", f"[{name}]", in_quotes=True, name=name)] if match["attribute"] else []
    return [*values, word("names", ":is(*)")]


def _xpath(text: str) -> Selector | None:
    if text.startswith("(") or len(_outside(text, "|")) > 1:
        return None
    steps: list[Step] = []
    start = 0
    for part in _outside(text, "/"):
        end = start + len(part)
        if part.strip() not in ("", "."):
            begin = steps[-1].end if steps else 0
            steps.append(Step(begin, start, end, tuple(_xpath_words(part, start))))
        start = end + 1
    return Selector("xpath", text, tuple(steps))


def _xpath_words(part: str, offset: int) -> list[Word]:
    tag = _XPATH_TAG.match(part)
    words = [Word(offset, offset + tag.end(), "tag", tag[0], "*")] if tag else []
    for match in _XPATH.finditer(part):
        group = next(each for each in ("equal", "part", "text") if match[each] is not None)
        start, end = match.span()
        # The quotes stand beside the value.
        before, after = part[start : match.start(group) - 1], part[match.end(group) + 1 : end]
        name = match["attribute"] or match["part_of"] or ""
        kind: Kind = "text" if group == "text" else "class" if (group, name) == ("part", "class") else "attribute"
        loose = match["function"] or f"@{name}"
        place = (offset + start, offset + end)
        words.append(Word(*place, kind, match[group], loose, before, after, in_quotes=True, name=name))
    return words


def quoted(value: str) -> str:
    if '"' not in value:
        return f'"{value}"'
    return f"'{value}'" if "'" not in value else '"' + value.replace('"', r"\"") + '"'


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1] if value[:1] in "\"'" else value)


def _outside(text: str, sign: str) -> list[str]:
    """Split at a sign that is outside quotes and brackets."""
    parts: list[str] = []
    begin = depth = place = 0
    while place < len(text):
        if match := _STRING.match(text, place):
            place = match.end()
            continue
        each = text[place]
        if each == "\\":
            place += 1
        elif each in "([":
            depth += 1
        elif each in ")]":
            depth -= 1
        elif each == sign and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
        place += 1
    return [*parts, text[begin:]]


def _closing(text: str, start: int) -> int:
    """Return the place after the bracket that closes the one at ``start``; the end of the text if none does."""
    depth, place = 0, start
    while place < len(text):
        if match := _STRING.match(text, place):
            place = match.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
        if depth == 0:
            return place
    return len(text)
