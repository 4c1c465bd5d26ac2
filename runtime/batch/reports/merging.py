"""Joins the reports of the shards of a command."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from nodes.errors import UsageError
from runtime.batch.reports import composing
from runtime.display.text import count
from runtime.report import endings
from runtime.report.endings import BatchReport, CaseRecord
from runtime.report.parts import ErrorReport
from runtime.runs import results
from runtime.system import regular_files

INCOMPLETE = "shards-incomplete"


def read(file: Path) -> BatchReport:
    """Read a report that ``run --report`` or ``report merge`` wrote. Raises UsageError ``file-not-found``, ``file-not-read``, ``report-invalid``."""
    try:
        return BatchReport.model_validate_json(regular_files.read(file), extra="ignore")
    except FileNotFoundError:
        raise UsageError("file-not-found", f"there is no file {file}", fix="give the reports of all shards") from None
    except OSError as error:
        raise UsageError(
            "file-not-read", f"{file} cannot be read: {error.strerror}", fix=regular_files.fix(error)
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(
            "report-invalid",
            f"{file} is no report of runs: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            fix="give files that `runops run --report FILE` wrote, with a RunOps of this version",
        ) from None


@dataclasses.dataclass(frozen=True, slots=True)
class Merged:
    report: BatchReport
    missing: Sequence[str]
    """Selected cases that are in no report."""
    twice: Sequence[str]
    """Cases that are in more than one report."""

    def problem(self) -> UsageError | None:
        """Return what is wrong with the shards."""
        if not self.missing and not self.twice:
            return None
        said = [
            *([f"{count(len(self.missing), 'case')} in no report"] if self.missing else []),
            *([f"{count(len(self.twice), 'case')} in more than one"] if self.twice else []),
        ]
        return UsageError(
            INCOMPLETE,
            f"the reports are not those of all shards of one command: {', '.join(said)}",
            fix="give the report of each shard once; all shards must have the same files, selection and `--durations`",
            evidence={"missing": [*self.missing], "twice": [*self.twice]},
        )


def join(reports: Sequence[BatchReport]) -> Merged:
    """Return one report of all cases. A selected case that is in no report is in it as skipped."""
    selected = list(dict.fromkeys(case for each in reports for case in each.selected))
    runs = [case for each in reports for case in each.runs]
    seen = Counter(str(each.case) for each in runs)
    missing = [case for case in selected if case not in seen]
    twice = [case for case, times in seen.items() if times > 1]
    place = {case: number for number, case in enumerate([*selected, *(case for case in seen if case not in selected)])}
    # A report that is given twice counts once.
    runs = list({each.model_dump_json(): each for each in runs}.values())
    runs = sorted([*runs, *map(_lost, missing)], key=lambda each: place[str(each.case)])
    problem = UsageError.exit if missing or twice else 0
    report = BatchReport(
        exit=results.worst([problem, *(each.exit for each in reports)]),
        started=min((each.started for each in reports if each.started), default=""),
        shard=None,
        selected=selected,
        runs=runs,
        details={run: found for each in reports for run, found in each.details.items()},
        pictures=composing.bounded((sha256, data) for each in reports for sha256, data in each.pictures.items()),
    )
    return Merged(report, missing, twice)


def _lost(case: str) -> CaseRecord:
    """Return the record of a case that no report has: of it only the id is known."""
    record = endings.of_case(results.Outcome(results.Case(Path(case))))
    error = ErrorReport(code=INCOMPLETE, message="no report has it")
    return record.model_copy(update={"name": case, "host": "", "error": error})
