"""JUnit XML report for CI servers: one suite per file, with the workflow as its one test case.

A test case without a child passed. ``failure``: the workflow failed, on the site or by its own finding. ``skipped``: it was not begun.
``error``: no result, because it could not start, waits for a person, was interrupted, continued elsewhere, or ended without a result.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from nodes.errors import UsageError
from nodes.values import Json
from runtime.display.text import count, value_text
from runtime.language.diagnostics import WorkflowInvalid
from runtime.runs.results import Outcome, Results
from runtime.secrets import masking
from runtime.system import files

LONGEST = 2000  # characters of a run's output in the report; the log has all of it

WITHOUT_RESULT = {
    "skipped": ("skipped", "it was not begun"),
    "begun": ("no-end", "it was begun, and RunOps ended before it could report how it ended"),
    "interrupted": ("interrupted", "the run was interrupted"),
}
"""Code and message of each state in which a run has reported neither an error nor a question."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Report:
    """The file of a report. Every write replaces all of it, so it is up to date whenever the process ends."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._not_written(error) from None

    def update(self, results: Results, masker: masking.Masker) -> None:
        try:
            files.publish(self.file, document(results.outcomes, masker))
        except OSError as error:
            raise self._not_written(error) from None

    def _not_written(self, error: OSError) -> UsageError:
        return UsageError(
            "report-not-written",
            f"the report {self.file} cannot be written: {error.strerror}",
            fix="give `--junit` a path that can be written",
        )


def document(outcomes: Sequence[Outcome], masker: masking.Masker) -> bytes:
    root = ET.Element("testsuites", {"name": "runops", **_totals(outcomes)})
    for outcome in outcomes:
        root.append(_suite(outcome, masker))

    def valid(text: str) -> str:
        return NOT_XML.sub("\ufffd", masker.text(text))

    for element in root.iter():
        element.attrib = {name: valid(value) for name, value in element.attrib.items()}
        element.text = valid(element.text) if element.text else None
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _totals(outcomes: Sequence[Outcome]) -> dict[str, str]:
    kinds = [_kind(each) for each in outcomes]
    return {
        "tests": str(len(outcomes)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(each.seconds for each in outcomes):.3f}",
    }


def _kind(outcome: Outcome) -> str | None:
    if outcome.state in ("passed", "flaky"):
        return None
    if outcome.state == "skipped":
        return "skipped"
    return "failure" if outcome.state == "failed" and outcome.exit in (1, 6) else "error"


def _suite(outcome: Outcome, masker: masking.Masker) -> ET.Element:
    file = str(outcome.file)
    suite = ET.Element("testsuite", {"name": file, **_totals([outcome])})
    if outcome.started:
        suite.set("timestamp", outcome.started)
    if outcome.run is not None:
        properties = ET.SubElement(suite, "properties")
        for name, value in (("run", outcome.run), ("status", outcome.state), ("exit", str(outcome.exit))):
            ET.SubElement(properties, "property", name=f"runops.{name}", value=value)
    about = {"name": outcome.name, "classname": str(outcome.file.with_suffix("")), "file": file}
    case = ET.SubElement(suite, "testcase", about, time=f"{outcome.seconds:.3f}")
    if (kind := _kind(outcome)) is not None:
        case.append(_said(kind, outcome, masker))
    if (output := _output(outcome, masker)) is not None:
        ET.SubElement(case, "system-out").text = output
    return suite


def _said(kind: str, outcome: Outcome, masker: masking.Masker) -> ET.Element:
    problem = outcome.problem or {}
    code = str(problem.get("reason" if outcome.state == "paused" else "code", outcome.state))
    code, message = WITHOUT_RESULT.get(outcome.state) or (code, str(problem.get("message", outcome.state)))
    element = ET.Element(kind, message=message)
    if kind != "skipped":
        element.set("type", code)
        element.text = "\n".join(_lines(outcome, code, message, problem, masker))
    return element


def _lines(outcome: Outcome, code: str, message: str, problem: dict[str, Json], masker: masking.Masker) -> list[str]:
    if isinstance(outcome.error, WorkflowInvalid):
        return [outcome.error.render(colour=False)]
    evidence: Json = problem.get("evidence")
    shown = (
        {name: _cut(value, masker) for name, value in evidence.items() if value} if isinstance(evidence, dict) else {}
    )
    look = f"runops show {outcome.run}" if outcome.run is not None else None
    before, after = {"step": outcome.step, "place": outcome.place}, {"fix": problem.get("fix"), "look": look}
    fields = [*before.items(), *shown.items(), *after.items()]
    return [f"{code}: {message}", *(f"{name:<9} {value}" for name, value in fields if value)]


def _output(outcome: Outcome, masker: masking.Masker) -> str | None:
    if outcome.ended is None:
        return None
    lines: list[str] = []
    if outcome.ended.tolerated:
        lines.append(f"{count(outcome.ended.tolerated, 'error')} tolerated")
    if outcome.ended.output is not None:
        lines.append(_cut(outcome.ended.output, masker))
    return "\n".join(lines) or None


def _cut(value: Json, masker: masking.Masker) -> str:
    """Render a value on one line, shortened. It is masked first, because a cut secret would not be recognized."""
    text = masker.text(value_text(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
