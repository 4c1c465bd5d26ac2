"""Report of a window's content and of what was left out, for people and programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from nodes.values import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """Part of a request that was left out, or whose outputs became pointers."""

    what: str
    line: int
    why: str
    tokens: int
    lost: bool = False  # true if its messages are in the request in no form


RungName = Literal["pointers", "dropped", "summary"]


@dataclasses.dataclass(frozen=True, slots=True)
class Reduction:
    """One kind of reduction that makes a window fit, and its outcome."""

    name: RungName
    outcome: Literal["not needed", "due", "saved", "no effect", "failed"]
    """``due``: it is made before the request is sent."""
    saved: int = 0
    why: str = ""

    def __str__(self) -> str:
        if self.outcome == "saved":
            return f"saved {self.saved:,}" + (f"; {self.why}" if self.why else "")
        return f"{self.outcome}: {self.why}" if self.why else self.outcome


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    name: str
    tokens: int
    share: float | None = None  # its share of the hard limit
    messages: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The content of a window, and what was left out. Tokens are upper bounds, counted before anything is sent."""

    limit: int  # token limit of the window
    sections: tuple[Section, ...]
    left: tuple[Left, ...]
    rungs: tuple[Reduction, ...]
    said: int = 0
    """Tokens of the thread without that message: its last summary and everything since, outputs whole."""
    warn_at: int = 0  # size in tokens at which a person is warned; 0 for no warning
    counted: int | None = None
    """Tokens that the server counted in the thread's last request; None if it reported none."""
    since: int = 0  # tokens added to the thread since that request
    enough: Mapping[str, int] = dataclasses.field(default_factory=dict[str, int])
    """Limits of the window, by name, with which nothing would be lost; empty if nothing is, or if no limit suffices."""

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.sections)

    @property
    def wanted(self) -> int:
        """Tokens of the window if nothing of the thread were left out."""
        thread = sum(each.tokens for each in self.sections if each.name in OF_THE_THREAD)
        return self.tokens - thread + max(thread, self.said)

    @property
    def lost(self) -> tuple[Left, ...]:
        """What was said, and is in the request in no form: neither whole nor in a summary."""
        return tuple(each for each in self.left if each.lost)

    @property
    def flags(self) -> str:
        """The options of a command with which nothing would be lost."""
        return " ".join(f"--{name.replace('_', '-')} {most}" for name, most in self.enough.items())

    @property
    def warns(self) -> bool:
        return 0 < self.warn_at <= self.wanted

    def as_json(self) -> dict[str, Json]:
        return {
            "limit": self.limit,
            "tokens": self.tokens,
            "wanted": self.wanted,
            "warns": self.warns,
            "counted": self.counted,
            "since": self.since,
            "enough": dict[str, Json](self.enough),
            "sections": [dataclasses.asdict(each) for each in self.sections],
            "left": [dataclasses.asdict(each) for each in self.left],
            "rungs": [dataclasses.asdict(each) for each in self.rungs],
        }


OF_THE_THREAD = frozenset({"summary", "thread"})
