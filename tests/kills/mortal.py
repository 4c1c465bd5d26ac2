"""Within a command that is to die: it tells of every crash point that it passes, and ends with SIGKILL at the one that it was told.

It also tells of all that it brings to the disk, so that a power cut can be played. What it tells stands in a file, which outlives it.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import signal
from typing import Any

from runtime import crashes
from tests.kills import controls, disk

VARIABLE = "RUNOPS_TEST_MORTAL"
"""The environment variable that makes a forked command mortal."""

ANY = "any"


@dataclasses.dataclass(frozen=True)
class Fate:
    """When a command is to die."""

    record: str
    """The file that it tells its things to."""
    point: str = ""
    """The name of a crash point, or ``any``; empty for one that lives."""
    number: int = 1
    """At which passing of it, from 1."""
    control: str = ""
    """The control that is in force."""

    def environment(self) -> dict[str, str]:
        """What makes a command take it."""
        return {VARIABLE: json.dumps(dataclasses.asdict(self))}


def install(fate: Fate) -> None:
    """Take the fate upon this process."""
    record = os.open(fate.record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    passed: collections.Counter[str] = collections.Counter()

    def tell(what: dict[str, Any]) -> None:
        os.write(record, json.dumps(what).encode() + b"\n")

    def hook(point: crashes.CrashPoint) -> None:
        passed[point] += 1
        passed[ANY] += 1
        tell({"point": point, "number": passed[point]})
        if fate.point in (point, ANY) and passed[fate.point] == fate.number:
            os.kill(os.getpid(), signal.SIGKILL)

    crashes.hook = hook
    disk.watch(tell)
    if fate.control:
        controls.BREAK[fate.control]()


def install_from(environment: dict[str, str]) -> None:
    """Take the fate that the environment has, if any, out of it."""
    if (text := environment.pop(VARIABLE, None)) is not None:
        install(Fate(**json.loads(text)))
