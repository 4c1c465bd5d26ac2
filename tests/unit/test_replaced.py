"""Another owner claims the run while an engine works on it: that engine writes nothing more, acts no more, and leaves its browser."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import LogError, SiteError
from nodes.targets import Target
from runtime import events, testing
from runtime.browser import port
from runtime.cli import foreground_run
from runtime.log import entries
from runtime.log.store import leases, owners
from runtime.log.store import store as log_store
from runtime.runs import results
from runtime.secrets import masking
from runtime.workspace import run_index
from tests.fakes import FakeBrowser, FakePage, FakeSite
from tests.now import now
from tests.rig import Rig

PAY = "{type: browser_action, action: click, target: {css: pay}"
CONFIRM = "confirm: {settle: 0, nodes: [{id: STEP_look, type: browser_query, query: text, target: {css: state}}], done: \"{{ STEP_look == 'paid' }}\"}"


def flow(nodes: str) -> str:
    """A workflow file with these nodes."""
    return f"version: 1\nname: test\nnodes:\n{nodes}"


class LeftBrowser(FakeBrowser):
    """A browser that records whether it was left open, and can act while its state is captured."""

    left: bool | None = None
    while_captured: Callable[[], None] | None = None

    @override
    async def capture(self) -> port.Captured:
        captured = await super().capture()
        if self.while_captured is not None:
            self.while_captured()
        return captured

    @override
    async def close(self, *, keep: bool = False) -> None:
        self.left = keep
        await super().close(keep=keep)


class Recorded(list[events.Event]):
    """The engine's events, with a callback for the end of a certain step."""

    def __init__(self, at: str, then: Callable[[], None]) -> None:
        """``then`` is called when the step ``at`` has finished."""
        super().__init__()
        self._at, self._then = at, then

    @override
    def append(self, event: events.Event) -> None:
        super().append(event)
        if isinstance(event, events.StepFinished) and event.path == self._at:
            self._then()


@dataclasses.dataclass
class Contested(Rig):
    """A run in a store in memory, and another owner who may claim it."""

    lease: float | None = None
    clock: Callable[[], float] = lambda: 0.0
    later: log_store.Conversation | None = None
    before: list[entries.AnyEntry] = dataclasses.field(default_factory=list[entries.AnyEntry])
    """The log as the other owner found it, with that owner's claim."""
    while_captured: Callable[[], None] | None = None

    @override
    def __post_init__(self) -> None:
        self.elsewhere = testing.MemoryStore(self.home, lease=self.lease, clock=self.clock)
        super().__post_init__()

    @override
    async def open(self) -> port.Browser:
        browser = self.browser = LeftBrowser(self.site)
        browser.while_captured = self.while_captured
        browser.missing |= self.missing
        return browser

    def claim(self) -> None:
        """Another owner claims the run."""
        self.later = now(run_index.claim(self.keeper, self.id, masking.Masker({}), take_over=True)).conversation
        self.before = self.reader.read(self.id).entries

    def check(self, ended: events.RunEnded, *actions: str) -> None:
        """Check that the engine is replaced: it has written nothing since, did only ``actions``, left the browser, and the other owner still owns the run."""
        assert (ended.status, ended.exit) == ("replaced", 75)
        holder = owners.last(self.before)
        assert holder is not None
        assert ended.error is not None
        assert str(ended.error["message"]).startswith(f"run {self.id} is held by process {holder.pid} on ")
        assert self.told[-1] == ended
        assert self.reader.read(self.id).entries == self.before
        assert self.reader.read(self.id).owned
        assert self.site.actions == list(actions)
        assert not isinstance(self.browser, LeftBrowser) or self.browser.left is True
        assert self.later is not None
        self.later.append(entries.Note(name="restored", data={"mode": "attached"}))


@pytest.mark.parametrize(
    "around",
    [
        "",
        "on_error: continue,",
        "retry: {attempts: 3, delay: 0, on: [replaced]},",
        f"verify: [{{text: x, target: {{css: h1}}}}], {CONFIRM.replace('STEP', 'pay')},",
    ],
    ids=["plain", "tolerant", "retried", "confirmed"],
)
async def test_an_action_is_not_begun(tmp_path: Path, around: str) -> None:
    """An engine replaced before the action's call is synced does not perform the action, whatever the node tolerates."""

    class Page(FakePage):
        @override
        async def ready(self, target: Target, action: object) -> None:
            if str(target) == "css=pay":
                rig.claim()

    rig = Contested(tmp_path, flow(f"  - {{id: pay, {around} {PAY[1:]}}}\n  - {{id: more, {PAY[1:]}}}"))
    rig.site.page = Page
    rig.check(await rig.start())
    finished = [event.status for event in rig.told if isinstance(event, events.StepFinished)]
    assert finished == ["replaced"]


