"""``runops diff``: the differences between two runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nodes.errors import UsageError, near
from runtime.cli import console, flags
from runtime.display.text import one_line, when
from runtime.log.store import store as log_store
from runtime.report import difference_text, differences, of_run
from runtime.report.models import RunReport
from runtime.report.parts import DifferenceReport
from runtime.workspace import host, run_index

GREEN = 32


def diff(
    run: flags.RunArgument,
    other: Annotated[
        str | None,
        flags.argument("[RUN]", "The later run. With one run only: it, after the last one of its case that passed."),
    ] = None,
    at: Annotated[str | None, flags.option("--at PATH", "Only this step, and those below it.")] = None,
    exit_code: Annotated[bool, flags.option("--exit-code", "Exit with 1 if the runs differ.")] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Compare two runs step by step: inputs, file, outcomes, errors, values, pages of side effects, output. Times are no difference.

    Steps are matched by their paths, so the items of a loop by their keys. With one run, the other one is the last run before it that passed,
    of the same file with the same inputs.
    """
    store = host.load().reader
    after = run_index.find(store, other or run, whole=True)
    before = run_index.find(store, run, whole=True) if other is not None else _green(store, after)
    reports = [_report(store, each) for each in (before, after)]
    found = _part(differences.differences(*reports), at, reports)
    if as_json:
        console.result(differences.RunDiff(before=before, after=after, at=at, differences=found).as_json())
    else:
        console.result("\n".join([*_heads(*reports), *_lines(found)]))
    if found and exit_code:
        raise typer.Exit(1)


def _green(store: log_store.StoreReader, run: str) -> str:
    found = run_index.last_passed(store, run)
    if found is None:
        message = f"no run of the same file with the same inputs passed before {run}"
        raise UsageError("nothing-to-compare", message, fix="name two runs; `runops runs` lists them")
    return found


def _report(store: log_store.StoreReader, run: str) -> RunReport:
    past, reading = run_index.load_history(store, run)
    return of_run.run_report(past, reading, store)


def _part(found: list[DifferenceReport], at: str | None, reports: list[RunReport]) -> list[DifferenceReport]:
    """Return the differences of the step at this path; raises UsageError ``unknown-step`` if neither run has it."""
    if at is None:
        return found
    paths = [each.path for report in reports for each in report.steps]
    if at not in paths:
        close = near(at, paths)
        fix = f"did you mean `{close}`?" if close else f"`runops show {reports[1].run}` lists its steps"
        raise UsageError("unknown-step", f"neither run has done a step `{at}`", fix=fix)
    # One run lacks it with all of the container around it.
    return [
        each
        for each in found
        if each.path
        and (of_run.is_in(each.path, at) or (each.what in ("missing", "new") and of_run.is_in(at, each.path)))
    ]


def _heads(before: RunReport, after: RunReport) -> list[str]:
    sides = [("-", console.RED, before), ("+", GREEN, after)]
    lines = console.table(
        [[sign, each.run, each.state, when(each.started), one_line(each.workflow)] for sign, _code, each in sides]
    )
    return [
        console.paint(line, code, stream=sys.stdout) for line, (_sign, code, _each) in zip(lines, sides, strict=True)
    ]


def _lines(found: list[DifferenceReport]) -> list[str]:
    if not found:
        return ["no difference"]
    rows = difference_text.rows(found)
    # Coloured after the columns are cut, which would cut a colour too.
    return [
        f"{console.paint(row[0], console.BOLD, stream=sys.stdout)}{line.removeprefix(row[0])}"
        if line.startswith(row[0])
        else line
        for row, line in zip(rows, console.table(rows), strict=True)
    ]
