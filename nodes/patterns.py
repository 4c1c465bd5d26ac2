r"""Patterns of an author's that a text of a model's is searched with: refused where a search may take longer than anybody waits.

Python tries every way in which a pattern can fit. Where a repeated part can fit the same text in several ways (``(\w+\s?)*``) each further
character doubles their number, and nothing can stop the search. So what is repeated must be such that one can see where each turn ends.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

LONGEST = 1_000
"""Characters of a text that is searched: the time may still grow with a power of them."""

Characters = frozenset[str]


def problem(pattern: str) -> str | None:
    """Why the pattern is not taken; None where it is, and where it is none: that is told elsewhere."""
    # The parser of `re` is the only one that reads what `re` reads.
    parser: Any = importlib.import_module("re._parser")
    try:
        parsed: Any = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    sample = _sample(pattern)
    if all(_ends_are_seen(body, sample) for body in _repeated(parsed)):
        return None
    return (
        "a part that is repeated may fit the same text in several ways, and a search could take for ever: "
        "begin or end it with a character that does not stand elsewhere in it, as in `[a-z]+(-[a-z]+)*`, and repeat nothing else in it twice"
    )


class _Sample(NamedTuple):
    """Characters by which sets are compared."""

    characters: list[str]
    folded: bool
    """Whether the pattern takes large and small letters for the same, somewhere."""


def _sample(pattern: str) -> _Sample:
    """Characters by which sets are compared: those of Latin, and all that the pattern names, with their neighbours."""
    # An escape (`\\u044f`) names one, too.
    named = {ord(each) for each in pattern} | {
        int(each, 16) for each in re.findall(r"\\[xuU]([0-9a-fA-F]{2,8})", pattern)
    }
    codes = {*range(0x250), *named, *(each + 1 for each in named), *(each - 1 for each in named if each), 0x4E00, 0x661}
    characters = [chr(each) for each in sorted(codes) if each <= 0x10FFFF]
    return _Sample(characters, re.search(r"\(\?[a-zA-Z]*i", pattern) is not None)


def _repeated(parsed: Any) -> Iterator[Any]:
    """What is repeated in the pattern and is more than one character."""
    for operation, said in parsed:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            most, body = int(said[1]), said[2]
            if most > 1 and not (len(body) == 1 and _is_single(body[0])):
                yield body
            else:
                yield from _repeated(body)
        else:
            for inner in _inside(name, said):
                yield from _repeated(inner)


def _inside(name: str, said: Any) -> list[Any]:
    match name:
        case "SUBPATTERN":
            return [said[3]]
        case "BRANCH":
            return list(said[1])
        case "ASSERT" | "ASSERT_NOT":
            return [said[1]]
        case "ATOMIC_GROUP":
            return [said]
        case "GROUPREF_EXISTS":
            return [each for each in said[1:] if each is not None]
        case _:
            return []


def _is_single(element: Any) -> bool:
    return str(element[0]) in ("LITERAL", "NOT_LITERAL", "IN", "ANY")


def _ends_are_seen(body: Any, sample: _Sample) -> bool:
    """Whether a text is turns of the body in one way at most, as far as one sees at once."""
    elements = list(body)
    while len(elements) == 1 and str(elements[0][0]) == "SUBPATTERN":
        elements = list(elements[0][1][3])
    if len(elements) == 1 and str(elements[0][0]) == "BRANCH":
        forms = [list(each) for each in elements[0][1][1]]
        if not all(each and all(map(_is_single, each)) for each in forms):
            return False
        return _are_apart([_characters(each[0], sample) for each in forms])
    if all(map(_is_single, elements)):
        return True
    parts = [_part(each, sample) for each in elements]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or sum(varies for _characters_, varies in known) > 1:
        return False
    for end, others in ((known[0], known[1:]), (known[-1], known[:-1])):
        if not end[1] and all(_are_apart([end[0], each]) for each, _varies in others):
            return True
    return False


def _part(element: Any, sample: _Sample) -> tuple[Characters, bool] | None:
    """The characters of one element, and whether their number varies; None where it is more than a character, repeated or not."""
    name, said = str(element[0]), element[1]
    if _is_single(element):
        return _characters(element, sample), False
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and len(said[2]) == 1 and _is_single(said[2][0]):
        return _characters(said[2][0], sample), said[0] != said[1]
    return None


def _are_apart(sets: list[Characters]) -> bool:
    return sum(map(len, sets)) == len(frozenset[str]().union(*sets))


def _characters(element: Any, sample: _Sample) -> Characters:
    """Those of the sample that an element of one character fits."""
    found = _said(element, sample)
    return frozenset(each.lower() for each in found) if sample.folded else found


def _said(element: Any, sample: _Sample) -> Characters:
    name, said = str(element[0]), element[1]
    every = frozenset(sample.characters)
    match name:
        case "LITERAL":
            return frozenset({chr(said)})
        case "NOT_LITERAL":
            return every - {chr(said)}
        case "ANY":
            return every
        case _:
            found = frozenset(each for each in every if any(_is_of(each, item) for item in said))
            return every - found if str(said[0][0]) == "NEGATE" else found


CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _is_of(character: str, item: Any) -> bool:
    name, said = str(item[0]), item[1]
    match name:
        case "LITERAL":
            return ord(character) == said
        case "RANGE":
            return said[0] <= ord(character) <= said[1]
        case "CATEGORY":
            return re.match(CATEGORIES[str(said)], character) is not None
        case _:
            return False
