"""`runops run` with rows, selections, shards, lists, and what failed last."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import reports
from tests.command import Project

DIVIDE = """\
version: 1
name: Divide
tags: [math]
inputs: {by: {type: integer, default: 1}, of: {type: integer, default: 12}}
nodes: [{id: share, type: transform, expr: "{{ inputs.of // inputs.by }}"}]
output: "{{ share }}"
"""
GREET = """\
version: 1
tags: [words, smoke]
inputs: {who: {type: string, default: you}}
nodes: [{id: hello, type: transform, expr: "hello {{ inputs.who }}"}]
output: "{{ hello }}"
"""
ONE = "version: 1\nnodes: [{id: one, type: transform, expr: 1}]\noutput: '{{ one }}'\n"
ROWS = "case,by\nhalf,2\nnothing,0\n,3\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "flows").mkdir()
    project = Project(tmp_path)
    for name, text in (("divide", DIVIDE), ("greet", GREET), ("one", ONE)):
        project.write(f"flows/{name}.yaml", text)
    project.write("rows.csv", ROWS)
    return project


def listed(project: Project, *arguments: str) -> dict[str, Any]:
    done = project.here("run", "flows", "--list", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    reports.check("case-list", found)
    return found


def cases(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The status of each case in the output of ``--json``."""
    return {run["case"]: run["status"] for run in json.loads(done.stdout)["runs"]}


DIVIDED = {"half": "passed", "nothing": "failed", "3": "passed"}


def test_each_row_is_a_run(project: Project) -> None:
    """A file with the columns runs once for each row, another file once. stdout maps cases to outputs, and JSON has their rows.

    So has the list of runs, also of those of workers.
    """
    done = project.here("run", "flows", "--rows", "rows.csv", "-i", "of=13")
    assert done.returncode == 1
    assert yaml.safe_load(done.stdout) == {
        "flows/divide.yaml[half]": 6, "flows/divide.yaml[3]": 4, "flows/greet.yaml": "hello you", "flows/one.yaml": 1,
    }  # fmt: skip
    assert "-- 2/5  flows/divide.yaml[nothing]" in done.stderr
    assert "4 passed, 1 failed" in done.stderr
    only = ("run", "flows/divide.yaml", "--rows", "rows.csv", "--json", "--quiet")
    found = json.loads(project.here(*only, "-j", "2").stdout)
    rows = [*DIVIDED, None, None]
    names = [line.rsplit("  ", 1)[-1] for line in project.here("runs").stdout.splitlines()[1:]]
    assert names[:3] == [f"Divide [{row}]" for row in DIVIDED]
    assert sorted(names[5:]) == sorted(names[:3])
    listed = [each["row"] for each in json.loads(project.here("runs", "--json").stdout)["runs"]]
    assert listed[:5] == rows
    asked = project.here("query", "select distinct row from runs where row is not null order by row", "--json").stdout
    assert {each["row"] for each in json.loads(asked)["rows"]} == {*DIVIDED} - {None}
    assert {run["row"]: run["status"] for run in found["runs"]} == DIVIDED
    shown = project.here("show", found["runs"][0]["run"]).stdout
    assert re.search(rf"^ *row +{found['runs'][0]['row']}$", shown, re.MULTILINE)
    assert found["selected"] == [f"flows/divide.yaml[{row}]" for row in DIVIDED]


def test_all_rows_are_checked_before_the_first_run(project: Project) -> None:
    """A value that does not fit its input, a column that no file has, an input given twice: nothing runs.

    The error of a value has the table, the row and the value. `--list` has it, too.
    """
    project.write("bad.csv", "case,by\ngood,1\nbad,few\n")
    done = project.here("run", "flows", "--rows", "bad.csv", "--json")
    assert (done.returncode, cases(done)["flows/divide.yaml[bad]"]) == (2, "error")
    said = 'bad.csv: row 2: the input `by` must be a whole number, and "few" is not'
    assert f"error[input-type]: flows/divide.yaml[bad]: {said}" in done.stderr
    only = project.here("run", "flows", "--rows", "bad.csv", "--list")
    assert (only.returncode, said in only.stderr) == (2, True)
    assert "flows/divide.yaml[bad]   cannot run" in only.stdout
    assert "1 of 4 cases cannot be run, so none was begun" in done.stderr
    project.write("bad.csv", "bye\n1\n")
    assert "did you mean `by`?" in project.here("run", "flows", "--rows", "bad.csv").stderr
    twice = project.here("run", "flows", "--rows", "rows.csv", "-i", "by=2")
    assert (twice.returncode, "given by `-i` and by a column" in twice.stderr) == (2, True)
    keyed = project.here("run", "flows/divide.yaml", "--rows", "rows.csv", "--resume-if-exists", "a")
    assert (keyed.returncode, "`--rows` is for several runs" in keyed.stderr) == (2, True)
    assert not (project.folder / ".runops").exists()


def test_a_list_runs_nothing_and_shows_the_last_runs(project: Project) -> None:
    """It shows tags, and of each case its last state and duration, also of each row."""
    first = listed(project, "--rows", "rows.csv")
    assert [each["last"] for each in first["cases"]] == [None] * 5
    assert not (project.folder / ".runops").exists()
    project.here("run", "flows/divide.yaml", "--rows", "rows.csv", "--quiet")
    project.here("run", "flows/greet.yaml", "-i", "who=me", "--quiet")
    found = {each["case"]: each for each in listed(project, "--rows", "rows.csv")["cases"]}
    last = {case: each["last"] and each["last"]["state"] for case, each in found.items()}
    assert last == {f"flows/divide.yaml[{row}]": state for row, state in DIVIDED.items()} | {
        "flows/greet.yaml": "passed", "flows/one.yaml": None,
    }  # fmt: skip
    assert found["flows/greet.yaml"]["tags"] == ["words", "smoke"]
    text = project.here("run", "flows", "--list", "-k", "words or one")
    head, greet, one = text.stdout.splitlines()
    assert head.split() == ["case", "last", "took", "tags"]
    assert (greet.split()[:2], greet.split()[-2:]) == (["flows/greet.yaml", "passed"], ["words", "smoke"])
    assert one.split() == ["flows/one.yaml"]
    assert text.stderr == "2 cases\n"
    assert len(project.runs()) == 4


