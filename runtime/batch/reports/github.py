"""Annotations of GitHub: what did not pass, as notes on the lines of the workflow files.

GitHub shows ten errors and ten warnings of a step, so the tenth sums up the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from runtime.batch.reports import cases
from runtime.display import escapes
from runtime.display.text import count, cut, harmless, one_line, value_text
from runtime.report.endings import BatchReport, CaseRecord
from runtime.runs import results

MOST = 10  # annotations of one level that GitHub shows of a step
LONGEST = 2_000  # characters of a message; GitHub keeps 4,096
TITLE = 200  # columns of a title; GitHub keeps 255 characters

Level = Literal["error", "warning"]

WORDS = {
    "failed": "failed",
    "flaky": "flaky",
    "paused": "paused",
    "interrupted": "interrupted",
    "out-of-budget": "out of budget",
    "replaced": "continues elsewhere",
    "error": "not run",
    "begun": "no end",
}
"""What the title says of each outcome; one that is not here is not annotated."""

WARNINGS = ("flaky", "paused")

Annotation = tuple[Level, cases.Place | None, str, str]
"""Level, place, title and message."""


def lines(report: BatchReport, workspace: Path | None = None) -> list[str]:
    """Return a workflow command for each annotation. Paths are relative to ``workspace``, the folder of the repository."""
    found = list(_annotations(report))
    shown: list[str] = []
    for level in ("error", "warning"):
        those = [each for each in found if each[0] == level]
        shown += [_command(each, workspace) for each in (_summed_up(those) if len(those) > MOST else those)]
    return shown


def _annotations(report: BatchReport) -> Iterator[Annotation]:
    said: set[cases.Problem] = set()
    for case in report.runs:
        if case.status not in WORDS:
            continue
        level: Level = "error" if case.status not in WARNINGS or case.exit == results.FAILED else "warning"
        problems = cases.problems(cases.evidence(case).get("problems")) if case.status == "error" else []
        for each in problems:
            if each not in said:  # a mistake of a file that several others use
                said.add(each)
                yield level, each.place, each.code, "\n".join([each.message, *each.help])
        if not problems:
            title = f"{case.name}: {WORDS[case.status]}"
            yield (
                level,
                cases.place(cases.telling(case)) or cases.Place(str(case.file)),
                title,
                "\n".join(_message(case)),
            )


def _message(case: CaseRecord) -> Iterator[str]:
    if case.status == "flaky":
        failed = [each for each in case.attempts[:-1] if each.status == "failed"]
        yield f"passed in run {case.run}, after {count(len(failed), 'run')} failed"
        yield from (f"run {each.run}: {_of(each.path)}{cases.code(each)}: {cases.message(each)}" for each in failed)
        yield from case.notes
        yield f"look: runops diff {cases.telling(case).run} {case.run}"
        return
    yield f"{_of(case.path)}{cases.code(case)}: {cases.message(case)}"
    if read := cases.evidence(case).get("values"):
        yield f"values: {value_text(read)}"
    yield from case.notes
    if (fix := cases.fix(case)) is not None:
        yield f"fix: {fix}"
    if case.run is not None:
        yield f"look: runops show {case.run}"


def _of(path: str | None) -> str:
    return f"{path}: " if path else ""


def _summed_up(found: Sequence[Annotation]) -> list[Annotation]:
    first, rest = found[: MOST - 1], found[MOST - 1 :]
    listed = [f"{each[1]}: {each[2]}: {each[3].splitlines()[0] if each[3] else ''}" for each in rest]
    level, place = rest[0][:2]
    return [*first, (level, place, f"{count(len(rest), f'more {level}')}", "\n".join(listed))]


def _command(annotation: Annotation, workspace: Path | None) -> str:
    level, place, title, message = annotation
    properties: dict[str, str] = {}
    if place is not None:
        properties["file"] = _relative(place.file, workspace)
        properties |= {"line": str(place.line)} if place.line is not None else {}
        properties |= {"col": str(place.column)} if place.column is not None else {}
    text = harmless(message)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return escapes.command(level, {**properties, "title": cut(one_line(title), TITLE)}, text)


def _relative(file: str, workspace: Path | None) -> str:
    if workspace is None:
        return file
    path = Path(os.path.abspath(file))  # noqa: PTH100 — a link stays as it is, as in the repository
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else file
