"""What happened to a run besides its steps, in lines with their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from runtime.display.text import duration, joined
from runtime.events import RunStatus
from runtime.report.models import ProcessReport, RunReport

AFTER: dict[RunStatus | None, str] = {
    None: "its process had ended",
    "passed": "it had passed",
    "failed": "it had failed",
    "paused": "it had paused",
    "interrupted": "it was interrupted",
    "out-of-budget": "its budget was used up",
    "replaced": "another process had taken it over",
}


def took(report: RunReport) -> str:
    """Return how long the run worked; empty while it runs."""
    return "" if report.state == "running" else f"took {duration(report.seconds)}"


def span(report: RunReport, moment: Callable[[str], str]) -> str:
    """Return when the run began and when it ended, and how long it took. ``moment`` renders a time."""
    end = f" to {moment(report.last)}" if report.state != "running" else ""
    return joined(f"{moment(report.started)}{end}", took(report))


def lines(report: RunReport, moment: Callable[[str], str]) -> Iterator[str]:
    """Yield each time that the run was resumed."""
    for before, process in zip(report.processes, report.processes[1:], strict=False):
        yield f"{moment(process.started)}  resumed, {_after(before, process, moment)}"


def _after(before: ProcessReport, process: ProcessReport, moment: Callable[[str], str]) -> str:
    if before.status is None and process.took_over:
        return "in place of a process that still ran"
    entry = f" (last entry {moment(before.last)})" if before.status is None else ""
    return f"after {AFTER[before.status]}{entry}"
