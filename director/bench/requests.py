"""Requests to the bench, and their results."""

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
"""Nodes run in sequence, or each alone from its own state."""


@dataclasses.dataclass(frozen=True, slots=True)
class BenchRequest:
    """The nodes to execute."""

    nodes: str
    mode: Row = "flow"
    begin: plans.From = "before"
    item: str | None = None
    """A key, or a number from 1; for nested loops one for each, outermost first, with slashes between."""
    reason: str = ""


@dataclasses.dataclass(slots=True)
class Setup:
    """One run of the bench, and what was observed of it."""

    ids: Sequence[str]
    start: plans.Start
    seen: list[watcher.Seen]
    ended: events.RunEnded
    held: dict[str, Json] | None
    """The prepared action, if it was withheld."""
    stopped: watcher.Seen | None
    """The node at which it ended early, if it did."""
    view: Observation | None = None
    """The page after it; None if no node worked on one, or it could not be observed."""
    confirmed: frozenset[str] = frozenset()
    """The paths of the actions that the site has confirmed or denied."""


@dataclasses.dataclass(slots=True)
class Report:
    """Result of a call."""

    places: NodeMap
    wanted: BenchRequest
    ids: Sequence[str]
    trips: list[Setup] = dataclasses.field(default_factory=list[Setup])
    notes: list[str] = dataclasses.field(default_factory=list[str])
    known: Observation | None = None
    """The same page as last shown to the model; None if it never was."""
    around: Collection[str] = ()
    """The site frames shown to the model, which need not be repeated."""

    @property
    def view(self) -> Observation | None:
        """The page after the last node."""
        return self.trips[-1].view if self.trips else None
