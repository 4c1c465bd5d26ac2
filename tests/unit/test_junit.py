"""The JUnit report for CI servers, checked against its schema, and read back by an independent reader."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import xunit2

from nodes.errors import SetupError, UsageError
from runtime.batch import policy
from runtime.batch.reports import composing, junit, writing
from runtime.log.store import file_store
from runtime.report.models import RunReport
from runtime.report.parts import EvidenceReport, FileReport, FrameReport
from runtime.runs import results
from runtime.secrets import masking
from tests import cases
from tests.cases import NO_SECRETS, ended, report, run
from tests.junit import checked


def read(outcomes: list[results.Outcome]) -> Any:
    """The report of the cases, read back."""
    return xunit2.JUnitXml.fromstring(checked(junit.document(report(outcomes))))


def read_cases(*outcomes: results.Outcome) -> list[Any]:
    """The test cases of the report."""
    return [case for suite in read([*outcomes]) for case in suite]


def test_each_ending_has_its_junit_result() -> None:
    """Failed runs are failures; internal errors, pauses, interruptions, refusals and missing ends are errors; runs not begun are skipped. The totals agree."""
    refused = results.Outcome(results.Case(Path("x.yaml")))
    refused.refused = SetupError("secret-missing", "no TOKEN", fix="set it")
    silent = cases.case(file="y.yaml")
    silent.begin()
    found = read(
        [
            ended("passed", 0, output={"a": 1}, tolerated=2),
            ended("failed", 1, error={"code": "target-not-found", "message": "no"}, path="pay"),
            ended("failed", 70, error={"code": "internal", "message": "no"}),
            ended("paused", 4, question=asked("outcome-unknown", "did it?")),
            ended("interrupted", 130, error={"code": "interrupted", "message": "no"}),
            refused,
            silent,
            cases.case(file="z.yaml"),
        ]
    )
    kinds = [[(type(result).__name__, result.type) for result in case.result] for suite in found for case in suite]
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
    assert (found.tests, found.failures, found.errors, sum(suite.skipped for suite in found)) == (8, 1, 5, 1)
    assert found.time == pytest.approx(5 * 1.25)
    assert [suite.name for suite in found] == ["shop/pay.yaml", "x.yaml", "y.yaml", "z.yaml"]


def test_a_run_that_can_continue_is_given_its_command() -> None:
    """A case that waits, was interrupted or has no end says what to type, beside the command that shows it."""
    whole = report([ended("paused", 4, question=asked("question", "which?"))])
    known = RunReport.model_construct(evidence=[], processes=[], next="runops answer 01RUN which=…")
    data = checked(junit.document(whole.model_copy(update={"details": {"01RUN": known}})))
    ((case,),) = xunit2.JUnitXml.fromstring(data)
    (error,) = case.result
    assert "next      runops answer 01RUN which=…" in (error.text or "").splitlines()


def asked(reason: str, message: str) -> dict[str, Any]:
    """The question of a paused run."""
    return {"reason": reason, "message": message, "path": "pay", "fix": None, "evidence": None}


def test_a_failure_says_what_where_and_what_to_do() -> None:
    """A failure has code, message, step path, file with line and column, what was seen, the fix, and the command that shows more."""
    error = {"code": "x", "message": "gone", "evidence": {"page": "http://shop.test"}, "fix": "look again"}
    (case,) = read_cases(ended("failed", error=error, path="each[#1007]/pay"))
    (failure,) = case.result
    assert (case.name, case.classname, case.time, failure.message) == ('Pay "all" & <go>', "shop/pay", 1.25, "gone")
    assert case._elem.attrib["line"] == "4"
    (elsewhere,) = read_cases(ended("failed", error=error, path="pay", place="shop/part.yaml:7:1"))
    assert "line" not in elsewhere._elem.attrib, "the step is in a file that the case's file uses"
    for expected in ("each[#1007]/pay", "shop/pay.yaml:4:5", "http://shop.test", "look again", "runops show 01RUN"):
        assert expected in failure.text


def test_rows_are_cases_of_one_suite() -> None:
    """The cases of a file are in one suite, each with the label of its row and the properties of its own run: id, status, exit code, costs."""
    costs = dict.fromkeys(("requests", "paid", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"), 7)
    costs |= {"dollars": "0.25", "known_dollars": "0.25", "seconds": 1.0}
    first, second = cases.case("1"), cases.case("2")
    run(first, "failed", id="01A", error={"code": "x", "message": "no"}, costs=costs)
    run(first, "passed", 0, id="01B", costs=costs)
    (suite,) = read([first, run(second, "passed", 0, id="01C")])
    assert (suite.tests, suite.timestamp[-1], bool(suite.hostname)) == (2, "Z", True)
    one, two = suite
    assert [one.name, two.name] == ['Pay "all" & <go> [1]', 'Pay "all" & <go> [2]']
    assert {each.name.removeprefix("runops."): each.value for each in one.properties()} == {
        "run": "01B",
        "status": "flaky",
        "exit": "0",
        "runs": "2",
        "dollars": "0.5",
        "input_tokens": "14",
        "output_tokens": "14",
        "live_model": "true",
    }
    assert {each.name for each in two.properties()} == {"runops.run", "runops.status", "runops.exit", "runops.runs"}


def test_earlier_failed_runs_are_flaky_or_rerun() -> None:
    """A case that passed at last has a flaky element for each failed run before, another one a rerun element, each with what happened."""
    flaky, failed = cases.case("1"), cases.case("2")
    for each in (flaky, failed):
        run(each, "failed", id="01A", error={"code": "timeout", "message": "late", "fix": "wait"}, path="pay")
        run(each, "failed", 70, id="01B", error={"code": "internal", "message": "odd"})
        run(each, "interrupted", 130, id="01C")
    run(flaky, "passed", 0, id="01C", output="done").notes.append("its process died")
    run(failed, "failed", id="01D", error={"code": "gone", "message": "no"}, tolerated=1)
    one, two = read_cases(flaky, failed)
    assert (one.is_passed, one.is_flaky, two.is_failure, two.is_rerun) == (True, True, True, True)
    assert {each.name: each.value for each in one.properties()}["runops.resumed"] == "true"
    assert one.system_out == "its process died\ndone"
    for case, kind in ((one, "Flaky"), (two, "Rerun")):
        told = [(type(each).__name__, each.type, each.message) for each in case.interim_result]
        assert told == [(f"{kind}Failure", "timeout", "late"), (f"{kind}Error", "internal", "odd")]
        assert "shop/pay.yaml:4:5" in case.interim_result[0].stack_trace
        assert "runops show 01A" in case.interim_result[0].stack_trace
    assert [each.type for each in two.result] == ["gone"]


def test_a_flaky_case_that_counts_as_failed_is_a_failure() -> None:
    """With `--fail-on-flaky` a test page is as red as the job: the case has a failure with what happened, and its flaky element."""
    flaky = cases.case("1")
    run(flaky, "failed", id="01A", error={"code": "timeout", "message": "late", "fix": "wait"}, path="pay")
    run(flaky, "passed", 0, id="01B")
    policy.Policy(fail_on_flaky=True).note(flaky)
    (case,) = read_cases(flaky)
    assert (case.is_failure, case.is_flaky) == (True, True)
    (failure,) = case.result
    assert (failure.type, failure.message) == ("flaky", "passed after 1 run failed: late")
    assert "runops show 01A" in failure.text
    assert case.system_out == "it counts as failed: `--fail-on-flaky`"


def test_existing_files_of_evidence_are_attached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed case lists the pictures, text and trace of its page once, if the files exist; in GitLab by their paths from the project."""
    for name in ("shot.png", "before.png", "trace.zip"):
        (tmp_path / name).touch()
    files = {
        name: FileReport(name=name, path=str(tmp_path / name), size=1, sha256=name)
        for name in ("shot.png", "before.png", "gone.txt", "trace.zip")
    }
    found = EvidenceReport(
        url="http://shop.test",
        screenshot=files["shot.png"],
        observation=files["gone.txt"],
        frames=[
            FrameReport(path=path, at="2026-01-02T03:04:05Z", screenshot=files["before.png"])
            for path in ("open", "look")
        ],
        trace=files["trace.zip"],
    )
    whole = report([ended("failed", error={"code": "x", "message": "no"})])
    run_report = RunReport.model_construct(evidence=[found], processes=[], next=None)
    whole = whole.model_copy(update={"details": {"01RUN": run_report}})
    for project, before in (("", f"{tmp_path}/"), (str(tmp_path), "")):
        monkeypatch.setenv("CI_PROJECT_DIR", project)
        (suite,) = xunit2.JUnitXml.fromstring(checked(writing.as_junit(whole)))
        (case,) = suite
        assert (case.system_out or "").splitlines() == [
            f"[[ATTACHMENT|{before}{name}]]" for name in ("shot.png", "before.png", "trace.zip")
        ]