async def test_nothing_catches_the_replacement(tmp_path: Path) -> None:
    """A replaced engine runs no `catch`, no `finally`, no retry and no next iteration."""

    async def carried_out(target: str, _page: FakePage) -> None:
        if target == "css=first":
            rig.claim()

    text = flow(
        f"""
  - id: each
    type: iterate
    over: [1, 2]
    as: one
    each_error: continue
    nodes:
      - id: careful
        type: handle
        attempts: 2
        try:
          - {{id: first, {PAY.replace("css: pay", "css: first")[1:]}}}
          - {{id: second, {PAY[1:]}}}
        catch: [{{id: fix, {PAY.replace("css: pay", "css: fix")[1:]}}}]
        finally: [{{id: clean, {PAY.replace("css: pay", "css: clean")[1:]}}}]
"""
    )
    rig = Contested(tmp_path, text, site=FakeSite(on_click=carried_out))
    rig.check(await rig.start(), "css=first")


async def test_a_replaced_engine_does_not_reconcile_a_lost_answer(tmp_path: Path) -> None:
    """An action that may have happened is the new owner's to reconcile: the replaced engine reads no page and does not pause."""

    async def lose(_target: str, _page: FakePage) -> None:
        rig.claim()
        raise SiteError("answer-lost", "nobody knows", phase="after")

    text = flow(f"  - {{id: pay, {CONFIRM.replace('STEP', 'pay')}, {PAY[1:]}}}")
    rig = Contested(tmp_path, text, site=FakeSite(on_click=lose))
    rig.check(await rig.start(), "css=pay")
    assert rig.browser is not None
    assert rig.browser.reads == []


async def test_a_long_step_is_cancelled_at_once(tmp_path: Path) -> None:
    """The lease is renewed while a step waits, so an engine that is replaced meanwhile stops in the middle of it."""
    left: list[str] = []

    async def wait(_target: str, _page: FakePage) -> None:
        rig.claim()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            left.append("cancelled")
            raise

    text = flow(f"  - {{id: pay, timeout: 1800, {PAY[1:]}}}\n  - {{id: more, {PAY[1:]}}}")
    rig = Contested(tmp_path, text, site=FakeSite(on_click=wait), lease=0.05)
    run = asyncio.create_task(rig.start())
    done, _ = await asyncio.wait({run}, timeout=60)
    assert done
    rig.check(await run, "css=pay")
    assert left == ["cancelled"]


async def test_the_lease_is_renewed_while_the_run_works_and_no_longer(tmp_path: Path) -> None:
    """The lease is renewed again and again however long a step takes, and no longer once the run is over."""
    before, asked = asyncio.all_tasks(), 0
    often = asyncio.Event()

    def clock() -> float:
        nonlocal asked
        asked += 1
        if asked == 5:  # once for making the run
            often.set()
        return 0.0

    async def wait(_target: str, _page: FakePage) -> None:
        await often.wait()

    rig = Contested(tmp_path, flow(f"  - {{id: pay, timeout: 120, {PAY[1:]}}}"), site=FakeSite(on_click=wait))
    rig.elsewhere = testing.MemoryStore(tmp_path, lease=0.03, clock=clock)
    ended = await rig.start()
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay"])
    if others := asyncio.all_tasks() - before:
        assert (await asyncio.wait(others, timeout=1))[1] == set()


