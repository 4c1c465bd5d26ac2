"""How much of what could be tried is tried: `make test` tries a fixed sample of what is many times alike, `make test-all` all of it."""

from __future__ import annotations

import collections
import math
import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

WHOLE = "RUNOPS_TEST_WHOLE" in os.environ
"""Whether all of it is tried."""

_T = TypeVar("_T")


def of(few: int, all_of_them: int) -> int:
    """How often something is tried."""
    return all_of_them if WHOLE else few


def some(cases: Sequence[_T], few: int) -> Sequence[_T]:
    """So many of the cases, spread evenly over their order, the first one among them; all of them where all is tried."""
    if WHOLE or few >= len(cases):
        return cases
    return [cases[number * len(cases) // few] for number in range(few)]


def _place(item: pytest.Item) -> tuple[str, int, tuple[int, ...]]:
    """Where a case stands, in whatever order the tests run: its file, its line, and its place among the cases of its test."""
    file, line, _name = item.location
    case = getattr(item, "callspec", None)
    return file, line or 0, tuple(case.indices.values()) if case is not None else ()


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Of each test or family with the mark ``drawn`` the cases that are too many, always the same.

    The mark says how many are tried (``drawn(3)``, also none) or which share (``drawn(share=0.5)``, at least one: a case that somebody names is tried).
    Tests with one name behind ``of`` are a family, and sampled together.
    """
    cases: dict[str, list[pytest.Item]] = collections.defaultdict(list)
    marks: dict[str, pytest.Mark] = {}
    for item in items:
        if (mark := item.get_closest_marker("drawn")) is not None and not WHOLE:
            family = mark.kwargs.get("of") or item.nodeid.partition("[")[0]
            cases[family].append(item)
            marks[family] = mark
    out: list[pytest.Item] = []
    for family, found in cases.items():
        found.sort(key=_place)
        mark = marks[family]
        tried = mark.args[0] if mark.args else math.ceil(mark.kwargs["share"] * len(found))
        kept = {id(each) for each in some(found, tried)}
        out += [each for each in found if id(each) not in kept]
    return out
