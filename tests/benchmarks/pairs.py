"""Comparing two variants on a noisy machine: alternating pairs, and the median of their ratios."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Awaitable, Callable


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """The measurements."""

    ratio: float
    """Median over the pairs of the first variant's time ÷ the second's."""
    ratios: list[float]
    first: float
    """Median seconds of the first variant."""
    second: float
    """Median seconds of the second variant."""


async def compare(
    first: Callable[[], Awaitable[object]], second: Callable[[], Awaitable[object]], *, pairs: int, warm: int = 2
) -> Comparison:
    """Time both in turn, each pair in the opposite order to the one before, after ``warm`` pairs that do not count."""
    firsts: list[float] = []
    seconds: list[float] = []
    for number in range(warm + pairs):
        ways = ((first, firsts), (second, seconds))
        for way, times in ways if number % 2 else reversed(ways):
            begun = time.perf_counter()
            await way()
            times.append(time.perf_counter() - begun)
    ratios = [a / b for a, b in zip(firsts[warm:], seconds[warm:], strict=True)]
    return Comparison(
        statistics.median(ratios), ratios, statistics.median(firsts[warm:]), statistics.median(seconds[warm:])
    )
