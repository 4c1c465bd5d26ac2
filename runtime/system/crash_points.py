"""Moments at which a run may die, by name. ``docs/crash-recovery.md`` says for each what is on disk and what a resume does with it.

Between two of them a process does nothing that outlives it. A test sets ``hook`` and ends the process there; a real run has none.
"""

from __future__ import annotations

import enum
from collections.abc import Callable


class CrashPoint(enum.StrEnum):
    """A moment right after which the process may be gone. An action here is a step of class *effect*."""

    # An action
    BEFORE_CALL = "before-call"
    CALL_APPENDED = "call-appended"
    CALL_SYNCED = "call-synced"
    EFFECT_DONE = "effect-done"
    RESULT_APPENDED = "result-appended"

    # A container, an item, a block, the run itself
    OPENED = "opened"
    DECIDED = "decided"
    COMMITTED = "committed"
    FAILED = "failed"

    # A checkpoint
    CHECKPOINT_TAKEN = "checkpoint-taken"
    CHECKPOINT_FILE = "checkpoint-file"
    CHECKPOINT_APPENDED = "checkpoint-appended"

    # A request to a model
    USER = "user"
    HEARD = "heard"
    REQUESTED = "requested"
    REQUEST_SYNCED = "request-synced"
    SUBMITTED = "submitted"
    SUBMISSION_SYNCED = "submission-synced"
    ANSWER_CAME = "answer-came"
    ARRIVED = "arrived"
    REASONING = "reasoning"
    ASSISTANT = "assistant"
    EXCHANGE_SYNCED = "exchange-synced"
    TOOL_RESULT = "tool-result"
    MODEL_ERROR = "model-error"

    # A session
    EVENT = "event"
    SUMMARY = "summary"
    VERSION = "version"
    RESET = "reset"
    CHILD_STARTED = "child-started"
    CHILD_ENDED = "child-ended"
    DELEGATE_STARTED = "delegate-started"
    COPIED = "copied"

    # A large value
    BLOB = "blob"

    # The browser
    BROWSER_STARTED = "browser-started"
    BROWSER_KNOWN = "browser-known"

    # Settled by a resume
    CLOSED = "closed"

    # Notes, each by its name in the log
    CLAIMED = "claimed"
    CHANGED = "changed"
    RESTORING = "restoring"
    RESTORED = "restored"
    RECONCILED = "reconciled"
    CONFIRM_TRIED = "confirm-tried"
    PAUSED = "paused"
    ASKED = "asked"
    ANSWERED = "answered"
    STOPPED = "stopped"
    EVIDENCE = "evidence"
    ENDED = "ended"


hook: Callable[[CrashPoint], None] | None = None  # called at each point; None except in tests


def crash_point(name: CrashPoint) -> None:
    if hook is not None:
        hook(name)
