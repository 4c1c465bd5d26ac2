"""Partition of cases into shards, and their order by durations."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import UsageError
from runtime.batch import shards
from runtime.runs import results

CASES = st.lists(st.text("abcdef/[]1", min_size=1, max_size=6), unique=True, max_size=30)
SECONDS = st.floats(0, 1e6, allow_nan=False)


@given(CASES, st.integers(1, 12), st.data())
def test_every_case_is_in_exactly_one_shard(cases: list[str], of: int, data: st.DataObject) -> None:
    """Together the shards have each case once, each shard in order, with durations of any of the cases and of others."""
    known = data.draw(st.dictionaries(st.sampled_from([*cases, "elsewhere"]), SECONDS))
    parts = shards.partition(cases, of, known)
    assert len(parts) == of
    assert sorted(position for part in parts for position in part) == [*range(len(cases))]
    assert all(part == sorted(part) for part in parts)
    assert parts == shards.partition([*cases], of, dict(reversed(known.items())))


@given(CASES, st.integers(1, 12))
def test_without_durations_shards_have_the_same_number_of_cases(cases: list[str], of: int) -> None:
    sizes = [len(part) for part in shards.partition(cases, of, {})]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(SECONDS, min_size=1, max_size=30), st.integers(1, 8))
def test_no_shard_takes_much_longer_than_its_share(times: list[float], of: int) -> None:
    """With known durations a shard takes at most an even share and the longest case."""
    cases = [str(number) for number in range(len(times))]
    known = dict(zip(cases, times, strict=True))
    most = max(sum(times[position] for position in part) for part in shards.partition(cases, of, known))
    assert most <= (sum(times) / of + max(times)) * (1 + 1e-9)


@given(CASES, st.data())
def test_the_longest_case_is_first_and_equals_keep_their_order(cases: list[str], data: st.DataObject) -> None:
    """All cases are there once; one of unknown duration counts as the average of the others."""
    known = data.draw(st.dictionaries(st.sampled_from(cases), SECONDS)) if cases else {}
    order = shards.longest_first(cases, known)
    weighed = shards.weights(cases, known)
    assert sorted(order) == [*range(len(cases))]
    pairs = itertools.pairwise(order)
    assert all((weighed[one], -one) > (weighed[other], -other) for one, other in pairs)


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "1", "1/0", "a/b", "-1/3", "1/1001", "1/3/3", "", "1 / 3", "\u0661/\u0663"]
)
def test_a_shard_that_is_no_part_of_a_whole_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no part of a whole"):
        shards.read(text)


def test_a_shard_is_read() -> None:
    assert shards.read("2/3") == results.Shard(2, 3)
