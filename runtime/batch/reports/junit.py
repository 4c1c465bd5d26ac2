"""JUnit XML: a test suite for each file, and a test case for each of its cases. The schema of it is tests/junit.xsd.

A test case without a result passed. ``failure``: the workflow failed, on the site or by its own finding. ``skipped``: it was not begun.
``error``: no result, because it could not start, waits for a person, was interrupted, continued elsewhere, or ended without a result.
Earlier failed runs are ``flakyFailure`` and ``flakyError`` of a case that passed at last, ``rerunFailure`` and ``rerunError`` of another.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from nodes.values import Json
from runtime.batch.reports import cases
from runtime.display.text import count, value_text
from runtime.report.endings import BatchReport, CaseRecord, RunRecord
from runtime.report.models import RunReport

LONGEST = 2000  # characters of a run's output in the report; the log has all of it

ORDER = (
    *("properties", "failure", "rerunFailure", "flakyFailure", "skipped", "error"),
    *("rerunError", "flakyError", "system-out"),
)
"""The order of what is in a test case, as Surefire has it."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Attached = Callable[[str], str | None]
"""Returns the path of a file as a CI server finds it; None if the file does not exist."""


def document(report: BatchReport, attached: Attached = lambda _path: None) -> bytes:
    suites: dict[str, list[CaseRecord]] = {}
    for each in report.runs:
        suites.setdefault(str(each.file), []).append(each)
    root = ET.Element("testsuites", {"name": "runops", **_totals(report.runs)})
    for file, records in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": file, **_totals(records), "file": file})
        began = [each for each in records if each.started]
        if began:
            suite.set("timestamp", min(each.started for each in began))
            suite.set("hostname", began[0].host)
        suite.extend(_case(each, report.details, attached) for each in records)
    for element in root.iter():
        element.attrib = {name: NOT_XML.sub("\ufffd", value) for name, value in element.attrib.items()}
        element.text = NOT_XML.sub("\ufffd", element.text) if element.text else None
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _totals(records: Sequence[CaseRecord]) -> dict[str, str]:
    kinds = [_kind(each) for each in records]
    return {
        "tests": str(len(records)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(map(cases.seconds, records)):.3f}",
    }


def _kind(run: RunRecord) -> str | None:
    if run.status == "passed" or (run.status == "flaky" and not run.exit):
        return None
    if run.status == "skipped":
        return "skipped"
    return "failure" if run.status in ("failed", "flaky") and run.exit in (1, 6) else "error"


def _case(record: CaseRecord, details: dict[str, RunReport], attached: Attached) -> ET.Element:
    file = str(record.file)
    element = ET.Element("testcase", name=record.name, classname=str(Path(file).with_suffix("")), file=file)
    if (place := cases.place(record)) is not None and place.file == file:
        element.set("line", str(place.line))
    element.set("time", f"{cases.seconds(record):.3f}")
    parts = [_properties(record, details)] if record.attempts else []
    if (kind := _kind(record)) is not None:
        result = ET.Element(kind, message=cases.message(record))
        if kind != "skipped":
            result.set("type", cases.code(record))
            result.text = "\n".join(_lines(cases.telling(record), details))
        parts.append(result)
    parts += [
        _earlier(f"{'flaky' if record.status == 'flaky' else 'rerun'}{kind.title()}", each, details, attached)
        for each in record.attempts[:-1]
        if each.status in ("failed", "error") and (kind := _kind(each)) is not None
    ]
    if told := [*_output(record), *_attachments(record, details, attached)]:
        parts.append(_text("system-out", told))
    element.extend(sorted(parts, key=lambda each: ORDER.index(each.tag)))
    return element


def _earlier(tag: str, run: RunRecord, details: dict[str, RunReport], attached: Attached) -> ET.Element:
    element = ET.Element(tag, message=cases.message(run), type=cases.code(run))
    element.append(_text("stackTrace", _lines(run, details)))
    if told := list(_attachments(run, details, attached)):
        element.append(_text("system-out", told))
    return element


def _text(tag: str, lines: Iterable[str]) -> ET.Element:
    element = ET.Element(tag)
    element.text = "\n".join(lines)
    return element


def _properties(record: CaseRecord, details: dict[str, RunReport]) -> ET.Element:
    found: dict[str, Json] = {
        "run": record.run,
        "status": record.status,
        "exit": record.exit,
        "runs": len(record.attempts),
    }
    if (costs := cases.costs(record)) is not None:
        found |= {name: costs[name] for name in ("dollars", "input_tokens", "output_tokens")}
    if cases.was_resumed(record, details):
        found["resumed"] = "true"
    if record.live:
        found["live_model"] = "true"
    element = ET.Element("properties")
    for name, value in found.items():
        if value is not None:
            ET.SubElement(element, "property", name=f"runops.{name}", value=str(value))
    return element


def _lines(run: RunRecord, details: dict[str, RunReport]) -> Iterator[str]:
    yield f"{cases.code(run)}: {cases.message(run)}"
    evidence = cases.evidence(run)
    problems = evidence.pop("problems", None)
    if isinstance(problems, list):
        for each in cases.problems(problems):
            yield f"{each.place}: {each.code}: {each.message}"
            yield from (f"  {line}" for line in each.help)
    look = f"runops show {run.run}" if run.run is not None else None
    known = details.get(run.run or "")
    following = known.next if known is not None else None
    fields = {"step": run.path, "place": run.place, **{name: _cut(value) for name, value in evidence.items() if value}}
    for name, value in {**fields, "fix": cases.fix(run), "look": look, "next": following}.items():
        if value:
            yield f"{name:<9} {value}"


def _output(record: CaseRecord) -> Iterator[str]:
    yield from record.notes
    if record.tolerated:
        yield f"{count(record.tolerated, 'error')} tolerated"
    if record.output is not None:
        yield _cut(record.output)


def _attachments(run: RunRecord, details: dict[str, RunReport], attached: Attached) -> Iterator[str]:
    """Yield a line for each file of evidence, in the form that GitLab and a plugin of Jenkins read."""
    for each in cases.files_of_evidence(details.get(run.run or "")):
        path = attached(each.path)
        if path is not None and path.isprintable() and "]]" not in path:
            yield f"[[ATTACHMENT|{path}]]"


def _cut(value: Json) -> str:
    """Render a value on one line, shortened."""
    text = value_text(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
