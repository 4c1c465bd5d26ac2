"""Within a command that is to die: it tells of every crash point that it passes, and ends with SIGKILL at those that it was told.

It also tells of all that it brings to the disk, so that a power cut can be played. What it tells stands in a file, which outlives it.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

from runtime.log import entries
from runtime.log.store import file_store
from runtime.log.writer import LogWriter
from runtime.system import crash_points
from tests.kills import controls, disk, faked, flow

VARIABLE = "RUNOPS_TEST_MORTAL"
"""The environment variable that makes a forked command mortal."""

WRITTEN = "written"
"""What the moment is called at which an entry stands in a log, and nothing has been made of it."""


@dataclasses.dataclass(frozen=True)
class Fate:
    """When a command is to die: at the first of these moments to which it comes."""

    record: str
    """The file that it tells its things to."""
    points: Sequence[tuple[str, str, int]] = ()
    """The part of the checkout, the name of a crash point, and at which passing of it in that part, from 1."""
    any: int = 0
    """At which crash point, whatever it is, from 1; 0 for none."""
    begins: bool = True
    """Whether it begins the checkout, and does not continue with it."""
    control: str = ""
    """The control that is in force."""
    writes: bool = False
    """Whether each entry that is written is a moment, too, as a crash point is: ``WRITTEN``."""
    first: str = ""
    """The name of a crash point, at the first passing of which it dies; empty for none."""
    faked: bool = False
    """Whether its pages are none: a site stands for them that tells what is clicked."""

    def environment(self) -> dict[str, str]:
        """What makes a command take it."""
        return {VARIABLE: json.dumps(dataclasses.asdict(self))}


def install(fate: Fate) -> None:
    """Take the fate upon this process."""
    record = os.open(fate.record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    passed: collections.Counter[tuple[str, str]] = collections.Counter()
    deadly = {tuple(each) for each in fate.points}
    part = _watch_parts(flow.START if fate.begins else "")

    def tell(what: dict[str, Any]) -> None:
        os.write(record, json.dumps(what).encode() + b"\n")

    def hook(point: str) -> None:
        moment = part(), str(point)
        passed[moment] += 1
        tell({"point": [*moment, passed[moment]]})
        if (*moment, passed[moment]) in deadly or passed.total() == fate.any or point == fate.first:
            os.kill(os.getpid(), signal.SIGKILL)

    crash_points.hook = hook
    if fate.writes:
        _watch_writes(lambda: hook(WRITTEN))
    disk.watch(tell)
    if fate.faked:
        faked.install(tell)
    if fate.control:
        controls.BREAK[fate.control]()


def _watch_parts(now: str) -> Callable[[], str]:
    """In which part of the checkout this process is; nothing while it is in one that an earlier process began."""
    scope = LogWriter.scope

    def watched(self: LogWriter, path: str, event: str, *more: Any, **fields: Any) -> Any:
        nonlocal now
        now = flow.part_of(path, event) or now
        return scope(self, path, event, *more, **fields)

    LogWriter.scope = watched
    return lambda: now


def _watch_writes(written: Callable[[], None]) -> None:
    """Tell of every entry that this process writes into a log."""
    append = file_store.OpenFile.append

    def watched(self: file_store.OpenFile, entry: entries.AnyEntry) -> entries.AnyEntry:
        there = append(self, entry)
        written()
        return there

    file_store.OpenFile.append = watched


def install_from(environment: dict[str, str]) -> None:
    """Take the fate that the environment has, if any, out of it."""
    if (text := environment.pop(VARIABLE, None)) is not None:
        install(Fate(**json.loads(text)))
