"""Patterns of an author's: which are taken, and that those which are take no time."""

from __future__ import annotations

import pytest

from nodes import patterns

ENDLESS = [
    r"^(\w+\s?)*$",
    r"(a+)+$",
    r"(a|aa)*b",
    r"(?:\d+|x)*",
    r"(a*)*",
    r"(a?){50}",
    r"(?:a?b?)*",
    r"((a+b)+c)+",
    r"(-a+a+)*",
    r"(.*,)*",
    r"(\w|[^-]x)*",
    r"(?i)(?:ax|Ax)*",
    r"^(?=(a+)+$)",
    r"x|(a+)+",
    r"((a+)+)?",
]

TAKEN = [
    r"^[a-z]+(-[a-z]+)*$",
    r"^(\d{1,3}\.){3}\d{1,3}$",
    r"^[A-Z]{2}\d+$",
    r"^[^@\s]+@[^@\s]+$",
    r"(foo|bar)*",
    r"(\d{2}:)*",
    r"^\d+(\.\d+)?$",
    r"^(\s[A-Z][a-z]+)*$",
    r"^(\+\d{1,3})?[\d ]+$",
    r"^(?:[0-9a-f]{2})+$",
    r"([^,]*,)*",
    r"^([\u0430-\u044f]+\u2014)*$",
    r"^.*$",
]


@pytest.mark.parametrize("pattern", ENDLESS)
def test_what_fits_in_several_ways_is_refused(pattern: str) -> None:
    """A repeated part of which one cannot see where each turn ends."""
    assert "several ways" in (patterns.problem(pattern) or "")


@pytest.mark.parametrize("pattern", TAKEN)
def test_what_people_write_is_taken(pattern: str) -> None:
    """Codes, addresses, numbers, names with a mark between them."""
    assert patterns.problem(pattern) is None


def test_what_is_no_pattern_is_told_elsewhere() -> None:
    """It has no ways at all."""
    assert patterns.problem("(") is None
