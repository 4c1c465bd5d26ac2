"""A power cut at every crash point: everything that a run needs is synced, including the names of its folders."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from runtime.log import entries as log_entries
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from tests.kills import disk
from tests.orders import ACTIONS, ORDER, Order, as_was
from tests.rig import Killed

WATCHED = ("fsync", "fdatasync", "rename", "replace", "link")


async def cut_at(
    root: Path, number: int, monkeypatch: pytest.MonkeyPatch, text: str = ORDER
) -> tuple[Order, list[CrashPoint]]:
    """An order in ``root`` with its power cut at the crash point of this number, and the points it passed."""
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    passed: list[CrashPoint] = []
    calls: list[dict[str, Any]] = []

    def hook(point: CrashPoint) -> None:
        passed.append(point)
        if number <= len(passed):
            raise Killed

    with monkeypatch.context() as patched:
        for name in WATCHED:
            patched.setattr(os, name, (lambda _handle: None) if "sync" in name else getattr(os, name))
        disk.watch(calls.append)
        patched.setattr(crash_points, "hook", hook)
        # The process that made this folder died before its name was synced.
        (root / "deep").mkdir(parents=True)
        order = Order(root / "deep" / "er" / "home", text=text)
        try:
            await order.begin()
        except Killed:
            # Tasks beside the run reach their next crash point and die there.
            beside = [each for each in asyncio.all_tasks() if "Checkpoints" in str(each.get_coro())]
            await asyncio.gather(*beside, return_exceptions=True)
        order.die()
    known = disk.Disk(root)
    known.learn(calls)
    known.cut()
    return order, passed[:number]


async def test_everything_an_action_needs_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once an action may begin, its call, the values and checkpoint named in the log, and result files survive any power cut."""
    seen = 0
    for number in itertools.count(1):
        order, passed = await cut_at(tmp_path / str(number), number, monkeypatch)
        if len(passed) < number:
            break
        if passed[-1] != CrashPoint.CALL_SYNCED:
            continue
        seen += 1
        entries, checkpoint = order.store.read(order.id).entries, order.history.checkpoint
        assert isinstance(entries[-1], log_entries.Call)
        assert entries[-1].effect == "effect"
        assert (order.store.files(order.id) / "picture.png").exists() == (entries[-1].path == "pay")
        assert checkpoint is not None
        assert (order.home / "private" / order.id / checkpoint.file).exists()
        for entry in entries:
            blob = getattr(entry, "blob", None) or (
                entry.run.text if isinstance(entry, log_entries.Scope) and entry.run else None
            )
            assert blob is None or order.store.blob(blob.sha256)
    assert seen == len(ACTIONS)


async def test_after_a_power_cut_at_any_moment_each_action_is_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut at any moment, the run continues or begins, and yields the output of an undisturbed run."""
    number = 0
    for number in itertools.count(1):
        before, passed = await cut_at(tmp_path / str(number), number, monkeypatch)
        with monkeypatch.context() as patched:
            for name in ("fsync", "fdatasync"):
                patched.setattr(os, name, lambda _handle: None)
            order = Order(before.home, before)
            if len(passed) == number:
                assert await (order.pay() if order.begun else order.begin()) == "passed", passed[-1]
        assert as_was(order) == "passed"
        assert order.site.actions == ACTIONS, passed[-1]
        if len(passed) < number:
            break
    assert number > 30
