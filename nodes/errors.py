"""Every way of failing, as one tree: a class says *who must act*, a code says what happened.

RunOpsError
├── AuthorError      the author of the workflow file
│   ├── AssertFailed     nobody: the workflow's finding
│   └── CassetteMiss     a request to a model that is not the recorded one
├── SetupError       whoever installed or configured this machine
├── UsageError       whoever typed the command
├── SiteError        the site (or the author, where the site has changed)
│   └── OriginRefused    a document from an origin that the workflow does not allow
├── ModelError       the model or its provider (or the author, where the answer does not fit)
├── BudgetReached    whoever set the budget: the run goes on with a larger one
├── LogError         the operator: the log is damaged or cannot be written
│   └── RunHeld          another living process holds the run
├── Paused           a person: a question or a crash decision
├── Cancelled        nobody: the run was interrupted
├── Replaced         nobody: the run goes on elsewhere
└── InternalError    us
"""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, Literal, Self

from nodes.values import Json, sound, sound_json

Phase = Literal["before", "after"]
"""Whether an error came before or after the action that may have changed the site."""


class RunOpsError(Exception):
    """Something that a person must read: what happened, where, what is known, and the fix.

    ``code`` is stable and documented; ``message`` is one sentence without a final stop; ``evidence`` holds what was seen
    (page, nearest candidates, expected and actual values); ``fix`` is one sentence that says what to do.
    """

    who: ClassVar[str] = "internal"
    exit: ClassVar[int] = 70

    def __init__(
        self,
        code: str,
        message: str,
        *,
        fix: str | None = None,
        phase: Phase = "before",
        evidence: dict[str, Json] | None = None,
    ) -> None:
        # What a page says stands in many of them.
        message = sound(message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.phase: Phase = phase
        self.evidence: dict[str, Json] = sound_json(evidence or {})
        self.path: str | None = None
        """Path of the step that failed, once known."""

    def replaced(self, **changes: Any) -> Self:
        """A copy with other attributes, such as ``phase``, ``message`` or ``evidence``. The error itself stays as it was raised."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        copy.args = (copy.message,)
        copy.__cause__, copy.__suppress_context__ = self.__cause__, True
        return copy.with_traceback(self.__traceback__)

    def located(self, path: str) -> Self:
        """The error at the step ``path``; one that has a place already keeps it."""
        return self if self.path is not None else self.replaced(path=path)

    def as_json(self) -> dict[str, Json]:
        """The error as it stands in the log: code, who must act, message, phase, and, where there are any, evidence and fix."""
        out: dict[str, Json] = {
            "code": self.code,
            "who": self.who,
            "message": self.message,
            "phase": self.phase,
        }
        if self.evidence:
            out["evidence"] = self.evidence
        if self.fix:
            out["fix"] = self.fix
        return out


class AuthorError(RunOpsError):
    """The workflow file asks for something that cannot be: its author must change it."""

    who = "author"
    exit = 1


class AssertFailed(AuthorError):
    """An ``assert`` of the workflow does not hold: the workflow's finding, never retried."""

    who = "finding"


class CassetteMiss(AuthorError):
    """A step asks its model what the cassette does not have. Never caught by ``handle``: a replay that goes on past it proves nothing."""


class SetupError(RunOpsError):
    """This machine lacks something: a browser, a key, a secret, a free port."""

    who = "setup"
    exit = 3


class UsageError(RunOpsError):
    """The command line, the configuration or a named file cannot be used as given."""

    who = "usage"
    exit = 2


class SiteError(RunOpsError):
    """The page did not behave as the workflow expects."""

    who = "site"
    exit = 1


class OriginRefused(SiteError):
    """The page tried to load a document from an origin that the workflow does not allow. Never caught by ``handle``."""


class ModelError(RunOpsError):
    """A request to a model gave no answer that can be used."""

    who = "model"
    exit = 1


class BudgetReached(RunOpsError):
    """A request would have gone beyond a budget, so it was not sent; the run can be resumed.

    Never caught by ``handle``, ``on_error`` or ``each_error``: what was granted is not to be had by another way.
    """

    who = "budget"
    exit = 5


def can_be_passed(error: RunOpsError) -> bool:
    """Whether the author may let the run go on after it (``on_error``, ``each_error``, ``handle``)."""
    return isinstance(error, AuthorError | SiteError | ModelError) and not isinstance(
        error, OriginRefused | CassetteMiss
    )


class LogError(RunOpsError):
    """The run's log is damaged, or could not be written: nothing more was done on the site."""

    who = "operator"
    exit = 2


class RunHeld(LogError):
    """A living process holds the run; its log is not touched."""

    exit = 1


class Paused(RunOpsError):
    """The run waits for a person and can be resumed."""

    who = "paused"
    exit = 4


class Cancelled(RunOpsError):
    """The run was interrupted from outside and can be resumed."""

    who = "cancelled"
    exit = 130


class Replaced(RunOpsError):
    """Another owner has claimed the run: whoever held it writes nothing more and acts no more. Never caught by ``handle``, ``on_error`` or ``each_error``."""

    who = "replaced"
    exit = 75


class InternalError(RunOpsError):
    """A bug in RunOps."""

    who = "internal"
    exit = 70


def near(word: str, words: Any) -> str | None:
    """The word most like ``word``, or None where none is near."""
    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)), None)
