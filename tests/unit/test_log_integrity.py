"""A changed log: a torn end is cut, damage is refused with its line, and no action is done twice."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.errors import LogError, SiteError
from runtime.log import entries as log_entries
from runtime.log.store import file_store, integrity
from runtime.log.store import store as log_store
from runtime.query import query
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from tests.rig import Killed, Rig

ORDER = """
version: 1
name: Order
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: words, type: transform, expr: "{{ 'so many words ' * 40 }}"}
  - id: unit
    type: group
    nodes:
      - {id: name, type: browser_action, action: fill, target: {label: Name}, value: "{{ words }}"}
      - id: add
        type: browser_action
        action: click
        target: {css: add}
        confirm:
          settle: 0
          nodes: [{id: in_cart, type: browser_query, query: text, target: {css: cart}}]
          done: "{{ in_cart == 'yes' }}"
  - {id: cart, type: browser_query, query: text, target: {css: cart}}
  - id: pay
    type: browser_action
    action: click
    target: {css: pay}
    confirm:
      settle: 0
      nodes: [{id: paid, type: browser_query, query: text, target: {css: paid}}]
      done: "{{ paid == 'yes' }}"
  - {id: end, type: browser_query, query: text, target: {css: paid}}
output: ["{{ cart }}", "{{ end }}"]
"""
ACTIONS = ["css=add", "css=pay"]
OUTPUT = ["yes", "yes"]
SHOWS = {"css=add": "css=cart", "css=pay": "css=paid"}


@pytest.fixture(autouse=True)
def disk_that_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip all syncs: these tests are about the content of files."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    monkeypatch.setattr(os, "fdatasync", lambda _handle: None)


class Order(Rig):
    """An order on the fake site, which records how much of its log is synced."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, ORDER)
        self.synced = 0

        async def answer(target: str, _page: object) -> None:
            self.site.texts[SHOWS[target]] = "yes"

        self.site.on_click = answer

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.store.conversation_file(self.id)

    def again(self, home: Path, data: bytes) -> Order:
        """The same run on another disk: its log is ``data``, and the site is unchanged."""
        shutil.copytree(self.home, home)
        other = Order(home)
        other.id, other.site.actions, other.site.texts = self.id, [*self.site.actions], dict(self.site.texts)
        other.log.write_bytes(data)
        return other


async def killed_at(home: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Order, CrashPoint | None]:
    """An order killed at the crash point of this number, and the point; None if it finished."""
    order, passed = Order(home), list[CrashPoint]()
    # A killed process reports no errors of its tasks.
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)

    def fdatasync(_handle: int) -> None:
        order.synced = max(order.synced, order.log.stat().st_size)

    def hook(point: CrashPoint) -> None:
        passed.append(point)
        if 0 < number <= len(passed):
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fdatasync)
        patched.setattr(crash_points, "hook", hook)
        try:
            await order.start()
        except Killed:
            order.die()
            return order, passed[number - 1]
    return order, None


async def all_deaths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Order, CrashPoint | None]]:
    """An order for every crash point after its first line, and the one that finished."""
    deaths: list[tuple[Order, CrashPoint | None]] = []
    while True:
        order, point = await killed_at(folder / f"killed-{len(deaths)}", len(deaths) + 1, monkeypatch)
        deaths.append((order, point))
        if point is None:
            return [(order, point) for order, point in deaths if b"\n" in order.log.read_bytes()]


def lines_of(data: bytes) -> list[tuple[int, int]]:
    """The begin and end of each line, newline included."""
    ends = [position + 1 for position, byte in enumerate(data) if byte == 10]
    return list(zip([0, *ends[:-1]], ends, strict=True))


