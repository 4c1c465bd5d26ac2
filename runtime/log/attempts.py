"""What became of a step, of a container and of a run: the parts of which a history is made."""

from __future__ import annotations

import dataclasses
from typing import Literal

from nodes import browser_action
from nodes.part import EffectClass
from nodes.values import Json
from runtime.log import entries, step_states

Verdict = Literal["done", "not-done", "skipped"]


AGENT = "agent"
"""The node type whose model does actions of its own, in its thread."""


@dataclasses.dataclass(slots=True)
class Attempt:
    """One call and its outcome."""

    call: entries.Call
    result: entries.Result | None = None
    verdict: Verdict | None = None
    """What was found out about an action after its call was closed."""
    reconciled_value: Json = None
    """The step's value, where the judgement has one."""
    rolled_back: bool = False
    """Whether it lies behind the state that was last restored, so that it no longer counts."""
    since: int = 0
    """The line from which on it counts: its result's, or that of the judgement that made it count again."""
    invalidated: bool = False
    """Whether the run took another file since, in which the step does something else: what it yielded does not count."""
    edited: bool = False
    """Whether the node was changed since, so that what stands in the call says nothing of what the node would do."""
    asked: dict[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """What was known of it when a person was asked about it; empty where nobody was."""
    actions: list[Attempt] = dataclasses.field(default_factory=list["Attempt"])
    """What the model of an `agent` did, in order; also what it did in the attempt with whose conversation this one goes on."""

    @property
    def unanswered(self) -> bool:
        """Whether the site had not answered what it sent when a person was asked: that the site shows nothing of it proves nothing."""
        return bool(self.asked.get("unanswered"))

    @property
    def settled(self) -> bool:
        """Whether the step has its value from this attempt."""
        if self.invalidated:
            return False
        if self.verdict is not None:
            return self.verdict != "not-done"
        return self.result is not None and (
            self.result.status in ("ok", "recovered", "skipped") or bool(self.result.tolerated)
        )

    @property
    def state(self) -> step_states.State:
        """The state of a step of which this is the attempt that counts."""
        if self.invalidated:
            return step_states.State.VOID
        if self.settled and not self.rolled_back:
            return step_states.State.DONE
        if self.verdict == "not-done":
            return step_states.State.FAILED_BEFORE
        if self.result is None or self.result.status == "interrupted":
            return step_states.State.OPEN
        if self.result.status == "error":
            after = (self.result.error or {}).get("phase") == "after"
            return step_states.State.FAILED_AFTER if after else step_states.State.FAILED_BEFORE
        return step_states.State.UNDONE

    @property
    def effect_class(self) -> EffectClass:
        """What a second attempt would mean: an `agent` whose model did nothing on the site may simply begin again."""
        if self.call.effect != "effect":
            return self.call.effect
        return "effect" if self.acted else "idempotent"

    @property
    def past_recall(self) -> bool:
        """Whether it was found to have happened, or was passed over by decision: no restored state makes that undone."""
        return self.verdict in ("done", "skipped") or (
            self.result is not None and self.result.status in ("recovered", "skipped")
        )

    @property
    def passed_by(self) -> bool:
        """Whether it was passed over by decision, so that nobody says that it happened."""
        return self.verdict == "skipped" or (self.result is not None and self.result.status == "skipped")

    @property
    def acted(self) -> bool:
        """Whether it is a side effect, or an `agent` whose model did one, or may have."""
        if self.call.effect != "effect":
            return False
        return self.call.node != AGENT or any(action.may_have_happened for action in self.actions)

    @property
    def unclear(self) -> bool:
        """Whether an `agent` was ended in the middle of a side effect."""
        return any(
            action.call.effect == "effect" and (action.result is None or action.result.status == "interrupted")
            for action in self.actions
        )

    @property
    def last_line(self) -> int:
        """The line of the last call that belongs to it."""
        return max(self.call.seq, self.actions[-1].call.seq) if self.actions else self.call.seq

    @property
    def may_have_happened(self) -> bool:
        """Whether this was a side effect that happened or may have."""
        if self.state is not step_states.State.DONE:
            return self.acted and self.state in step_states.MAY_HAVE_ACTED
        if self.verdict is not None or self.result is None:
            return self.acted
        after = (self.result.error or {}).get("phase") == "after"
        return self.acted and (self.result.status in ("ok", "recovered") or after)

    @property
    def did_nothing(self) -> bool:
        """Whether the attempt failed before its action."""
        return (
            self.result is not None
            and self.result.status == "error"
            and (self.result.error or {}).get("phase") == "before"
        )

    @property
    def on_page(self) -> bool:
        """Whether the step works on the page, for all that is known: of a node type of a package its result tells."""
        of_package = "." in self.call.node and (self.result is None or self.result.page is not None)
        return of_package or self.call.node.startswith("browser_")

    @property
    def only_read(self) -> bool:
        """Whether the step leaves the page as it was. A click that changes nothing on the site does not: it may lead to another page."""
        leads = self.call.node == "browser_action" and self.call.action not in browser_action.LEAVING_THE_PAGE
        return self.call.effect == "read" and not leads

    @property
    def touched_page(self) -> bool:
        """Whether the page may be another one since, for all that is known."""
        other_tab = self.call.thread.startswith(entries.CONFIRM)
        if self.rolled_back or other_tab or self.only_read or not self.on_page:
            return False
        if self.call.effect == "effect":
            return self.may_have_happened
        return self.result is None or self.result.status != "error" or (self.result.error or {}).get("phase") == "after"


def deciding(attempts: list[Attempt]) -> Attempt:
    """Return the attempt that says what became of a step.

    It is the last one, unless that came to nothing (it failed before it acted, or is no side effect and was broken off or failed) and one
    before it has the step's value, or may have acted. So a step that was being done again still is one that was done.
    """
    last = attempts[-1]
    if last.settled or not (last.did_nothing or last.call.effect != "effect"):
        return last
    return next((each for each in reversed(attempts) if each.settled or each.may_have_happened), last)


ENDED_BY_ERROR = frozenset({"item", "try", "catch", "finally"})
"""The scopes within a container that may end with an error that is kept."""


@dataclasses.dataclass(slots=True)
class ScopeState:
    """A container, or one turn of a loop."""

    path: str
    node: str
    opened: int
    decided: entries.Scope | None = None
    stale: entries.Scope | None = None
    """The list of a loop that was made behind the state that was last restored."""
    committed: entries.Scope | None = None
    failed: entries.Scope | None = None

    @property
    def stays_failed(self) -> bool:
        """Whether it ended with an error from which the run went on elsewhere: in the next turn, the next try, a `catch`."""
        return self.failed is not None and self.node in ENDED_BY_ERROR


@dataclasses.dataclass(slots=True)
class Ending:
    """How the run last ended by itself."""

    status: Literal["passed", "failed", "paused", "interrupted", "out-of-budget"]
    exit: int
    data: dict[str, Json]
    at: str
