"""Selection of whole runs and sessions for `runops prune`, by age and outcome."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import typing
from collections.abc import Iterable
from typing import Literal

from nodes.errors import UsageError
from runtime.log import entries, history, session
from runtime.log.store import store as log_store
from runtime.workspace import run_index, session_index

Ended = Literal["passed", "failed", "paused", "interrupted", "out-of-budget", "died"]
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_UNITS)})")


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    older_than: float | None = None  # seconds since the last entry
    keep_last: int | None = None  # number of youngest ones to keep
    states: tuple[Ended, ...] = ()  # outcomes; `passed` if only other fields are set
    sessions: bool = False
    """Select sessions instead of runs. Any session can be continued, so they are deleted only on request."""

    def choose(self, found: Iterable[KnownConversation], now: float) -> list[KnownConversation]:
        """Return those of ``found`` to delete. ``found`` is sorted, oldest first."""
        if self.older_than is None and self.keep_last is None and not self.states:
            return []
        states = ("idle",) if self.sessions else (self.states or ("passed",))
        those = [each for each in found if each.state in states]
        those = those[: max(0, len(those) - (self.keep_last or 0))]
        return [each for each in those if self.older_than is None or now - each.ended >= self.older_than]


def states(texts: tuple[str, ...]) -> tuple[Ended, ...]:
    """Parse the names of states. Raises UsageError ``usage`` for one that no deletable run has."""
    for text in texts:
        if text not in typing.get_args(Ended):
            fix = f"one of {', '.join(typing.get_args(Ended))}"
            raise UsageError("usage", f"`{text}` is no state in which a run is deleted", fix=fix)
    return typing.cast("tuple[Ended, ...]", texts)


def span(text: str) -> float:
    """Return the seconds of a time such as ``30d``. Raises UsageError ``usage`` with the grammar."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        fix = "write a number and a unit, one of s, min, h, d, w: `45min`, `12h`, `30d`, `2w`"
        raise UsageError("usage", f"`{text}` is no span of time", fix=fix)
    return float(found[1]) * _UNITS[found[2]]


@dataclasses.dataclass(frozen=True, slots=True)
class KnownConversation:
    """A run or a session that has begun, and that no process owns."""

    run: str
    state: run_index.RunState | Literal["idle"]  # `idle` of a session
    trial: bool
    workflow: str  # the workflow's name, or the session's title
    ended: float  # time of the last entry, in seconds since 1970
    untouched: bool = False  # true for a session without any message, action or kept value

    @property
    def kind(self) -> session_index.Kind:
        return "session" if self.state == "idle" else "run"

    @property
    def over(self) -> bool:
        """True if it is never resumed."""
        return self.state == "passed" or self.trial


def known(reading: log_store.Reading) -> KnownConversation | None:
    """Summarize a conversation that no process owns; None if nothing has begun."""
    first = next(iter(reading.entries), None)
    if isinstance(first, entries.Scope) and first.session is not None:
        said = session.Session(reading.entries)
        if not said.begun:
            return None
        title, last = session_index.titled(said), dt.datetime.fromisoformat(said.last_at).timestamp()
        return KnownConversation(reading.id, "idle", False, title, last, untouched=said.untouched)
    past = history.History(reading.entries)
    if past.header is None:
        return None
    state, ended = run_index.state_of(past, owned=False), dt.datetime.fromisoformat(past.last_at).timestamp()
    return KnownConversation(reading.id, state, past.header.trial is not None, past.header.workflow, ended)
