"""Which process holds a run, what to say of it, and ending it where a person wants the run taken over."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nodes.errors import Replaced, RunHeld
from nodes.values import Json
from runtime.log import entries as log_entries
from runtime.system import locks, processes

LOOK_SECONDS = 5.0
"""How long a holder may take from its lock to the entry that says who it is."""

SAY_SECONDS = 1.0
"""How long a holder may take to it where nothing depends on it but what is said of it."""

END_SECONDS = 10.0
"""How long the kernel may take to end a process and to give up its lock."""

Entries = Sequence[log_entries.AnyEntry]


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    """A process that claimed a run, as its entry says."""

    pid: int
    started: str
    boot: str
    host: str
    epoch: int
    since: str
    """When it claimed the run: ISO 8601 UTC."""

    @property
    def here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    @property
    def lives(self) -> bool:
        """Whether this very process is there; one of another machine is not."""
        return self.here and self.boot == processes.boot() and processes.started(self.pid) == self.started

    def as_taken(self) -> str:
        """What to tell a person who took the run over from it."""
        return f"took the run over from process {self.pid}, which held it since {self.since}"

    def told(self) -> dict[str, Json]:
        """As evidence."""
        return {"pid": self.pid, "host": self.host, "since": self.since, "epoch": self.epoch}


def me() -> dict[str, Json]:
    """What tells this process from every other: its id, when it began, the machine's boot, and the machine."""
    pid = os.getpid()
    return {"pid": pid, "started": processes.started(pid), "boot": processes.boot(), "host": socket.gethostname()}


def last(entries: Entries) -> Holder | None:
    """Who claimed the run last, dead or alive."""
    claims = (entry for entry in reversed(entries) if isinstance(entry, log_entries.Note) and entry.name == "claimed")
    claim = next(claims, None)
    if claim is None:
        return None
    said = claim.data
    return Holder(
        pid=int(said["pid"]),
        started=str(said["started"]),
        boot=str(said["boot"]),
        host=str(said["host"]),
        epoch=int(said["epoch"]),
        since=claim.at,
    )


def noun(entries: Entries) -> str:
    """What the conversation is that begins so: ``run``, ``session`` or ``build``."""
    first = next(iter(entries), None)
    if not isinstance(first, log_entries.Scope) or first.session is None:
        return "run"
    return "build" if first.session.purpose == "build" else "session"


GOES_ON = {"run": "resume", "session": "chat --resume", "build": "build --resume"}
"""What goes on with a conversation, by what it is."""


def _again(run: str, what: str) -> str:
    return f"runops {GOES_ON[what]} {run}"


def held(run: str, entries: Entries, fix: str | None = None, *, what: str | None = None) -> RunHeld:
    """What to say of a run or a session that somebody holds; ``what`` it is, where the entries are not to say it."""
    what = what or noun(entries)
    holder = last(entries)
    who = (
        f"process {holder.pid} on {holder.host} since {holder.since}"
        if holder
        else "a process that has just claimed it"
    )
    return RunHeld(
        "run-held",
        f"{what} {run} is held by {who}",
        fix=fix
        or f"wait until it ends, or interrupt it (Ctrl-C in its terminal, or SIGTERM); `{_again(run, what)} --take-over` ends it and goes on",
        evidence=holder.told() if holder else {},
    )


def refused(run: str, read: Callable[[], Entries]) -> RunHeld:
    """The same of a run on this machine, whose holder may be about to say who it is: ``read`` gives the log as it stands."""
    until = time.monotonic() + SAY_SECONDS
    while True:
        entries = read()
        holder = last(entries)
        if holder is not None and (holder.lives or not holder.here):
            return held(run, entries)
        if time.monotonic() > until:
            return held(run, (), what=noun(entries))
        time.sleep(0.02)


def replaced(run: str, epoch: int, entries: Entries) -> Replaced:
    """What to say to an owner, by the number of its claim, of a run that another one has claimed since."""
    holder = last(entries)
    known = holder is not None and holder.epoch > epoch
    who = f"process {holder.pid} on {holder.host} since {holder.since}" if holder and known else "another owner"
    return Replaced(
        "replaced",
        f"{noun(entries)} {run} is held by {who}, and goes on there",
        fix=f"nothing is to be done here; `runops show {run}` tells how far it is",
        evidence=holder.told() if holder and known else {},
    )


def take_over(path: Path, run: str, read: Callable[[], Entries]) -> tuple[int, Holder | None]:
    """The log's handle with its lock, and the process that was ended for it; None where nobody had it any more.

    ``read`` gives the log as it stands. Only one holder is ended, the one that is found first, and only where it is known to be it: another
    one that comes after it is refused like any. Raises RunHeld where that one is on another machine, is this process, or cannot be ended.
    """
    until = time.monotonic() + LOOK_SECONDS
    while True:
        if (handle := locks.hold(path)) is not None:
            return handle, None
        entries = read()
        holder = last(entries)
        if holder is not None and not holder.here:
            raise held(run, entries, f"take it over there: only {holder.host} can end a process of its own")
        if holder is not None and holder.lives and _holds(path, holder, entries):
            break
        # Between its lock and its entry a holder has not said who it is: the last entry is that of one that is gone.
        if time.monotonic() > until:
            raise held(
                run,
                entries,
                f"the process that holds it does not say who it is; end it, then `{_again(run, noun(entries))}`",
            )
        time.sleep(0.05)
    if holder.pid == os.getpid():
        raise held(run, entries, "it is held by this very process: wait until it ends there")
    return _taken_from(path, holder, run, read), holder


def _holds(path: Path, holder: Holder, entries: Entries) -> bool:
    """Whether the holder has the run's lock, and not somebody who has not said so yet."""
    known = locks.holder(path)
    if known is not None:
        return known == holder.pid
    # The kernel does not say. One that wrote how the run ended is about to give it up, or has done so.
    notes = (
        entry
        for entry in reversed(entries)
        if isinstance(entry, log_entries.Note) and entry.name in ("claimed", "ended")
    )
    return next(notes).name == "claimed"


def _taken_from(path: Path, holder: Holder, run: str, read: Callable[[], Entries]) -> int:
    try:
        processes.end(holder.pid, holder.started)
    except PermissionError:
        raise held(
            run, read(), f"process {holder.pid} belongs to another user: only that one may take it over"
        ) from None
    until = time.monotonic() + END_SECONDS
    while (handle := locks.hold(path)) is None:
        now = last(read())
        if now is not None and now.epoch > holder.epoch:
            raise held(run, read())
        if time.monotonic() > until:
            raise held(run, read(), f"process {holder.pid} was ended, and its lock is not free yet: try again")
    return handle
