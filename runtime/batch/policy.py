"""What follows from an outcome: another run of the case, the end of the command, the exit code."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from runtime.runs import results

FAILURES = frozenset({"failed", "error", "interrupted", "out-of-budget", "replaced"})
"""States that count for ``max_failures``. A case that waits for a person stops no other."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    retries: int = 0
    max_failures: int | None = None
    fail_on_flaky: bool = False

    def retries_now(self, outcome: results.Outcome) -> bool:
        """True if a new run of the case is to be started, as its last one has failed."""
        return self._may_pass(outcome) and not forbidden(outcome) and len(outcome.runs) <= self.retries

    def note(self, outcome: results.Outcome) -> None:
        """Add what a person must know of a case that has ended."""
        if self._may_pass(outcome) and forbidden(outcome) and self.retries:
            outcome.notes.append("not retried: its file says `rerun: never`")
        if outcome.state == "flaky" and self.fail_on_flaky:
            outcome.fails_flaky = True
            outcome.notes.append("it counts as failed: `--fail-on-flaky`")

    def _may_pass(self, outcome: results.Outcome) -> bool:
        last = outcome.last
        return last is not None and last.state == "failed" and last.exit == results.FAILED

    def is_over(self, outcomes: Sequence[results.Outcome]) -> bool:
        """True if no further case is to be begun."""
        return self.max_failures is not None and sum(map(self._fails, outcomes)) >= self.max_failures

    def _fails(self, outcome: results.Outcome) -> bool:
        if outcome.state == "flaky":
            return self.fail_on_flaky
        return outcome.state in FAILURES and not self.retries_now(outcome)

    def codes(self, outcomes: Sequence[results.Outcome]) -> list[int]:
        """Return the exit codes of the cases that were begun, or could not be."""
        return [each.exit for each in outcomes if each.exit is not None]


def forbidden(outcome: results.Outcome) -> bool:
    loaded = outcome.case.loaded
    return loaded is not None and loaded.workflow.rerun == "never"
