"""Runs of recorded builds that are killed with their browser around their first side effect, and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from tests.builds.command import Command

Moment = Literal["called", "while", "done"]
"""Moment of the kill: as soon as the log has the call, a moment later, or as soon as it has the outcome."""

MOMENTS: tuple[Moment, ...] = ("called", "while", "done")
WHILE_SECONDS = 0.3
START_SECONDS = 120.0


def killed(command: Command, words: list[str], moment: Moment) -> str | None:
    """Start a run, kill it and its browser at ``moment``, and return its id; None if it ended without a side effect."""
    with (command.folder / "killed.log").open("ab") as log:
        process = subprocess.Popen(
            words, cwd=command.folder, env=command.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        return _awaited(command.home, process, moment)
    finally:
        process.kill()
        process.wait()
        _end_all_of(command.home)


def _awaited(home: Path, process: subprocess.Popen[bytes], moment: Moment) -> str | None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        ended = process.poll() is not None
        for run, call, done in _effects(home):
            if moment == "while":
                time.sleep(WHILE_SECONDS)
            if call and (moment != "done" or done):
                return run
        if ended:
            return None
        time.sleep(0.01)
    raise TimeoutError(f"no side effect within {START_SECONDS:.0f} s")


def _effects(home: Path) -> Iterator[tuple[str, str, bool]]:
    """The run, its first call of class *effect*, and whether that has a result."""
    for log in home.glob("conversations/*.jsonl"):
        entries = [json.loads(line) for line in _whole_lines(log)]
        calls = [each["call"] for each in entries if each["kind"] == "call" and _is_effect(each)]
        if calls:
            yield log.stem, calls[0], any(each["kind"] == "result" and each["call"] == calls[0] for each in entries)


def _is_effect(entry: dict[str, Any]) -> bool:
    return entry["thread"] == "run" and entry.get("effect") == "effect"


def _whole_lines(log: Path) -> list[bytes]:
    return log.read_bytes().split(b"\n")[:-1]


def _end_all_of(home: Path) -> None:
    """Kill every process whose command names the folder: the run's own browser."""
    wanted = str(home).encode()
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            number = int(each.parent.name)
            if number != os.getpid() and wanted in each.read_bytes():
                os.kill(number, signal.SIGKILL)
