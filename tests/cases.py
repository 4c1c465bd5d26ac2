"""Cases of a command that have ended, and their report, without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime import events
from runtime.batch.reports import composing
from runtime.language import reader
from runtime.log.store import file_store
from runtime.report import endings
from runtime.runs import results
from runtime.secrets import masking

NO_SECRETS = masking.Masker({})
TEXT = 'version: 1\nname: Pay "all" & <go>\nnodes:\n  - {id: pay, type: transform, expr: 1}\n'
LOADED = reader.parse(TEXT, "shop/pay.yaml")


def case(row: str | None = None, file: str = "shop/pay.yaml") -> results.Outcome:
    """A case that was not begun."""
    return results.Outcome(results.Case(Path(file), LOADED, row))


def run(outcome: results.Outcome, status: Any, code: int = 1, id: str = "01RUN", **fields: Any) -> results.Outcome:
    """Give the case one more run, which has ended."""
    given: dict[str, Any] = {"place": "shop/pay.yaml:4:5" if "path" in fields else None, **fields}
    outcome.begin().end(events.RunEnded(id, status, code, 1.25, **given), code)
    return outcome


def ended(status: Any, code: int = 1, **fields: Any) -> results.Outcome:
    """A case with one run, which has ended."""
    return run(case(), status, code, **fields)


def report(
    outcomes: list[results.Outcome], masker: masking.Masker = NO_SECRETS, exit: int | None = 1
) -> endings.BatchReport:
    """The report of cases whose logs are gone."""
    found = results.Results(outcomes, selected=[each.case.id for each in outcomes], started="2026-01-02T03:04:05Z")
    found.exit = exit
    return composing.Composer(file_store.FileStore(Path("gone")).reader, whole=False).compose(found, masker)
