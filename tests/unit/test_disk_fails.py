"""A disk that fails or is full, at each write of a run: the run stops before its next action, and resumes later."""

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
"""The distance between the writes that are made to fail."""

Life = Callable[[Order], Awaitable[str]]
"""Runs an order on a disk and returns its end."""


async def left_to(disk: faults.Disk, life: Life, before: Order | None = None) -> tuple[str, Order | None]:
    """Runs an order on the disk, continuing ``before``. Returns its end, and the order unless it could not be created."""
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
    """On a failing disk the order stops before its next action; on the repaired disk it completes. Returns the first end."""
    outcome, order = await left_to(disk, life, before)
    assert outcome in ("passed", "log-write-failed", "file-write-failed"), disk.failed
    if order is not None:
        at_failure = order.site.texts.pop("actions", None)
        assert outcome == "passed" or ",".join(order.site.actions) == at_failure, disk.failed
    patched = faults.Disk(disk.root)
    if outcome != "passed":
        life = Order.pay if order is not None and order.begun else Order.begin
        last, order = await left_to(patched, life, order or before)
        assert last == "passed", disk.failed
    assert order is not None
    assert as_was(order) == "passed"
    assert order.site.actions == ACTIONS, disk.failed
    return outcome


@pytest.mark.drawn(1)
@pytest.mark.parametrize("full", [False, True], ids=["fails", "full"])
async def test_at_each_write_the_run_stops_before_its_next_action(tmp_path: Path, full: bool) -> None:
    """The error names the place without a traceback, and nothing more happens on the site. A resume does each action once."""
    harmless: list[str | None] = []
    disk = faults.Disk(tmp_path)
    for number in itertools.count(1, EVERY):
        disk = faults.Disk(tmp_path / str(number), number, full=full)
        disk.root.mkdir()
        outcome = await fails_and_is_fixed(disk, Order.begin)
        if disk.failed is None:
            break
        if outcome == "passed":
            harmless.append(disk.failed)
        shutil.rmtree(disk.root)
    assert len(disk.done) > 100
    assert {what.split()[0] for what in map(str, harmless)} <= {"unlink"}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("full", [False, True], ids=["fails", "full"])
async def test_at_each_write_a_resume_stops_too(tmp_path: Path, full: bool) -> None:
    """A run that died in an action resumes on a failing and then on a good disk, and does each action once."""
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


def test_at_each_write_a_key_keeps_one_run(tmp_path: Path) -> None:
    """A failed write while a key gets its run is reported, and afterwards the key has one run."""
    errors: list[str] = []
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
                errors.append(error.code)
        assert store.keyed("nightly") == known or (known is None and disk.failed is not None)
        assert store.keyed("nightly") == store.keyed("nightly")
    assert errors == ["log-write-failed"] * 9


SQUARE = """
version: 1
name: Square
nodes:
  - {id: square, type: transform, expr: "{{ 7 * 7 }}"}
output: "{{ square }}"
"""


async def test_a_run_that_could_not_begin_owns_nothing(tmp_path: Path) -> None:
    """After a failed write of a keyed run no process owns it, and the next request for the key gets its result."""
    file = tmp_path / "square.yaml"
    file.write_text(SQUARE)
    prepared = prepare.prepare(reader.load(file), {}, host.ENVIRONMENT)
    outcomes: list[str] = []
    for number in itertools.count(1):
        disk = faults.Disk(tmp_path / str(number), number)
        disk.root.mkdir()
        chosen = settings.Settings(home=disk.root / "home")
        with pytest.MonkeyPatch.context() as patched:
            disk.install(patched)
            try:
                ended = await keys.begin_or_resume(prepared, "nightly", host.of_command(chosen))
                outcomes.append(str(ended.error["code"]) if ended.error is not None else ended.status)
            except LogError as error:
                outcomes.append(error.code)
        store = file_store.Files(chosen.home)
        assert not any(store.owned(each) for each in store.ids()), disk.failed
        ended = await keys.begin_or_resume(prepared, "nightly", host.of_command(chosen))
        assert (ended.status, ended.output, len(store.ids())) == ("passed", 49, 1), disk.failed
        if disk.failed is None:
            break
    assert set(outcomes) == {"log-write-failed", "passed"}
    assert outcomes.count("passed") == 1


@contextlib.contextmanager
def one_byte_at_a_time(patched: pytest.MonkeyPatch) -> Generator[None]:
    """A kernel that writes only seven bytes of each call."""
    really = os.write
    with patched.context() as for_now:
        for_now.setattr(os, "write", lambda handle, data: really(handle, data[:7]))
        yield


@contextlib.contextmanager
def many_signals(_patched: pytest.MonkeyPatch) -> Generator[None]:
    """Signals that interrupt system calls."""
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
async def test_short_or_interrupted_writes_are_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Any
) -> None:
    """After a short or interrupted write the rest follows, and the log is complete."""
    order = Order(tmp_path / "home")
    with trouble(monkeypatch):
        assert await order.begin() == "passed"
    assert (order.site.actions, order.store.read(order.id).torn) == (ACTIONS, 0)
    assert as_was(order) == "passed"