async def test_a_lease_that_cannot_be_renewed_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable store ends the run like a log that cannot be written."""

    async def wait(_target: str, _page: FakePage) -> None:
        rig.open_writer.conversation.renew = unreachable  # type: ignore[union-attr, method-assign]
        await asyncio.sleep(3600)

    async def unreachable() -> None:
        raise LogError("log-write-failed", "the store cannot be reached")

    text = flow(f"  - {{id: pay, timeout: 1800, {PAY[1:]}}}")
    rig = Contested(tmp_path, text, site=FakeSite(on_click=wait), lease=0.05)
    run = asyncio.create_task(rig.start())
    done, _ = await asyncio.wait({run}, timeout=60)
    assert done
    ended = await run
    assert (ended.status, ended.exit) == ("failed", 2)
    assert ended.error is not None
    assert ended.error["message"] == "the store cannot be reached"


async def test_a_block_cancelled_as_its_lease_is_lost_stays_cancelled(tmp_path: Path) -> None:
    """A block that is cancelled from outside just as its lease is lost ends as cancelled: no Ctrl-C is swallowed."""
    owned = await testing.MemoryStore(tmp_path, lease=0.03).create(log_store.new_id())

    async def lose() -> None:
        worker.cancel()
        raise LogError("log-write-failed", "the store cannot be reached")

    async def work() -> None:
        async with leases.renewed(owned):
            await asyncio.sleep(3600)

    owned.renew = lose
    worker = asyncio.create_task(work())
    done, _ = await asyncio.wait({worker}, timeout=60)
    assert done
    assert worker.cancelled()


async def test_an_interrupted_run_stays_interrupted(tmp_path: Path) -> None:
    """The renewal of a lease swallows no Ctrl-C: the run ends as interrupted, and its log says so."""
    begun = asyncio.Event()

    async def wait(_target: str, _page: FakePage) -> None:
        begun.set()
        await asyncio.sleep(3600)

    text = flow(f"  - {{id: pay, timeout: 1800, {PAY[1:]}}}")
    rig = Contested(tmp_path, text, site=FakeSite(on_click=wait), lease=30.0)
    task = asyncio.create_task(rig.start())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.history.status == "interrupted"
    assert not rig.reader.read(rig.id).owned


@pytest.mark.parametrize("missing", [frozenset[str](), frozenset({"css=pay"})], ids=["passes", "fails"])
async def test_an_engine_replaced_at_the_end_does_not_write_it(tmp_path: Path, missing: frozenset[str]) -> None:
    """An engine replaced at the end of the run, passed or failed, leaves the entry of the end to the new owner."""
    rig = Contested(tmp_path, flow(f"  - {{id: pay, timeout: 1, {PAY[1:]}}}"), missing=set(missing))
    rig.told = Recorded("pay", rig.claim)
    rig.check(await rig.start(), *([] if missing else ["css=pay"]))


@pytest.mark.parametrize("missing", [frozenset[str](), frozenset({"css=pay"})], ids=["continues", "fails"])
async def test_a_checkpoint_of_a_replaced_engine_counts_for_nothing(tmp_path: Path, missing: frozenset[str]) -> None:
    """A checkpoint captured while another owner claims the run has no entry and ends the work, also where the work fails just then."""
    text = flow(
        f"""
  - {{id: shop, type: browser_action, action: goto, url: "http://shop.test/"}}
  - {{id: pay, {PAY[1:]}}}
"""
    )
    rig = Contested(tmp_path, text, missing=set(missing))
    rig.while_captured = rig.claim
    rig.check(await rig.start())


async def test_ctrl_c_after_the_loss_still_reports_the_other_owner(tmp_path: Path) -> None:
    """An interrupted engine that finds another owner at its end reports that the run continues there, and leaves the browser."""
    begun = asyncio.Event()

    async def wait(_target: str, _page: FakePage) -> None:
        rig.claim()
        begun.set()
        await asyncio.sleep(3600)

    text = flow(f"  - {{id: pay, timeout: 1800, {PAY[1:]}}}")
    rig = Contested(tmp_path, text, site=FakeSite(on_click=wait), lease=3600.0)
    task = asyncio.create_task(rig.start())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ended = rig.told[-1]
    assert isinstance(ended, events.RunEnded)
    rig.check(ended, "css=pay")


async def test_the_closing_message_names_the_new_owner(tmp_path: Path) -> None:
    """The command's closing message names the new owner and how to show the run, and offers no resume."""
    rig = Contested(tmp_path, flow(f"  - {{id: pay, {PAY[1:]}}}"))
    rig.told = Recorded("pay", rig.claim)
    ended = await rig.start()
    words = foreground_run.closing(ended)
    assert words.startswith(f"REPLACED run {rig.id} is held by process ")
    assert f"runops show {rig.id}" in words
    assert "resume" not in words
    assert results.worst([0, 1, 75, 130]) == 130
    assert results.worst([0, 1, 3, 75]) == 75


async def test_the_new_owner_continues(tmp_path: Path) -> None:
    """The next engine knows the replaced one's actions, reconciles the interrupted one and does the rest once."""

    async def carried_out(target: str, _page: FakePage) -> None:
        if target == "css=pay":
            rig.site.texts["css=state"] = "paid"
            rig.claim()

    text = flow(
        f"  - {{id: pay, {CONFIRM.replace('STEP', 'pay')}, {PAY[1:]}}}\n  - {{id: more, {PAY.replace('css: pay', 'css: more')[1:]}}}"
    )
    rig = Contested(tmp_path, text, site=FakeSite(on_click=carried_out))
    rig.check(await rig.start(), "css=pay")
    assert rig.later is not None
    await rig.later.aclose()
    ended = await rig.resume()
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay", "css=more"])
    assert rig.calls("pay") == ["interrupted done"]
