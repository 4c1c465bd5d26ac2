"""The time limit of a run ends it like an interruption, but as failed."""

from __future__ import annotations

import asyncio
import types
from pathlib import Path

import pytest

from runtime.runs import run
from runtime.settings import settings
from tests.fakes import FakePage, FakeSite
from tests.rig import Rig

PAY = """\
version: 1
{more}nodes:
  - id: pay
    type: browser_action
    action: click
    target: {{css: pay}}
    effect: effect
    timeout: 3000
    after_crash: ask
"""


class Clock:
    """The clock of the limit: the time is up when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.limits: list[tuple[float | None, asyncio.Timeout]] = []
        monkeypatch.setattr(run, "asyncio", types.SimpleNamespace(**{**vars(asyncio), "timeout": self._timeout}))

    def _timeout(self, seconds: float | None) -> asyncio.Timeout:
        self.limits.append((seconds, asyncio.timeout(None)))
        return self.limits[-1][1]

    def ring(self) -> None:
        ((seconds, limit),) = self.limits
        if seconds is not None:
            limit.reschedule(asyncio.get_running_loop().time())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def rig(
    folder: Path, clock: Clock, *, limit: float | None = None, own: float | None = None
) -> tuple[Rig, asyncio.Event]:
    """A run whose side effect reaches the site, and is never answered; then the time is up."""
    reached = asyncio.Event()

    async def hang(_target: str, _page: FakePage) -> None:
        reached.set()
        clock.ring()
        await asyncio.sleep(3600)

    text = PAY.format(more=f"run_timeout: {own}\n" if own is not None else "")
    return Rig(folder, text, site=FakeSite(on_click=hang), settings=settings.load(run_timeout=limit)), reached


@pytest.mark.parametrize(("limit", "own"), [(60, None), (None, 60), (60, 3000), (3000, 60)])
async def test_the_shorter_limit_ends_the_run_at_its_step(
    tmp_path: Path, clock: Clock, limit: float | None, own: float | None
) -> None:
    """The run has failed with the limit and the step it was in, its browser is closed, and its log has ended and is free."""
    one, _reached = rig(tmp_path, clock, limit=limit, own=own)
    ended = await one.start()
    assert (ended.status, ended.exit, ended.path) == ("failed", 1, "pay")
    assert ended.error is not None
    assert (ended.error["code"], ended.error["message"]) == ("run-timeout", "the run took longer than 60 s")
    assert one.browser is not None
    assert one.browser.closed
    assert one.history.status == "failed"
    assert not one.reader.read(one.id).owned


async def test_a_side_effect_in_flight_is_settled_as_after_an_interruption(tmp_path: Path, clock: Clock) -> None:
    """Whether the time was up or the run was interrupted: the log has the same calls, and the resumed run asks the same question."""
    asked = list[object]()
    for name in ("timeout", "interrupted"):
        clock.limits.clear()
        one, reached = rig(tmp_path / name, clock, limit=60 if name == "timeout" else None)
        running = asyncio.create_task(one.start())
        await reached.wait()
        if name == "interrupted":
            running.cancel()
        await asyncio.wait({running})
        before = one.calls("pay")
        one.settings = None
        one.site.on_click = None
        ended = await one.resume()
        assert ended.question is not None
        asked.append((before, ended.status, ended.path, ended.question["reason"], one.site.actions))
    assert asked[0] == asked[1]


async def test_a_run_in_time_is_not_touched(tmp_path: Path, clock: Clock) -> None:
    one, _reached = rig(tmp_path, clock, limit=3000)
    one.site.on_click = None
    assert (await one.start()).status == "passed"


async def test_an_interruption_before_the_limit_stays_one(tmp_path: Path, clock: Clock) -> None:
    one, reached = rig(tmp_path, clock, limit=3000)
    clock.ring = lambda: None
    running = asyncio.create_task(one.start())
    await reached.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert one.history.status == "interrupted"
