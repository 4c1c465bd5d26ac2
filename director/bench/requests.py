"""What was wanted of the bench, and what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Literal

from director.bench import plans, watcher
from director.bench.node_map import NodeMap
from nodes.values import Json
from runtime import events
from runtime.observation.observation import Observation

Row = Literal["flow", "isolated"]
"""Whether the nodes run in a row, or each by itself from its own state."""


@dataclasses.dataclass(frozen=True, slots=True)
class BenchRequest:
    """What is to be executed."""

    nodes: str
    mode: Row = "flow"
    begin: plans.From = "before"
    item: str | None = None
    """A key, or a number from 1; of loops in loops one for each, outermost first, with slashes between."""
    reason: str = ""


@dataclasses.dataclass(slots=True)
class Setup:
    """One run of the bench, and what was seen of it."""

    ids: Sequence[str]
    start: plans.Start
    seen: list[watcher.Seen]
    ended: events.RunEnded
    held: dict[str, Json] | None
    """What was ready, where an action was held."""
    stopped: watcher.Seen | None
    """The node at which it ended, where that was not the end."""
    view: Observation | None = None
    """The page as it left it; None where no node worked on one, or it could not be looked at."""
    confirmed: frozenset[str] = frozenset()
    """The paths of the actions of which the site was asked whether they were done."""


@dataclasses.dataclass(slots=True)
class Report:
    """What came of a call."""

    places: NodeMap
    wanted: BenchRequest
    ids: Sequence[str]
    trips: list[Setup] = dataclasses.field(default_factory=list[Setup])
    notes: list[str] = dataclasses.field(default_factory=list[str])
    known: Observation | None = None
    """The same page as the model was last shown it; None where it never was."""
    around: Collection[str] = ()
    """The frames of sites that it was shown: they need not be told again."""

    @property
    def view(self) -> Observation | None:
        """The page behind the last node."""
        return self.trips[-1].view if self.trips else None
