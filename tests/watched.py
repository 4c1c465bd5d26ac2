"""A watcher as a process, with a stand-in for Chromium: the remains of a run, without a browser."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from runtime.browser.chromium import launch, survivors
from runtime.system import processes as system_processes
from tests import browsers

TOKEN = "token of this test"

# Starts a helper of its own, as Chromium does, and records its process id.
STAND_IN = "import subprocess, sys, time; p = subprocess.Popen(['sleep', '600']); open(sys.argv[1], 'w').write(f'{p.pid} '); time.sleep(600)"


class Watched:
    """A watcher, its target, and a connection to it."""

    def __init__(self, report: dict[str, Any], folder: Path, helper: int) -> None:
        self.watcher, self.chromium, self.port = report["watcher"], report["chromium"], report["port"]
        self.folder = folder
        self.helper = helper

    def gone(self) -> bool:
        """True if nothing is left: neither process nor helper nor folder."""
        processes = (self.watcher, self.chromium, self.helper)
        return not self.folder.exists() and not any(system_processes.started(each) for each in processes)

    def alive(self) -> bool:
        """True if everything still exists."""
        return self.folder.exists() and all(system_processes.started(each) for each in (self.watcher, self.chromium))

    async def hold(self, linger: float, token: str = TOKEN) -> launch.Chromium:
        """Keep it alive, as an engine does."""
        return await launch.Chromium.hold(self.remembered(token), linger)

    def remembered(self, token: str = TOKEN) -> launch.Alive:
        """The record that a run keeps of it."""
        starts = [system_processes.started(each) or "" for each in (self.chromium, self.watcher)]
        folders = [str(self.folder)]
        return launch.Alive(
            "", folders, self.chromium, starts[0], self.watcher, starts[1], self.port, token, system_processes.boot()
        )

    def note(self, private: Path) -> None:
        """Record it as a run does, in the private folder of the run."""
        private.mkdir(parents=True, exist_ok=True)
        (private / launch.STATE).write_text(json.dumps({**dataclasses.asdict(self.remembered()), "tabs": {}}))

    async def look(self, token: str = TOKEN) -> survivors.SurvivorCheck | None:
        """Ask it how long it waits."""
        return await asyncio.to_thread(survivors.look, self.remembered(token))


@contextlib.asynccontextmanager
async def watched(folder: Path, command: list[str] | None = None) -> AsyncGenerator[Watched]:
    """A watcher of a stand-in, with a folder to remove."""
    profile, noted = folder / "profile-of-a-test", folder / "helper"
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