async def test_a_log_that_lost_its_end_in_a_power_cut_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever unsynced lines are lost, at whichever point the run died, it passes, and each action is done once."""
    count = 0
    for order, point in await all_deaths(tmp_path, monkeypatch):
        data = order.log.read_bytes()
        last_three = [each for each in lines_of(data)[-3:] if each[0] >= max(order.synced, 1)]
        for begin, end in last_three:
            for cut in (begin, begin + 1, (begin + end) // 2, end - 1):
                count += 1
                other = order.again(tmp_path / f"cut-{count}", data[:cut])
                ended = await other.resume()
                assert (ended.status, ended.output, other.site.actions) == ("passed", OUTPUT, ACTIONS), (point, cut)
                shutil.rmtree(other.home)
    assert count > 60


async def test_every_cut_of_the_last_lines_yields_the_lines_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log cut at any byte of its last three lines yields its whole lines, and the size of the torn one."""
    order, _point = await killed_at(tmp_path / "home", 0, monkeypatch)
    data = order.log.read_bytes()
    entries, torn = integrity.parse(order.log, data)
    lines = lines_of(data)
    assert (len(entries), torn) == (len(lines), 0)
    for cut in range(lines[-3][0], len(data)):
        whole = sum(end <= cut for _begin, end in lines)
        assert integrity.parse(order.log, data[:cut]) == (entries[:whole], cut - lines[whole][0])


def flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each line's number, with one byte of that line changed: first, middle, checksum, last, newline and some others."""
    for number, (begin, end) in enumerate(lines_of(data), start=1):
        for position in {begin, (begin + end) // 2, end - 6, end - 2, end - 1, *range(begin + 5, end, 41)}:
            for mask in (0x01, 0x20, data[position], data[position] ^ ord("\n")):
                if mask:
                    yield number, data[:position] + bytes([data[position] ^ mask]) + data[position + 1 :]


async def test_a_flipped_byte_is_refused_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any changed byte of any line, the last one included, refuses the run with that line's number, and nothing is written."""
    order, _point = await killed_at(tmp_path / "home", 0, monkeypatch)
    beside = Order(order.home)
    await beside.start()
    data = order.log.read_bytes()
    for number, hurt in flips(data):
        with pytest.raises(LogError, match=f":{number}: this line of the log is damaged") as caught:
            integrity.parse(order.log, hurt)
        assert caught.value.code == "log-damaged"
    for number, hurt in [next(each for each in flips(data) if each[0] == n) for n in range(1, len(lines_of(data)) + 1)]:
        order.log.write_bytes(hurt)
        for look in (order.store.read, order.store.claim, lambda _run: list(query.entries(order.log))):
            with pytest.raises(LogError, match=f"{order.log}:{number}:"):
                look(order.id)
        assert order.log.read_bytes() == hurt
        assert not order.store.owned(order.id)
    assert integrity.parse(beside.log, beside.log.read_bytes())[1] == 0


async def test_a_damaged_call_of_an_action_that_happened_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the last line, the call of a done action, does not match its checksum, the run is refused and the action not repeated."""
    for order, point in await all_deaths(tmp_path, monkeypatch):
        if point != CrashPoint.EFFECT_DONE:
            continue
        data = order.log.read_bytes()
        for number, hurt in list(flips(data))[-8:]:
            assert number == data.count(b"\n")
            order.log.write_bytes(hurt)
            actions = [*order.site.actions]
            with pytest.raises(LogError, match=f"{order.log}:{number}:"):
                await order.resume()
            assert order.site.actions == actions


async def test_a_question_whose_line_is_torn_is_asked_again(tmp_path: Path) -> None:
    """A paused run whose log is cut anywhere after the call of an unknown action pauses again, and does not repeat the action."""
    order = Order(tmp_path / "home")

    async def lose(_target: str, _page: object) -> None:
        raise SiteError("answer-lost", "nobody knows", phase="after")

    order.site.on_click, order.missing = lose, {"css=cart"}
    assert (await order.start()).status == "paused"
    order.die()
    data = order.log.read_bytes()
    calls = [each for each in order.store.read(order.id).entries if isinstance(each, log_entries.Call)]
    (action,) = (each.seq for each in calls if each.effect == "effect")
    later_lines = lines_of(data)[action:]
    assert len(later_lines) >= 2
    for begin, end in later_lines:
        for cut in (begin, begin + 1, (begin + end) // 2, end - 1):
            other = order.again(tmp_path / f"cut-{cut}", data[:cut])
            other.missing = order.missing
            ended = await other.resume()
            assert (ended.status, ended.path, other.site.actions) == ("paused", "unit/add", ["css=add"]), cut


def entry(number: int, effect: bool = False) -> log_entries.AnyEntry:
    """Any entry, or the call of an action."""
    if effect:
        return log_entries.Call(path="pay", node="browser_action", attempt=1, effect="effect", fingerprint="f" * 400)
    return log_entries.Note(name="restored", data={"mode": "attached", "number": number, "more": "x" * 300})


def written(*effects: bool) -> tuple[bytes, list[log_entries.AnyEntry], list[tuple[int, int]]]:
    """A log of such lines, its entries, and the begin and end of each line."""
    entries = [log_entries.numbered(entry(number, effect), number) for number, effect in enumerate(effects, start=1)]
    data = b"".join(map(log_entries.encode, entries))
    return data, entries, lines_of(data)


def zeroed(data: bytes, begin: int, end: int) -> bytes:
    """The file with zeros for these bytes, as a disk reads sectors that it never wrote."""
    return data[:begin] + bytes(end - begin) + data[end:]


def test_unsynced_sectors_are_torn_whatever_follows_them(tmp_path: Path) -> None:
    """Zeros for unsynced sectors end the log before them, wherever they begin and whatever was written after them."""
    data, entries, lines = written(True, *[False] * 12)
    synced, size = lines[0][1], len(data)
    for after in range(synced, size, 37):  # whatever had been written back before
        begin = max(end for _begin, end in lines if end <= after)
        for end in [each for each in range(0, size, integrity.SECTOR) if each > begin] + [size]:
            known = sum(line_end <= begin for _begin, line_end in lines)
            assert integrity.parse(tmp_path, zeroed(data, begin, end)) == (entries[:known], size - begin)
    for begin in range(integrity.SECTOR * (synced // integrity.SECTOR + 1), size, integrity.SECTOR):
        known = sum(line_end <= begin for _begin, line_end in lines)
        assert integrity.parse(tmp_path, zeroed(data, begin, min(size, begin + integrity.SECTOR)))[0] == entries[:known]


def test_zeros_before_the_call_of_an_action_are_damage(tmp_path: Path) -> None:
    """An action's call after zeros may have been synced, and so the zeroed part too: nothing is cut."""
    data, _entries, lines = written(False, False, False, False, False, True)
    sector = lines[2][0] // integrity.SECTOR * integrity.SECTOR + integrity.SECTOR
    for begin, end, line in ((lines[1][1], sector, 3), (sector, sector + integrity.SECTOR, 3)):
        with pytest.raises(LogError, match=f":{line}: this line") as caught:
            integrity.parse(tmp_path, zeroed(data, begin, end))
        assert caught.value.code == "log-damaged"


def test_zeros_that_no_power_cut_leaves_are_damage(tmp_path: Path) -> None:
    """Zeros in the middle of a sector are no missing sector."""
    data, _entries, lines = written(False, False, False)
    begin = next(each for each in range(lines[2][0] + 20, len(data)) if each % integrity.SECTOR == 100)
    for hurt in (zeroed(data, begin, begin + 40), zeroed(data, len(data) - 3, len(data) - 1)):
        with pytest.raises(LogError, match=":3: this line"):
            integrity.parse(tmp_path, hurt)


def test_after_a_torn_end_the_log_is_cut_on_the_disk_before_it_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim syncs the cut of a torn end first, so that no power cut mixes the torn end with later entries."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    data, _entries, lines = written(False, False)
    file = store.conversation_file(run)
    file.write_bytes(data[:-20])
    seen: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda _handle: seen.append(file.stat().st_size))
    conversation, recovered = store.claim(run)
    conversation.close()
    assert seen == [lines[0][1]]
    assert [each.kind for each in recovered] == ["note", "note"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_reading_leaves_the_garbage_collector_as_the_program_has_it(collects: bool, frozen: bool) -> None:
    """Reading restores the collector's on or off state, and frozen objects stay frozen."""
    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        if frozen:
            gc.freeze()
        before = gc.get_freeze_count()
        with integrity.uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() == collects
        # Frozen objects may still be freed.
        assert (before > 0, gc.get_freeze_count() > 0) == (frozen, frozen)
    finally:
        gc.unfreeze()
        (gc.enable if was else gc.disable)()
