"""The watcher as a process, with a stand-in for Chromium."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from runtime.browser.chromium import launch, survivors, watcher
from runtime.system import processes
from tests import browsers
from tests.watched import TOKEN, watched


async def test_end_stops_chromium_and_removes_its_profile(tmp_path: Path) -> None:
    """When a finished engine's `end` returns, Chromium and its profile are gone; helpers and watcher follow."""
    async with watched(tmp_path) as found:
        connection = await found.hold(600)
        await connection.end()
        assert not processes.started(found.chromium)
        assert not found.folder.exists()
        await browsers.until(found.gone)


async def test_a_lost_connection_starts_the_clock(tmp_path: Path) -> None:
    """After the last connection closes, Chromium stays for the agreed time, here zero seconds."""
    async with watched(tmp_path) as found:
        connection = await found.hold(0)
        assert found.alive()
        await connection.release()
        await browsers.until(found.gone)


async def test_the_next_engine_stops_the_clock(tmp_path: Path) -> None:
    """An engine that connects in time keeps Chromium for as long as it stays connected."""
    async with watched(tmp_path) as found:
        first = await found.hold(1.0)
        await first.release()
        second = await found.hold(0.2)
        # Longer than both clocks, to see that nothing happens.
        await asyncio.sleep(1.5)
        assert found.alive()
        await second.release()
        await browsers.until(found.gone)


async def test_a_look_changes_nothing(tmp_path: Path) -> None:
    """A look reports connections and remaining time, does not count as a connection, and does not stop the clock."""
    async with watched(tmp_path) as found:
        first = await found.hold(500)
        assert await found.look() == survivors.SurvivorCheck(holders=1, left=None)
        second = await found.hold(500)
        assert await found.look() == survivors.SurvivorCheck(holders=2, left=None)
        await first.release()
        await second.release()
        looks = [await found.look()]
        while (looks[-1] is None or looks[-1].left is None) and len(looks) < 200:
            looks.append(await found.look())
        looks += [await found.look() for _ in range(3)]
        left = [each.left for each in looks if each is not None and each.left is not None]
        assert len(left) >= 4
        assert 0 < left[-1] < left[0] <= 500, "each look tells less time"
        assert await found.look("wrong") is None
        assert found.alive()


async def test_repeated_looks_keep_nothing_alive(tmp_path: Path) -> None:
    """Chromium ends when its time is over, however often it is looked at."""
    async with watched(tmp_path) as found:
        connection = await found.hold(0.5)
        await connection.release()
        looks: list[survivors.SurvivorCheck | None] = []

        async with asyncio.timeout(60):
            while not found.gone():
                looks.append(await found.look())
                await asyncio.sleep(0.01)
        assert any(each is not None and each.left is not None for each in looks)
        assert await found.look() is None


