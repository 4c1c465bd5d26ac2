"""However a run ends, its lock is free, its claim is kept until its end is written, and no raised error is changed."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.base import Leaf
from nodes.errors import Paused, SetupError, SiteError
from nodes.ports import LeafContext
from nodes.values import Json
from runtime import events, testing
from runtime.browser import port
from runtime.runs import run
from tests.fakes import FakeBrowser, FakePage, FakeSite
from tests.rig import Rig

CLICK = "version: 1\nname: test\nnodes:\n  - {id: pay, timeout: 120, type: browser_action, action: click, target: {css: pay}}"


class StubbornBrowser(FakeBrowser):
    """A browser whose closing takes until it is cancelled, or fails with a foreign error."""

    broken = False

    def __init__(self, site: FakeSite) -> None:
        super().__init__(site)
        self.closing = asyncio.Event()

    @override
    async def close(self, *, keep: bool = False) -> None:
        self.closing.set()
        if self.broken:
            raise ValueError("the driver is gone")
        await asyncio.sleep(3600)


class StubbornRig(Rig):
    broken = False

    @override
    async def open(self) -> port.Browser:
        browser = self.browser = StubbornBrowser(self.site)
        browser.broken = self.broken
        return browser


async def test_a_second_cancellation_frees_the_lock(tmp_path: Path) -> None:
    """A run that is cancelled again while its browser closes still frees its lock."""

    async def wait(_target: str, _page: FakePage) -> None:
        begun.set()
        await asyncio.sleep(3600)

    begun = asyncio.Event()
    rig = StubbornRig(tmp_path, CLICK, site=FakeSite(on_click=wait))
    running = asyncio.create_task(rig.start())
    await begun.wait()
    running.cancel()
    assert isinstance(rig.browser, StubbornBrowser)
    await rig.browser.closing.wait()
    running.cancel()
    await asyncio.wait({running}, timeout=60)
    assert running.cancelled()
    assert not rig.store.read(rig.id).owned


async def test_a_browser_that_cannot_be_closed_frees_the_lock(tmp_path: Path) -> None:
    """An unexpected error while the browser closes is raised, and the lock is free."""
    rig = StubbornRig(tmp_path, CLICK)
    rig.broken = True
    with pytest.raises(ValueError, match="driver"):
        await rig.start()
    assert not rig.store.read(rig.id).owned


async def test_the_claim_is_kept_until_the_end_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the scan for secrets takes, the lease is renewed until the log has the end of the run."""
    edited = threading.Event()

    def slow_scan(_self: run.Run) -> None:
        edited.clear()
        assert edited.wait(60), "nobody renewed the lease meanwhile"

    monkeypatch.setattr(run.Run, "_leak", slow_scan)
    rig = Rig(tmp_path, CLICK)

    def clock() -> float:
        edited.set()
        return 0.0

    rig.elsewhere = testing.MemoryStore(tmp_path, lease=0.03, clock=clock)
    assert (await rig.start()).status == "passed"


async def test_a_listener_that_raises_harms_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A run whose listener raises at each event passes as any other, and the logger `runops` reports the exception."""

    class Broken(list[events.Event]):
        @override
        def append(self, event: events.Event) -> None:
            raise RuntimeError("no screen")

    rig = Rig(tmp_path, CLICK)
    rig.told = Broken()
    with caplog.at_level(logging.ERROR, logger="runops"):
        ended = await rig.start()
    assert (ended.status, rig.site.actions) == ("passed", ["css=pay"])
    assert "no screen" in caplog.text


class Twice(Leaf):
    type: str = "acme.twice"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        await ctx.act()
        return None


async def test_a_node_acts_once(tmp_path: Path) -> None:
    """A node type that announces two actions in one attempt fails at the second, with one call and one result in the log."""
    rig = Rig(tmp_path, "version: 1\nname: test\nnodes:\n  - {id: one, type: transform, expr: '{{ 1 }}'}")
    rig.loaded.workflow.nodes[0] = Twice(id="one", type="acme.twice")
    rig.loaded = dataclasses.replace(rig.loaded, fingerprints={"one": "f"})
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.status, ended.error["code"]) == ("failed", "node-type-broken")
    assert rig.calls("one") == ["error"]


def test_an_error_is_placed_by_a_copy() -> None:
    """An error that gets a place or another phase is copied; the copy keeps its class and its first place."""
    raised = SiteError("target-not-found", "no element", fix="look", evidence={"page": "x"})
    placed = raised.located("a/b")
    assert (raised.path, placed.path, type(placed)) == (None, "a/b", SiteError)
    assert placed.located("c") is placed
    after = placed.replaced(phase="after", message="another")
    assert (placed.phase, after.phase, str(after), after.path) == ("before", "after", "another", "a/b")
    assert isinstance(Paused("x", "y").located("z"), Paused)
    assert SetupError("a", "b").replaced(evidence={"c": 1}).evidence == {"c": 1}