def test_cases_are_selected(project: Project) -> None:
    """`-k` and `--tag` select cases; a bad expression is shown with a caret, and a selection of nothing is refused."""
    assert [*cases(project.here("run", "flows", "-k", "not math", "--tag", "smoke", "--json"))] == ["flows/greet.yaml"]
    bad = project.here("run", "flows", "-k", "math and (one")
    assert bad.returncode == 2
    shown = bad.stderr.splitlines()
    assert shown[1:3] == ["  math and (one", "               ^"]
    none = project.here("run", "flows", "--tag", "smok")
    assert (none.returncode, "error[no-case]" in none.stderr, "did you mean `smoke`?" in none.stderr) == (2, True, True)


def test_shards_have_every_case_once(project: Project) -> None:
    """Each case is in one shard, whatever the logs of a machine say. A shard without a case passes, and says so."""
    rows = ("flows", "--rows", "rows.csv", "--json", "--quiet")
    ran = [json.loads(project.here("run", *rows, "--shard", f"{number}/3").stdout) for number in (1, 2, 3)]
    everything = ran[0]["selected"]
    assert all(each["selected"] == everything for each in ran)
    assert sorted(run["case"] for each in ran for run in each["runs"]) == sorted(everything)
    assert [each["shard"] for each in ran] == [{"number": number, "of": 3} for number in (1, 2, 3)]
    empty = project.here("run", "flows/one.yaml", "--shard", "2/2")
    assert (empty.returncode, "shard 2/2 has no case" in empty.stderr) == (0, True)


def test_durations_of_a_report_weigh_the_shards(project: Project) -> None:
    """The longest case has a shard to itself. A file that is no report is refused."""
    measured = [{"case": "flows/greet.yaml", "seconds": 9}, {"case": "flows/one.yaml", "seconds": 1}]
    project.write("before.json", json.dumps({"runs": [*measured, {"case": "flows/divide.yaml", "seconds": 2}]}))
    shards = [
        [each["case"] for each in listed(project, "--durations", "before.json", "--shard", f"{number}/2")["cases"]]
        for number in (1, 2)
    ]
    assert shards == [["flows/greet.yaml"], ["flows/divide.yaml", "flows/one.yaml"]]
    own = project.here("run", "flows", "--json", "--quiet").stdout
    project.write("own.json", own)
    assert listed(project, "--durations", "own.json")["cases"][0]["seconds"] is not None
    for text in ("[]", "{", '{"runs": [{}]}', '{"runs": 1}'):
        project.write("bad.json", text)
        done = project.here("run", "flows", "--durations", "bad.json")
        assert (done.returncode, "error[durations-invalid]" in done.stderr) == (2, True)


def test_what_failed_last_is_run_again(project: Project) -> None:
    """Cases whose newest run did not pass are run, and those that never ran, by file and row. If all passed, nothing runs, and that passes."""
    everything = ("run", "flows", "--rows", "rows.csv", "--json", "--quiet")
    first = project.here(*everything, "--last-failed")
    assert (first.returncode, len(cases(first))) == (1, 5)  # nothing is known yet
    again = project.here(*everything, "--last-failed")
    assert cases(again) == {"flows/divide.yaml[nothing]": "failed"}
    project.write("flows/divide.yaml", DIVIDE.replace("inputs.of // inputs.by", "inputs.by"))
    fixed = project.here(*everything, "--last-failed")
    assert (fixed.returncode, cases(fixed)) == (0, {"flows/divide.yaml[nothing]": "passed"})
    before = len(project.runs())
    nothing = project.here("run", "flows", "--rows", "rows.csv", "--last-failed")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "the newest run of each case passed, so there is nothing to run" in nothing.stderr
    assert len(project.runs()) == before
    project.write("rows.csv", ROWS.replace("nothing,0", "nothing,5"))
    corrected = project.here("run", "flows", "--rows", "rows.csv", "--last-failed", "--json")
    assert cases(corrected) == {"flows/divide.yaml[nothing]": "passed"}
    assert "1 of 5 cases never ran in " in corrected.stderr
    assert (
        project.here("run", "flows", "--last-failed").stdout == "flows/divide.yaml: 1\n"
    )  # without a row it never ran
    assert "contradict" in project.here("run", "flows", "--last-failed", "--shard", "1/2").stderr


def test_a_file_that_must_not_run_twice_is_not_begun_again(project: Project) -> None:
    """With `rerun: never`, `--last-failed` refuses a case whose last run did not pass, and names the command that continues it; by name it runs."""
    project.write(
        "flows/once.yaml", 'version: 1\nrerun: never\nnodes: [{id: one, type: transform, expr: "{{ 1 // 0 }}"}]\n'
    )
    assert project.here("run", "flows/once.yaml", "--last-failed").returncode == 1
    (run,) = project.runs()
    refused = project.here("run", "flows/once.yaml", "--last-failed")
    assert (refused.returncode, f"runops resume {run['id']}" in refused.stderr) == (2, True)
    assert "error[rerun-never]" in refused.stderr
    assert len(project.runs()) == 1
    assert project.here("run", "flows/once.yaml").returncode == 1
