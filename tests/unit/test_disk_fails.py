"""A disk that fails or is full, at every write of a run: it stops before its next deed and says so, and goes on once there is room."""

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
from runtime import history, journal, run, store
from tests import faults
from tests.fakes import FakeSite
from tests.rig import Killed, Rig

ORDER = """
version: 1
name: Order
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: words, type: transform, expr: "{{ 'so many words ' * 400 }}"}
  - id: unit
    type: group
    nodes:
      - {id: name, type: browser_action, action: fill, target: {label: Name}, value: "{{ words | length }}"}
      - {id: add, type: browser_action, action: click, target: {css: add}, confirm: {settle: 0, nodes: [{id: in_cart, type: browser_query, query: text, target: {css: cart}}], done: "{{ in_cart == 'yes' }}"}}
  - {id: picture, type: browser_action, action: screenshot}
  - {id: again, type: browser_action, action: goto, url: "http://shop.test/cart"}
  - {id: session, type: browser_action, action: save_session, name: shop}
  - {id: pay, type: browser_action, action: click, target: {css: pay}, confirm: {settle: 0, nodes: [{id: paid, type: browser_query, query: text, target: {css: paid}}], done: "{{ paid == 'yes' }}"}}
  - {id: third, type: browser_action, action: goto, url: "http://shop.test/paid"}
  - {id: mark, type: browser_query, query: text, target: {css: paid}}
  - {id: end, type: browser_query, query: text, target: {css: paid}}
output: ["{{ picture.name }}", "{{ end }}", "{{ words | length }}"]
"""
OUTPUT = ["picture.png", "yes", 5600]
DEEDS = ["css=add", "css=pay"]
SHOWS = {"css=add": "css=cart", "css=pay": "css=paid"}


class Order(Rig):
    """An order on the fake site."""

    def __init__(self, home: Path, before: Order | None = None) -> None:
        super().__init__(home, ORDER)
        if before is not None:
            self.id, self.site = before.id, before.site
        self.site.on_click = self.answer

    async def answer(self, target: str, _page: object) -> None:
        """What the site shows once it has carried a deed out."""
        self.site.texts[SHOWS[target]] = "yes"

    async def begin(self) -> str:
        """Run it to its end; how it ended: passed, or the code of the error."""
        conversation = self.store.create(self.id)
        self.open_pen = journal.Journal(conversation, history.History(), self.masker, self.store)
        run.write_header(self.open_pen, self.loaded, {})
        ended = await self._run(self.open_pen).begin()
        assert ended.exit == (2 if ended.error else 0), ended
        return ended.status if ended.error is None else str(ended.error["code"])

    async def pay(self) -> str:
        """Go on with it to its end; how that ended."""
        ended = await self.resume()
        assert ended.exit == (2 if ended.error else 0), ended
        return ended.status if ended.error is None else str(ended.error["code"])

    @property
    def begun(self) -> bool:
        """Whether its first line is there."""
        file = self.store.conversation_file(self.id)
        return file.exists() and b"\n" in file.read_bytes()


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
            disk.on_failure = lambda: site.texts.update(deeds=",".join(site.deeds))
            return await life(order), order
        except LogError as error:
            named = error.exit == 2 and str(disk.root) in error.message
            return error.code if named else f"{error.exit}: {error}", order
        finally:
            if order is not None:
                order.die()


async def fails_and_is_mended(disk: faults.Disk, life: Life, before: Order | None = None) -> str:
    """An order on a disk that fails stops before its next deed; on the disk as it is mended it goes on. How it ended on the first one."""
    told, order = await left_to(disk, life, before)
    assert told in ("passed", "log-write-failed", "file-write-failed"), disk.failed
    if order is not None:
        at_failure = order.site.texts.pop("deeds", None)
        assert told == "passed" or ",".join(order.site.deeds) == at_failure, disk.failed
    mended = faults.Disk(disk.root)
    if told != "passed":
        life = Order.pay if order is not None and order.begun else Order.begin
        last, order = await left_to(mended, life, order or before)
        assert last == "passed", disk.failed
    assert order is not None
    assert await ended(order) == "passed"
    assert order.site.deeds == DEEDS, disk.failed
    return told


async def ended(order: Order) -> str:
    """Look at an order that came to its end."""
    root = order.history.scopes[""].committed
    assert root is not None
    assert root.value == OUTPUT
    return "passed"


@pytest.mark.parametrize("full", [False, True], ids=["fails", "full"])
async def test_at_each_write_the_run_stops_before_its_next_deed_and_goes_on_later(tmp_path: Path, full: bool) -> None:
    """Whichever write fails: no traceback, an error that names the place, nothing done on the site after it; resumed, each deed is done once."""
    harmless: list[str | None] = []
    disk = faults.Disk(tmp_path)
    for number in itertools.count(1):
        disk = faults.Disk(tmp_path / str(number), number, full=full)
        disk.root.mkdir()
        told = await fails_and_is_mended(disk, Order.begin)
        if disk.failed is None:
            break
        if told == "passed":
            harmless.append(disk.failed)
        shutil.rmtree(disk.root)
    assert len(disk.done) > 100
    assert {what.split()[0] for what in map(str, harmless)} <= {"unlink"}


@pytest.mark.parametrize("full", [False, True], ids=["fails", "full"])
async def test_at_each_write_of_a_resume_it_stops_too(tmp_path: Path, full: bool) -> None:
    """A run that died with a deed in hand is gone on with on a disk that fails at any write, and then on a good one: each deed is done once."""
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
    for number in itertools.count(1):
        disk = faults.Disk(tmp_path / str(number), number, full=full)
        shutil.copytree(tmp_path / "dead", disk.root)
        before = Order(disk.root / "home", dead)
        before.site = FakeSite(deeds=[*dead.site.deeds], texts=dict(dead.site.texts))
        await fails_and_is_mended(disk, Order.pay, before)
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
        kept = store.FileStore(disk.root / "home")
        known: str | None = None
        with pytest.MonkeyPatch.context() as patched:
            disk.install(patched)
            try:
                known = kept.keyed("nightly")
            except LogError as error:
                said.append(error.code)
        assert kept.keyed("nightly") == known or (known is None and disk.failed is not None)
        assert kept.keyed("nightly") == kept.keyed("nightly")
    assert said == ["log-write-failed"] * 9


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
    assert (order.site.deeds, order.store.read(order.id).torn) == (DEEDS, 0)
    assert await ended(order) == "passed"
