"""A process killed at every crash point, in a store that loses everything without a barrier: entries that are only appended do not count."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path

import pytest

from nodes.errors import LogError
from runtime import testing
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from tests.orders import ACTIONS, ORDER, OUTPUT, Order
from tests.rig import Killed
from tests.unit.test_power_cut import cut_at

UNASKED = re.sub(r", confirm: .*$", "}", ORDER, flags=re.MULTILINE)
"""The same order without `confirm`: a person is asked where a side effect may have happened."""


async def killed_at(order: Order, number: int, monkeypatch: pytest.MonkeyPatch) -> list[CrashPoint]:
    """Begin or continue the order until it is killed at this crash point; returns the points that it passed."""
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    passed: list[CrashPoint] = []

    def hook(point: CrashPoint) -> None:
        passed.append(point)
        if number <= len(passed):
            # A killed process does no cleanup.
            order.die()
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(crash_points, "hook", hook)
        try:
            await (order.pay() if order.begun else order.begin())
        except (Killed, LogError):
            beside = [each for each in asyncio.all_tasks() if "Checkpoints" in str(each.get_coro())]
            await asyncio.gather(*beside, return_exceptions=True)
    return passed[:number]


def newly(folder: Path, text: str = ORDER) -> Order:
    """An order whose log is in a store that loses all unsynced entries."""
    order = Order(folder, text=text)
    order.elsewhere = testing.MemoryStore(folder / "memory", hostile=True)
    return order


def continued(before: Order, text: str = ORDER) -> Order:
    """The same order in the next process."""
    order = Order(before.home, before, text)
    order.elsewhere = before.elsewhere
    return order


@pytest.mark.drawn(1)
@pytest.mark.parametrize("then", [1, 4, 9])
async def test_no_side_effect_is_lost_or_doubled_with_the_ends_of_logs(
    then: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any moment, and again while resuming, the order reaches the output of an undisturbed one, each side effect done once."""
    number = 0
    for number in itertools.count(1):
        first = newly(tmp_path / str(number))
        passed = await killed_at(first, number, monkeypatch)
        second = continued(first)
        again = await killed_at(second, then, monkeypatch) if len(passed) == number else []
        last = continued(second)
        if len(passed) == number:
            assert await (last.pay() if last.begun else last.begin()) == "passed", (passed[-1], again)
        root = last.history.scopes[""].committed
        assert root is not None
        assert (root.value, last.site.actions) == (OUTPUT, ACTIONS), (passed[-1], again)
        if len(passed) < number:
            break
    assert number > 30


@pytest.mark.drawn(0)
async def test_no_more_is_asked_than_after_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person is asked at exactly the moments at which a file store asks after a power cut."""
    asked: dict[str, list[tuple[CrashPoint, str]]] = {"files": [], "hostile": []}
    for number in itertools.count(1):
        cut, passed = await cut_at(tmp_path / f"{number}-files", number, monkeypatch, UNASKED)
        lost = newly(tmp_path / f"{number}-hostile", UNASKED)
        assert await killed_at(lost, number, monkeypatch) == passed
        if len(passed) < number:
            break
        for name, before in (("files", cut), ("hostile", lost)):
            order = continued(before, UNASKED)
            ended = await (order.resume() if order.begun else order.start())
            assert ended.status in ("passed", "paused"), (passed[-1], ended)
            if ended.status == "paused":
                assert ended.question is not None
                asked[name].append((passed[-1], str(ended.question["path"])))
            else:
                assert order.site.actions == ACTIONS, passed[-1]
    assert asked["hostile"] == asked["files"] != []
    assert {point for point, _path in asked["files"]} >= {CrashPoint.CALL_SYNCED, CrashPoint.EFFECT_DONE}
