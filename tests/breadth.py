"""How much of what could be tried is tried: `make test` a sample that a seed draws of what is many times alike, `make test-all` all of it."""

from __future__ import annotations

import collections
import os
import random
from collections.abc import Sequence

import pytest

WHOLE = "RUNOPS_TEST_WHOLE" in os.environ
"""Whether all of it is tried."""


def of(few: int, all_of_them: int) -> int:
    """How often something is tried."""
    return all_of_them if WHOLE else few


def left_out(items: Sequence[pytest.Item], seed: object) -> list[pytest.Item]:
    """Of each test with the mark ``drawn`` the cases that are too many, the same for the same seed."""
    cases: dict[str, list[pytest.Item]] = collections.defaultdict(list)
    few: dict[str, int] = {}
    for item in items:
        if (mark := item.get_closest_marker("drawn")) is not None and not WHOLE:
            test = item.nodeid.partition("[")[0]
            cases[test].append(item)
            few[test] = mark.args[0]
    out: list[pytest.Item] = []
    for test, found in cases.items():
        # In an order that does not depend on that of the tests.
        found.sort(key=lambda item: item.nodeid)
        out += random.Random(f"{seed} {test}").sample(found, max(0, len(found) - few[test]))
    return out
