"""Attempts of steps, states of containers and the end of a run: the parts of a history."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Literal

from nodes import browser_action
from nodes.part import EffectClass
from nodes.values import Json
from runtime.log import entries, step_states

Verdict = Literal["done", "not-done", "skipped"]

AGENT = "agent"  # node type whose model does actions itself, in its thread

YIELDED = ("ok", "recovered", "skipped")


@dataclasses.dataclass(slots=True)
class Attempt:
    call: entries.Call
    result: entries.Result | None = None
    verdict: Verdict | None = None  # verdict on an action, reached after its call was closed
    reconciled_value: Json = None  # value of the step, if the verdict has one
    rolled_back: bool = False  # true if the last restore undid it, so that it no longer counts
    since: int = 0  # line since which it counts: that of its result, or of the verdict that made it count again
    invalidated: bool = False
    """True if the run has since taken a workflow text in which the step does something else: its value does not count."""
    edited: bool = False  # true if the node was changed since: its call does not show what the node would do now
    asked: dict[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Evidence shown to a person who was asked about it; empty if there was no question."""
    actions: list[Attempt] = dataclasses.field(default_factory=list["Attempt"])
    """Actions of an `agent`'s model, in order; also those of the attempt whose conversation this one continues."""

    @property
    def status(self) -> entries.Status | None:
        return self.result.status if self.result is not None else None

    @property
    def phase(self) -> Json:
        """Phase of its error: ``before`` or ``after`` the action; None if there is none."""
        return (self.result.error or {}).get("phase") if self.result is not None else None

    @property
    def unanswered(self) -> bool:
        """True if the site had not answered its request when a person was asked. Then *not done* from the site proves nothing."""
        return bool(self.asked.get("unanswered"))

    @property
    def settled(self) -> bool:
        if self.invalidated:
            return False
        if self.verdict is not None:
            return self.verdict != "not-done"
        return self.status in YIELDED or (self.result is not None and bool(self.result.tolerated))

    @property
    def state(self) -> step_states.State:
        if self.invalidated:
            return step_states.State.VOID
        if self.settled and not self.rolled_back:
            return step_states.State.DONE
        if self.verdict == "not-done":
            return step_states.State.FAILED_BEFORE
        if self.status in (None, "interrupted"):
            return step_states.State.OPEN
        if self.status == "error":
            return step_states.State.FAILED_AFTER if self.phase == "after" else step_states.State.FAILED_BEFORE
        return step_states.State.UNDONE

    @property
    def effect_class(self) -> EffectClass:
        """Effect class of a second attempt: an `agent` whose model did nothing on the site may simply begin again."""
        if self.call.effect != "effect":
            return self.call.effect
        return "effect" if self.acted else "idempotent"

    @property
    def survives_restore(self) -> bool:
        """True if it is known to have happened, or was skipped by decision: no restore makes that undone."""
        return self.verdict in ("done", "skipped") or self.status in ("recovered", "skipped")

    @property
    def was_skipped(self) -> bool:
        """True if it was skipped by decision, so it is not claimed to have happened."""
        return "skipped" in (self.verdict, self.status)

    @property
    def yielded(self) -> bool:
        """True if its value is in the log, or it has none by decision."""
        return self.verdict == "skipped" or self.status in YIELDED

    @property
    def acted(self) -> bool:
        """True if it is a side effect, or an `agent` whose model did one, or may have."""
        if self.call.effect != "effect":
            return False
        return self.call.node != AGENT or any(action.may_have_happened for action in self.actions)

    @property
    def unclear(self) -> bool:
        """True if a crash cut off a side effect of its model."""
        return any(each.call.effect == "effect" and each.status in (None, "interrupted") for each in self.actions)

    @property
    def last_line(self) -> int:
        return max(self.call.seq, self.actions[-1].call.seq) if self.actions else self.call.seq

    @property
    def may_have_happened(self) -> bool:
        """True if it was a side effect that happened or may have."""
        if self.state is not step_states.State.DONE:
            return self.acted and self.state in step_states.TO_RECONCILE
        known = self.verdict is not None or self.status in (None, "ok", "recovered") or self.phase == "after"
        return known and self.acted

    @property
    def must_be_reconciled(self) -> bool:
        """True for a side effect that may have happened and whose value does not count."""
        return self.may_have_happened and self.state in step_states.TO_RECONCILE

    @property
    def did_nothing(self) -> bool:
        return self.status == "error" and self.phase == "before"

    @property
    def on_page(self) -> bool:
        """True if the step works on the page, as far as is known. For a node type of a package its result tells."""
        of_package = "." in self.call.node and (self.result is None or self.result.page is not None)
        return of_package or self.call.node.startswith("browser_")

    @property
    def only_read(self) -> bool:
        """True if the step leaves the page as it was. A click that changes nothing on the site does not: it may lead to another page."""
        leads = self.call.node == "browser_action" and self.call.action not in browser_action.LEAVING_THE_PAGE
        return self.call.effect == "read" and not leads

    @property
    def touched_page(self) -> bool:
        """True if it may have changed the page, as far as is known."""
        other_tab = self.call.thread.startswith(entries.CONFIRM)
        if self.rolled_back or other_tab or self.only_read or not self.on_page:
            return False
        if self.call.effect == "effect":
            return self.may_have_happened
        return self.status != "error" or self.phase == "after"


def deciding(attempts: list[Attempt]) -> Attempt:
    """Return the attempt that decides the state of a step.

    It is the last one, unless that had no effect and an earlier one has the step's value, or may have acted. An attempt had no effect if
    it failed before it acted, or if it is no side effect and did not succeed. So a done step stays done while it is being done again.
    """
    last = attempts[-1]
    if last.settled or not (last.did_nothing or last.call.effect != "effect"):
        return last
    return next((each for each in reversed(attempts) if each.settled or each.may_have_happened), last)


ENDED_BY_ERROR = frozenset({"item", "try", "catch", "finally"})
"""Scopes within a container that may end with a kept error."""


@dataclasses.dataclass(slots=True)
class ScopeState:
    path: str
    node: str = ""
    opened: int = 0
    decided: entries.Scope | None = None
    stale: entries.Scope | None = None  # list of a loop that the last restore undid
    committed: entries.Scope | None = None
    failed: entries.Scope | None = None

    @property
    def stays_failed(self) -> bool:
        """True if it ended with an error and the run continued elsewhere: in the next item, the next try, a `catch`."""
        return self.failed is not None and self.node in ENDED_BY_ERROR


@dataclasses.dataclass(slots=True)
class Ending:
    status: Literal["passed", "failed", "paused", "interrupted", "out-of-budget"]
    exit: int
    data: dict[str, Json]
    at: str


def seconds_between(since: str, until: str) -> float:
    """Return the seconds between the times of two entries; 0 if the clock was set back."""
    return max(0.0, (dt.datetime.fromisoformat(until) - dt.datetime.fromisoformat(since)).total_seconds())


@dataclasses.dataclass(slots=True)
class Process:
    """A process that owned the run."""

    began: str
    last: str  # time of its last entry
    took_over: bool  # true if it ended another process, which still ran
    ending: Ending | None = None  # None if it recorded no end
    only_answered: bool = False  # true if it only wrote what a person had answered or decided

    @property
    def seconds(self) -> float:
        return seconds_between(self.began, self.last)
