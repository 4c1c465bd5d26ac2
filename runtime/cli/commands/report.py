"""``runops report``: joins the reports of shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodes.errors import UsageError, did_you_mean
from runtime.batch.reports import cases, merging, summary
from runtime.cli import console, flags, report_flags
from runtime.display.text import one_line
from runtime.report import endings

WORDS = ("merge",)


def report(
    words: Annotated[
        list[str],
        flags.argument("merge REPORT…", "The files that `runops run --report FILE` wrote, one of each shard."),
    ],
    junit: report_flags.JunitFlag = None,
    html: report_flags.HtmlFlag = None,
    report: report_flags.ReportFlag = None,
    annotations: report_flags.AnnotationsFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Join the reports of the shards of a command, and write those of all its cases.

    The exit code is the worst of all. It is 2 if a selected case is in no report, or a case in more than one: then a shard is missing, or
    the shards did not have the same cases.
    """
    if words[0] not in WORDS:
        fix = did_you_mean(words[0], WORDS, "there is `runops report merge`")
        raise UsageError("usage", f"`runops report {words[0][:40]}` is unknown", fix=fix)
    if len(words) == 1:
        raise UsageError("usage", "`runops report merge` takes reports", fix="runops report merge REPORT…")
    files = report_flags.files(junit=junit, html=html, report=report)
    merged = merging.join([merging.read(Path(each)) for each in words[1:]])
    for each in files:
        each.make_folder()
        each.write(merged.report)
    for tell in report_flags.for_github(annotations, joined=True):
        tell(merged.report)
    if (problem := merged.problem()) is not None:
        console.say(console.failure(problem))
    console.say("\n".join(_lines(merged.report)))
    if as_json:
        fields = {name: getattr(merged.report, name) for name in endings.BatchEnding.model_fields}
        console.result(endings.BatchEnding(**fields).as_json())
    raise typer.Exit(merged.report.exit)


def _lines(found: endings.BatchReport) -> list[str]:
    rows = [
        [each.status, one_line(str(each.case)), each.run or "", one_line(f"{each.path or ''}  {cases.message(each)}")]
        for each in found.runs
        if each.status != "passed"
    ]
    return [summary.head(found), *(f"  {line}" for line in (console.table(rows) if rows else []))]
