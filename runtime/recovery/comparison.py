"""A run, and two texts of its file: what was done by the one, and where the other has it."""

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
    """Why the file cannot be taken as it is, at one step."""

    path: str
    why: str
    fix: str


@dataclasses.dataclass(slots=True)
class Change:
    """What taking another file means for a run."""

    refusals: dict[str, Refusal] = dataclasses.field(default_factory=dict[str, Refusal])
    """By step path. Where there are any, the file cannot be taken."""
    invalidated: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """The steps and containers of which nothing counts any more: they are done again, or are gone."""
    edited: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """The actions that may have happened, and whose nodes were changed: they are judged by what the nodes say as they are."""
    reopened: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """The containers whose value is worked out again; what is in them counts."""
    rebuild: bool = False
    """Whether the browser must be built anew from the last checkpoint, for what it holds came of a step that was changed."""


def happened(attempt: log_attempts.Attempt) -> bool:
    """Whether it is a side effect that happened, may have, or was passed over by a decision."""
    return (
        attempt.call.effect == "effect"
        and not attempt.did_nothing
        and (attempt.may_have_happened or attempt.past_recall or attempt.settled)
    )


class Comparison:
    """The two texts beside each other, in the order in which a resumed run comes by their steps."""

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
        """Of each step of the run that counts, its attempts."""

    def refuse(self, path: str, why: str, fix: str = FIX) -> None:
        """Note what stands in the way; of several reasons at one step the first is told."""
        self.change.refusals.setdefault(path, Refusal(path, why, fix))

    def void(self, path: str) -> None:
        """Let nothing count any more that is known of the step or container itself."""
        self.change.invalidated[path] = None

    def finished(self, path: str) -> bool:
        """Whether the step at ``path`` is done, or may be, and that still counts."""
        attempts = self.attempts.get(path)
        if not attempts or path in self.change.invalidated:
            return False
        return self.past.done(path) is not None or any(happened(each) for each in attempts)

    def kept(self) -> list[ReplayStep]:
        """The steps that are finished and stay so, in the order of the file as it is now."""
        return [each for path, each in self.new.items() if isinstance(each.node, Leaf) and self.finished(path)]

    def is_later(self, path: str, than: str) -> bool:
        """Whether one step stands behind another in either text."""
        return any(path in side and than in side and side[path] > side[than] for side in self._places)

    def added(self) -> list[ReplayStep]:
        """The outermost steps and containers to which a resumed run comes anew: they were not there, stood behind what is finished, or do not count any more."""
        made: dict[str, ReplayStep] = {}
        moved = self._moved_ahead()
        for path, step in self.new.items():
            known = path in self.old and path not in self.change.invalidated and path not in moved
            if not known and not self.finished(path) and not any(each.path in made for each in step.above):
                made[path] = step
        return list(made.values())

    def _moved_ahead(self) -> set[str]:
        """What stands in front of a finished step behind which it stood."""
        old, _new = self._places
        moved: set[str] = set()
        first = len(old)
        for path in reversed(self.new):
            if path in old and old[path] > first:
                moved.add(path)
            if self.finished(path):
                first = min(first, old[path])
        return moved
