"""A goal in one sentence, written before anything is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from nodes.values import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What a build may cost at most."""

    requests: int
    tokens: int
    """Total input tokens of all requests, each counted whole."""
    failed: int
    """Failed calls."""


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """One build."""

    name: str
    site: str
    """The kind of site: ``shop``, ``django``, ``datasette``, ``radicale``, or ``app``: the application with the name of the goal."""
    goal: str
    path: str = "/"
    """The path of the address given with ``--url``."""
    secrets: tuple[str, ...] = ()
    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    effects: str = "allow"
    writes: bool = True
    """False if it only reads."""
    again: bool = False
    """True if the goal requires that a second run changes nothing."""

    @property
    def limits(self) -> Limits:
        return Limits(15, 100_000, 1) if self.site == "app" else Limits(25, 150_000, 2)
