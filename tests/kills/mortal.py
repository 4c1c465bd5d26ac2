"""Within a command that is to die: it records every crash point that it passes, and kills itself at the chosen ones.

It also records everything it syncs, so that a power cut can be simulated. The record is a file, which outlives it.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from director.session.open import SessionWriter
from runtime.log import entries
from runtime.log.store import file_store
from runtime.log.writer import LogWriter
from runtime.system import crash_points
from tests.kills import controls, disk, faked, flow

VARIABLE = "RUNOPS_TEST_MORTAL"
"""The environment variable that makes a forked command mortal."""

WRITTEN = "written"
"""The name of the crash point at which an entry is written to a log, but not yet processed."""


MEANWHILE = "Say it in one line."
"""A message that the person says while the session works: at its first tool result."""


@dataclasses.dataclass(frozen=True)
class Fate:
    """The death of a command: at the first of these crash points that it reaches."""

    record: str
    """The file to which it writes its record."""
    points: Sequence[tuple[str, str, int]] = ()
    """The part of the checkout, the name of a crash point, and the number of its passing in that part, from 1."""
    any: int = 0
    """The number of a crash point of any name, from 1; 0 for none."""
    begins: bool = True
    """True if it starts the checkout instead of resuming it."""
    control: str = ""
    """The control in force."""
    writes: bool = False
    """True if each written entry counts as a crash point, too: ``WRITTEN``."""
    first: str = ""
    """The name of a crash point at whose first passing it dies; empty for none."""
    faked: bool = False
    """True if its pages are faked by a site that reports clicks."""
    speaks: bool = False
    """True if the person says ``MEANWHILE`` once while the session works."""

    def environment(self) -> dict[str, str]:
        """The environment that passes it to a command."""
        return {VARIABLE: json.dumps(dataclasses.asdict(self))}


def install(fate: Fate) -> None:
    """Apply the fate to this process."""
    record = os.open(fate.record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    passed: collections.Counter[tuple[str, str]] = collections.Counter()
    speak = _voice() if fate.speaks else lambda: None
    deadly = {tuple(each) for each in fate.points}
    part = _watch_parts(flow.START if fate.begins else "")

    def report(what: dict[str, Any]) -> None:
        os.write(record, json.dumps(what).encode() + b"\n")

    def hook(point: str) -> None:
        moment = part(), str(point)
        passed[moment] += 1
        report({"point": [*moment, passed[moment]]})
        if (*moment, passed[moment]) in deadly or passed.total() == fate.any or point == fate.first:
            os.kill(os.getpid(), signal.SIGKILL)
        if point == crash_points.CrashPoint.TOOL_RESULT:
            speak()

    crash_points.hook = hook
    if fate.writes:
        _watch_writes(lambda: hook(WRITTEN))
    disk.watch(report)
    if fate.faked:
        faked.install(report, Path(fate.record))
    if fate.control:
        controls.BREAK[fate.control]()


def _voice() -> Callable[[], None]:
    """Return what says ``MEANWHILE`` in the session of this process, unless its log has it."""
    from director.cli import foreground

    talking: list[foreground.Conversation] = []
    use = foreground.Conversation._use

    def used(self: foreground.Conversation, writer: SessionWriter) -> None:
        use(self, writer)
        talking[:] = [self]

    def speak() -> None:
        (conversation,) = talking
        thread = conversation.session.thread(entries.SESSION_THREAD)
        words = [*thread.heard.values(), *(each for each in thread.said if isinstance(each, entries.User))]
        if all(each.text != MEANWHILE for each in words):
            conversation.hear(MEANWHILE)

    foreground.Conversation._use = used
    return speak


def _watch_parts(now: str) -> Callable[[], str]:
    """Track the part of the checkout in which this process is; empty in a part that an earlier process began."""
    scope = LogWriter.scope

    def watched(self: LogWriter, path: str, event: str, *more: Any, **fields: Any) -> Any:
        nonlocal now
        now = flow.part_of(path, event) or now
        return scope(self, path, event, *more, **fields)

    LogWriter.scope = watched
    return lambda: now


def _watch_writes(written: Callable[[], None]) -> None:
    """Report every entry that this process writes into a log."""
    append = file_store.OpenFile.append

    def watched(self: file_store.OpenFile, entry: entries.AnyEntry) -> entries.AnyEntry:
        there = append(self, entry)
        written()
        return there

    file_store.OpenFile.append = watched


def install_from(environment: dict[str, str]) -> None:
    """Take the fate, if any, out of the environment."""
    if (text := environment.pop(VARIABLE, None)) is not None:
        install(Fate(**json.loads(text)))
