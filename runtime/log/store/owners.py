"""Owner of a run: which process it is, the errors about it, and ending it when a person wants to take the run over."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nodes.errors import Replaced, RunHeld
from nodes.values import Json
from runtime.log import entries as log_entries
from runtime.system import locks, processes

LOOK_SECONDS = 5.0  # seconds that an owner may take from its lock to the entry that identifies it
SAY_SECONDS = 1.0  # seconds that it may take if only an error message depends on it
END_SECONDS = 10.0  # seconds that the kernel may take to end a process and to release its lock

Entries = Sequence[log_entries.AnyEntry]


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    started: str
    boot: str
    host: str
    epoch: int
    since: str

    @property
    def here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def lives(self) -> bool:
        """True if this very process is running; always False for another machine."""
        return self.here and self.boot == processes.boot() and processes.started(self.pid) == self.started

    def named(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"

    def as_taken(self) -> str:
        return f"took the run over from process {self.pid}, which held it since {self.since}"

    def as_evidence(self) -> dict[str, Json]:
        return {"pid": self.pid, "host": self.host, "since": self.since, "epoch": self.epoch}


def me() -> dict[str, Json]:
    pid = os.getpid()
    return {"pid": pid, "started": processes.started(pid), "boot": processes.boot(), "host": socket.gethostname()}


def last(entries: Entries) -> Holder | None:
    for entry in reversed(entries):
        if isinstance(entry, log_entries.Note) and entry.name == "claimed":
            data: dict[str, Any] = entry.data
            return Holder(*(data[name] for name in ("pid", "started", "boot", "host", "epoch")), since=entry.at)
    return None


def noun(entries: Entries) -> str:
    first = next(iter(entries), None)
    if not isinstance(first, log_entries.Scope) or first.session is None:
        return "run"
    return "build" if first.session.purpose == "build" else "session"


COMMANDS = {"run": "resume", "session": "chat --resume", "build": "build --resume"}


def run_held(run: str, entries: Entries, fix: str | None = None, *, what: str | None = None) -> RunHeld:
    """Return the error for a run or session that is owned; ``what`` is its kind, if not taken from the entries."""
    what = what or noun(entries)
    holder = last(entries)
    take = f"runops {COMMANDS[what]} {run} --take-over"
    return RunHeld(
        "run-held",
        f"{what} {run} is held by {holder.named() if holder else 'a process that has just claimed it'}",
        fix=fix
        or f"wait until it ends, or interrupt it (Ctrl-C in its terminal, or SIGTERM); `{take}` ends it and continues",
        evidence=holder.as_evidence() if holder else {},
    )


def refused(run: str, read: Callable[[], Entries]) -> RunHeld:
    """Return the error of ``run_held``, once the owner has had time to identify itself. ``read`` returns the log as it is now."""
    until = time.monotonic() + SAY_SECONDS
    while True:
        entries = read()
        holder = last(entries)
        if holder is not None and (holder.lives or not holder.here):
            return run_held(run, entries)
        if time.monotonic() > until:
            return run_held(run, (), what=noun(entries))
        time.sleep(0.02)


def replaced(run: str, epoch: int, entries: Entries) -> Replaced:
    """Return the error for the owner with the claim ``epoch``, whose run another one has claimed since."""
    holder = last(entries)
    if holder is not None and holder.epoch <= epoch:
        holder = None
    return Replaced(
        "replaced",
        f"{noun(entries)} {run} is held by {holder.named() if holder else 'another owner'}, and continues there",
        fix=f"nothing is to be done here; `runops show {run}` tells how far it is",
        evidence=holder.as_evidence() if holder else {},
    )


def take_over(path: Path, run: str, read: Callable[[], Entries]) -> tuple[int, Holder | None]:
    """Return the log's handle with its lock, and the process that was ended for it; None if it had no owner any more.

    ``read`` returns the log as it is now. Only one owner is ended: the first one found, and only if it is known to be the owner. A later
    one is refused as usual. Raises RunHeld if the owner is on another machine, is this process, or cannot be ended.
    """
    until = time.monotonic() + LOOK_SECONDS
    while True:
        if (handle := locks.hold(path)) is not None:
            return handle, None
        entries = read()
        holder = last(entries)
        if holder is not None and not holder.here:
            raise run_held(run, entries, f"take it over there: only {holder.host} can end a process of its own")
        if holder is not None and holder.lives and _holds(path, holder, entries):
            break
        # Between its lock and its entry an owner is not identified: the last entry is that of an earlier one.
        if time.monotonic() > until:
            again = f"`runops {COMMANDS[noun(entries)]} {run}`"
            raise run_held(run, entries, f"the process that holds it has not identified itself; end it, then {again}")
        time.sleep(0.05)
    if holder.pid == os.getpid():
        raise run_held(run, entries, "it is held by this very process: wait until it ends there")
    return _taken_from(path, holder, run, read), holder


def _holds(path: Path, holder: Holder, entries: Entries) -> bool:
    """True if ``holder`` has the run's lock, not a process that has not identified itself yet."""
    known = locks.holder(path)
    if known is not None:
        return known == holder.pid
    # The kernel does not say. An owner that wrote the run's end is about to release the lock, or has done so.
    names = (entry.name for entry in reversed(entries) if isinstance(entry, log_entries.Note))
    return next(name for name in names if name in ("claimed", "ended")) == "claimed"


def _taken_from(path: Path, holder: Holder, run: str, read: Callable[[], Entries]) -> int:
    try:
        processes.end(holder.pid, holder.started)
    except PermissionError:
        why = f"process {holder.pid} belongs to another user: only that one may take it over"
        raise run_held(run, read(), why) from None
    until = time.monotonic() + END_SECONDS
    while (handle := locks.hold(path)) is None:
        now = last(read())
        if now is not None and now.epoch > holder.epoch:
            raise run_held(run, read())
        if time.monotonic() > until:
            raise run_held(run, read(), f"process {holder.pid} was ended, and its lock is not free yet: try again")
    return handle
