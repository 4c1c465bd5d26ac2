"""The moments at which a run may die, by name. ``docs/crash-recovery.md`` says of each what is on the disk and what a resume does with it.

Between two of them a process does nothing that outlives it. A test sets ``hook`` and ends the process there; a run has none.
"""

from __future__ import annotations

import enum
from collections.abc import Callable


class CrashPoint(enum.StrEnum):
    """A moment right after which the process may be gone. An action is a step of class *effect*."""

    # An action
    BEFORE_CALL = "before-call"
    """Everything is ready, and the action's call is not appended."""
    CALL_APPENDED = "call-appended"
    """The action's call is appended, and not on the disk."""
    CALL_SYNCED = "call-synced"
    """The action's call is on the disk, and the action is not begun."""
    EFFECT_DONE = "effect-done"
    """The action is over, and its result is not appended."""
    RESULT_APPENDED = "result-appended"
    """The action's result is appended, and not on the disk."""

    # A container, a turn, a block, the run itself
    OPENED = "opened"
    DECIDED = "decided"
    """A decision is appended: of a container, or of a person about an action."""
    COMMITTED = "committed"
    FAILED = "failed"

    # A checkpoint
    CHECKPOINT_TAKEN = "checkpoint-taken"
    """The browser's state is read, and no file has it."""
    CHECKPOINT_FILE = "checkpoint-file"
    """The state's file is on the disk, and no entry names it."""
    CHECKPOINT_APPENDED = "checkpoint-appended"

    # A request to a model
    USER = "user"
    """What the model is told is appended."""
    REQUESTED = "requested"
    """The request is announced, and not on the disk."""
    REQUEST_SYNCED = "request-synced"
    """The announcement is on the disk, and nothing is sent."""
    SUBMITTED = "submitted"
    """The id of a response in the background is appended, and not on the disk."""
    SUBMISSION_SYNCED = "submission-synced"
    """That id is on the disk, and nobody has asked for the answer."""
    ANSWER_CAME = "answer-came"
    """The answer, or what came in its place, is here, and nothing of it is appended."""
    REASONING = "reasoning"
    ASSISTANT = "assistant"
    """The answer is appended, and not on the disk."""
    EXCHANGE_SYNCED = "exchange-synced"
    """The answer is on the disk, and nothing is made of it."""
    TOLD = "told"
    """What the model is told of a call that it asked for is appended."""
    MODEL_ERROR = "model-error"
    """What went wrong is appended, and the request is not sent again yet."""

    # A session
    EVENT = "event"
    """What a person did beside talking is appended."""
    SUMMARY = "summary"
    """What stands for a part of the thread from here on is appended."""
    VERSION = "version"
    """What is kept is appended, as it stands from here on."""
    CHILD_STARTED = "child-started"
    """That a run begins, or goes on, is appended."""
    CHILD_ENDED = "child-ended"
    """How a run ended that a tool has started, and what it spent, is appended."""
    COPIED = "copied"
    """A fork has taken over a further entry, and is not whole."""

    # A large value
    BLOB = "blob"
    """A blob is handed to the disk, and no entry names it."""

    # The browser
    BROWSER_STARTED = "browser-started"
    """It can be driven, and the file does not say so, or not what its tabs are."""
    BROWSER_KNOWN = "browser-known"
    """The file says where it is and what its tabs are."""

    # What a resume settles
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
    """What the page showed where a step failed is kept."""
    ENDED = "ended"
    """How the run ended is appended, and not on the disk."""


hook: Callable[[CrashPoint], None] | None = None
"""Called at each point; None but in tests."""


def crash_point(name: CrashPoint) -> None:
    """Here the process may die."""
    if hook is not None:
        hook(name)
