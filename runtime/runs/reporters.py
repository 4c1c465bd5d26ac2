"""Reports of a command's cases that are written while they run."""

from __future__ import annotations

from typing import Protocol

from nodes.values import Json
from runtime.runs import results
from runtime.secrets import masking


class Reporter(Protocol):
    def update(self, results: results.Results, masker: masking.Masker) -> None:
        """Report what is known now: called before the first run, whenever a run began or ended, and at the end, when ``exit`` is known.

        All that it writes is masked with ``masker``. Raises UsageError ``report-not-written``.
        """
        ...


class CaseListener(Protocol):
    def event(self, case: results.Case, event: dict[str, Json]) -> None:
        """Hear of an event of a run of ``case`` at once, as ``runtime.events`` has it in JSON. Never raises."""
        ...
