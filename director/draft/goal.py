"""The goal of a build: what a person wants a workflow to do, and how it may be tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from nodes.values import Json
from runtime.log import entries

Policy = Literal["ask", "allow", "hold"]
"""What becomes of side effects in a build: a person is asked once for each, all are done, or none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """What a build is to reach, as the person said it."""

    goal: str
    url: str | None
    """Where the site is; the origin is the first that the draft may open."""
    save: Path
    """Where the workflow is left."""
    runs: int = 2
    """How often the draft must pass."""
    policy: Policy = "ask"
    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The inputs with which it is proved, by name."""
    secrets: Sequence[str] = ()
    """Names of the secrets that it may use."""
    force: bool = False
    """Whether ``save`` may be a file that was there before."""
    repairs: entries.Repairs | None = None
    """Where a workflow is fixed that is there."""

    @property
    def place(self) -> Path:
        """Where the workflow is meant to stand: what it reads beside itself is found from there."""
        return Path(self.repairs.file) if self.repairs is not None else self.save

    @classmethod
    def of(cls, build: entries.Build) -> Goal:
        """As it stands in the log."""
        return cls(
            build.goal,
            build.url,
            Path(build.save),
            build.runs,
            build.effects,
            build.inputs,
            build.secrets,
            build.force,
            build.repairs,
        )

    def as_logged(self) -> entries.Build:
        """As it stands in the log."""
        return entries.Build(
            goal=self.goal,
            url=self.url,
            save=str(self.save),
            force=self.force,
            runs=self.runs,
            effects=self.policy,
            inputs=dict(self.inputs),
            secrets=list(self.secrets),
            repairs=self.repairs,
        )
