"""What every report of many runs says of a case: its problem, its place, its costs, its evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from nodes.values import Json
from runtime.display.text import count
from runtime.log import ledger
from runtime.report.endings import CaseRecord, RunRecord
from runtime.report.models import RunReport
from runtime.report.parts import FileReport

WITHOUT_RESULT = {
    "skipped": ("skipped", "it was not begun"),
    "begun": ("no-end", "it was begun, and RunOps ended before it could report how it ended"),
    "interrupted": ("interrupted", "the run was interrupted"),
}
"""Code and message of each state in which a run has reported neither an error nor a question."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(each) for each in (self.file, self.line, self.column) if each is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file."""

    place: Place
    code: str
    message: str
    help: tuple[str, ...] = ()


def code(run: RunRecord) -> str:
    return _said(run)[0]


def message(run: RunRecord) -> str:
    return _said(run)[1]


def _said(run: RunRecord) -> tuple[str, str]:
    if isinstance(run, CaseRecord) and run.status == "flaky":
        failed = [each for each in run.attempts if each.status == "failed"]
        return "flaky", f"passed after {count(len(failed), 'run')} failed: {message(telling(run))}"
    if run.error is not None:
        return run.error.code, run.error.message
    if run.question is not None:
        return run.question.reason, run.question.message
    return WITHOUT_RESULT.get(run.status, (run.status, run.status))


def telling(case: CaseRecord) -> RunRecord:
    """Return the run of a case that shows what went wrong: of a flaky one, the last that failed."""
    failed = [each for each in case.attempts if each.status == "failed"]
    return failed[-1] if case.status == "flaky" and failed else case


def evidence(run: RunRecord) -> dict[str, Json]:
    found = run.error or run.question
    return dict((found.evidence if found is not None else None) or {})


def fix(run: RunRecord) -> str | None:
    found = run.error or run.question
    return found.fix if found is not None else None


def place(run: RunRecord) -> Place | None:
    """Return the place of the step that failed or asks, or of the first mistake in the file."""
    if run.place is not None:
        return parsed(run.place)
    return next((each.place for each in problems(evidence(run).get("problems"))), None)


def parsed(text: str) -> Place:
    """Read a place as errors have it: ``FILE:LINE:COLUMN``, or ``FILE``. A file's name may have colons."""
    parts = text.rsplit(":", 2)
    if len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal():
        return Place(parts[0], int(parts[1]), int(parts[2]))
    return Place(text)


def problems(found: Json) -> list[Problem]:
    """Read the evidence ``problems`` of an error: the mistakes in files."""
    return [_problem(each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _problem(found: Mapping[str, Json]) -> Problem:
    where = [each if isinstance(each, int) else None for each in (found.get("line"), found.get("column"))]
    lines = found.get("help")
    told = tuple(str(each) for each in lines) if isinstance(lines, list) else ()
    return Problem(
        Place(str(found.get("file", "")), *where), str(found.get("code", "")), str(found.get("message", "")), told
    )


def seconds(case: CaseRecord) -> float:
    return sum(each.seconds or 0.0 for each in case.attempts)


def costs(case: CaseRecord) -> dict[str, Json] | None:
    """Return what all its runs cost; None if no model was asked."""
    # A run that was resumed counts what it had spent before.
    last = {each.run: each.costs.model_dump() for each in case.attempts if each.costs is not None}
    return ledger.together(list(last.values())) if last else None


def was_resumed(case: CaseRecord, details: Mapping[str, RunReport]) -> bool:
    """Whether a run of it continued in another process."""
    runs = [each.run for each in case.attempts if each.run is not None]
    return len(set(runs)) < len(runs) or any(len(details[run].processes) > 1 for run in runs if run in details)


def files_of_evidence(report: RunReport | None) -> Iterator[FileReport]:
    """Yield what was kept of the page of the step that failed last."""
    found: Sequence[FileReport | None] = ()
    if report is not None and report.evidence:
        last = report.evidence[-1]
        frames = [each.screenshot for each in last.frames or ()]
        found = [last.screenshot, *frames, last.observation, last.trace]
    # Steps share a picture if the page did not change between them.
    return iter({each.path: each for each in found if each is not None}.values())
