"""A disk that fails or is full, at every write of a run: it stops before its next action and says so, and continues once there is room."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import LogError
from runtime.language import prepare, reader
from runtime.log.store import file_store
from runtime.runs import keys
from runtime.settings import settings
from runtime.workspace import host
from tests import breadth, faults
from tests.fakes import FakeSite
from tests.orders import ACTIONS, SHOWS, Order, as_was
from tests.rig import Killed

EVERY = breadth.of(4, 1)
"""How many writes lie from one that fails to the next that is tried."""

Life = Callable[[Order], Awaitable[str]]
"""What an order does on a disk; how it ended."""


async def left_to(disk: faults.Disk, life: Life, before: Order | None = None) -> tuple[str, Order | None]:
    """An order on that disk, ``before`` it died or for the first time; how it ended, and the order, unless there was not even a place for it."""
    order: Order | None = None
    with pytest.MonkeyPatch.context() as patched:
        disk.install(patched)
        try:
            order = Order(disk.root / "home", before)
            site = order.site
            disk.on_failure = lambda: site.texts.update(actions=",".join(site.actions))
            return await life(order), order
        except LogError as error:
            named = error.exit == 2 and str(disk.root) in error.message
            return error.code if named else f"{error.exit}: {error}", order
        finally:
            if order is not None:
                order.die()


async def fails_and_is_fixed(disk: faults.Disk, life: Life, before: Order | None = None) -> str:
    """An order on a disk that fails stops before its next action; on the disk as it is fixed it continues. How it ended on the first one."""
    told, order = await left_to(disk, life, before)
    assert told in ("passed", "log-write-failed", "file-write-failed"), disk.failed
    if order is not None:
        at_failure = order.site.texts.pop("actions", None)
        assert told == "passed" or ",".join(order.site.actions) == at_failure, disk.failed
    patched = faults.Disk(disk.root)
    if told != "passed":
        life = Order.pay if order is not None and order.begun else Order.begin
        last, order = await left_to(patched, life, order or before)
        assert last == "passed", disk.failed
    assert order is not None
    assert as_was(order) == "passed"
    assert order.site.actions == ACTIONS, disk.failed
    return told


@pytest.mark.drawn(1)
@pytest.mark.parametrize("full", [False, True], ids=["fails", "full"])
async def test_at_each_write_the_run_stops_before_its_next_action_and_goes_on_later(tmp_path: Path, full: bool) -> None:
    """Whichever write fails: no traceback, an error that names the place, nothing done on the site after it; resumed, each action is done once."""
    harmless: list[str | None] = []
    disk = faults.Disk(tmp_path)
    for number in itertools.count(1, EVERY):
        disk = faults.Disk(tmp_path / str(number), number, full=full)
        disk.root.mkdir()
        told = await fails_and_is_fixed(disk, Order.begin)
        if disk.failed is None:
            break
        if told == "passed":
            harmless.append(disk.failed)
        shutil.rmtree(disk.root)
    assert len(disk.done) > 100
    assert {what.split()[0] for what in map(str, harmless)} <= {"unlink"}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("full", [False, True], ids=["fails", "full"])
async def test_at_each_write_of_a_resume_it_stops_too(tmp_path: Path, full: bool) -> None:
    """A run that died with an action in hand is resumed on a disk that fails at any write, and then on a good one: each action is done once."""
    dead = Order(tmp_path / "dead" / "home")

    async def die(target: str, _page: object) -> None:
        dead.site.texts[SHOWS[target]] = "yes"
        if target == "css=pay":
            raise Killed

    dead.site.on_click = die
    with pytest.raises(Killed):
        await dead.begin()
    dead.die()
    torn = dead.store.conversation_file(dead.id)
    torn.write_bytes(torn.read_bytes() + b'{"v":1,"seq":')
    disk = faults.Disk(tmp_path)
    for number in itertools.count(1, EVERY):
        disk = faults.Disk(tmp_path / str(number), number, full=full)
        shutil.copytree(tmp_path / "dead", disk.root)
        before = Order(disk.root / "home", dead)
        before.site = FakeSite(actions=[*dead.site.actions], texts=dict(dead.site.texts))
        await fails_and_is_fixed(disk, Order.pay, before)
        if disk.failed is None:
            break
        shutil.rmtree(disk.root)
    assert len(disk.done) > 12


def test_at_each_write_of_a_key_nobody_gets_another_run(tmp_path: Path) -> None:
    """Whichever write fails while a key gets its run: that is said, and from then on the key has one run."""
    said: list[str] = []
    for number in range(1, 12):
        disk = faults.Disk(tmp_path / str(number), number)
        disk.root.mkdir()
        store = file_store.Files(disk.root / "home")
        store.make()
        known: str | None = None
        with pytest.MonkeyPatch.context() as patched:
            disk.install(patched)
            try:
                known = store.keyed("nightly")
            except LogError as error:
                said.append(error.code)
        assert store.keyed("nightly") == known or (known is None and disk.failed is not None)
        assert store.keyed("nightly") == store.keyed("nightly")
    assert said == ["log-write-failed"] * 9


SQUARE = """
version: 1
name: Square
nodes:
  - {id: square, type: transform, expr: "{{ 7 * 7 }}"}
output: "{{ square }}"
"""


async def test_a_run_that_could_not_begin_holds_nothing(tmp_path: Path) -> None:
    """Whichever write of a whole run under a key fails: nobody holds the run, and whoever asks for the key again, here or elsewhere, gets its result."""
    file = tmp_path / "square.yaml"
    file.write_text(SQUARE)
    prepared = prepare.prepare(reader.load(file), {}, host.ENVIRONMENT)
    said: list[str] = []
    for number in itertools.count(1):
        disk = faults.Disk(tmp_path / str(number), number)
        disk.root.mkdir()
        chosen = settings.Settings(home=disk.root / "home")
        with pytest.MonkeyPatch.context() as patched:
            disk.install(patched)
            try:
                ended = await keys.begin_or_resume(prepared, "nightly", host.of_command(chosen))
                said.append(str(ended.error["code"]) if ended.error is not None else ended.status)
            except LogError as error:
                said.append(error.code)
        store = file_store.Files(chosen.home)
        assert not any(store.owned(each) for each in store.ids()), disk.failed
        ended = await keys.begin_or_resume(prepared, "nightly", host.of_command(chosen))
        assert (ended.status, ended.output, len(store.ids())) == ("passed", 49, 1), disk.failed
        if disk.failed is None:
            break
    assert set(said) == {"log-write-failed", "passed"}
    assert said.count("passed") == 1


@contextlib.contextmanager
def one_byte_at_a_time(patched: pytest.MonkeyPatch) -> Generator[None]:
    """A kernel that writes a little of what it is given."""
    really = os.write
    with patched.context() as for_now:
        for_now.setattr(os, "write", lambda handle, data: really(handle, data[:7]))
        yield


@contextlib.contextmanager
def many_signals(_patched: pytest.MonkeyPatch) -> Generator[None]:
    """Signals that interrupt whatever the kernel is asked for."""
    arrived: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: arrived.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert arrived


@pytest.mark.parametrize("trouble", [one_byte_at_a_time, many_signals])
async def test_writes_that_are_cut_short_or_interrupted_are_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Any
) -> None:
    """A kernel that takes only a part of a line, or is interrupted, gets the rest: the log is whole."""
    order = Order(tmp_path / "home")
    with trouble(monkeypatch):
        assert await order.begin() == "passed"
    assert (order.site.actions, order.store.read(order.id).torn) == (ACTIONS, 0)
    assert as_was(order) == "passed"
