"""The build context: what the tools of a build share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from director.draft.goal import Goal
from director.effects import grants
from director.session import person as persons
from director.session import runs as session_runs
from director.session.events import Listener
from director.session.state import SessionState
from nodes.targets import Target
from nodes.values import Json
from runtime import events
from runtime.browser import port
from runtime.engine import run_state
from runtime.language import prepare
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.runs import run
from runtime.runs.runtime import Runtime
from runtime.secrets import masking
from runtime.workspace import host

Where = Literal["bench", "scout"]
"""The two browsers of a build: that of ``execute_nodes``, and that of the scout, which is no part of the workflow."""


NOT_LOOKED_AT = "not looked at yet"
"""End of the mark of a node that was done before its present ``verify`` or ``confirm`` was written."""


class Address(NamedTuple):
    url: str
    by_itself: bool  # True if it changed after the node was over


class Stage(Protocol):
    """A whole run in a new browser of the bench."""

    @property
    def watch(self) -> run_state.Watch: ...

    async def opened(self) -> run.Browsers:
        """Close the page of the bench, and return what lends the run a new browser."""
        ...

    async def left(self, ended: events.RunEnded) -> str | None:
        """Return the page that the run has left, as the model is shown it; None if there is none.

        The bench continues with it. The page of a run that did not pass is not shown, thus empty: its error has the evidence.
        """
        ...


class Bench(Protocol):
    """Runs nodes of the draft: ``director.bench``."""

    @property
    def browser(self) -> port.Browser | None:
        """The browser as the last nodes left it; None before any ran."""
        ...

    @property
    def why_no_page(self) -> str:
        """Return why there is none, where there is none."""
        ...

    def values(self) -> Mapping[str, Json]: ...

    def marks(self) -> Mapping[str, str]:
        """Return the state of each executed node outside loops, by id: ``done``, ``passed by``, or ``stale: `` and the cause.

        ``done: verify not looked at yet``: that was written after it ran.
        """
        ...

    def executed(self) -> Sequence[str]:
        """Return the ids of the draft's nodes that were executed, also those whose value was cleared since."""
        ...

    def clear(self, ids: Collection[str], reason: str) -> None:
        """Give up the values of these nodes: they are stale then."""
        ...

    def address(self, path: str, *, after: bool) -> Address | None:
        """Return the address that the page had on the bench before a step, or ``after`` it; None if the step never ran there."""
        ...

    def onlooker(self, prepared: prepare.Prepared, call: entries.Call) -> run_state.Watch:
        """Return a watch for a run of the whole draft by a tool's ``call``, which stores the values of its nodes on the bench."""
        ...

    def stage(self, prepared: prepare.Prepared, call: entries.Call) -> Stage:
        """Return the bench's new browser for a whole run with the goal's inputs."""
        ...

    async def forget(self, reason: str) -> None:
        """Give up the browser, its kept states and all values: the site is no longer as they show it."""
        ...

    async def take_over(self, run: str) -> None:
        """Take the results of a failed run of the current draft: its values, and the browser state of its last checkpoint."""
        ...

    async def close(self) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class OpenTab:
    where: Where
    name: str  # empty for an unnamed tab
    url: str
    title: str  # empty if it has not been observed
    current: bool  # True if it is used when no tab is named


class Observer(Protocol):
    """Looks at the pages of both browsers: ``director.scouting.observer``."""

    def tabs(self) -> Sequence[OpenTab]: ...

    async def tried(self, found: Mapping[str, tuple[str, Target]]) -> Sequence[str]:
        """Try targets of nodes, each on the page of ``bench`` or ``scout``, without waiting; return a line for each that does not find one element."""
        ...

    async def close(self) -> None: ...


@dataclasses.dataclass(slots=True)
class BuildContext:
    """One build in this process: its tools read it, and store their state in the session's log."""

    writer: LogWriter[session.Session]
    state: SessionState
    here: host.Host  # its settings are those of the runs and browsers that it starts
    listener: Listener
    person: persons.Person
    runs: session_runs.Runs
    known: Callable[[], Mapping[str, str]]
    """Returns the secrets that the draft and the goal name and that have a value."""
    file: Callable[[], Path | None] = lambda: None
    """Returns the workflow that the session is about, if there is one: the draft begins as it."""
    carrier: Runtime = dataclasses.field(init=False)
    effects: grants.Grants = dataclasses.field(init=False)
    bench: Bench = dataclasses.field(init=False)
    observer: Observer = dataclasses.field(init=False)

    @property
    def goal(self) -> Goal:
        return self.state.goal

    @property
    def masker(self) -> masking.Masker:
        """Masker of the session's secrets and codes, and of the secrets that the draft has named since."""
        return self.writer.masker.knowing(self.known())

    @property
    def resets(self) -> bool:
        """True if the person's command puts the site's data back before each whole run."""
        return bool((self.here.settings.reset or "").strip())

    def __post_init__(self) -> None:
        self.carrier = Runtime.of(self.here)

    async def close(self) -> None:
        await self.carrier.aclose()
        for each in ("bench", "observer"):
            if hasattr(self, each):
                await getattr(self, each).close()
