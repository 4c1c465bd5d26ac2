"""Which whole runs and sessions `runops prune` takes away: how old they are, what became of them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import typing
from collections.abc import Iterable
from typing import Literal

from nodes.errors import UsageError
from runtime.log import entries, history, session
from runtime.log.store import store
from runtime.workspace import run_index, session_index

Ended = Literal["passed", "failed", "paused", "interrupted", "out-of-budget", "died"]
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_UNITS)})")


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Which whole runs go: none, unless something is said here."""

    older_than: float | None = None
    """Seconds since the last entry."""
    keep_last: int | None = None
    """How many of the youngest stay."""
    states: tuple[Ended, ...] = ()
    """What became of them; where only the others are said, they passed."""
    sessions: bool = False
    """Sessions are meant, and no runs. Somebody may go on with any of them, so they go only where this is said."""

    def choose(self, found: Iterable[KnownConversation], now: float) -> list[KnownConversation]:
        """The runs or sessions that go, of ``found`` from the oldest to the youngest."""
        if self.older_than is None and self.keep_last is None and not self.states:
            return []
        states = ("idle",) if self.sessions else (self.states or ("passed",))
        those = [each for each in found if each.state in states]
        those = those[: max(0, len(those) - (self.keep_last or 0))]
        return [each for each in those if self.older_than is None or now - each.ended >= self.older_than]


def states(texts: Iterable[str]) -> tuple[Ended, ...]:
    """The states that are named. Raises UsageError ``usage`` for one that no run can be in that goes."""
    found: list[Ended] = []
    for text in texts:
        match text:
            case "passed" | "failed" | "paused" | "interrupted" | "out-of-budget" | "died":
                found.append(text)
            case _:
                raise UsageError(
                    "usage",
                    f"`{text}` is no state in which a run goes",
                    fix=f"one of {', '.join(typing.get_args(Ended))}",
                )
    return tuple(found)


def span(text: str) -> float:
    """The seconds of a time such as ``30d``. Raises UsageError ``usage`` with the grammar."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            "usage",
            f"`{text}` is no span of time",
            fix="write a number and a unit, one of s, min, h, d, w: `45min`, `12h`, `30d`, `2w`",
        )
    return float(found[1]) * _UNITS[found[2]]


@dataclasses.dataclass(frozen=True, slots=True)
class KnownConversation:
    """A run or a session that nobody holds, and that has begun."""

    run: str
    state: run_index.RunState | Literal["idle"]
    """``idle`` of a session."""
    trial: bool
    workflow: str
    """Its name; of a session what it is about."""
    ended: float
    """Its last entry, in seconds since 1970."""
    untouched: bool = False
    """Of a session: nothing was ever said, done or kept in it."""

    @property
    def kind(self) -> session_index.Kind:
        """What it is."""
        return "session" if self.state == "idle" else "run"

    @property
    def over(self) -> bool:
        """Whether nobody ever goes on with it."""
        return self.state == "passed" or self.trial


def known(reading: store.Reading) -> KnownConversation | None:
    """What a reader finds; None where nothing has begun."""
    first = next(iter(reading.entries), None)
    if isinstance(first, entries.Scope) and first.session is not None:
        said = session.Session(reading.entries)
        last = dt.datetime.fromisoformat(said.last_at).timestamp()
        title = session_index.titled(said)
        return (
            KnownConversation(reading.id, "idle", False, title, last, untouched=said.untouched) if said.begun else None
        )
    past = history.History(reading.entries)
    if past.header is None:
        return None
    # Nobody holds it: whoever asks has its lock, or has looked.
    state, ended = run_index.state_of(past, held=False), dt.datetime.fromisoformat(past.last_at).timestamp()
    return KnownConversation(reading.id, state, past.header.trial is not None, past.header.workflow, ended)
