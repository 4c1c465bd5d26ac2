"""The extent of repetitive tests: `make test` runs a fixed sample, `make test-all` runs everything."""

from __future__ import annotations

import collections
import math
import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

WHOLE = "RUNOPS_TEST_WHOLE" in os.environ
"""True if everything runs."""

_T = TypeVar("_T")


def of(few: int, all_of_them: int) -> int:
    """The number of repetitions."""
    return all_of_them if WHOLE else few


def some(cases: Sequence[_T], few: int) -> Sequence[_T]:
    """So many of the cases, spread evenly over their order and including the first; all of them when everything runs."""
    if WHOLE or few >= len(cases):
        return cases
    return [cases[number * len(cases) // few] for number in range(few)]


def _place(item: pytest.Item) -> tuple[str, int, tuple[int, ...]]:
    """The place of a case, in any test order: its file, its line, and its position among the cases of its test."""
    file, line, _name = item.location
    case = getattr(item, "callspec", None)
    return file, line or 0, tuple(case.indices.values()) if case is not None else ()


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The surplus cases of each test or family with the mark ``drawn``, always the same.

    The mark gives the number of cases that run (``drawn(3)``, also 0) or their share (``drawn(share=0.5)``, at least one: a case selected by name
    runs). Tests with one name in ``of`` are a family, and sampled together.
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
