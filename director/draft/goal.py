"""The goal of a build: what a workflow should do, and how it may be tried."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from nodes.values import Json
from runtime.language.expressions import filters
from runtime.log import entries

FOLDER = "workflows"  # folder of new workflows, if it exists
SLUG = 60  # limit of a file name made from a goal, in characters
LONGEST = 4_000  # limit of a goal, in characters

_ADDRESS = re.compile(r"https?://[^\s\"'<>()]+", re.IGNORECASE)

UNNAMED = ".yaml"
"""Name of the file of a workflow whose goal is not said yet: no person can give it."""

GIVEN_BY_NAME = "the person gives a secret by its name: `/goal --secret NAME`, or the flag `--secret NAME`"
"""Fix where a secret is missing, or was written out."""

Policy = Literal["ask", "allow", "hold"]
"""Policy for side effects in a build: ask a person once for each, allow all, or hold all."""


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    goal: str  # empty while it is not said
    url: str | None
    """Address of the site; its origin becomes the input ``base_url``."""
    save: Path  # file to which the workflow is written
    runs: int = 2  # number of runs that the draft must pass
    policy: Policy = "ask"
    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])  # the inputs of the proof, by name
    secrets: Sequence[str] = ()  # names of the secrets that it may use
    force: bool = False  # True if `save` may overwrite an existing file
    anew: bool = False  # True if the draft begins empty, whatever file the session is about
    repairs: entries.Repairs | None = None  # the repair of an existing workflow, if this build is one

    @property
    def place(self) -> Path:
        return Path(self.repairs.file) if self.repairs is not None else self.save

    @property
    def is_named(self) -> bool:
        return self.save.name != UNNAMED

    @classmethod
    def unsaid(cls, file: Path | None) -> Goal:
        """Return the goal of a session that was told none; ``file`` is the workflow that it is about."""
        return cls("", None, file if file is not None else folder() / UNNAMED, policy=policy())

    @classmethod
    def of(cls, build: entries.Build) -> Goal:
        fields: dict[str, Any] = {**dict(build), "save": Path(build.save), "anew": build.anew is True}
        return cls(policy=fields.pop("effects"), **fields)

    def as_logged(self) -> entries.Build:
        fields: dict[str, Any] = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        fields |= {
            "save": str(self.save),
            "inputs": dict(self.inputs),
            "secrets": list(self.secrets),
            "anew": self.anew or None,
        }
        return entries.Build(effects=fields.pop("policy"), **fields)


def folder() -> Path:
    """Return the folder in which a new workflow is saved."""
    place = Path(FOLDER)
    return (place if place.is_dir() else Path()).absolute()


def named(goal: str, place: Path) -> Path:
    return place / f"{str(filters.slug(goal))[:SLUG].strip('-_') or 'workflow'}.yaml"


def policy(*, unattended: bool = False) -> Policy:
    return "hold" if unattended or os.environ.get("CI") else "ask"


def addresses(text: str) -> list[str]:
    return [each.rstrip(".,;:!?") for each in _ADDRESS.findall(text)]
