"""State of a step, and what happens when a run reaches it: one enum, one table.

A step has a state from its attempts (`attempts.Attempt.state`). For each state, each effect class and each policy of the author, the
table says what happens next. ``docs/crash-recovery.md`` shows it (`scripts/state_docs.py` writes it there).
"""

from __future__ import annotations

import enum
from typing import Final

from nodes.part import EffectClass


class State(enum.StrEnum):
    FRESH = "fresh"
    """It has no call."""
    OPEN = "open"
    """It has a call without a recorded outcome: a crash or an interruption ended it."""
    DONE = "done"
    """Its outcome is known, and counts."""
    FAILED_BEFORE = "failed before"
    """Its last attempt did not act: proved when it failed, or since."""
    FAILED_AFTER = "failed after"
    """Its last attempt failed, and may have acted."""
    UNDONE = "undone"
    """It was done, but after the checkpoint that was restored: the browser has no trace of it."""
    VOID = "void"
    """The workflow file was changed since, so that the step does something else."""


class Configured(enum.StrEnum):
    """The author's policy for a side effect that may have happened: in the node (`confirm`, `after_crash`), or around it (`on_redo`)."""

    NOTHING = "nothing"
    CONFIRM = "confirm"
    CONFIRM_RETRY = "confirm, after_crash: retry"
    CONFIRM_SKIP = "confirm, after_crash: skip"
    RETRY = "after_crash: retry"
    SKIP = "after_crash: skip"
    ASK = "after_crash: ask"
    REDO = "on_redo: redo"
    REDO_CONFIRM = "on_redo: confirm"
    REDO_ASK = "on_redo: ask"


class Then(enum.StrEnum):
    """One thing that happens. In a row of several, each is for what the one before could not decide."""

    TAKE = "take"
    """The recorded value is the step's value."""
    ACT = "act"
    """The step is done in a new attempt."""
    VERIFY = "verify"
    """It is done if all rules of `verify` hold on the page as the crash left it, and did not hold just before the action."""
    CONFIRM = "confirm"
    """The node's `confirm` asks the site: done, or not done, which leads to a new attempt."""
    SKIP = "skip"
    """The step is skipped, without a value."""
    ASK = "ask"
    """The run pauses until a person says whether it happened."""


Row = tuple[State, EffectClass, Configured]

_REPEATABLE: Final = {state: (Then.TAKE if state is State.DONE else Then.ACT,) for state in State}

# The author's policy for an attempt whose outcome is unknown. Without one, a person is asked.
_UNKNOWN: Final[dict[Configured, tuple[Then, ...]]] = {
    Configured.NOTHING: (Then.VERIFY, Then.ASK),
    Configured.CONFIRM: (Then.VERIFY, Then.CONFIRM, Then.ASK),
    Configured.CONFIRM_RETRY: (Then.VERIFY, Then.CONFIRM, Then.ACT),
    Configured.CONFIRM_SKIP: (Then.VERIFY, Then.CONFIRM, Then.SKIP),
    Configured.RETRY: (Then.VERIFY, Then.ACT),
    Configured.SKIP: (Then.VERIFY, Then.SKIP),
    Configured.ASK: (Then.VERIFY, Then.ASK),
}

# It is known to have happened once. `after_crash` is the author's policy for what is unknown, so it does not apply here.
_HAPPENED: Final[dict[Configured, tuple[Then, ...]]] = {
    Configured.REDO_CONFIRM: (Then.CONFIRM, Then.ASK),
    Configured.REDO: (Then.ACT,),
    Configured.REDO_ASK: (Then.ASK,),
}

TO_RECONCILE: Final = frozenset({State.OPEN, State.FAILED_AFTER, State.UNDONE})
"""States in which a side effect must be reconciled before it is attempted again."""

_CLASSES: Final[tuple[EffectClass, ...]] = ("read", "idempotent", "effect")

TABLE: Final[dict[Row, tuple[Then, ...]]] = {
    # A side effect that happened, or may have, cannot be changed in the file (`runtime.recovery.compatibility`): a void step has not acted.
    **{
        (state, effect, Configured.NOTHING): then
        for effect in _CLASSES
        for state, then in _REPEATABLE.items()
        if effect != "effect" or state not in TO_RECONCILE
    },
    **{(State.OPEN, "effect", word): then for word, then in _UNKNOWN.items()},
    **{(State.FAILED_AFTER, "effect", word): then for word, then in _UNKNOWN.items()},
    **{(State.UNDONE, "effect", word): then for word, then in _HAPPENED.items()},
}
"""Actions at a step, in order, for every state, effect class and policy of the author."""

LOST: Final = frozenset({"answer-lost", "timeout", "navigation-failed", "page-crashed", "browser-gone"})
"""Errors after which it is unknown if a side effect happened. After others the site has answered, and not as the author wants."""


def configured(state: State, *, confirm: bool, after_crash: str | None, on_redo: str | None) -> Configured:
    """Return the author's policy for a side effect in ``state``. ``on_redo`` is that of the innermost container that has one."""
    if state is State.UNDONE:
        if on_redo == "redo":
            return Configured.REDO
        return Configured.REDO_CONFIRM if confirm and on_redo != "ask" and after_crash != "ask" else Configured.REDO_ASK
    if state not in TO_RECONCILE:
        return Configured.NOTHING
    if after_crash == "ask":
        return Configured.ASK
    if confirm:
        words = {"retry": Configured.CONFIRM_RETRY, "skip": Configured.CONFIRM_SKIP}
        return words.get(after_crash or "", Configured.CONFIRM)
    words = {"retry": Configured.RETRY, "skip": Configured.SKIP}
    return words.get(after_crash or "", Configured.NOTHING)
