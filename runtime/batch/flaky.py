"""What differed between a run that failed and the run of the same case that passed after it."""

from __future__ import annotations

from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime.log.store import store as log_store
from runtime.report import differences, of_run
from runtime.report.models import RunReport
from runtime.runs import results
from runtime.workspace import run_index


def differed(outcome: results.Outcome, store: log_store.StoreReader) -> list[dict[str, Json]]:
    """Return the differences between the last two runs of a flaky case, as in reports; none if a log cannot be read."""
    if outcome.state != "flaky":
        return []
    *_earlier, failed, passed = outcome.runs
    try:
        before, after = (_report(store, each.id) for each in (failed, passed) if each.id is not None)
    except (LogError, UsageError, ValueError):
        return []
    return [each.model_dump(mode="json") for each in differences.differences(before, after)]


def _report(store: log_store.StoreReader, run: str) -> RunReport:
    past, reading = run_index.load_history(store, run)
    return of_run.run_report(past, reading, store)
