"""Selection of cases by ``-k`` and ``--tag``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from nodes import errors
from nodes.errors import UsageError
from runtime.batch import keywords
from runtime.runs import results


def tags_of(case: results.Case) -> list[str]:
    return [*case.loaded.workflow.tags] if case.loaded is not None else []


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    expression: str | None = None
    tags: Sequence[str] = ()

    def of(self, outcomes: Sequence[results.Outcome]) -> list[results.Outcome]:
        """Return those that are selected, in order; files that cannot be read stay, as they cannot show their name and tags.

        Raises UsageError: ``usage`` for the expression, ``no-case`` if no case is selected.
        """
        matches = keywords.read(self.expression) if self.expression is not None else None
        kept = [each for each in outcomes if each.case.loaded is None or self._takes(each.case, matches)]
        if kept:
            return kept
        known = sorted({tag for each in outcomes for tag in tags_of(each.case)})
        unknown = next((tag for tag in self.tags if tag not in known), None)
        listed = f"the tags are {', '.join(known)}" if known else "no workflow here has tags"
        fix = errors.did_you_mean(unknown, known, listed) if unknown is not None else "`--list` alone lists all cases"
        raise UsageError("no-case", f"none of {len(outcomes)} cases is selected by {self._described()}", fix=fix)

    def _takes(self, case: results.Case, matches: keywords.Matches | None) -> bool:
        tags = tags_of(case)
        if self.tags and not set(self.tags) & set(tags):
            return False
        return matches is None or matches([case.name, case.id, *tags])

    def _described(self) -> str:
        flags = [f"`--tag {tag}`" for tag in self.tags]
        return " and ".join([*([f"`-k {self.expression}`"] if self.expression is not None else []), *flags])
