"""Pages after steps in memory, and what of them reaches the log."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import SiteError
from nodes.pages import ElementAction
from nodes.targets import Target
from nodes.values import Json
from runtime.browser.port import Message
from runtime.engine import evidence, trace_file, tracing
from runtime.observation.observation import Observation
from tests.fakes import FakePage, FakeSite
from tests.rig import Rig

STEPS = """
version: 1
name: Six steps
secrets: [TOKEN]
nodes:
  - {id: one, type: browser_action, action: goto, url: "http://shop.test/1"}
  - {id: two, type: browser_action, action: goto, url: "http://shop.test/2"}
  - {id: three, type: browser_action, action: goto, url: "http://shop.test/3"}
  - {id: four, type: browser_action, action: goto, url: "http://shop.test/4"}
  - {id: five, type: browser_action, action: goto, url: "http://shop.test/5"}
  - {id: press, type: browser_action, action: click, target: {css: gone}}
"""


class Noisy(FakePage):
    """A page whose console says something when an element is sought."""

    @override
    async def ready(self, target: Target, action: ElementAction) -> None:
        self.browser.said.append(Message(time.time(), "console", "a failure of tok-123456"))
        self.browser.said.append(Message(time.time(), "console", "only a note", level="log"))
        self.browser.said.append(Message(time.time(), "error", f"{'long ' * (evidence.MESSAGE // 5 - 1)}tok-123456"))
        await super().ready(target, action)


def rig(folder: Path, mode: tracing.Mode = "on", page: type[FakePage] = Noisy, *, fails: bool = True) -> Rig:
    """A run of six steps; the last one misses its target."""
    missing = {str(Target(css="gone"))} if fails else set[str]()
    secrets = {"TOKEN": "tok-123456"}
    return Rig(folder, STEPS, FakeSite(page=page), secrets=secrets, missing=missing, tracing=tracing.Tracing(mode))


def seen(run: Rig) -> list[tuple[str, str | None]]:
    """The steps of the frames in the log, and the pictures, or why there is none."""
    found = evidence.of(run.history, "press")
    assert found is not None
    frames: list[dict[str, Json]] = found["frames"]
    return [
        (each["path"], Path(each["screenshot"]["path"]).read_text() if "screenshot" in each else each["no_screenshot"])
        for each in frames
    ]


def files(run: Rig) -> list[Path]:
    """The files that the run keeps."""
    folder = run.reader.files(run.id)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def members(file: dict[str, Json]) -> dict[str, str]:
    """The texts in a trace, by name."""
    with zipfile.ZipFile(io.BytesIO(Path(str(file["path"])).read_bytes())) as archive:
        return {name: archive.read(name).decode(errors="replace") for name in archive.namelist()}


async def test_the_three_steps_before_a_failure_are_kept_with_their_pages(tmp_path: Path) -> None:
    """Older ones are forgotten; messages are masked, and notes of a console are none."""
    run = rig(tmp_path)
    ended = await run.start()
    assert (ended.status, ended.path) == ("failed", "press")
    assert seen(run) == [
        (path, f"a picture of http://shop.test/{path_of}") for path, path_of in (("three", 3), ("four", 4), ("five", 5))
    ]
    found = evidence.of(run.history)
    assert found is not None
    first, second = (each["text"] for each in found["messages"])
    assert first == "a failure of [hidden]"
    assert "tok" not in second, "a text that is cut shows no part of a secret"


async def test_a_trace_has_every_step_and_no_secret(tmp_path: Path) -> None:
    """Each step stands with its path, times, error and picture, and what pages said is masked."""
    run = rig(tmp_path)
    await run.start()
    found = evidence.of(run.history)
    assert found is not None
    texts = members(found["trace"])
    said = [json.loads(line) for line in texts["trace.trace"].splitlines()]
    before = {each["callId"]: each["title"] for each in said if each["type"] == "before"}
    assert [each.split()[:2] for each in before.values()] == [
        *([path, "goto"] for path in ("one", "two", "three", "four", "five")),
        ["press", "click"],
    ]
    after = {before[each["callId"]].split()[0]: each for each in said if each["type"] == "after"}
    assert after["press"]["error"]["message"].startswith("target-not-found: no element matches")
    assert {path for path, each in after.items() if "error" in each} == {"press"}
    shown = {before[each["callId"]].split()[0]: each["file"] for each in said if each["type"] == "screenshot"}
    assert texts[shown["two"]] == "a picture of http://shop.test/2"
    assert "a failure of [hidden]" in texts["trace.trace"]
    assert not any("tok-123456" in text for text in texts.values())


class Telling(FakePage):
    """A page whose fourth address shows the secret."""

    @override
    async def shows(self, hide: Callable[[str], bool]) -> bool:
        return self.address.endswith("/4") and hide("tok-123456")


async def test_a_page_with_a_secret_has_no_frame(tmp_path: Path) -> None:
    """Its frame says so in place of the picture, and none is kept anywhere."""
    run = rig(tmp_path, page=Telling)
    await run.start()
    assert [shown for _path, shown in seen(run)][1] == "secret-on-page"
    assert not any(b"shop.test/4" in each.read_bytes() for each in files(run) if each.suffix == ".jpeg")


class Slow(FakePage):
    """A page whose pictures take until it moves on, or a moment."""

    @override
    async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
        self.browser.moved.set()
        self.browser.moved = asyncio.Event()
        return await super().goto(url, anew=anew, once=once)

    @override
    async def frame(self, hide: Callable[[str], bool] | None, *, small: bool = False) -> bytes:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.browser.moved.wait(), 0.05)
        return await super().frame(hide, small=small)


async def test_no_step_acts_before_the_picture_of_the_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a picture shows the page as its step left it."""
    monkeypatch.setattr(tracing, "SAVED", 60.0)
    monkeypatch.setattr(tracing, "SHARE", 1e6)
    run = rig(tmp_path, "on-failure", Slow)
    await run.start()
    assert [shown for _path, shown in seen(run)] == [f"a picture of http://shop.test/{number}" for number in (3, 4, 5)]


