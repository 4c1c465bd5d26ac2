"""The report files of many runs: the whole report as JSON, and the lines of events."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import UsageError
from runtime import events
from runtime.batch.reports import composing, event_lines
from runtime.display import escapes
from runtime.log.store import file_store
from runtime.report import endings, pictures
from runtime.report.models import RunReport
from runtime.runs import results
from runtime.secrets import masking
from runtime.system import regular_files
from tests import reports
from tests.cases import NO_SECRETS, case, ended, report, run


def lines(file: Path) -> list[dict[str, Any]]:
    """The lines of the file, all fitting the schema."""
    found = [json.loads(line) for line in file.read_text().splitlines()]
    for each in found:
        reports.check("batch-event", each)
    return found


EVENTS = [
    events.RunStarted("01RUN", "Pay", resumed=False, seq=1),
    events.StepStarted("pay", "transform", "compute", 0, container=False, run="01RUN", seq=2),
    events.StepWaiting("pay", "a button", run="01RUN", seq=3),
    events.LoopItem("each", 1, None, {"a": 1}, run="01RUN", seq=4),
    events.StepFinished("pay", "error", 0.5, container=False, error={"code": "x", "message": "m"}, run="01RUN", seq=5),
    events.Said("nothing is repeated", run="01RUN", seq=6),
    events.RunEnded("01RUN", "failed", 1, 1.25, error={"code": "x", "message": "m"}, path="pay", seq=7),
]


def test_events_are_lines_in_order(tmp_path: Path) -> None:
    """The command, each case as it begins, all events of its runs, the case as it ends, and the end: each line at once, with its case."""
    one, other = case("1"), case("2")
    found = results.Results([one, other], selected=[one.case.id, other.case.id, "third.yaml"])
    writer = event_lines.EventLines(tmp_path / "new" / "e.jsonl")
    writer.update(found, NO_SECRETS)
    one.begin()
    writer.update(found, NO_SECRETS)
    for number, each in enumerate(EVENTS, start=3):
        writer.event(one.case, each.as_json())
        assert len(lines(tmp_path / "new" / "e.jsonl")) == number
    one.runs[-1].end(EVENTS[-1], 1)  # type: ignore[arg-type]
    writer.update(found, NO_SECRETS)
    run(one, "passed", 0, id="01AGAIN").over = True
    writer.update(found, NO_SECRETS)
    assert lines(tmp_path / "new" / "e.jsonl")[-1]["event"] == "case-ended"
    found.exit = 0
    writer.update(found, NO_SECRETS)
    writer.update(found, NO_SECRETS)
    told = lines(tmp_path / "new" / "e.jsonl")
    kinds = [each.as_json()["event"] for each in EVENTS]
    assert [each["event"] for each in told] == ["started", "case-started", *kinds, "case-ended", "ended"]
    assert {each["case"] for each in told[1:-1]} == {"shop/pay.yaml[1]"}
    assert (told[0]["cases"], told[0]["selected"][-1]) == (["shop/pay.yaml[1]", "shop/pay.yaml[2]"], "third.yaml")
    outcome = told[-2]["outcome"]
    assert (outcome["status"], [each["status"] for each in outcome["attempts"]]) == ("flaky", ["failed", "passed"])
    assert told[6] | {"at": ""} == {**EVENTS[4].as_json(), "case": "shop/pay.yaml[1]", "at": ""}


@given(st.text())
def test_any_text_makes_sound_lines(text: str) -> None:
    """Whatever a text has, each event is one line of JSON that says it unchanged, without control characters and commands for GitHub."""
    from runtime.report import batch_events

    for event in (
        events.Said(text, run="R"),
        events.StepStarted(text, "transform", text, 0, container=False, run="R"),
        events.RunEnded("R", "failed", 1, 0.0, output=text, error={"code": text, "message": text}, path=text),
    ):
        printed = batch_events.of_run(text, "2026-01-02T03:04:05.000Z", event.as_json()).line()
        assert len(printed.splitlines()) == 1
        assert escapes.is_safe(printed)
        assert json.loads(printed) == {"case": text, "at": "2026-01-02T03:04:05.000Z", **event.as_json()}


def test_secrets_are_masked_in_all_lines_and_reports(tmp_path: Path) -> None:
    """A secret in the label of a row, an event or an outcome is masked; words of ours that equal a secret stay."""
    secret = 'pass"word'
    masker = masking.Masker({"A": secret, "B": "failed"})
    outcome = run(case(secret), "failed", error={"code": "x", "message": f"no {secret}"}, output={"failed": secret})
    writer = event_lines.EventLines(tmp_path / "e.jsonl")
    found = results.Results([outcome], selected=[outcome.case.id])
    writer.update(found, masker)
    writer.event(outcome.case, events.Said(f"it is {secret}", run="R").as_json())
    found.exit = 1
    writer.update(found, masker)
    whole = report([outcome], masker)
    for text in ((tmp_path / "e.jsonl").read_text(), whole.as_json()):
        assert 'pass\\"word' not in text
        assert "[hidden]" in text
    assert whole.runs[0].status == "failed"
    told = [each["event"] for each in lines(tmp_path / "e.jsonl")]
    assert told == ["started", "case-started", "said", "case-ended", "ended"]


def test_a_full_disk_ends_the_lines_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that cannot be written raises nothing in the run; the next update names the flag, and no later one writes half a file."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    with monkeypatch.context() as patched:
        patched.setattr(regular_files, "descriptor", lambda *_: os.open("/dev/full", os.O_WRONLY))
        writer = event_lines.EventLines(tmp_path / "full.jsonl")
    writer.event(case().case, EVENTS[0].as_json())
    for _each in range(2):
        with pytest.raises(UsageError, match="cannot be written") as caught:
            writer.update(results.Results([case()]), NO_SECRETS)
        assert "--events" in (caught.value.fix or "")
    with pytest.raises(UsageError):
        event_lines.EventLines(tmp_path)


def details(*runs: str) -> dict[str, RunReport]:
    """Runs known by nothing but their ids."""
    return {each: RunReport.model_construct(run=each, last="", evidence=[], steps=[]) for each in runs}


def test_pictures_of_failures_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report has pictures up to a limit, those of cases that did not pass before the others, each once, always in the same order."""
    shown = {"01OK": {"c": b"x" * 60, "a": b"same"}, "01BAD": {"b": b"y" * 60, "a": b"same"}}
    monkeypatch.setattr(pictures, "of_run", lambda found, _store: shown[found.run])
    records = report(
        [ended("passed", 0, id="01OK"), run(case("2"), "failed", id="01BAD", error={"code": "x", "message": ""})]
    )
    for most, expected in ((1000, ["a", "b", "c"]), (90, ["a", "b"]), (10, ["a"])):
        monkeypatch.setattr(composing, "PICTURES", most)
        composer = composing.Composer(file_store.FileStore(Path("gone")).reader, whole=True)
        found = composer._pictures_of(records.runs, details("01OK", "01BAD"))
        assert [*found] == expected
        assert base64.b64decode(found["a"]) == b"same"


