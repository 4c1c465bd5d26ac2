"""What is alive in a workspace: runs and sessions that a process holds, and browsers that outlived their engine or were kept.

Both are found by what runs wrote down: who holds a run says its log, and the kernel whether the lock is held; where a browser is says
``browser.json``. No process is looked for by its name, and nothing is changed by looking.
"""

from __future__ import annotations

import dataclasses
import socket
from typing import Literal

from nodes.errors import LogError, UsageError
from runtime.browser.chromium import survivors
from runtime.log import entries, history, session
from runtime.log.store import store
from runtime.workspace import run_index, session_index

State = Literal[run_index.RunState, "gone"]
"""``gone``: a browser is there, and the log of its run is not."""


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a run."""

    pid: int
    host: str
    """The machine that it runs on."""
    since: str
    """When it took the run, ISO 8601 UTC."""

    @property
    def elsewhere(self) -> bool:
        """Whether it runs on another machine."""
        return self.host != socket.gethostname()


@dataclasses.dataclass(frozen=True, slots=True)
class Browser:
    """A run's own Chromium, which lives."""

    chromium: int
    watcher: int
    holders: int | None
    """Engines that hold on to it; None where its watcher does not answer."""
    left: float | None
    """Seconds until its watcher ends it; None while an engine holds on, and where the watcher does not answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Active:
    """A run or a session that is held, or whose browser lives."""

    run: str
    """Its id, also that of a session."""
    state: State
    workflow: str | None
    """Its name, and of a session what it is about; None where the log does not tell."""
    holder: Holder | None
    """None where nobody holds the run, and where the log does not say who does."""
    browser: Browser | None
    next: str
    """What to type next."""
    kind: session_index.Kind = "run"


def find(kept: store.Kept) -> list[Active]:
    """Every run or session that is held or whose browser lives, oldest first."""
    browsers = _browsers(kept)
    found: list[Active] = []
    for run in sorted({*kept.ids(), *browsers}):
        try:
            held = kept.held(run)
        except (LogError, UsageError):
            held = False
        if held or run in browsers:
            found.append(_active(kept, run, browsers.get(run)))
    return [each for each in found if each.browser is not None or each.state in ("running", "damaged")]


def _browsers(kept: store.Kept) -> dict[str, Browser]:
    found: dict[str, Browser] = {}
    for private in kept.private_folders():
        if (alive := survivors.find(private)) is not None:
            looked = survivors.look(alive)
            found[private.name] = Browser(
                alive.chromium,
                alive.watcher,
                None if looked is None else looked.holders,
                None if looked is None else looked.left,
            )
    return found


def _active(kept: store.Kept, run: str, browser: Browser | None) -> Active:
    kind: session_index.Kind | None = None
    try:
        kind = session_index.kind(kept, run)
        reading = kept.read(run)
    except UsageError:
        return Active(run, "gone", None, None, browser, "runops prune")
    except LogError:
        command = "runops runs --sessions" if kind == "session" else "runops runs"
        return Active(run, "damaged", None, None, browser, command, kind or "run")
    if kind == "session":
        return _session(reading, browser)
    past = history.History(reading.entries)
    if reading.held:
        # A process that has just taken the run may not have said so yet, and how the run ended before is then its last word.
        holder, workflow = holder_of(reading), past.header.workflow if past.header is not None else None
        return Active(run, "running", workflow, holder, browser, f"runops show {run}")
    if past.header is None:
        return Active(run, "gone", None, None, browser, "runops prune")
    state = run_index.state_of(past, held=False)
    over = state == "passed" or past.header.trial is not None
    return Active(
        run, state, past.header.workflow, None, browser, "runops prune" if over else run_index.again(past, run)
    )


def _session(reading: store.Reading, browser: Browser | None) -> Active:
    past = session.Session(reading.entries)
    state: State = "running" if reading.held else "gone"
    title = session_index.titled(past) if past.header is not None else None
    return Active(reading.id, state, title, holder_of(reading), browser, f"runops show {reading.id}", "session")


def holder_of(reading: store.Reading) -> Holder | None:
    """Who holds the run, as its log says; None where nobody has said so."""
    claims = [entry for entry in reading.entries if isinstance(entry, entries.Note) and entry.name == "claimed"]
    if not claims:
        return None
    data = claims[-1].data
    return Holder(int(data["pid"]), str(data["host"]), claims[-1].at)