@given(st.text())
def test_any_text_makes_sound_xml(text: str) -> None:
    """A report with any control characters, surrogates or markup follows the schema, and no text becomes markup."""
    flaky = run(cases.case(text), "failed", error={"code": text, "message": text, "evidence": {text: text}}, path=text)
    failed = ended("failed", error={"code": text, "message": text, "fix": text}, output=[text], path=text)
    data = junit.document(report([failed, run(flaky, "passed", 0, output=text)]))
    root = ET.fromstring(checked(data))
    assert [each.tag for each in root.iter("testcase")] == ["testcase"] * 2
    assert len(list(root.iter("failure"))) == len(list(root.iter("flakyFailure"))) == 1


def test_no_secret_is_in_a_report() -> None:
    """Secrets are masked in names, messages and outputs, also where XML would have escaped them; a long output is cut."""
    masker = masking.Masker({"A": "p<w&d>'s", "B": "failed"})
    text = "x p<w&d>'s y"
    outcome = ended("failed", error={"code": "x", "message": text, "evidence": {"seen": text}}, output=text * 1000)
    data = junit.document(report([outcome], masker)).decode()
    assert "p&lt;w" not in data
    assert data.count("[hidden]") > 3
    assert len(data) < 10_000
    assert len(list(ET.fromstring(data).iter("failure"))) == 1, "a word of ours that equals a secret changes no outcome"


