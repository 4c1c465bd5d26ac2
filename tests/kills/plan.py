"""Which checkouts are killed where: every moment that has a name, in every mode."""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Sequence

from runtime.crashes import CrashPoint
from tests.kills import flow
from tests.kills.trial import MODES, At, Case, Held

DEED_POINTS = (
    CrashPoint.BEFORE_CALL,
    CrashPoint.CALL_APPENDED,
    CrashPoint.CALL_SYNCED,
    CrashPoint.DEED_OVER,
    CrashPoint.RESULT_APPENDED,
)
"""The crash points of one deed, in order. Between the last two of the first three and the others the shop has its request."""

LATEST_SECOND = 12
"""The last crash point at which a resume is killed too; hardly one passes fewer."""

CONTROLS = (
    Case("power", "confirm", At(CrashPoint.DEED_OVER, 2), control="no-sync", orders=1),
    Case("surviving", "confirm", At(CrashPoint.RESULT_APPENDED, 2), control="result-first", orders=1),
    Case("gone", "confirm", At(CrashPoint.DEED_OVER, 2), control="deaf", orders=1),
    Case("gone", "confirm", At(CrashPoint.RESULT_APPENDED, 2), control="unjudged", orders=1),
)
"""For each way of being wrong a kill that shows it."""


def every(passed: Sequence[str], seed: int) -> list[Case]:
    """A case for each moment of a checkout in each mode; ``passed`` are the crash points of one that was left alone.

    Where the deeds have no ``confirm``, each moment of a deed once in each mode: which deed is drawn.
    """
    chance = random.Random(seed)
    counts: collections.Counter[str] = collections.Counter()
    points: list[At | Held] = []
    for point in passed:
        counts[point] += 1
        points.append(At(point, counts[point]))
    for order in range(1, flow.ORDERS + 1):
        points += _held(order, chance)
    cases = [Case(mode, "confirm", point) for mode in MODES for point in points]
    cases += [
        Case(mode, how, point)
        for mode in MODES
        for how in ("verify", "nothing")
        for point in _of_one_deed(flow.ORDERS, chance)
    ]
    chance.shuffle(cases)
    return [dataclasses.replace(case, second=chance.randint(1, LATEST_SECOND)) for case in cases]


def drawn(count: int, orders: int, seed: int) -> list[Case]:
    """So many moments of deeds, drawn by ``seed``: each mode, each way of finding out and each moment is among them."""
    chance = random.Random(seed)
    hows: list[flow.How] = ["confirm", "verify", "nothing", "confirm"]
    moments = [*_of_one_deed(orders, chance), *_of_one_deed(orders, chance)]
    return [
        Case(
            MODES[number % len(MODES)],
            hows[number // len(MODES) % len(hows)],
            moments[number % len(moments)],
            second=chance.randint(1, LATEST_SECOND),
            orders=orders,
        )
        for number in range(count)
    ]


def _of_one_deed(orders: int, chance: random.Random) -> list[At | Held]:
    """Every moment of a deed, each of another one."""
    moments: list[At | Held] = [At(point, chance.randint(1, 2 * orders)) for point in DEED_POINTS]
    return moments + _held(chance.randint(1, orders), chance)[:: chance.choice([1, -1])][:2]


def _held(order: int, chance: random.Random) -> list[At | Held]:
    """The moments at which the shop has the request of a deed of the order."""
    return [
        Held("add", order, "before", goes_on=chance.choice([True, False])),
        Held("add", order, "after"),
        Held("pay", order, "after"),
        Held("pay", order, "before", goes_on=chance.choice([True, False])),
    ]
