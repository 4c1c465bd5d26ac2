"""What happened to a run besides its steps, in lines with their times."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from runtime.display.text import duration, joined, one_line
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
    if report.state == "running":
        return ""
    return f"took {duration(report.seconds)}{' up to its last entry' if report.state == 'died' else ''}"


def span(report: RunReport, moment: Callable[[str], str]) -> str:
    """Return when the run began and when it ended, and how long it took. ``moment`` renders a time."""
    end = f" to {moment(report.last)}" if report.state != "running" else ""
    return joined(f"{moment(report.started)}{end}", took(report))


def lines(report: RunReport, moment: Callable[[str], str]) -> list[str]:
    """Return each pause with what a person answered or decided, and each time that the run was resumed, in order."""
    return _dated(sorted([*_pauses(report), *_resumed(report, moment)], key=lambda each: each[0]), moment)


def resumes(report: RunReport, moment: Callable[[str], str]) -> list[str]:
    return _dated(_resumed(report, moment), moment)


def pauses(report: RunReport, moment: Callable[[str], str]) -> list[str]:
    return _dated(_pauses(report), moment)


def _dated(happened: Iterable[tuple[str, str]], moment: Callable[[str], str]) -> list[str]:
    return [f"{moment(at)}  {one_line(what)}" for at, what in happened]


def _resumed(report: RunReport, moment: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    for before, process in zip(report.processes, report.processes[1:], strict=False):
        yield process.started, f"resumed, {_after(before, process, moment)}"


def _pauses(report: RunReport) -> Iterator[tuple[str, str]]:
    for each in report.pauses:
        yield each.at, f"paused{f' at {each.path}' if each.path else ''}: {each.code}: {each.message}"
        if each.decided is not None:
            yield each.replied or each.at, f"a person decided: {each.decided}"
        elif each.answers is not None:
            yield each.replied or each.at, f"a person answered: {json.dumps(each.answers, ensure_ascii=False)}"


def _after(before: ProcessReport, process: ProcessReport, moment: Callable[[str], str]) -> str:
    if before.status is None and process.took_over:
        return "in place of a process that still ran"
    entry = f" (last entry {moment(before.last)})" if before.status is None else ""
    return f"after {AFTER[before.status]}{entry}"
