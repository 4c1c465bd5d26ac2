"""What the tools of a build work with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from director.draft.goal import Goal
from director.session import person as persons
from director.session import runs as session_runs
from director.session.events import Listener
from director.session.state import SessionState
from nodes.base import Leaf
from nodes.values import Json
from runtime.browser import port
from runtime.engine import run_state
from runtime.language import prepare
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.observation.observation import Observation
from runtime.runs.runtime import Runtime
from runtime.workspace import host

Where = Literal["bench", "scout"]
"""The two browsers of a build: that of ``execute_nodes``, and that of scouting, which is no part of the workflow."""


class Effects(Protocol):
    """What may be done of class *effect*: ``director.effects.grants``."""

    async def demand(
        self,
        actions: Sequence[tuple[Leaf, str]],
        *,
        place: str,
        page: str | None = None,
        inputs: Mapping[str, Json] | None = None,
        pins: Mapping[str, Json] | None = None,
        astray: bool = False,
    ) -> run_state.Withholds:
        """What of these actions (each with its path) is held, once those were asked for that nobody was asked for yet.

        ``place`` is the path of the call that wants them, ``page`` the address where they are done, as far as that is known; ``inputs`` are those of the run, where they are not the goal's, and
        ``pins`` the values that stand in the place of what nodes yield, where they are not the session's variables.

        Under `ask` an action is asked for once, as it is: one that finds another element, or does or types something else, is another one; and so is one that is
        done ``astray``, on a page to which the draft need not lead: that is asked for each time. A yes is for that
        action alone, also where other actions are done below its path. Actions of another class may be among them, and are never held.

        Raises Paused ``question`` where nobody is there to be asked. So it is called before the tool's call is written (``actions.done``): a call that waits
        for a person was not begun, and is taken again with the answer.
        """
        ...


class Bench(Protocol):
    """Where nodes of the draft are tried: ``director.bench``."""

    @property
    def browser(self) -> port.Browser | None:
        """As the last nodes left it; None before any ran."""
        ...

    def values(self) -> Mapping[str, Json]:
        """The values that nodes have by now, by id, stale ones left out."""
        ...

    def marks(self) -> Mapping[str, str]:
        """How each node outside of loops stands that was executed, by id: ``done``, ``passed by``, or ``stale: `` and of what."""
        ...

    def onlooker(self, prepared: prepare.Prepared, call: entries.Call) -> run_state.Watch:
        """Looks on during a run of the whole draft that a tool's ``call`` starts, so that the values of its nodes count here too."""
        ...

    async def take_over(self, run: str) -> None:
        """Begin with what a run of the draft as it stands had come by that failed: its values, and the state of its last checkpoint."""
        ...

    async def close(self) -> None:
        """End its browser."""
        ...


class OpenTab(Protocol):
    """A tab, as it is now."""

    @property
    def where(self) -> Where:
        """In which browser."""
        ...

    @property
    def name(self) -> str:
        """Empty for one that nobody has named."""
        ...

    @property
    def url(self) -> str:
        """Its address."""
        ...

    @property
    def title(self) -> str:
        """Empty where nobody has looked at it."""
        ...

    @property
    def current(self) -> bool:
        """Whether it is meant where none is named."""
        ...


class Observer(Protocol):
    """Looks at the pages of both browsers: ``director.scouting.observer``."""

    async def look(self, where: Where, tab: str | None = None) -> Observation:
        """The page as it is now, secrets masked; refs are those of this look. Raises SiteError, ModelError ``page-unknown``."""
        ...

    def tabs(self) -> Sequence[OpenTab]:
        """Every open tab of both browsers, those of the bench first."""
        ...

    def last(self, where: Where, tab: str | None = None) -> Observation | None:
        """The last look at that page."""
        ...

    async def close(self) -> None:
        """End the browser of scouting."""
        ...


@dataclasses.dataclass(slots=True)
class BuildContext:
    """One build, in this process. Tools read it; what a tool keeps stands in the session's log."""

    writer: LogWriter[session.Session]
    state: SessionState
    here: host.Host
    """Its settings are those of the runs and browsers that it starts."""
    listener: Listener
    goal: Goal
    person: persons.Person
    runs: session_runs.Runs
    known: Callable[[], Mapping[str, str]]
    """The secrets that are set of those that the draft and the goal name."""
    carrier: Runtime = dataclasses.field(init=False)
    """Carries those runs."""
    effects: Effects = dataclasses.field(init=False)
    bench: Bench = dataclasses.field(init=False)
    observer: Observer = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.carrier = Runtime.of(self.here)

    async def close(self) -> None:
        """End the runs and the browsers."""
        await self.carrier.aclose()
        for each in ("bench", "eyes"):
            if hasattr(self, each):
                await getattr(self, each).close()
