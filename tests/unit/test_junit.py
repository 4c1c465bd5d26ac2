"""The JUnit report for CI servers, read back by an independent reader."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import SetupError, UsageError
from runtime import events
from runtime.language import reader
from runtime.runs import junit, results
from runtime.secrets import masking

NO_SECRETS = masking.Masker({})
TEXT = 'version: 1\nname: Pay "all" & <go>\nnodes:\n  - {id: pay, type: transform, expr: 1}\n'
LOADED = reader.parse(TEXT, "shop/pay.yaml")


def outcome(status: Any, code: int = 1, **fields: Any) -> results.Outcome:
    """A run of the workflow that has ended."""
    one = results.Outcome(results.Case(Path("shop/pay.yaml"), LOADED))
    one.begin().end(events.RunEnded("01RUN", status, code, 1.25, **fields), code)
    return one


def cases(*ended: results.Outcome) -> list[Any]:
    """The test cases of the report."""
    found = junitparser.JUnitXml.fromstring(junit.document(ended, NO_SECRETS))
    return [case for suite in found for case in suite]


def test_each_ending_has_its_junit_result() -> None:
    """Failed runs are failures; internal errors, pauses, interruptions, refusals and missing ends are errors; runs not begun are skipped. The totals agree."""
    refused = results.Outcome(results.Case(Path("x.yaml")))
    refused.refused = SetupError("secret-missing", "no TOKEN", fix="set it")
    silent = results.Outcome(results.Case(Path("y.yaml"), LOADED))
    silent.begin()
    ended = [
        outcome("passed", 0, output={"a": 1}, tolerated=2),
        outcome("failed", 1, error={"code": "target-not-found", "message": "no"}, path="pay"),
        outcome("failed", 70, error={"code": "internal", "message": "no"}),
        outcome("paused", 4, question={"reason": "outcome-unknown", "message": "did it?"}),
        outcome("interrupted", 130, error={"code": "interrupted", "message": "no"}),
        refused,
        silent,
        results.Outcome(results.Case(Path("z.yaml"), LOADED)),
    ]
    report = junitparser.JUnitXml.fromstring(junit.document(ended, NO_SECRETS))
    kinds = [[(type(result).__name__, result.type) for result in case.result] for suite in report for case in suite]
    assert kinds == [
        [],
        [("Failure", "target-not-found")],
        [("Error", "internal")],
        [("Error", "outcome-unknown")],
        [("Error", "interrupted")],
        [("Error", "secret-missing")],
        [("Error", "no-end")],
        [("Skipped", None)],
    ]
    assert (report.tests, report.failures, report.errors, report.skipped) == (8, 1, 5, 1)
    assert report.time == pytest.approx(5 * 1.25)


def test_a_failure_says_what_where_and_what_to_do() -> None:
    """A failure has code, message, step path, file with line and column, what was seen, the fix, and the command that shows more."""
    error = {"code": "x", "message": "gone", "evidence": {"page": "http://shop.test"}, "fix": "look again"}
    (case,) = cases(outcome("failed", error=error, path="each[#1007]/pay"))
    (failure,) = case.result
    assert (case.name, case.classname, case.time, failure.message) == ('Pay "all" & <go>', "shop/pay", 1.25, "gone")
    for expected in ("each[#1007]/pay", "shop/pay.yaml:4:5", "http://shop.test", "look again", "runops show 01RUN"):
        assert expected in failure.text


def test_a_suite_names_the_run() -> None:
    """The id and status of the run are properties of its suite, its begin is the timestamp."""
    suite = next(iter(junitparser.JUnitXml.fromstring(junit.document([outcome("passed", 0)], NO_SECRETS))))
    assert {each.name: each.value for each in suite.properties()} == {
        "runops.run": "01RUN",
        "runops.status": "passed",
        "runops.exit": "0",
    }
    assert suite.timestamp.endswith("Z")


@given(st.text())
def test_any_text_makes_sound_xml(text: str) -> None:
    """A report with any control characters, surrogates or markup can be read back, and no text becomes markup."""
    ended = outcome("failed", error={"code": text, "message": text, "fix": text}, output=[text], path=text)
    root = ET.fromstring(junit.document([ended, outcome("passed", 0, output=text)], NO_SECRETS))
    assert [each.tag for each in root.iter("testcase")] == ["testcase"] * 2
    assert len(list(root.iter("failure"))) == 1


def test_no_secret_is_in_a_report() -> None:
    """Secrets are masked in names, messages and outputs, also where XML would have escaped them; a long output is cut."""
    masker = masking.Masker({"A": "p<w&d>'s"})
    text = "x p<w&d>'s y"
    ended = outcome("failed", error={"code": "x", "message": text, "evidence": {"seen": text}}, output=text * 1000)
    data = junit.document([ended], masker).decode()
    assert "p&lt;w" not in data
    assert data.count("[hidden]") > 3
    assert len(data) < 10_000


def test_a_report_is_whole_or_not_there(tmp_path: Path) -> None:
    """Folders are created, an older report is replaced at once, nothing else is left, and its mode is that of any new file."""
    report = junit.Report(tmp_path / "a" / "b" / "r.xml")
    report.update(results.Results([outcome("passed", 0)]), NO_SECRETS)
    report.update(results.Results([outcome("passed", 0)] * 2), NO_SECRETS)
    assert [each.name for each in report.file.parent.iterdir()] == ["r.xml"]
    assert len(list(junitparser.JUnitXml.fromfile(str(report.file)))) == 2
    (tmp_path / "plain").touch()
    assert report.file.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A folder, a file in the way and an impossible path each raise one error with the path."""
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "r.xml", tmp_path / ("x" * 300), Path(f"/proc/{os.getpid()}/r.xml")):
        with pytest.raises(UsageError) as caught:
            junit.Report(path).update(results.Results([]), NO_SECRETS)
        assert (caught.value.code, str(path) in caught.value.message) == ("report-not-written", True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]
