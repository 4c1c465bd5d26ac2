"""The cases that `make test` runs of a test with many."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests import breadth

LINES = itertools.count()


class Item:
    def __init__(self, nodeid: str, *few: int, **more: object) -> None:
        self.nodeid = nodeid
        self.location = ("a.py", next(LINES), nodeid)
        self._mark = pytest.mark.drawn(*few, **more).mark if few or more else None

    def get_closest_marker(self, _name: str) -> pytest.Mark | None:
        return self._mark


@pytest.fixture(autouse=True)
def gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting of `make test`."""
    monkeypatch.setattr(breadth, "WHOLE", False)


def left(items: list[Any]) -> list[str]:
    """The names of the cases that run."""
    out = breadth.left_out(items)
    return [each.nodeid for each in items if each not in out]


def test_the_order_of_the_tests_does_not_matter() -> None:
    """The same cases run, whatever their order."""
    cases = many(3)
    assert sorted(left([*reversed(cases)])) == sorted(left(cases))


def many(*few: int, cases: int = 10, test: str = "a.py::many", **more: object) -> list[Any]:
    """The cases of one test."""
    return [Item(f"{test}[{number}]", *few, **more) for number in range(cases)]


def test_a_fixed_number_of_cases_is_spread_over_all() -> None:
    """The first case is always chosen; a test with fewer cases, or without the mark, keeps all."""
    assert left(many(3)) == ["a.py::many[0]", "a.py::many[3]", "a.py::many[6]"]
    assert left([*many(0), *many(3, cases=1, test="few"), *many(cases=2, test="other")]) == [
        "few[0]",
        "other[0]",
        "other[1]",
    ]


def test_a_share_leaves_at_least_one_case() -> None:
    """Half of five rounds up to three, and a single case always runs."""
    assert len(left(many(share=0.5, cases=5))) == 3
    assert len(left(many(share=0.1, cases=1))) == 1


def test_a_family_is_sampled_together() -> None:
    """The share applies to all tests of the family together."""
    family = [*many(share=0.3, of="c", cases=5, test="x"), *many(share=0.3, of="c", cases=5, test="y")]
    assert left(family) == ["x[0]", "x[3]", "y[1]"]


def test_the_whole_suite_leaves_no_case_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test-all` runs each case."""
    assert (breadth.of(3, 10), breadth.some("abcdef", 2)) == (3, ["a", "d"])
    monkeypatch.setattr(breadth, "WHOLE", True)
    assert len(left(many(3))) == 10
    assert (breadth.of(3, 10), breadth.some("abcdef", 2)) == (10, "abcdef")