def reports(path: Path) -> writing.Reports:
    """Reports with a JUnit file."""
    written = writing.ReportFile("--junit", path, writing.as_junit)
    return writing.Reports(composing.Composer(file_store.FileStore(Path("gone")).reader, whole=False), [written])


def test_a_report_is_whole_or_not_there(tmp_path: Path) -> None:
    """Folders are created, an older report is replaced at once, nothing else is left, and its mode is that of any new file."""
    file = tmp_path / "a" / "b" / "r.xml"
    written = reports(file)
    written.update(results.Results([ended("passed", 0)]), NO_SECRETS)
    written.update(results.Results([ended("passed", 0), cases.case("2")]), NO_SECRETS)
    assert [each.name for each in file.parent.iterdir()] == ["r.xml"]
    assert xunit2.JUnitXml.fromfile(str(file)).tests == 2
    (tmp_path / "plain").touch()
    assert file.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A folder, a file in the way and an impossible path each raise one error with the path and the flag."""
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "r.xml", tmp_path / ("x" * 300), Path(f"/proc/{os.getpid()}/r.xml")):
        with pytest.raises(UsageError) as caught:
            reports(path).update(results.Results([]), NO_SECRETS)
        assert (caught.value.code, str(path) in caught.value.message) == ("report-not-written", True)
        assert "--junit" in (caught.value.fix or "")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]


def test_large_reports_are_written_less_often(tmp_path: Path) -> None:
    """Writing a file takes at most a twentieth of the time after its first second, beside the last write; a small one is written each time all the same."""
    now = [0.0]
    written: dict[str, list[float]] = {"large": [], "small": []}

    def render(name: str, seconds: float) -> Callable[[object], bytes]:
        def rendered(_report: object) -> bytes:
            now[0] += seconds
            written[name].append(now[0])
            return b""

        return rendered

    composer = composing.Composer(file_store.FileStore(tmp_path).reader, whole=False)
    files = [
        writing.ReportFile(f"--{name}", tmp_path / name, render(name, seconds))
        for name, seconds in (("large", 0.6), ("small", 0.001))
    ]
    found, all_reports = results.Results([]), writing.Reports(composer, files, clock=lambda: now[0])
    for _each in range(100):
        all_reports.update(found, NO_SECRETS)
        now[0] += 1
    assert 5 < len(written["large"]) <= (1 + 0.05 * now[0]) / 0.6
    assert len(written["small"]) == 100
    found.exit = 0
    before = len(written["large"])
    all_reports.update(found, NO_SECRETS)
    assert len(written["large"]) == before + 1
