"""The reports of many runs that flags ask for, and those that GitHub Actions gets without one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from runtime.batch.reports import github, summary, writing
from runtime.cli import console, flags
from runtime.display import escapes
from runtime.report import endings
from runtime.secrets import published
from runtime.system import regular_files

JunitFlag = Annotated[Path | None, flags.option("--junit FILE", "Write a JUnit XML report there.")]
HtmlFlag = Annotated[Path | None, flags.option("--html FILE", "Write one HTML page of all runs there.")]
ReportFlag = Annotated[
    Path | None, flags.option("--report FILE", "Write all of it there as JSON, for `runops report merge` and programs.")
]
EventsFlag = Annotated[Path | None, flags.option("--events FILE", "Write what happens there, as JSON lines.")]
AnnotationsFlag = Annotated[
    Literal["on", "off"] | None,
    flags.option(
        "--annotations", "Annotations and a step summary for GitHub; without this flag, only in GitHub Actions."
    ),
]


def files(*, junit: Path | None, html: Path | None, report: Path | None) -> list[writing.ReportFile]:
    found = [
        ("--junit", junit, writing.as_junit),
        ("--html", html, writing.as_html),
        ("--report", report, writing.as_json),
    ]
    return [writing.ReportFile(flag, file, render) for flag, file, render in found if file is not None]


def for_github(
    wanted: Literal["on", "off"] | None, *, joined: bool = False
) -> list[Callable[[endings.BatchReport], None]]:
    """Return what tells GitHub about the cases once all have ended; of a joined report the shards have made the annotations."""
    if wanted == "off" or (wanted is None and not escapes.in_github()):
        return []
    return [_summarize] if joined and wanted is None else [_annotate, _summarize]


def _annotate(report: endings.BatchReport) -> None:
    """Print annotations on stderr, which the runner reads as well: stdout is for the result alone."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    for line in github.lines(report, Path(workspace) if workspace else None):
        console.say(line)


def _summarize(report: endings.BatchReport) -> None:
    """Append to the summary of the step. A job does not fail because its summary cannot be written. Raises UsageError ``secret-published``."""
    if not (name := os.environ.get("GITHUB_STEP_SUMMARY")):
        return
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with os.fdopen(regular_files.descriptor(name, flags, 0o666), "ab") as file:
            data = summary.of_batch(report, max(0, summary.MOST - file.tell())).encode()
            published.demand_clean("the summary of the step", data)
            file.write(data)
    except OSError as error:
        console.say(f"the summary of the step cannot be written: {error.strerror} ({escapes.line(name)})")
