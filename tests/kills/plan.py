"""The crash points of each checkout: every one, in every mode."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from runtime.system.crash_points import CrashPoint
from tests.kills import flow
from tests.kills.trial import MODES, At, Case, Held, Mode, Report, Victim
from tests.shop_process import Moment

ACTION_POINTS = (
    CrashPoint.BEFORE_CALL,
    CrashPoint.CALL_APPENDED,
    CrashPoint.CALL_SYNCED,
    CrashPoint.EFFECT_DONE,
    CrashPoint.RESULT_APPENDED,
)
"""The crash points of one action, in order. The shop has its request between the third and the fourth."""

BY_KEYS: tuple[flow.By, ...] = ("press", "type")
BYS: tuple[flow.By, ...] = ("click", *BY_KEYS)
ACTIONS: tuple[Literal["add", "pay"], ...] = ("add", "pay")
MOMENTS: tuple[Moment, ...] = ("before", "after")
VICTIMS: tuple[Victim, ...] = ("renderer", "network")

LATEST = 12
"""The last crash point at which a resume is killed; few resumes pass fewer."""

CONTROLS = (
    Case("power", "confirm", (At("1", CrashPoint.EFFECT_DONE, 2),), control="no-sync", orders=1),
    Case("surviving", "confirm", (At("1", CrashPoint.RESULT_APPENDED, 2),), control="result-first", orders=1),
    Case("gone", "confirm", (At("1", CrashPoint.EFFECT_DONE, 2),), control="deaf", orders=1),
    Case("gone", "confirm", (At("1", CrashPoint.RESULT_APPENDED, 2),), control="unjudged", orders=1),
)
"""For each defect a kill that reveals it."""

Kill = At | Held
Way = tuple[Mode, flow.How, flow.By]


def every(passed: Iterable[tuple[str, str, int]], seed: int) -> dict[Way, list[Kill]]:
    """Each crash point of a checkout in each mode; ``passed`` are those of an uninterrupted one.

    Without ``confirm`` each crash point of an action is used once in each mode, for an action drawn at random.
    """
    chance = random.Random(seed)
    orders = [str(order) for order in range(1, flow.ORDERS + 1)]
    moments: list[Kill] = [At(*each) for each in passed]
    for order in orders:
        moments += _held(order, chance)
    ways: dict[Way, list[Kill]] = {}
    for mode in MODES:
        ways[mode, "confirm", "click"] = list(moments)
        for how in ("verify", "nothing"):
            ways[mode, how, "click"] = _of_one_action(orders, chance)
        for by in BY_KEYS:
            ways[mode, "confirm", by] = [each for order in orders for each in _of_a_payment(order, chance)]
    for how in ("confirm", "nothing"):
        ways["surviving", how, "click"] += [each for order in orders for each in _hurt(order, how, chance)]
    return ways


def _of_a_payment(order: str, chance: random.Random) -> list[Kill]:
    """Every crash point of an order's payment."""
    requests: list[Kill] = [
        Held(order, "pay", "before", accepts=chance.choice([True, False])),
        Held(order, "pay", "after"),
    ]
    return [*(At(order, point, 2) for point in ACTION_POINTS), *requests]


def _hurt(order: str, how: flow.How, chance: random.Random) -> list[Kill]:
    """A process of the browser dies while the shop has the request of an action. Without `confirm` one random case suffices."""
    hurt: list[Kill] = [
        Held(order, action, moment, accepts=moment == "after" or chance.choice([True, False]), victim=victim)
        for action, moment, victim in itertools.product(ACTIONS, MOMENTS, VICTIMS)
    ]
    return hurt if how == "confirm" else [chance.choice(hurt)]


def cases(ways: Mapping[Way, Iterable[Kill]], seed: int, orders: int = flow.ORDERS) -> list[Case]:
    """Checkouts that cover each of these crash points once: each has as many as it has parts."""
    chance = random.Random(seed)
    parts = [flow.START, *(str(order) for order in range(1, orders + 1)), flow.END]
    found: list[Case] = []
    for (mode, how, by), moments in ways.items():
        by_part = {part: [each for each in moments if each.part == part] for part in parts}
        for each in by_part.values():
            chance.shuffle(each)
        for kills in itertools.zip_longest(*by_part.values()):
            there = tuple(each for each in kills if each is not None)
            again = tuple(chance.randint(1, LATEST) for _ in there)
            found.append(Case(mode, how, there, again, orders=orders, by=by))
    chance.shuffle(found)
    return found


def left(ways: Mapping[Way, Iterable[Kill]], reports: Iterable[Report]) -> dict[Way, list[Kill]]:
    """The crash points that no checkout reached."""
    reached = {(each.case.mode, each.case.how, each.case.by, kill) for each in reports for kill in each.reached}
    return {way: [each for each in moments if (*way, each) not in reached] for way, moments in ways.items()}


def drawn(seed: int) -> list[Case]:
    """Twelve crash points of actions, drawn by ``seed``, in six checkouts: every mode, every `How` and every crash point of an action occurs."""
    chance = random.Random(seed)
    others: list[flow.How] = ["verify", "nothing", "confirm"]
    chance.shuffle(others)
    ways: list[Way] = [(mode, "confirm", by) for mode, by in zip(MODES, chance.sample(BYS, len(BYS)), strict=True)]
    ways.extend(zip(MODES, others, chance.sample(BYS, len(BYS)), strict=True))
    firsts, seconds = (_of_one_action([order], chance) for order in ("1", "2"))
    return [
        Case(mode, how, pair, (chance.randint(1, LATEST), chance.randint(1, LATEST)), orders=2, by=by)
        for (mode, how, by), pair in zip(
            ways, zip(firsts, chance.sample(seconds, len(seconds)), strict=True), strict=False
        )
    ]


def _of_one_action(orders: Sequence[str], chance: random.Random) -> list[Kill]:
    """Every crash point of an action, each of a random order, then two at which the shop has the request."""
    moments: list[Kill] = [At(chance.choice(orders), point, chance.randint(1, 2)) for point in ACTION_POINTS]
    return moments + _held(chance.choice(orders), chance)[:: chance.choice([1, -1])][:2]


def _held(order: str, chance: random.Random) -> list[Kill]:
    """The crash points at which the shop has the request of an action of the order."""
    return [
        Held(order, "add", "before", accepts=chance.choice([True, False])),
        Held(order, "add", "after"),
        Held(order, "pay", "after"),
        Held(order, "pay", "before", accepts=chance.choice([True, False])),
    ]
