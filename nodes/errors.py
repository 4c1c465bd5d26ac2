"""All errors: the class says who must act, the code what happened."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, Literal, Self

from nodes.values import Json, sound, sound_json

Phase = Literal["before", "after"]  # position of an error relative to the action that may have changed the site


class RunOpsError(Exception):
    """An error for a person: what happened, where, what is known, and the fix.

    ``code`` is stable and documented. ``message`` is one sentence without a final stop. ``evidence`` has the observed facts (page, nearest
    candidates, expected and actual values). ``fix`` is one sentence that says what to do.
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
        # Many messages quote a page, whose text may hold lone surrogates.
        message = sound(message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.phase: Phase = phase
        self.evidence: dict[str, Json] = sound_json(evidence or {})
        self.path: str | None = None  # path of the step that failed, once known

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with other attributes, such as ``phase``, ``message`` or ``evidence``. The error itself does not change."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        copy.args = (copy.message,)
        copy.__cause__, copy.__suppress_context__ = self.__cause__, True
        return copy.with_traceback(self.__traceback__)

    def located(self, path: str) -> Self:
        """Return the error at the step ``path``; a path that is already set stays."""
        return self if self.path is not None else self.replaced(path=path)

    def as_json(self) -> dict[str, Json]:
        out: dict[str, Json] = {"code": self.code, "who": self.who, "message": self.message, "phase": self.phase}
        if self.evidence:
            out["evidence"] = self.evidence
        if self.fix:
            out["fix"] = self.fix
        return out


class AuthorError(RunOpsError):
    """The workflow file asks for something impossible: its author must change it."""

    who = "author"
    exit = 1


class AssertFailed(AuthorError):
    """An ``assert`` of the workflow does not hold: the workflow's finding, never retried."""

    who = "finding"


class CassetteMiss(AuthorError):
    """A request to a model is not in the cassette. Never caught by ``handle``: a replay that continues proves nothing."""


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
    """A request to a model gave no usable answer."""

    who = "model"
    exit = 1


class BudgetReached(RunOpsError):
    """A request would have exceeded a budget, so it was not sent; the run can be resumed.

    Never caught by ``handle``, ``on_error`` or ``each_error``: a workflow must not evade its limits.
    """

    who = "budget"
    exit = 5


def can_be_passed(error: RunOpsError) -> bool:
    """Return whether the author may let the run continue after it (``on_error``, ``each_error``, ``handle``)."""
    return isinstance(error, AuthorError | SiteError | ModelError) and not isinstance(
        error, OriginRefused | CassetteMiss
    )


class LogError(RunOpsError):
    """The run's log is damaged, or could not be written: nothing more was done on the site."""

    who = "operator"
    exit = 2


class RunHeld(LogError):
    """A running process holds the run; its log is not touched."""

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
    """The run has a new owner: the previous one writes and does nothing more. Never caught by ``handle``, ``on_error`` or ``each_error``."""

    who = "replaced"
    exit = 75


class InternalError(RunOpsError):
    """A bug in RunOps."""


def near(word: str, words: Any) -> str | None:
    """Return the word most similar to ``word``, or None if none is similar."""
    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)), None)


def did_you_mean(word: str, words: Any, otherwise: str | None = None) -> str | None:
    """Return a fix that names the most similar word, or ``otherwise`` if none is similar."""
    close = near(word, words)
    return f"did you mean `{close}`?" if close else otherwise
