"""A Chromium that outlived its engine, or is at work for one, as somebody else finds it: by what its run wrote down, never by a name.

Nothing here is changed by looking, and no engine is needed: neither Playwright nor an event loop.
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

LOOK_SECONDS = 3.0
"""How long a watcher may take to say how long it waits."""

END_SECONDS = launch.WATCHER_SECONDS
"""How long it may take to end Chromium and to say so."""


@dataclasses.dataclass(frozen=True, slots=True)
class SurvivorCheck:
    """What a watcher says of its Chromium."""

    holders: int
    """Engines that hold on to it."""
    left: float | None
    """Seconds until it is ended; None while somebody holds on."""


def find(private: Path) -> launch.Alive | None:
    """The Chromium of the run with this private folder, if both it and its watcher live."""
    alive = remembered(private)
    return alive if alive is not None and alive.lives() else None


def remembered(private: Path) -> launch.Alive | None:
    """What the run wrote down of its Chromium, which may have ended since; None where nothing stands there, or nothing that makes sense."""
    try:
        state = json.loads(regular_files.read_text(private / launch.STATE))
        return launch.Alive(**{field.name: state[field.name] for field in dataclasses.fields(launch.Alive)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def look(alive: launch.Alive) -> SurvivorCheck | None:
    """What its watcher says; None where it does not answer. Nobody becomes a holder by that, and no clock is set back."""
    try:
        said = _say(alive, LOOK_SECONDS, {"token": alive.token, "look": True})
        return SurvivorCheck(int(said["holders"]), None if said["left"] is None else float(said["left"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def end(alive: launch.Alive) -> bool:
    """Have it ended by its watcher, and its folders removed; whether all that is done. One that has ended already is no error."""
    if alive.lives():
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            _say(alive, END_SECONDS, {"token": alive.token}, {"end": True})
        _wait_until_gone(alive, 2.0)
    # A watcher that does not answer: Chromium goes first, with its helpers, while its parent keeps its process id from being another's.
    for pid in _processes(alive):
        with contextlib.suppress(OSError):
            (os.killpg if pid == alive.chromium else os.kill)(pid, signal.SIGKILL)
    _wait_until_gone(alive, launch.WATCHER_SECONDS)
    if _processes(alive):
        return False
    alive.remove_folders()
    return True


def _processes(alive: launch.Alive) -> list[int]:
    """Those of its two processes that still are what they were, Chromium first."""
    if alive.boot != processes.boot():
        return []
    both = ((alive.chromium, alive.chromium_started), (alive.watcher, alive.watcher_started))
    return [pid for pid, started in both if processes.started(pid) == started]


def _wait_until_gone(alive: launch.Alive, seconds: float) -> None:
    until = time.monotonic() + seconds
    while _processes(alive) and time.monotonic() < until:
        time.sleep(0.02)


def _say(alive: launch.Alive, seconds: float, *messages: dict[str, Any]) -> dict[str, Any]:
    """Say all of it to the watcher, line by line; its answer to the last. Raises OSError, and ValueError for an answer that is none."""
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
