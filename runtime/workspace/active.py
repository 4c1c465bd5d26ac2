"""Active runs and sessions of a workspace: those that a process owns, or whose browser still runs. Nothing is changed.

The log names the owner, the kernel shows if the lock is taken, and ``browser.json`` locates the browser.
"""

from __future__ import annotations

import contextlib
import dataclasses
import socket
from typing import Literal

from nodes.errors import LogError, UsageError
from runtime.browser.chromium import survivors
from runtime.log import entries, history, session
from runtime.log.store import store as log_store
from runtime.workspace import run_index, session_index

State = Literal[run_index.RunState, "gone"]  # `gone`: a browser exists without the log of its run


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    host: str
    since: str  # when it claimed the run, ISO 8601 UTC

    @property
    def elsewhere(self) -> bool:
        return self.host != socket.gethostname()


@dataclasses.dataclass(frozen=True, slots=True)
class Browser:
    """A run's own Chromium that is still running."""

    chromium: int
    watcher: int
    holders: int | None  # number of engines connected to it; None if its watcher does not answer
    left: float | None
    """Seconds until its watcher ends it; None while an engine is connected, and if the watcher does not answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Active:
    """A run or session that is owned, or whose browser still runs."""

    run: str
    state: State
    workflow: str | None  # the workflow's name, or the session's title; None if the log does not show it
    holder: Holder | None  # none if no process owns the run, or the log names none
    browser: Browser | None
    next: str
    kind: session_index.Kind = "run"


def find(store: log_store.StoreReader) -> list[Active]:
    """Return every run or session that is owned, or whose browser still runs, oldest first."""
    browsers = _browsers(store)
    found: list[Active] = []
    for run in sorted({*store.ids(), *browsers}):
        owned = False
        with contextlib.suppress(LogError, UsageError):
            owned = store.owned(run)
        if owned or run in browsers:
            found.append(_active(store, run, browsers.get(run)))
    return [each for each in found if each.browser is not None or each.state in ("running", "damaged")]


def _browsers(store: log_store.StoreReader) -> dict[str, Browser]:
    found: dict[str, Browser] = {}
    for private in store.private_folders():
        if (alive := survivors.find(private)) is not None:
            seen = survivors.look(alive)
            holders, left = (None, None) if seen is None else (seen.holders, seen.left)
            found[private.name] = Browser(alive.chromium, alive.watcher, holders, left)
    return found


def _active(store: log_store.StoreReader, run: str, browser: Browser | None) -> Active:
    kind: session_index.Kind | None = None
    try:
        kind = session_index.kind(store, run)
        reading = store.read(run)
    except UsageError:
        return Active(run, "gone", None, None, browser, "runops prune")
    except LogError:
        command = "runops runs --sessions" if kind == "session" else "runops runs"
        return Active(run, "damaged", None, None, browser, command, kind or "run")
    if kind == "session":
        said = session.Session(reading.entries)
        state: State = "running" if reading.owned else "gone"
        title = session_index.titled(said) if said.header is not None else None
        return Active(run, state, title, holder_of(reading), browser, f"runops show {run}", "session")
    past = history.History(reading.entries)
    workflow = past.header.workflow if past.header is not None else None
    if reading.owned:
        # A new owner may not be in the log yet, so the log can still end with how the run ended before.
        return Active(run, "running", workflow, holder_of(reading), browser, f"runops show {run}")
    if past.header is None:
        return Active(run, "gone", None, None, browser, "runops prune")
    state = run_index.state_of(past, owned=False)
    over = state == "passed" or past.header.trial is not None
    return Active(run, state, workflow, None, browser, "runops prune" if over else run_index.again(past, run))


def holder_of(reading: log_store.Reading) -> Holder | None:
    """Return the last owner that the log names; None if it names none."""
    claims = [entry for entry in reading.entries if isinstance(entry, entries.Note) and entry.name == "claimed"]
    if not claims:
        return None
    data = claims[-1].data
    return Holder(int(data["pid"]), str(data["host"]), claims[-1].at)
