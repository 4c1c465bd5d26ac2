"""The cases that a seed draws of a test that has many."""

from __future__ import annotations

from typing import Any

import pytest

from tests import breadth


class Item:
    def __init__(self, nodeid: str, *few: int, **more: object) -> None:
        self.nodeid = nodeid
        self._mark = pytest.mark.drawn(*few, **more).mark if few or more else None

    def get_closest_marker(self, _name: str) -> pytest.Mark | None:
        return self._mark


@pytest.fixture
def items(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A test with ten cases, of which three are tried, one with fewer cases than may be, and one that is no matter of drawing."""
    monkeypatch.setattr(breadth, "WHOLE", False)
    many = [Item(f"a.py::many[{number}]", 3) for number in range(10)]
    return [*many, Item("a.py::few[1]", 3), Item("a.py::other[1]"), Item("a.py::other[2]")]


def test_so_many_are_left_and_a_seed_says_which(items: list[Any]) -> None:
    """In whatever order they come; with other seeds each has its turn."""
    out = {each.nodeid for each in breadth.left_out(items, 7)}
    assert len(out) == 7
    assert all(each.startswith("a.py::many[") for each in out)
    assert {each.nodeid for each in breadth.left_out(items[::-1], 7)} == out
    tried = {each.nodeid for seed in range(50) for each in items if each not in breadth.left_out(items, seed)}
    assert tried == {each.nodeid for each in items}


def test_of_a_share_one_is_left_at_least(items: list[Any]) -> None:
    """Half of five are three, and a case that is named alone is tried."""
    cases: list[Any] = [Item(f"b.py::half[{number}]", share=0.5) for number in range(5)]
    assert len(breadth.left_out(cases, 7)) == 2
    assert breadth.left_out(cases[:1], 7) == []
    assert len(breadth.left_out([*cases, *items], 7)) == 2 + 7


def test_a_family_is_drawn_from_together() -> None:
    """So many of all its tests, each of which has its turn."""
    family: list[Any] = [Item(f"c.py::{test}[{case}]", share=0.3, of="c") for test in "xy" for case in range(5)]
    tried = [{each.nodeid for each in family if each not in breadth.left_out(family, seed)} for seed in range(99)]
    assert {len(each) for each in tried} == {3}
    assert {*map(len, [{name.partition("[")[0] for name in each} for each in tried])} == {1, 2}
    assert set().union(*tried) == {each.nodeid for each in family}


def test_of_all_of_them_none_is_left_out(items: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test-all` tries every case."""
    assert breadth.of(3, 10) == 3
    monkeypatch.setattr(breadth, "WHOLE", True)
    assert breadth.left_out(items, 7) == []
    assert breadth.of(3, 10) == 10
