"""What a window holds, and why not more: told to people and programs."""

from __future__ import annotations

import dataclasses
from typing import Literal

from nodes.values import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """Something that was left out, or has a pointer in the place of its outputs."""

    what: str
    line: int
    """Of the log; 0 for what stands in none."""
    why: str
    tokens: int


RungName = Literal["pointers", "dropped", "summary"]


@dataclasses.dataclass(frozen=True, slots=True)
class Rung:
    """One step by which a window is made to fit, and what came of it."""

    name: RungName
    outcome: Literal["not needed", "saved", "no effect", "failed"]
    saved: int = 0
    """Tokens."""
    why: str = ""
    """Of one that failed, or had no effect."""

    def __str__(self) -> str:
        if self.outcome == "saved":
            return f"saved {self.saved:,}"
        return f"{self.outcome}: {self.why}" if self.why else self.outcome


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A part of the window, with what it takes and might take."""

    name: str
    tokens: int
    share: float | None = None
    """Its part of the hard limit."""
    messages: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What a window holds, and why not more. Tokens are upper bounds, counted before anything is sent."""

    limit: int
    """Tokens that it might have."""
    sections: tuple[Section, ...]
    left: tuple[Left, ...]
    rungs: tuple[Rung, ...]
    room: int = 0
    """Tokens that the thread might have in it, without the newest word of the user."""
    said: int = 0
    """Tokens of the whole thread without that word: its last summary and all that came since, outputs whole."""
    warn_at: int = 0
    """Tokens from which on a person is told that it fills; 0 where nobody is."""
    counted: int | None = None
    """Tokens that the server counted in the last request of the thread; None where it did not say."""
    since: int = 0
    """Tokens of what came to the thread since that request."""

    @property
    def tokens(self) -> int:
        """Tokens of all of it."""
        return sum(each.tokens for each in self.sections)

    @property
    def wanted(self) -> int:
        """Tokens that it would have, were nothing of the thread left out."""
        thread = sum(each.tokens for each in self.sections if each.name in OF_THE_THREAD)
        return self.tokens - thread + max(thread, self.said)

    @property
    def overflows(self) -> bool:
        """Whether something is left out because the thread has outgrown its room, and not because of how many messages it has."""
        dropped = any(each.name == "dropped" and each.outcome == "saved" for each in self.rungs)
        return dropped and self.said > self.room

    @property
    def warns(self) -> bool:
        """Whether a person should be told that it fills."""
        return 0 < self.warn_at <= self.wanted

    def as_json(self) -> dict[str, Json]:
        """The report, for programs."""
        return {
            "limit": self.limit,
            "tokens": self.tokens,
            "wanted": self.wanted,
            "warns": self.warns,
            "counted": self.counted,
            "since": self.since,
            "sections": [dataclasses.asdict(each) for each in self.sections],
            "left": [dataclasses.asdict(each) for each in self.left],
            "rungs": [dataclasses.asdict(each) for each in self.rungs],
        }


OF_THE_THREAD = frozenset({"summary", "thread"})
"""Sections that grow with the thread."""
