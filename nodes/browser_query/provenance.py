"""Checks whether a page contains a value: a text, a number in any usual notation, a day in any usual form.

A value that a model read off a page is on it. Any other was computed, translated, or invented; the check cannot tell which.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator

from nodes.parsing import DIGITS
from nodes.values import Json

GROUPED = re.compile(r"\d{1,3}(?P<mark>[.,'’])(?:\d{2,3}(?P=mark))*\d{3}")
"""Digits with a mark between their groups: of three, or as in India of two before the last three."""

THREES = re.compile(r"\d{3}(?:[.,]\d+)?")
"""Continuation of a number after a blank: three digits. The last three may have a fraction."""

DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)\S*)?")  # A day in ISO 8601, with or without a time

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"),
    *("december",),
)

NAMED_HOURS = {0: (r"\bmidnight\b",), 12: (r"\bnoon\b",)}  # patterns of the named hours

UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))
"""Invisible characters: permitted and forbidden line breaks."""

ALIKE = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u2032`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
"""The forms of quotes and dashes, which count as equal."""

WORD = re.compile(r"\w+")

CUT = "..."  # end of a shortened text in comparisons; the page has the whole text, or these dots
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")  # A number as programs write it

ONE = re.compile(r"(?P<whole>.*?)(?:(?P<mark>[.,])(?P<fraction>\d*))?", re.DOTALL)
"""A number split at its last mark: the part before, the mark, and the digits after."""


class Words:
    """The content of a page, searchable for values."""

    def __init__(self, text: str) -> None:
        """``text``: everything on the page, in order, one part a line, with names and values of fields."""
        self._text = _folded(text)
        self._written = text

    def say(self, value: Json) -> bool:
        """Return whether the page contains the value. Null, true and false do not appear on pages, so they count as contained."""
        if value is None or isinstance(value, bool):
            return True
        if isinstance(value, int | float):
            return self._says_number(decimal.Decimal(str(value)))
        return not isinstance(value, str) or self._says_text(value)

    def _says_text(self, text: str) -> bool:
        wanted = _folded(text)
        if not wanted or _contains(wanted, self._text):
            return True
        if (day := _day(wanted)) is not None:
            return any(form.search(self._text) for form in _forms(day)) and self._says_time(wanted)
        if NUMBER.fullmatch(wanted):
            return any(self._says_number(each) for each in _numbers(wanted))
        words = [] if CUT in wanted else WORD.findall(wanted)
        # Marks between digits decide the number; between words they are only style.
        marked = all(each.isdecimal() for each in words) and re.search(r"\d[.,]\d", wanted)
        return bool(words) and not marked and f" {' '.join(words)} " in self._row

    def _says_time(self, text: str) -> bool:
        found = DAY.fullmatch(text)
        if found is None or found[4] is None:
            return True
        hour, minute = int(found[4]), found[5]
        half = rf"{'a' if hour < 12 else 'p'}\.?m"
        shown = [rf"0?{hour}[:.]{minute}", rf"0?{hour % 12 or 12}[:.]{minute}(?::\d\d)?\s?{half}"]
        if minute == "00":
            shown += [rf"(?<![:.])0?{hour % 12 or 12}\s?{half}", *NAMED_HOURS.get(hour, ())]
        return any(re.search(rf"(?<!\d){each}(?!\d)", self._text) for each in shown)

    def _says_number(self, value: decimal.Decimal) -> bool:
        return value in self._numbers

    @functools.cached_property
    def _row(self) -> str:
        return f" {' '.join(WORD.findall(self._text))} "

    @functools.cached_property
    def _numbers(self) -> frozenset[decimal.Decimal]:
        return frozenset(each for line in self._written.split("\n") for each in _numbers(line))


def _folded(text: str) -> str:
    """Return a text for comparison: white space, case, and the forms of quotes and dashes do not count."""
    plain = unicodedata.normalize("NFKC", text).translate(UNSEEN).casefold().translate(ALIKE)
    return " ".join(plain.split())


def _contains(wanted: str, text: str) -> bool:
    """Return whether ``wanted`` is in ``text`` as separate words, not as a part of a longer word or number."""
    before = r"(?<!\w)" if WORD.match(wanted[0]) else ""
    after = r"(?!\w)" if WORD.match(wanted[-1]) else ""
    if wanted[0].isdecimal():
        before += r"(?<!\d[.,])"
    if wanted[-1].isdecimal():
        after += r"(?![.,]\d)"
    return wanted in text and re.search(f"{before}{re.escape(wanted)}{after}", text) is not None


# Numbers.


def _numbers(text: str) -> Iterator[decimal.Decimal]:
    """Yield every number that the text can be read as. If its marks allow two readings, both: a page does not say which one it means."""
    for found in DIGITS.finditer(text):
        written = found.group()
        sign = written[0] if written[0] in "-−+" else ""
        before, after = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
        glued, closed = before.isalnum(), (before, after) == ("(", ")")
        for index, number in _in_blanks(written.removeprefix(sign)):
            # -5 on a page may also be the amount of a discount.
            yield number
            if closed or (sign in ("-", "−") and index == 0 and not glued):
                yield -number


def _in_blanks(written: str) -> Iterator[tuple[int, decimal.Decimal]]:
    """Yield the numbers in digits with blanks, each with the index of its first part: `3 1 250` is 3, 1, 1250 and 250."""
    pieces = [each.strip(".,'’") if "." not in each[:1] else each.rstrip(".,'’") for each in written.split()]
    pieces = [each for each in pieces if each]
    for index, piece in enumerate(pieces):
        for number in _readings(piece):
            yield index, number
        joined = piece
        if not re.fullmatch(r"\d{1,3}", piece):
            continue
        for further in itertools.takewhile(THREES.fullmatch, pieces[index + 1 :]):
            joined += further
            for number in _readings(joined):
                yield index, number
            if not further.isdecimal():
                break


def _readings(piece: str) -> Iterator[decimal.Decimal]:
    """Yield the numbers that digits with marks may mean. If they mean none, each run of digits is a number: `22.11.2026`."""
    found, split = list[str](), ONE.fullmatch(piece)
    if GROUPED.fullmatch(piece):
        found.append(piece)
    if split is not None:
        whole, mark, fraction = split.group("whole"), split.group("mark"), split.group("fraction")
        groups = GROUPED.fullmatch(whole)
        if not whole or whole.isdecimal() or (groups is not None and groups["mark"] != mark):
            yield decimal.Decimal(f"{_digits(whole) or 0}.{fraction or 0}")
            split = None
    for each in found or (re.findall(r"\d+", piece) if split is not None else ()):
        yield decimal.Decimal(_digits(each))


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


# Days.


def _day(text: str) -> dt.date | None:
    found = DAY.fullmatch(text)
    try:
        return dt.date(int(found[1]), int(found[2]), int(found[3])) if found is not None else None
    except ValueError:
        return None


def _forms(day: dt.date) -> Iterator[re.Pattern[str]]:
    year, month, number = rf"(?:{day.year:04}|'?{day.year % 100:02})", rf"0?{day.month}", rf"0?{day.day}"
    name = MONTHS[day.month - 1]
    named = rf"{name[:3]}(?:{name[3:]}{'|t' if name == 'september' else ''})?\.?"
    ordinal = rf"{number}(?:st|nd|rd|th|\.)?"
    for form in (
        rf"{day.year:04}([./-])\s?{month}\1\s?{number}",
        rf"{number}([./-])\s?{month}\1\s?{year}",
        rf"{month}([./-])\s?{number}\1\s?{year}",
        rf"{named}[ -]{ordinal},?[ -]{year}",
        rf"{ordinal}[ -](?:of )?{named},?[ -]{year}",
    ):
        yield re.compile(rf"(?<![\w./-]){form}(?!(?!t\d\d:)[\w/-])(?!\.\d)")