async def test_pictures_for_a_failure_take_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of steps that end at once only the first has one of its own; a step that waits leaves time for the one before it."""
    monkeypatch.setattr(tracing, "SHARE", 1e-9)
    monkeypatch.setattr(tracing, "WAITING", 60.0)
    run = rig(tmp_path, "on-failure")
    await run.start()
    assert seen(run) == [("three", tracing.TOO_FAST), ("four", tracing.TOO_FAST), ("five", "a picture")]
    found = evidence.of(run.history)
    assert found is not None
    assert found["frames"][-1]["along"] == "press"
    assert run.browser is not None
    assert run.browser.framed == ["http://shop.test/1"]

    taken = asyncio.Event()

    class Waiting(FakePage):
        @override
        async def ready(self, target: Target, action: ElementAction) -> None:
            await taken.wait()
            await super().ready(target, action)

        @override
        async def frame(self, hide: Callable[[str], bool] | None, *, small: bool = False) -> bytes:
            if self.address.endswith("/5"):
                taken.set()
            return await super().frame(hide, small=small)

    monkeypatch.setattr(tracing, "WAITING", 0.01)
    run = rig(tmp_path / "waiting", "on-failure", Waiting)
    await run.start()
    assert seen(run)[-1] == ("five", "a picture of http://shop.test/5")


FILLS = """
version: 1
name: Three fields
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/1"}
  - {id: name, type: browser_action, action: fill, target: {css: name}, value: Ada}
  - {id: city, type: browser_action, action: fill, target: {css: city}, value: London}
  - {id: press, type: browser_action, action: click, target: {css: gone}}
