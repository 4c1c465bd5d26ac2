"""Values on a page: a value in any usual notation is recognized, and one that is not there is not."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.browser_query.provenance import MONTHS, Words

NUMBERS = st.decimals(min_value=0, max_value=10**9, places=2)


def grouped(number: decimal.Decimal, group: str, mark: str, places: int = 2) -> str:
    """A number with its digits in groups of three."""
    return f"{number:,.{places}f}".replace(",", "G").replace(".", mark).replace("G", group)


WAYS = {
    "English": (",", "."),
    "German": (".", ","),
    "French": ("\u202f", ","),
    "with unbreakable blanks": ("\xa0", ","),
    "Swiss": ("'", "."),
    "Swiss, as printed": ("’", "."),
    "without groups": ("", "."),
    "without groups, with a comma": ("", ","),
}
AROUND = ("{}", "{} €", "€{}", "Total: {}.", "USD {} incl. tax", "x{}", "({})", "{}%", "was 7 777 777 777, now {}!")


@given(number=NUMBERS, way=st.sampled_from(sorted(WAYS)), around=st.sampled_from(AROUND))
def test_a_number_is_recognized_in_any_notation(number: decimal.Decimal, way: str, around: str) -> None:
    """Grouping, the decimal mark and surrounding text do not count."""
    page = Words(around.format(grouped(number, *WAYS[way])))
    assert page.say(float(number))
    assert page.say(f"{number}")


@given(number=st.integers(0, 10**12), way=st.sampled_from(sorted(WAYS)), around=st.sampled_from(AROUND))
def test_a_whole_number_is_recognized_in_any_notation(number: int, way: str, around: str) -> None:
    """A whole number is recognized even if its groups could be read as a fraction."""
    assert Words(around.format(grouped(decimal.Decimal(number), *WAYS[way], places=0))).say(number)


@given(number=NUMBERS, other=NUMBERS, way=st.sampled_from(sorted(WAYS)))
def test_a_missing_number_is_not_recognized(number: decimal.Decimal, other: decimal.Decimal, way: str) -> None:
    """A number with a fraction has one reading: no other number and no negative matches it."""
    written = grouped(number, *WAYS[way])
    page = Words(f"Total {written} €")
    # Blanks may also separate several numbers.
    pieces = {decimal.Decimal(each.replace(",", ".")) for each in written.split()} if way[0] in "Fw" else set()
    assert page.say(float(other)) == (other == number) or other in pieces or " " in written or "\xa0" in written
    assert not page.say(-float(number) - 1)


@pytest.mark.parametrize(
    ("page", "seen", "not_seen"),
    [
        ("Order 1007", [1007, "1007"], [100, 7, "100", "007"]),
        ("Qty 3 1,250.00", [3, 1250], [31250, 250]),
        ("Discount -5.00", [-5, 5], [-500]),
        ("Loss (7.25)", [-7.25, 7.25], []),
        ("pages 5-9", [5, 9], [-9]),
        ("12,34,567 rupees", [1234567], [12, 567]),
        ("$.50", [0.5], [50]),
        ("Due 22.11.2026", [2026, 22, "2026-11-22"], [22.11, "2026-11-23", "2026-02-11"]),
        ("٣٤٥ pieces", [345], [34]),
        ("paid", ["paid", "PAID", None, True], ["unpaid", "pai"]),
        ("unpaid", ["unpaid"], ["paid"]),
        ("12 High Street\nSpringfield", ["12 High Street, Springfield"], ["13 High Street", "High Springfield"]),
        ("call +49 (30) 1234-56", ["+49 30 1234 56"], []),
        ("version 3 5", [], ["3.5"]),
        ("“Quoted” – it’s", ['"quoted" - it\'s'], []),
        ("3.50 kg", ["3.5"], ["3.51"]),
        ("", [""], ["a", 0]),
        ("Paid at 10:30 PM on 3 May 2026", ["2026-05-03T22:30:00Z"], ["2026-05-03T10:31:00Z", "2026-05-03T21:30"]),
        ("Nov. 22, 2026, 3 p.m.", ["2026-11-22T15:00"], ["2026-11-22T15:30", "2026-11-22T03:00"]),
        ("Nov. 22, 2026, 12:03 p.m.", ["2026-11-22T12:03"], ["2026-11-22T15:00", "2026-11-22T12:00"]),
        ("Nov. 22, 2026, noon", ["2026-11-22 12:00:00"], ["2026-11-22T00:00"]),
        ("Nov. 22, 2026, midnight", ["2026-11-22T00:00"], ["2026-11-22T12:00"]),
        ("the afternoon of Nov. 22, 2026", ["2026-11-22"], ["2026-11-22T12:00"]),
        ("2026-11-22T10:00:00+01:00", ["2026-11-22", "2026-11-22T10:00:00+01:00"], ["2026-11-2"]),
        ("Donau\u00addampfer a\u200bb", ["Donaudampfer", "ab"], ["Donau"]),
        ("no day: 2026-13-45", ["2026-13-45"], ["2026-13-44"]),
    ],
)
def test_values_on_a_page(page: str, seen: list[object], not_seen: list[object]) -> None:
    """Texts match as whole words and not within longer ones, moments by day and time; null and booleans need no evidence."""
    words = Words(page)
    assert [each for each in seen if not words.say(each)] == []
    assert [each for each in not_seen if words.say(each)] == []


def day_forms(day: dt.date) -> list[str]:
    """A day in the notations of pages."""
    name, short = MONTHS[day.month - 1].title(), MONTHS[day.month - 1][:3].title()
    ordinal = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(day.day, "th")
    return [
        day.isoformat(),
        f"{day:%d.%m.%Y}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day:%m/%d/%Y}",
        f"{day.month}/{day.day}/{day.year}",
        f"{day:%d/%m/%y}",
        f"{day:%Y/%m/%d}",
        f"{day:%d-%m-%Y}",
        f"{short} {day.day}, {day.year}",
        f"{name} {day.day}, {day.year}",
        f"{name} {day.day}{ordinal}, {day.year}",
        f"{day.day} {name} {day.year}",
        f"{day.day} {short}. {day.year}",
        f"{day.day}{ordinal} of {name} {day.year}",
        f"{day.day:02}-{short}-{day.year}",
    ]


@given(
    day=st.dates(dt.date(1950, 1, 1), dt.date(2049, 12, 31)),
    form=st.integers(0, 14),
    around=st.sampled_from(("{}", "Due {}.", "{}, 10:30", "({})", "on\n{}\nat noon")),
)
def test_a_day_is_recognized_in_each_of_its_forms(day: dt.date, form: int, around: str) -> None:
    """A day is recognized by numbers in three orders, and with the name of its month."""
    assert Words(around.format(day_forms(day)[form])).say(day.isoformat())


@given(
    day=st.dates(dt.date(1950, 1, 1), dt.date(2049, 12, 31)),
    other=st.dates(dt.date(1950, 1, 1), dt.date(2049, 12, 31)),
    form=st.integers(0, 14),
)
def test_another_day_is_not_recognized(day: dt.date, other: dt.date, form: int) -> None:
    """Another day is not recognized, except the one with day and month swapped."""
    swapped = (other.year, other.day, other.month) == (day.year, day.month, day.day)
    assert Words(f"Due {day_forms(day)[form]}.").say(other.isoformat()) == (other == day) or swapped


@given(value=st.text(max_size=20), page=st.text(max_size=60))
def test_a_separate_text_is_recognized_anywhere(value: str, page: str) -> None:
    """Any text between blanks is recognized anywhere in a page."""
    assert Words(f"{page} \n {value} \n {page}").say(value)
