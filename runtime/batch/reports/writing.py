"""Keeps the reports of a command up to date while its cases run.

A file is replaced as a whole, so whatever ends the command, the last one is there. Writing it takes a small share of the time: while it is
small, it is written whenever a run begins or ends; a large one is written less often.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from typing_extensions import override

from nodes.errors import UsageError
from runtime.batch.reports import composing, junit
from runtime.report import endings
from runtime.runs import reporters, results
from runtime.secrets import masking, published

SHARE = 0.05  # largest part of the time that writing one file takes, besides the first second

Render = Callable[[endings.BatchReport], bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class ReportFile:
    flag: str
    file: Path
    render: Render

    def make_folder(self) -> None:
        """Raises UsageError ``report-not-written``."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(self.flag, self.file, error) from None

    def write(self, report: endings.BatchReport) -> None:
        """Replace the file. Raises UsageError ``report-not-written``."""
        try:
            published.publish(self.file, self.render(report))
        except OSError as error:
            raise not_written(self.flag, self.file, error) from None


def not_written(flag: str, file: Path, error: OSError) -> UsageError:
    return UsageError(
        "report-not-written",
        f"the report {file} cannot be written: {error.strerror}",
        fix=f"give `{flag}` a path that can be written",
    )


@dataclasses.dataclass(slots=True)
class _Pace:
    """How often one file is written."""

    began: float
    spent: float = 0.0
    last: float = 0.0  # what its last write took

    def allows(self, now: float) -> bool:
        return self.spent + self.last <= 1.0 + SHARE * (now - self.began)

    def note(self, seconds: float) -> None:
        self.spent += seconds
        self.last = seconds


class Reports(reporters.Reporter):
    """The reports that are made of all cases."""

    def __init__(
        self,
        composer: composing.Composer,
        files: Sequence[ReportFile] = (),
        at_end: Sequence[Callable[[endings.BatchReport], None]] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``at_end`` are called once, when all has ended. Raises UsageError ``report-not-written``."""
        self._composer, self._at_end, self._clock = composer, at_end, clock
        self._files = [(each, _Pace(clock())) for each in files]
        for each in files:
            each.make_folder()

    @override
    def update(self, results: results.Results, masker: masking.Masker) -> None:
        ended, began = results.exit is not None, self._clock()
        due = [(file, pace) for file, pace in self._files if ended or pace.allows(began)]
        if not due and not ended:
            return
        report = self._composer.compose(results, masker)
        composed = self._clock() - began
        unwritten: list[UsageError] = []
        for file, pace in due:
            before = self._clock()
            try:
                file.write(report)
            except UsageError as error:
                unwritten.append(error)
            pace.note(composed + self._clock() - before)
        if ended:
            at_end, self._at_end = self._at_end, ()
            for each in at_end:
                each(report)
        if unwritten:
            raise unwritten[0]


def as_junit(report: endings.BatchReport) -> bytes:
    return junit.document(report, attached)


def as_html(report: endings.BatchReport) -> bytes:
    from runtime.report import page  # most commands need none

    return page.of_batch(report).encode(errors="backslashreplace")


def as_json(report: endings.BatchReport) -> bytes:
    return f"{report.as_json()}\n".encode()


def attached(path: str) -> str | None:
    """Return the path of an existing file as a CI server finds it: in GitLab from the folder of the project, elsewhere absolute."""
    found = Path(path).absolute()
    if not found.is_file():
        return None
    project = os.environ.get("CI_PROJECT_DIR")
    return str(found.relative_to(project) if project and found.is_relative_to(project) else found)
