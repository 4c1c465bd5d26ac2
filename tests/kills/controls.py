"""Deliberate defects that the harness must detect. Each is installed into a command as it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from runtime.engine import reconcile
from runtime.engine.run_state import Verdict
from runtime.log import attempts, entries
from runtime.log.writer import LogWriter


def _no_sync() -> None:
    """An action starts before its call is synced."""

    async def unsynced(self: LogWriter, each: entries.Call) -> entries.Call:
        return self.call(each)

    LogWriter.announce = unsynced  # type: ignore[method-assign]


def _result_first() -> None:
    """An action's result is appended before the action."""
    announce, result = LogWriter.announce, LogWriter.result

    async def and_result(self: LogWriter, each: entries.Call) -> entries.Call:
        written = await announce(self, each)
        result(self, written, "ok")
        return written

    def unless_there(self: LogWriter, each: entries.Call, status: entries.Status, **fields: Any) -> entries.Result:
        known = next((one.result for one in self.history.all_attempts() if one.call.call == each.call), None)
        return known or result(self, each, status, **fields)

    LogWriter.announce = and_result  # type: ignore[method-assign]
    LogWriter.result = unless_there  # type: ignore[method-assign,assignment]


def _deaf() -> None:
    """The verdict of ``confirm`` is ignored."""

    async def ask(*_given: Any) -> Verdict:
        return Verdict("not-done", "nobody was asked")

    reconcile.ask_the_site = ask
    _never_known()


def _unjudged() -> None:
    """A unit is repeated without checking the actions in it."""
    may_have_happened = attempts.Attempt.may_have_happened.fget
    assert may_have_happened is not None
    attempts.Attempt.may_have_happened = property(lambda self: not self.rolled_back and may_have_happened(self))  # type: ignore[method-assign,assignment]
    _never_known()


def _never_known() -> None:
    """Before steps are repeated, their outcome is never looked up."""

    async def unknown(*_given: Any) -> None:
        return None

    reconcile.known_done = unknown


def _forgotten() -> None:
    """The tools of an answer that is in the log of a session are skipped."""
    from runtime.models.turns import turn

    take_up = turn.Turns._load

    def forget(self: turn.Turns) -> None:
        take_up(self)
        self._last = None

    turn.Turns._load = forget


def _unheard() -> None:
    """A delegate's answer in the log is ignored."""
    from director.conversation import delegate

    delegate.Delegation.outcome_of_open_call = lambda *_given: None  # type: ignore[method-assign]


def _again() -> None:
    """A tool call already begun is not recognised, and runs a second time."""
    from runtime.models.turns import turn

    turn.Turns._rendered = lambda *_given: None  # type: ignore[method-assign]


def _unsaid() -> None:
    """What the person said while the session worked is lost with its process."""
    from runtime.log import threads

    add = threads.Thread.add

    def forget(self: threads.Thread, entry: entries.AnyEntry) -> None:
        if not isinstance(entry, entries.Heard):
            add(self, entry)

    threads.Thread.add = forget


Control = Literal["no-sync", "result-first", "deaf", "unjudged", "forgotten", "unheard", "unsaid", "again"]

BREAK: dict[str, Callable[[], None]] = {
    "no-sync": _no_sync,
    "result-first": _result_first,
    "deaf": _deaf,
    "unjudged": _unjudged,
    "forgotten": _forgotten,
    "unheard": _unheard,
    "unsaid": _unsaid,
    "again": _again,
}
"""The function that installs each defect."""
