"""`runops resume` as a command: runs that are damaged, failed, or have a changed file. None of them needs a browser, and none is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Project

FLOW = """\
version: 1
name: Count
nodes:
  - {id: one, type: transform, expr: "{{ 1 }}"}
  - {id: two, type: transform, expr: "{{ one + 1 }}"}
  - {id: three, type: transform, expr: "{{ two // 0 }}"}
output: "{{ three }}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.environment["RUNOPS_BROWSER"] = str(tmp_path / "no-browser")
    project.write("flow.yaml", FLOW)
    assert project.here("run", "flow.yaml").returncode == 1
    return project


def test_a_failed_step_has_a_new_attempt(project: Project) -> None:
    """A resume exits 1 again, repeats no earlier step, and names the next command."""
    again = project.here("resume", "last")
    assert again.returncode == 1
    assert "2 steps are done and will not be done again, continuing at three" in again.stderr
    assert "runops resume" in again.stderr
    assert [len(step["attempts"]) for step in project.show()["steps"]] == [1, 1, 2]


def test_a_damaged_log_is_refused_by_its_line(project: Project) -> None:
    """A damaged log exits 2 with file and line, and is left unchanged. Another run still resumes."""
    assert project.here("run", "flow.yaml").returncode == 1
    log = min((project.folder / ".runops" / "conversations").glob("*.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], lines[1].replace(b"pid", b"pit"), *lines[2:]]))
    damaged = log.read_bytes()
    for command in (["resume", log.stem], ["resume", log.stem, "--allow-changed"], ["resume", log.stem, "--take-over"]):
        refused = project.here(*command)
        assert (refused.returncode, f"{log}:2:" in refused.stderr) == (2, True)
    assert log.read_bytes() == damaged
    assert project.here("resume", "last").returncode == 1


def test_the_changed_file_is_used_on_request(project: Project) -> None:
    """Without the flag the run keeps its workflow and names the flag. With it the fixed step passes, with the output of the fixed file."""
    project.write("flow.yaml", FLOW.replace("two // 0", "two // 1"))
    kept = project.here("resume", "last")
    assert (kept.returncode, "`--allow-changed` takes it as it is now" in kept.stderr) == (1, True)
    *_more, again = kept.stderr.splitlines()
    assert (again.split()[:3], again.split()[4:]) == (["again", "runops", "resume"], ["--allow-changed"])
    taken = project.here("resume", "last", "--allow-changed")
    assert (taken.returncode, taken.stdout) == (0, "2\n")
    assert "this run continues with it as it is now" in taken.stderr
    project.write("flow.yaml", FLOW)
    assert project.here("resume", "last").stdout == "2\n"


def test_a_file_that_may_not_be_taken_is_not_offered(project: Project) -> None:
    """With a step added before a finished one, the run continues with its own text, and its end does not offer the flag that would be refused."""
    project.write(
        "flow.yaml", FLOW.replace("  - {id: two", '  - {id: new, type: transform, expr: "{{ 1 }}"}\n  - {id: two')
    )
    kept = project.here("resume", "last")
    assert (kept.returncode, "a new run takes the new one" in kept.stderr) == (1, True)
    assert ("runops resume" in kept.stderr.splitlines()[-1], "--allow-changed" in kept.stderr) == (True, False)
    assert project.here("resume", "last", "--allow-changed").returncode == 2


def test_inputs_keep_their_values_in_a_changed_file(project: Project) -> None:
    """A changed default is for new runs: the end of a resumed run says so, and with the flag the kept value is named, once."""
    flow = FLOW.replace("nodes:", "inputs: {least: {type: integer, default: 10}}\nnodes:").replace(
        "two //", "inputs.least //"
    )
    project.write("flow.yaml", flow)
    assert project.here("run", "flow.yaml").returncode == 1
    changed = flow.replace("default: 10", "default: 5")
    project.write("flow.yaml", changed)
    kept = project.here("resume", "last")
    assert "--allow-changed\n" in kept.stderr
    assert "runops run flow.yaml   (only a new run takes what the file now says: least)" in kept.stderr
    said = "inputs keep their values: least=10 (the file now says 5)"
    assert said not in kept.stderr
    taken = project.here("resume", "last", "--allow-changed")
    assert (taken.returncode, taken.stderr.count(said)) == (1, 1)
    assert said not in project.here("resume", "last", "--allow-changed").stderr
    project.write("flow.yaml", changed.replace("least // 0", "least // 1"))
    assert project.here("resume", "last", "--allow-changed").stdout == "10\n"


def test_a_run_without_a_finished_step_counts_none(project: Project) -> None:
    """Resumed at its first step, a run does not say that 0 steps are done."""
    project.write("flow.yaml", FLOW.replace("{{ 1 }}", "{{ 1 // 0 }}"))
    assert project.here("run", "flow.yaml").returncode == 1
    again = project.here("resume", "last")
    assert (again.returncode, "will not be done again" in again.stderr) == (1, False)


def test_a_changed_finished_step_is_named_with_the_one_after_it(project: Project) -> None:
    """A changed finished step before another one is refused with both names, also under the flag, which is suggested only where it would help."""
    project.write("flow.yaml", FLOW.replace("{{ 1 }}", "{{ 5 }}").replace("two // 0", "two // 1"))
    plain = project.here("resume", "last")
    assert (plain.returncode, "`one` was changed" in plain.stderr, "--allow-changed" in plain.stderr) == (
        2,
        True,
        False,
    )
    flagged = project.here("resume", "last", "--allow-changed", "--json")
    error = json.loads(flagged.stdout)["error"]
    assert (flagged.returncode, error["code"]) == (2, "node-changed")
    (refused,) = error["evidence"]["refused"]
    assert (refused["step"], "`two` after it is done" in refused["why"]) == ("one", True)
    project.write("flow.yaml", FLOW.replace("one + 1", "one + 2").replace("two // 0", "two // 1"))
    plain = project.here("resume", "last")
    assert (plain.returncode, "runops resume" in plain.stderr, "--allow-changed" in plain.stderr) == (2, True, True)
    taken = project.here("resume", "last", "--allow-changed")
    assert (taken.returncode, taken.stdout, "done again where it was done already: two" in taken.stderr) == (
        0,
        "3\n",
        True,
    )


def test_an_unfit_file_is_not_used(project: Project) -> None:
    """A file with mistakes exits 2, and one with an unset secret exits 3. Nothing is written, and the run can still resume unchanged."""
    log = next((project.folder / ".runops" / "conversations").glob("*.jsonl"))
    before = log.read_bytes()
    project.write("flow.yaml", FLOW.replace("transform", "transfrom", 1))
    wrong = project.here("resume", "last", "--allow-changed")
    assert (wrong.returncode, "flow.yaml:4:" in wrong.stderr) == (2, True)
    project.write("flow.yaml", FLOW.replace("name: Count", "secrets: [NOT_THERE]"))
    missing = project.here("resume", "last", "--allow-changed")
    assert (missing.returncode, "NOT_THERE" in missing.stderr) == (3, True)
    assert log.read_bytes() == before
    assert project.here("resume", "last").returncode == 1
