"""Reports of shards, joined."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import UsageError
from runtime.batch.reports import junit, merging
from runtime.report import endings
from runtime.runs import results
from tests import reports
from tests.cases import case, ended, report, run

LABELS = [str(number) for number in range(6)]


def outcomes() -> list[results.Outcome]:
    """Six cases with several outcomes; the last one was not begun."""
    error = {"code": "x", "message": "no"}
    states = ("passed", "failed", "paused", "interrupted", "passed")
    question = {"reason": "question", "message": "which?", "path": "pay", "fix": None, "evidence": None}
    found = [case(label) for label in LABELS]
    for number, (each, state) in enumerate(zip(found, states, strict=False)):
        more = {"failed": {"error": error}, "paused": {"question": question}}.get(state, {})
        code = {"passed": 0, "paused": 4, "interrupted": 130}.get(state, 1)
        run(each, state, code, id=f"01R{number}", **more)
    return found


def shard(found: list[results.Outcome], positions: list[int]) -> endings.BatchReport:
    """The report of the shard with these cases."""
    mine = [found[each] for each in positions]
    code = results.worst(each.exit for each in mine if each.exit is not None)
    selected = [each.case.id for each in found]
    return report(mine, exit=code).model_copy(update={"selected": selected})


@given(st.lists(st.sampled_from(range(3)), min_size=6, max_size=6), st.permutations(range(3)))
def test_joined_shards_are_the_report_of_the_whole_command(of: list[int], order: list[int]) -> None:
    """However the cases are divided, and in whatever order the reports are given, the joined report is that of one command without shards."""
    found = outcomes()
    parts = [shard(found, [number for number, each in enumerate(of) if each == part]) for part in order]
    merged = merging.join(parts)
    assert merged.report == shard(found, [*range(6)])
    assert (merged.problem(), merged.report.exit) == (None, 130)


def test_lost_and_doubled_cases_are_named() -> None:
    """A selected case that no report has is named, and is in the joined report as skipped; one that two have is named, and counts once if it is the same run; the exit code is 2."""
    found = outcomes()
    merged = merging.join([shard(found, [0, 1]), shard(found, [4, 1, 2])])
    problem = merged.problem()
    assert problem is not None
    assert problem.evidence == {
        "missing": ["shop/pay.yaml[3]", "shop/pay.yaml[5]"],
        "twice": ["shop/pay.yaml[1]"],
    }
    assert (problem.code, merged.report.exit) == ("shards-incomplete", 2)
    assert [(str(each.case)[-2], each.status) for each in merged.report.runs] == [
        ("0", "passed"),
        ("1", "failed"),
        ("2", "paused"),
        ("3", "skipped"),
        ("4", "passed"),
        ("5", "skipped"),
    ]
    assert b'<skipped message="no report has it" />' in junit.document(merged.report)
    reports.check("batch-report", json.loads(merged.report.as_json()))
    assert merging.join([merged.report]).report.exit == 2, "a joined report that is joined again hides nothing"


def test_a_report_of_a_later_version_is_read(tmp_path: Path) -> None:
    """Fields that a later RunOps adds are left out; what is no report, or not there, is an error with the file."""
    whole = report([ended("passed", 0)], exit=0)
    data = json.loads(whole.as_json())
    file = tmp_path / "r.json"
    file.write_text(json.dumps({**data, "later": 1, "runs": [{**each, "later": 1} for each in data["runs"]]}))
    assert merging.read(file) == whole
    for text, code in (
        ("{}", "report-invalid"),
        ("[", "report-invalid"),
        (json.dumps({**data, "version": 2}), "report-invalid"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=r"r\.json") as caught:
            merging.read(file)
        assert caught.value.code == code
    with pytest.raises(UsageError, match=r"none\.json") as caught:
        merging.read(tmp_path / "none.json")
    assert caught.value.code == "file-not-found"
    with pytest.raises(UsageError) as caught:
        merging.read(tmp_path)
    assert caught.value.code == "file-not-read"
