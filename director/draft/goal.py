"""The goal of a build: what a workflow should do, and how it may be tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from nodes.values import Json
from runtime.log import entries

Policy = Literal["ask", "allow", "hold"]
"""Policy for side effects in a build: ask a person once for each, allow all, or hold all."""


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    goal: str
    url: str | None
    """Address of the site; its origin becomes the input ``base_url``."""
    save: Path  # file to which the workflow is written
    runs: int = 2  # number of runs that the draft must pass
    policy: Policy = "ask"
    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])  # the inputs of the proof, by name
    secrets: Sequence[str] = ()  # names of the secrets that it may use
    force: bool = False  # True if `save` may overwrite an existing file
    repairs: entries.Repairs | None = None  # the repair of an existing workflow, if this build is one

    @property
    def place(self) -> Path:
        return Path(self.repairs.file) if self.repairs is not None else self.save

    @classmethod
    def of(cls, build: entries.Build) -> Goal:
        fields: dict[str, Any] = {**dict(build), "save": Path(build.save)}
        return cls(policy=fields.pop("effects"), **fields)

    def as_logged(self) -> entries.Build:
        fields: dict[str, Any] = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        fields |= {"save": str(self.save), "inputs": dict(self.inputs), "secrets": list(self.secrets)}
        return entries.Build(effects=fields.pop("policy"), **fields)
