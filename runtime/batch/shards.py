"""Partition of cases into shards. All machines compute the same one, as it depends on nothing but the cases and a report."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence

from nodes.errors import UsageError
from runtime.runs import results

MOST = 1000


def read(text: str) -> results.Shard:
    """Read ``NUMBER/OF``. Raises UsageError ``usage``."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    shard = results.Shard(int(match[1]), int(match[2])) if match else None
    if shard is None or not 1 <= shard.number <= shard.of <= MOST:
        fix = "the first of three machines takes `--shard 1/3`, the last `--shard 3/3`"
        raise UsageError("usage", f"`--shard {text}` is no part of a whole", fix=fix)
    return shard


def weights(cases: Sequence[str], seconds: Mapping[str, float]) -> list[float]:
    """Return how long each case may take: an unknown one as long as the known ones on average."""
    known = [seconds[each] for each in cases if each in seconds]
    usual = statistics.fmean(known) if known else 0.0
    return [seconds.get(each, usual) for each in cases]


def longest_first(cases: Sequence[str], seconds: Mapping[str, float]) -> list[int]:
    """Return the positions of cases, the longest first, and in order where they take equally long."""
    weighed = weights(cases, seconds)
    return sorted(range(len(cases)), key=lambda position: (-weighed[position], position))


def partition(cases: Sequence[str], of: int, seconds: Mapping[str, float]) -> list[list[int]]:
    """Return the positions of the cases of each shard, in order.

    With durations each case goes, the longest first, to the shard that has the least to do; without any, they are dealt in turn.
    """
    shards: list[list[int]] = [[] for _ in range(of)]
    if not any(each in seconds for each in cases):
        for position in range(len(cases)):
            shards[position % of].append(position)
        return shards
    weighed = weights(cases, seconds)
    loads = [0.0] * of
    for position in longest_first(cases, seconds):
        number = min(range(of), key=lambda each: (loads[each], len(shards[each]), each))
        shards[number].append(position)
        loads[number] += weighed[position]
    return [sorted(shard) for shard in shards]
