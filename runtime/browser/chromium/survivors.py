"""Finds a Chromium that outlived its engine, or works for one, by its run's state file, never by a process name.

Reading changes nothing and needs no engine: neither Playwright nor an event loop.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

from runtime.browser.chromium import launch, watcher
from runtime.system import processes, regular_files

LOOK_SECONDS = 3.0  # seconds that a watcher may take to report
END_SECONDS = launch.WATCHER_SECONDS  # seconds that it may take to end Chromium and confirm that


@dataclasses.dataclass(frozen=True, slots=True)
class SurvivorCheck:
    holders: int  # engines that hold it
    left: float | None  # seconds until it is ended; None while an engine holds it


def find(private: Path) -> launch.Alive | None:
    """Return the Chromium of the run with this private folder if it and its watcher are running."""
    alive = remembered(private)
    return alive if alive is not None and alive.lives() else None


def remembered(private: Path) -> launch.Alive | None:
    """Read the run's record of its Chromium, which may have ended since; None if there is no valid record."""
    try:
        return launch.parse(regular_files.read_text(private / launch.STATE))
    except (OSError, ValueError):
        return None


def look(alive: launch.Alive) -> SurvivorCheck | None:
    """Ask its watcher for a report; None if it does not answer. The caller does not become a holder, and no timer changes."""
    try:
        said = _say(alive, LOOK_SECONDS, {"token": alive.token, "look": True})
        return SurvivorCheck(int(said["holders"]), None if said["left"] is None else float(said["left"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def end(alive: launch.Alive) -> bool:
    """Have the watcher end it and remove its folders; return True if all is done. One that has already ended is no error."""
    if alive.lives():
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            _say(alive, END_SECONDS, {"token": alive.token}, {"end": True})
        _wait_until_gone(alive, 2.0)
    # The watcher did not answer. Kill Chromium and its helpers first: while its parent exists, the process id cannot be reused.
    for pid in _processes(alive):
        with contextlib.suppress(OSError):
            (os.killpg if pid == alive.chromium else os.kill)(pid, signal.SIGKILL)
    _wait_until_gone(alive, launch.WATCHER_SECONDS)
    if _processes(alive):
        return False
    alive.remove_folders()
    return True


def _processes(alive: launch.Alive) -> list[int]:
    """Return the ids of its two processes that still run, Chromium first."""
    if alive.boot != processes.boot():
        return []
    both = ((alive.chromium, alive.chromium_started), (alive.watcher, alive.watcher_started))
    return [pid for pid, started in both if processes.started(pid) == started]


def _wait_until_gone(alive: launch.Alive, seconds: float) -> None:
    until = time.monotonic() + seconds
    while _processes(alive) and time.monotonic() < until:
        time.sleep(0.02)


def _say(alive: launch.Alive, seconds: float, *messages: dict[str, Any]) -> dict[str, Any]:
    """Send all messages to the watcher, line by line; return its last answer. Raises OSError, and ValueError if it is invalid."""
    answer: dict[str, Any] = {}
    with (
        socket.create_connection(("127.0.0.1", alive.watcher_port), seconds) as connection,
        connection.makefile("rwb") as lines,
    ):
        for message in messages:
            lines.write(json.dumps(message).encode() + b"\n")
            lines.flush()
            line = lines.readline(watcher.LONGEST_LINE)
            if not line:
                raise ConnectionResetError("the browser's watcher is gone")
            answer = json.loads(line)
    return answer