def test_logs_are_read_only_where_a_report_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """JUnit and GitHub need the steps of cases that did not simply pass, the whole report those of all; each log is read once after its run."""
    read: list[str] = []
    monkeypatch.setattr(composing.Composer, "_read", lambda _self, run, _masker: read.append(run))
    error = {"code": "x", "message": "m"}
    resumed, begun = run(case("2"), "passed", 0, id="01RESUMED"), case("4")
    resumed.notes.append("its process died")
    begun.begin().id = "01BEGUN"
    flaky = run(run(case("3"), "failed", id="01A", error=error), "passed", 0, id="01B")
    found = results.Results([ended("passed", 0), resumed, flaky, begun])
    for whole, expected in ((False, ["01RESUMED", "01A", "01B"]), (True, ["01RUN", "01RESUMED", "01A", "01B"])):
        composer = composing.Composer(file_store.FileStore(Path("gone")).reader, whole=whole)
        for _twice in range(2):
            composer.compose(found, NO_SECRETS)
        assert read == expected
        read.clear()


def test_a_report_is_read_as_it_was_written() -> None:
    """The JSON of a report gives the same report."""
    whole = report(
        [ended("failed", error={"code": "x", "message": "m", "evidence": {"a": [1]}}, path="pay"), case("2")]
    )
    assert endings.BatchReport.model_validate_json(whole.as_json()) == whole
