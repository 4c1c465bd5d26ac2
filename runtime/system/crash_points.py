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
    """Everything is ready; the action's call is not appended."""
    CALL_APPENDED = "call-appended"
    """The action's call is appended, and not synced."""
    CALL_SYNCED = "call-synced"
    """The action's call is synced; the action has not begun."""
    EFFECT_DONE = "effect-done"
    """The action is over; its result is not appended."""
    RESULT_APPENDED = "result-appended"
    """The action's result is appended, and not synced."""

    # A container, an item, a block, the run itself
    OPENED = "opened"
    DECIDED = "decided"
    """A decision is appended: of a container, or of a person about an action."""
    COMMITTED = "committed"
    FAILED = "failed"

    # A checkpoint
    CHECKPOINT_TAKEN = "checkpoint-taken"
    """The browser's state is read; no file has it."""
    CHECKPOINT_FILE = "checkpoint-file"
    """The state's file is synced; no entry names it."""
    CHECKPOINT_APPENDED = "checkpoint-appended"

    # A request to a model
    USER = "user"
    """A message to the model is appended."""
    REQUESTED = "requested"
    """The request is announced, and not synced."""
    REQUEST_SYNCED = "request-synced"
    """The announcement is synced; nothing is sent."""
    SUBMITTED = "submitted"
    """The id of a background response is appended, and not synced."""
    SUBMISSION_SYNCED = "submission-synced"
    """That id is synced; the answer was not asked for."""
    ANSWER_CAME = "answer-came"
    """The answer or an error has arrived; nothing of it is appended."""
    REASONING = "reasoning"
    ASSISTANT = "assistant"
    """The answer is appended, and not synced."""
    EXCHANGE_SYNCED = "exchange-synced"
    """The answer is synced; nothing has used it."""
    TOLD = "told"
    """The outcome of a call, as shown to the model, is appended."""
    MODEL_ERROR = "model-error"
    """The error is appended; the request is not sent again yet."""

    # A session
    EVENT = "event"
    """A person's action besides talking is appended."""
    SUMMARY = "summary"
    """A summary that replaces a part of the thread is appended."""
    VERSION = "version"
    """What is kept is appended, as it stands from here on."""
    CHILD_STARTED = "child-started"
    """That a run begins, or continues, is appended."""
    CHILD_ENDED = "child-ended"
    """How a run ended that a tool has started, and what it spent, is appended."""
    COPIED = "copied"
    """A fork has copied one more entry, and is not whole."""

    # A large value
    BLOB = "blob"
    """A blob is on its way to the disk; no entry names it."""

    # The browser
    BROWSER_STARTED = "browser-started"
    """It can be driven; its file does not say so yet, or does not list its tabs."""
    BROWSER_KNOWN = "browser-known"
    """Its file has its address and its tabs."""

    # Settled by a resume
    CLOSED = "closed"
    """The call that a crash left open has its result: interrupted, recovered or skipped."""

    # Notes, each by its name in the log
    CLAIMED = "claimed"
    CHANGED = "changed"
    RESTORING = "restoring"
    RESTORED = "restored"
    RECONCILED = "reconciled"
    PAUSED = "paused"
    ANSWERED = "answered"
    EVIDENCE = "evidence"
    """The evidence of a failed step is kept."""
    ENDED = "ended"
    """The run's end is appended, and not synced."""


hook: Callable[[CrashPoint], None] | None = None
"""Called at each point; None except in tests."""


def crash_point(name: CrashPoint) -> None:
    if hook is not None:
        hook(name)
