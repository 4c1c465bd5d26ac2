"""How much of what could be tried is tried: `make test` a sample that a seed draws of what is many times alike, `make test-all` all of it."""

from __future__ import annotations

import collections
import math
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
    """Of each test or family with the mark ``drawn`` the cases that are too many, the same for the same seed.

    The mark says how many are tried (``drawn(3)``) or which share (``drawn(share=0.5)``, at least one: a case that somebody names is tried).
    Tests with one name behind ``of`` are a family, and drawn from together.
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
        # In an order that does not depend on that of the tests.
        found.sort(key=lambda item: item.nodeid)
        mark = marks[family]
        tried = mark.args[0] if mark.args else math.ceil(mark.kwargs["share"] * len(found))
        out += random.Random(f"{seed} {family}").sample(found, max(0, len(found) - tried))
    return out
