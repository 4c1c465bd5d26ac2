"""Comparison of two texts of a run's file: what was done with one, and its place in the other."""

from __future__ import annotations

import dataclasses

from nodes.base import Leaf
from runtime.language import workflow
from runtime.log import attempts as log_attempts
from runtime.log import entries, history
from runtime.recovery.replay_order import ReplayStep, steps

FIX = "put it back as it was, or start a new run"


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why the file cannot be taken as it is, at one step."""

    path: str
    why: str
    fix: str


@dataclasses.dataclass(slots=True)
class Change:
    """Consequences for a run of taking another file."""

    refusals: dict[str, Refusal] = dataclasses.field(default_factory=dict[str, Refusal])
    """Refusals by step path. If there are any, the file cannot be taken."""
    invalidated: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """Steps and containers that no longer count: they are done again, or are gone."""
    edited: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """Actions that may have happened and whose nodes were changed: they are reconciled by the nodes as they are now."""
    reopened: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """Containers whose value is computed again; their contents count."""
    rebuild: bool = False
    """True if the browser must be rebuilt from the last checkpoint, because its state comes from a changed step."""


def happened(attempt: log_attempts.Attempt) -> bool:
    """True if it is a side effect that happened, may have, or was skipped by decision."""
    return (
        attempt.call.effect == "effect"
        and not attempt.did_nothing
        and (attempt.may_have_happened or attempt.past_recall or attempt.settled)
    )


class Comparison:
    """The two texts side by side, in replay order."""

    def __init__(self, before: workflow.Loaded, now: workflow.Loaded, past: history.History) -> None:
        """``before`` is the text that the run has, ``now`` the one that it may take."""
        self.before, self.now, self.past = before, now, past
        self.change = Change()
        self.old, self.new = steps(before, past), steps(now, past)
        self._places = tuple({path: place for place, path in enumerate(side)} for side in (self.old, self.new))
        self.attempts = {
            path: attempts
            for path, attempts in past.attempts.items()
            if attempts[-1].call.thread == entries.RUN_THREAD and not attempts[-1].invalidated and path in self.old
        }
        """Attempts of each step of the run that counts."""

    def refuse(self, path: str, why: str, fix: str = FIX) -> None:
        """Note a refusal; of several at one step the first one is reported."""
        self.change.refusals.setdefault(path, Refusal(path, why, fix))

    def void(self, path: str) -> None:
        """Invalidate what is known of the step or container itself."""
        self.change.invalidated[path] = None

    def finished(self, path: str) -> bool:
        """True if the step at ``path`` is done, or may be, and that still counts."""
        attempts = self.attempts.get(path)
        if not attempts or path in self.change.invalidated:
            return False
        return self.past.done(path) is not None or any(happened(each) for each in attempts)

    def kept(self) -> list[ReplayStep]:
        """Return the steps that are finished and stay so, in the order of the file as it is now."""
        return [each for path, each in self.new.items() if isinstance(each.node, Leaf) and self.finished(path)]

    def is_later(self, path: str, than: str) -> bool:
        """True if one step comes after another in either text."""
        return any(path in side and than in side and side[path] > side[than] for side in self._places)

    def added(self) -> list[ReplayStep]:
        """Return the outermost steps and containers new to a resumed run: added, moved before a finished step, or no longer counting."""
        made: dict[str, ReplayStep] = {}
        moved = self._moved_ahead()
        for path, step in self.new.items():
            known = path in self.old and path not in self.change.invalidated and path not in moved
            if not known and not self.finished(path) and not any(each.path in made for each in step.above):
                made[path] = step
        return list(made.values())

    def _moved_ahead(self) -> set[str]:
        """Return the steps that moved from after a finished step to before it."""
        old, _new = self._places
        moved: set[str] = set()
        first = len(old)
        for path in reversed(self.new):
            if path in old and old[path] > first:
                moved.add(path)
            if self.finished(path):
                first = min(first, old[path])
        return moved
