"""The watcher as a process, with a stand-in for Chromium."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from runtime import process
from runtime.browser import launch, watcher
from tests import browsers

TOKEN = "token of this test"

# Starts a helper of its own, as Chromium does, and leaves its process id behind.
STAND_IN = "import subprocess, sys, time; p = subprocess.Popen(['sleep', '600']); open(sys.argv[1], 'w').write(f'{p.pid} '); time.sleep(600)"


class Watched:
    """A watcher, what it watches, and a connection to it."""

    def __init__(self, report: dict[str, Any], folder: Path, helper: int) -> None:
        self.watcher, self.chromium, self.port = report["watcher"], report["chromium"], report["port"]
        self.folder = folder
        self.helper = helper

    def gone(self) -> bool:
        """Whether nothing is left: neither process nor helper nor folder."""
        processes = (self.watcher, self.chromium, self.helper)
        return not self.folder.exists() and not any(process.started(each) for each in processes)

    def alive(self) -> bool:
        """Whether everything is still there."""
        return self.folder.exists() and all(process.started(each) for each in (self.watcher, self.chromium))

    async def hold(self, linger: float, token: str = TOKEN) -> launch.Chromium:
        """Hold on to it, as an engine does."""
        alive = launch.Alive("", [], self.chromium, "", self.watcher, "", self.port, token, "")
        return await launch.Chromium.hold(alive, linger)


@contextlib.asynccontextmanager
async def watched(folder: Path, command: list[str] | None = None) -> AsyncGenerator[Watched]:
    """A watcher of a stand-in, with a folder to remove."""
    profile, noted = folder / "profile", folder / "helper"
    profile.mkdir()
    spec = {
        "command": command or [sys.executable, "-c", STAND_IN, str(noted)],
        "environment": dict(os.environ),
        "log": str(folder / "log"),
        "remove": [str(profile)],
        "token": TOKEN,
        "linger": 600.0,
    }
    report = await launch._run_watcher(spec)
    await browsers.until(lambda: noted.exists() and noted.read_text().endswith(" "))
    found = Watched(report, profile, int(noted.read_text()))
    try:
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.watcher, signal.SIGTERM)
        await browsers.until(found.gone)


async def test_it_ends_everything_when_told(tmp_path: Path) -> None:
    """An engine that is done has Chromium, its helpers and its profile removed before it goes on."""
    async with watched(tmp_path) as found:
        held = await found.hold(600)
        await held.end()
        assert not process.started(found.chromium)
        assert not found.folder.exists()
        await browsers.until(found.gone)


async def test_a_killed_engine_starts_its_clock(tmp_path: Path) -> None:
    """When the last connection is gone without a word Chromium lives on for as long as was said, here not at all."""
    async with watched(tmp_path) as found:
        held = await found.hold(0)
        assert found.alive()
        await held.release()
        await browsers.until(found.gone)


async def test_the_next_engine_stops_the_clock(tmp_path: Path) -> None:
    """An engine that holds on again in time keeps Chromium for as long as it holds on."""
    async with watched(tmp_path) as found:
        first = await found.hold(1.0)
        await first.release()
        second = await found.hold(0.2)
        # Longer than both clocks: this is not waiting for something to happen, but for it not to.
        await asyncio.sleep(1.5)
        assert found.alive()
        await second.release()
        await browsers.until(found.gone)


async def test_two_engines_may_hold_on(tmp_path: Path) -> None:
    """Chromium stays as long as one of them does."""
    async with watched(tmp_path) as found:
        one, two = await found.hold(0), await found.hold(0)
        await one.release()
        await two._say({"linger": 0})
        assert found.alive()
        await two.release()
        await browsers.until(found.gone)


@pytest.mark.parametrize(
    "said", [b'{"token": "wrong"}\n', b"GET / HTTP/1.1\r\n\r\n", b'{"end": true}\n', b"[]\n", b"x" * 9000]
)
async def test_it_obeys_only_who_knows_the_token(said: bytes, tmp_path: Path) -> None:
    """Whoever says anything else first is hung up on, and nothing is ended."""
    async with watched(tmp_path) as found:
        reader, writer = await asyncio.open_connection("127.0.0.1", found.port)
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        assert found.alive()
        with pytest.raises(OSError, match="watcher is gone"):
            await found.hold(0, token="wrong")
        assert found.alive()


async def test_it_goes_when_chromium_goes(tmp_path: Path) -> None:
    """A Chromium that ended by itself leaves neither helpers nor profile nor watcher."""
    async with watched(tmp_path) as found:
        held = await found.hold(600)
        os.kill(found.chromium, signal.SIGKILL)
        await browsers.until(found.gone)
        await held.end()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
async def test_chromium_goes_when_the_watcher_is_killed(tmp_path: Path) -> None:
    """Nothing lives on unwatched."""
    async with watched(tmp_path) as found:
        os.kill(found.watcher, signal.SIGKILL)
        await browsers.until(lambda: not process.started(found.chromium))
        os.kill(found.helper, signal.SIGKILL)
        found.folder.rmdir()


async def test_it_stands_apart(tmp_path: Path) -> None:
    """It has a session of its own, so a terminal's signals do not reach it, and no file of ours stays open in it."""
    with (tmp_path / "lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        async with watched(tmp_path) as found:
            assert os.getsid(found.watcher) != os.getsid(0)
            assert os.getsid(found.chromium) not in (os.getsid(0), os.getsid(found.watcher))
            if Path("/proc").exists():
                open_files = {str(each.readlink()) for each in Path(f"/proc/{found.watcher}/fd").iterdir()}
                assert {each.partition(":")[0] for each in open_files} == {"/dev/null", "socket"}


async def test_a_command_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    """An executable that is none is an answer, not a silence; nothing is left of the try."""
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


def test_it_needs_nothing_but_python() -> None:
    """It runs without our packages, and imports none."""
    source = Path(watcher.__file__).read_text()
    imported = {line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