@pytest.mark.parametrize("watcher_is", ["well", "stopped"])
async def test_another_process_can_end_it_all(watcher_is: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with the run's browser note can end everything, even if the watcher does not answer."""
    async with watched(tmp_path) as found:
        if watcher_is == "stopped":
            monkeypatch.setattr(survivors, "END_SECONDS", 0.2)
            os.kill(found.watcher, signal.SIGSTOP)
        assert await asyncio.to_thread(survivors.end, found.remembered()) is True
        # Its helpers are killed with it, which takes a moment on a busy machine.
        await browsers.until(found.gone)
        assert await asyncio.to_thread(survivors.end, found.remembered()) is True


async def test_no_other_process_is_ended(tmp_path: Path) -> None:
    """Process ids that now belong to another start or boot are neither contacted nor ended."""
    async with watched(tmp_path) as found:
        known = found.remembered()
        others = [
            dataclasses.replace(known, chromium_started="1", watcher_started="1", folders=[]),
            dataclasses.replace(known, boot="another", folders=[]),
        ]
        for other in others:
            assert await asyncio.to_thread(survivors.end, other) is True
            assert found.alive()


async def test_an_invalid_browser_note_is_ignored(tmp_path: Path) -> None:
    """A missing, truncated or malformed note names no browser, and a note of ended processes names no survivor."""
    assert survivors.find(tmp_path) is None
    for text in ("", "[]", '{"chromium": 1}', "\x00"):
        (tmp_path / launch.STATE).write_text(text)
        assert survivors.remembered(tmp_path) is None
    async with watched(tmp_path) as found:
        known = dataclasses.asdict(found.remembered())
        for damage in ({"folders": None}, {"folders": [1]}, {"chromium": None}, {"chromium": "a\0b"}, {"boot": 7}):
            (tmp_path / launch.STATE).write_text(json.dumps({**known, **damage}))
            assert survivors.remembered(tmp_path) is None
        (tmp_path / launch.STATE).write_text(json.dumps({**known, "tabs": {}}))
        assert survivors.find(tmp_path) == found.remembered()
        os.kill(found.chromium, signal.SIGKILL)
        await browsers.until(found.gone)
        assert survivors.find(tmp_path) is None
        assert survivors.remembered(tmp_path) is not None


async def test_two_engines_may_stay_connected(tmp_path: Path) -> None:
    """Chromium stays as long as one engine is connected."""
    async with watched(tmp_path) as found:
        one, two = await found.hold(0), await found.hold(0)
        await one.release()
        await two._say({"linger": 0})
        assert found.alive()
        await two.release()
        await browsers.until(found.gone)


@pytest.mark.parametrize(
    "sent", [b'{"token": "wrong"}\n', b"GET / HTTP/1.1\r\n\r\n", b'{"end": true}\n', b"[]\n", b"x" * 9000]
)
async def test_only_the_token_gives_control(sent: bytes, tmp_path: Path) -> None:
    """A client that does not begin with the token is disconnected, and nothing is ended."""
    async with watched(tmp_path) as found:
        reader, writer = await asyncio.open_connection("127.0.0.1", found.port)
        writer.write(sent)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        assert found.alive()
        with pytest.raises(OSError, match="watcher is gone"):
            await found.hold(0, token="wrong")
        assert found.alive()


async def test_the_watcher_ends_with_chromium(tmp_path: Path) -> None:
    """If Chromium ends by itself, helpers, profile and watcher go too."""
    async with watched(tmp_path) as found:
        connection = await found.hold(600)
        os.kill(found.chromium, signal.SIGKILL)
        await browsers.until(found.gone)
        await connection.end()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
async def test_chromium_ends_when_the_watcher_is_killed(tmp_path: Path) -> None:
    """Chromium does not outlive its watcher."""
    async with watched(tmp_path) as found:
        os.kill(found.watcher, signal.SIGKILL)
        await browsers.until(lambda: not processes.started(found.chromium))
        os.kill(found.helper, signal.SIGKILL)
        found.folder.rmdir()


async def test_the_watcher_is_detached(tmp_path: Path) -> None:
    """The watcher has its own session, without terminal signals, and keeps no file of ours open."""
    with (tmp_path / "lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        async with watched(tmp_path) as found:
            assert os.getsid(found.watcher) != os.getsid(0)
            assert os.getsid(found.chromium) not in (os.getsid(0), os.getsid(found.watcher))
            if Path("/proc").exists():
                open_files = {str(each.readlink()) for each in Path(f"/proc/{found.watcher}/fd").iterdir()}
                assert {each.partition(":")[0] for each in open_files} == {"/dev/null", "socket"}


async def test_a_command_that_cannot_be_run_is_reported(tmp_path: Path) -> None:
    """A missing executable is returned as an error, and the profile is removed."""
    (tmp_path / "profile").mkdir()
    spec = {
        "command": ["/nowhere/chromium"],
        "environment": {},
        "log": str(tmp_path / "log"),
        "remove": [str(tmp_path / "profile")],
        "token": TOKEN,
        "linger": 0.0,
    }
    assert await launch._run_watcher(spec) == {"error": "/nowhere/chromium: No such file or directory"}
    await browsers.until(lambda: not (tmp_path / "profile").exists())


def test_the_watcher_needs_only_the_standard_library() -> None:
    """The watcher imports no package of ours or of others."""
    source = Path(watcher.__file__).read_text()
    imported = {line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