"""


class Camera(FakePage):
    """A page whose pictures wait until a field is filled, and show what is filled by then."""

    @override
    async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
        self.filling = asyncio.Event()
        return await super().goto(url, anew=anew, once=once)

    @override
    async def frame(self, hide: Callable[[str], bool] | None, *, small: bool = False) -> bytes:
        await self.filling.wait()
        return f"{'small ' if small else ''}{', '.join(self.filled.values())}".encode()

    @override
    async def fill(self, target: Target, text: str, *, secret: bool = False) -> None:
        await super().fill(target, text, secret=secret)
        if target.css == "city":
            self.filling.set()


async def test_steps_that_follow_one_another_share_a_picture(tmp_path: Path) -> None:
    """Nothing waits for it in a run without secrets. It says which was the last step that had ended; another address has its own."""
    run = Rig(
        tmp_path, FILLS, FakeSite(page=Camera), missing={str(Target(css="gone"))}, tracing=tracing.Tracing("on-failure")
    )
    await run.start()
    assert seen(run) == [(path, "small Ada, London") for path in ("open", "name", "city")]
    found = evidence.of(run.history)
    assert found is not None
    assert [each.get("along") for each in found["frames"]] == ["city", "city", None]
    assert len({each["screenshot"]["path"] for each in found["frames"]}) == 1, "one file is enough"


async def test_a_run_that_passes_writes_none_of_them(tmp_path: Path) -> None:
    """Pages are in memory only until a step fails; without tracing there are none, and pages are not listened to."""
    run = rig(tmp_path, "on-failure", fails=False)
    assert (await run.start()).status == "passed"
    assert (run.history.evidence, files(run)) == ([], [])
    run = rig(tmp_path / "off", "off")
    await run.start()
    assert run.browser is not None
    assert (run.browser.framed, run.browser.heard) == ([], False)
    found = evidence.of(run.history)
    assert found is not None
    assert not {"frames", "messages", "trace"} & found.keys()


async def test_a_whole_trace_is_a_file_of_a_run_that_passes(tmp_path: Path) -> None:
    """It is named at the end of the run, and the log knows it from there on."""
    run = rig(tmp_path, fails=False)
    ended = await run.start()
    assert [each["name"] for each in ended.files] == [Path(str(each["path"])).name for each in run.history.files]
    [trace] = run.history.files
    assert trace["name"].startswith("trace-")
    assert len([name for name in members(trace) if name.startswith("screenshots/")]) == len(run.loaded.workflow.nodes)


async def test_the_pages_before_a_tab_that_is_gone_are_kept(tmp_path: Path) -> None:
    """The page of the failed step cannot be seen then; what was before it can."""

    class Closing(FakePage):
        @override
        async def ready(self, target: Target, action: ElementAction) -> None:
            self.closed = True
            raise SiteError("tab-closed", "the tab is gone")

    run = rig(tmp_path, "on", Closing)
    await run.start()
    assert [path for path, _shown in seen(run)] == ["three", "four", "five"]
    found = evidence.of(run.history)
    assert found is not None
    assert (found["url"], "screenshot" in found, "trace" in found) == ("http://shop.test/5", False, True)


async def test_an_interrupted_run_has_its_trace(tmp_path: Path) -> None:
    """However the run ends, its recordings are kept."""
    begun = asyncio.Event()

    class Endless(FakePage):
        @override
        async def ready(self, target: Target, action: ElementAction) -> None:
            begun.set()
            await asyncio.Event().wait()

    run = rig(tmp_path, page=Endless)
    running = asyncio.create_task(run.start())
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    [trace] = run.history.files
    assert "shop.test/5" in members(trace)["trace.trace"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_trace_that_cannot_be_made_changes_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """The run ends as it would without it, with its other evidence, and says why there is none."""

    def broken(*_args: object) -> bytes:
        raise ValueError("a picture of no size")

    monkeypatch.setattr(trace_file, "write", broken)
    run = rig(tmp_path, fails=fails)
    ended = await run.start()
    assert (ended.status, ended.path) == (("failed", "press") if fails else ("passed", None))
    assert any("no trace is kept: a picture of no size" in str(event) for event in run.told)
    if fails:
        found = evidence.of(run.history)
        assert found is not None
        assert ("trace" in found, "screenshot" in found, len(found["frames"])) == (False, True, 3)


async def test_a_page_that_cannot_be_written_hides_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends with its own failure; the rest of the evidence is kept."""

    def broken(*_args: object, **_more: object) -> str:
        raise ValueError("no text")

    monkeypatch.setattr(Observation, "render", broken)
    run = rig(tmp_path)
    assert (await run.start()).path == "press"
    found = evidence.of(run.history)
    assert found is not None
    assert ("observation" in found, "screenshot" in found) == (False, True)


async def test_a_video_that_cannot_be_made_fails_no_run(tmp_path: Path) -> None:
    """The run says why there is none, and passes."""
    run = rig(tmp_path, "off", fails=False)
    run.tracing = tracing.Tracing("off", video=True)
    ended = await run.start()
    assert (ended.status, ended.files) == ("passed", [])
    assert any("no video is kept" in str(event) for event in run.told)
