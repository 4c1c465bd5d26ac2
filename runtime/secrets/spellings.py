"""Patterns that find a text in any spelling of its characters: as it is, escaped, in other capitals."""

from __future__ import annotations

import functools
import html.entities
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

SIGMA, FINAL_SIGMA = "\u03c3", "\u03c2"

NESTED = 40  # characters of a text that are compared if it is cut short; what follows them counts as part of it

EACH = 100
"""Characters of a text that are searched in every spelling. The rest must follow as it is, or is everything up to a space or a quote."""

WIDE = 12  # maximum length of one escaped character where only the length of a text is compared
WIDEST = 800  # maximum number of bytes of a character: four of UTF-8, each escaped repeatedly, or six of base64

_LEADS = "\\%&"
# Between the sign that begins an escape and its content: further signs, zeros, and signs that are escaped themselves.
_BETWEEN = r"(?=[\\%&#{;\w])(?:[\\%&#xXuU{;0]|2[356]|5[cC]|amp;|bsol;|percnt;|92;|37;){0,16}"
_END = r"(?:[;}\s]|%(?:25){0,3}[37][bBdD])?"
_PARTIAL = r"(?:[\\%&=][^\s]{0,200})?"

_SHORT = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}


class Writing(NamedTuple):
    text: str
    cased: bool = True  # true if case matters
    encoded: bool = False  # true if it is base64, whose letters and digits are never escaped


class _Way(NamedTuple):
    leads: str
    between: str
    rest: str
    escapes: bool = True


class Patterns(NamedTuple):
    escaped: str  # pattern of the texts whose first character is escaped
    plain: str


def found_by(writings: Collection[Writing], *, binary: bool = False) -> Patterns:
    """Return patterns of these texts, the longest first; ``binary``: of their UTF-8, each byte as the character of its number."""
    escaped: dict[tuple[str, str], list[str]] = {}
    plain: list[str] = []
    for writing in sorted(writings, key=lambda each: -len(each.text)):
        first, *others = _sequence(writing, binary)
        rest = _rest(others)
        for way in first:
            if way.escapes:
                escaped.setdefault((way.leads, way.between), []).append(f"{way.rest}{rest}")
            else:
                plain += [f"{re.escape(lead)}{way.rest}{rest}" for lead in sorted(way.leads)]
    if not escaped:
        return Patterns("(?!)", "|".join(plain))
    leads = _set({lead for each in escaped for lead in each[0]})
    found = (f"(?<={_set(each)}){between}(?:{'|'.join(rests)})" for (each, between), rests in escaped.items())
    return Patterns(f"{leads}(?:{'|'.join(found)})", "|".join(plain))


def _rest(sequence: Sequence[Sequence[_Way]]) -> str:
    first, far = "".join(map(_character, sequence[:EACH])), sequence[EACH:]
    if not far:
        return first
    # Making a pattern for each character takes time.
    plain = "".join(_character([way for way in ways if not way.escapes] or ways) for ways in far)
    return rf"{first}(?:{plain}|[\\%&=\w][^\s\"'<>]{{0,{WIDE * len(far)}}})"


def begun_by(writings: Collection[Writing], least: int) -> str:
    """Return a pattern for texts that end with the first ``least`` or more characters of one of these. If ``least`` is 1, an incomplete escape counts too."""
    found = [_begun(_sequence(each, binary=False), least) for each in writings]
    return rf"(?:{'|'.join(found)}){_PARTIAL}\Z" if least > 1 else rf"(?:{'|'.join(found)}|(?!\Z)){_PARTIAL}\Z"


def _begun(sequence: Sequence[Sequence[_Way]], least: int) -> str:
    left = len(sequence) - NESTED
    pattern = rf"[\s\S]{{0,{WIDE * left}}}" if left > 0 else ""
    for number, ways in reversed(list(enumerate(sequence[:NESTED], start=1))):
        pattern = f"{_character(ways)}{pattern}"
        if number > least:
            pattern = f"(?:{pattern})?"
    return pattern


def _sequence(writing: Writing, binary: bool) -> list[list[_Way]]:
    return [list(_ways(each, writing, binary)) for each in writing.text]


def _character(ways: Sequence[_Way]) -> str:
    if len(ways) == 1 and not ways[0].rest:
        return _set(ways[0].leads)
    return f"(?:{'|'.join(f'{_set(way.leads)}{way.between}{way.rest}' for way in ways)})"


def _set(characters: Collection[str]) -> str:
    return f"[{''.join(map(re.escape, sorted(characters)))}]" if len(characters) > 1 else re.escape(*characters)


def in_any_case(character: str) -> set[str]:
    found, fresh = {character}, {character}
    for _time in range(3):
        fresh = {other for each in fresh for other in (each.lower(), each.upper(), each.title(), each.casefold())}
        fresh -= found
        found |= fresh
    return found | ({FINAL_SIGMA} if SIGMA in found else set())


def _ways(character: str, writing: Writing, binary: bool) -> Iterator[_Way]:
    if writing.encoded and character.isalnum():
        yield _Way(character, "", "", escapes=False)
        return
    others = {character} if writing.cased or writing.encoded else in_any_case(character)
    texts = sorted(others, key=lambda each: (-len(each), each))
    plain = [each.encode(errors="surrogatepass").decode("latin-1") if binary else each for each in texts]
    # CSV and SQL double their quotes.
    again = rf"(?:\\{{0,7}}{character})?" if character in "\"'" else ""
    # The longer one first, so that no half of an escape remains at the end.
    if not character.isalnum():
        yield _Way("\\", r"\\{0,7}", f"{_either(map(re.escape, plain))}{again}")
    if character == "\\":
        yield _Way("\\", r"\\{0,7}", "")
    else:
        yield from (_Way(each[0], "", re.escape(each[1:]) + again, escapes=False) for each in plain if len(each) > 1)
        singles = "".join(each for each in plain if len(each) == 1) + ("+" if character == " " else "")
        if singles:
            yield _Way(singles, "", again, escapes=False)
    yield _Way(_LEADS, _BETWEEN, f"{_either(_escaped(texts))}{_END}")
    yield _Way("=", "", _either("=".join(_hex(each.encode(errors="surrogatepass"))) for each in texts))


def _either(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def _escaped(texts: Collection[str]) -> Iterator[str]:
    """Yield the contents of escapes for a character; ``texts`` are the character in each case."""
    between = rf"[{re.escape(_LEADS)}]{_BETWEEN}"
    found: dict[str, None] = {}
    for text in texts:
        data = text.encode(errors="surrogatepass")
        found[between.join(_hex(data))] = None
        found[between.join(f"{byte:o}" for byte in data)] = None
        for each in _entities().get(text, ()):
            found[each] = None
        if text in _SHORT:
            found[_SHORT[text]] = None
        if len(text) == 1:
            found |= dict.fromkeys((_digits(f"{ord(text):x}"), str(ord(text))))
        if len(text) == 1 and ord(text) > 0xFFFF:
            units = text.encode("utf-16-be")
            found[between.join(_digits(units[at : at + 2].hex()) for at in (0, 2))] = None
    # The longer of two with the same beginning is tried first.
    return iter(sorted(found, key=lambda each: (-len(each), each)))


def _hex(data: bytes) -> list[str]:
    return [_digits(f"{byte:02x}") for byte in data]


def _digits(digits: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in digits)


@functools.cache
def _entities() -> Mapping[str, Sequence[str]]:
    names: dict[str, list[str]] = {}
    for name, character in html.entities.html5.items():
        if name.endswith(";"):
            names.setdefault(character, []).append(name[:-1])
    return names
