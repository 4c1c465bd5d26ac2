"""A simulated process that dies: at a named crash point nothing more is written, and its browser is gone with its state.

The crash points of a run are its written entries (it dies before the write), those of the engine at which a call or a checkpoint is
synced, and each effect on the site, before and after the site carries it out. Each has the same name in every run of a workflow.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import threading
from collections.abc import Callable, Sequence

from typing_extensions import override

from runtime.log import entries as log_entries
from runtime.log.store import file_store, owners
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from tests.rig import Killed

POINTS = (CrashPoint.CALL_SYNCED, CrashPoint.CHECKPOINT_FILE)
"""Crash points after which something happens that outlives the process, before its next write."""

HELD_SECONDS = 20.0
"""The longest time for which the site holds a request while the engine dies: an engine that does not die is detected."""

present: contextvars.ContextVar[Reaper] = contextvars.ContextVar("present")
"""The reaper of the run in whose task this is called."""


class Reaper:
    """Names the crash points of one process, and ends it at the chosen one."""

    def __init__(self, at: str | int, *, drops: bool = False) -> None:
        """It dies at the crash point of this name, or of this number from 1; never where that is 0.

        ``drops``: the site does not carry out an effect before which the process dies.
        """
        self.moments: list[str] = []
        """The crash points reached, in order; ``#2`` follows the name of one that is reached a second time."""
        self.died_at: str | None = None
        self._at = at
        self._drops = drops
        self._times: collections.Counter[str] = collections.Counter()
        self._cancel: Callable[[], object] = bool
        self._over = threading.Event()

    def watch(self, task: asyncio.Task[object]) -> None:
        """The process runs in this task of the running loop."""
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)

    def over(self) -> None:
        """The process is gone entirely: the site continues with the requests that it holds."""
        self._over.set()

    def _comes(self, name: str) -> bool:
        """True if the process dies at this crash point, or is dead."""
        if self.died_at is None:
            self._times[name] += 1
            times = self._times[name]
            self.moments.append(f"{name} #{times}" if times > 1 else name)
            if self._at in (self.moments[-1], len(self.moments)):
                self.died_at = self.moments[-1]
        return self.died_at is not None

    def tick(self, name: str) -> None:
        """The process is about to do something that outlives it, or has just done it. Raises Killed."""
        if self._comes(name):
            raise Killed

    def on_site(self, name: str) -> bool:
        """Called by the site, in its own thread: the engine dies while the site has its request. Whether the site carries it out."""
        if self.died_at is not None or not self._comes(name):
            return True
        self._cancel()
        if not self._over.wait(HELD_SECONDS):
            raise RuntimeError("the engine did not die")
        return not self._drops


def install() -> None:
    """Have crash points count for the run that passes them."""

    def hook(point: CrashPoint) -> None:
        reaper = present.get(None)
        if reaper is not None and (point in POINTS or reaper.died_at is not None):
            reaper.tick(str(point))

    crash_points.hook = hook


class _Mortal(file_store.OpenFile):
    def __init__(
        self,
        store: file_store.Files,
        conversation: str,
        handle: int,
        entries: Sequence[log_entries.AnyEntry] = (),
        taken_from: owners.Holder | None = None,
    ) -> None:
        super().__init__(store, conversation, handle, entries, taken_from)
        self._reaper = present.get()
        self._paths = {each.call: each.path for each in entries if isinstance(each, log_entries.Call)}

    def _name(self, entry: log_entries.AnyEntry) -> str:
        match entry:
            case log_entries.Call():
                return f"call {entry.path}"
            case log_entries.Result():
                return f"result {self._paths.get(entry.call, '?')}"
            case log_entries.Scope():
                return f"{entry.event} {entry.path or 'run'}"
            case log_entries.Note():
                return f"note {entry.name}"
            case _:
                return entry.kind

    @override
    def append(self, entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
        self._reaper.tick(self._name(entry))
        written = super().append(entry)
        if isinstance(written, log_entries.Call):
            self._paths[written.call] = written.path
        return written

    @override
    async def barrier(self) -> None:
        if self._reaper.died_at is not None:
            raise Killed
        await super().barrier()


class MortalStore(file_store.Files):
    """Files into which a dead process writes nothing."""

    opens = _Mortal
