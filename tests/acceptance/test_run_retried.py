"""`runops run` with retries, limits of failures and of time."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import reports
from tests.command import Project

FUNCTIONS = """\
import pathlib
def passes_at(number, name):
    file = pathlib.Path(name)
    tries = file.read_text() + "x" if file.exists() else "x"
    file.write_text(tries)
    assert len(tries) >= number, f"try {len(tries)}"
    return len(tries)
"""
FLAKY = """\
version: 1
{head}nodes:
  - {{id: try, type: transform, python: "tries:passes_at", args: {{number: {number}, name: {name}}}}}
output: "{{{{ try }}}}"
"""
PASSES = "version: 1\nnodes: [{id: one, type: transform, expr: 1}]\noutput: '{{ one }}'\n"
ASKS = "version: 1\nnodes: [{id: ask, type: context, ask: {sure: Really?}}]\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("pyproject.toml", '[tool.runops]\npython_modules = ["tries"]\n')
    project.write("tries.py", FUNCTIONS)
    return project


def flaky(project: Project, name: str, number: int, head: str = "") -> str:
    """A workflow that passes at so many tries."""
    project.write(f"{name}.yaml", FLAKY.format(name=name, number=number, head=head))
    return f"{name}.yaml"


def run(project: Project, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    done = project.runops("run", *arguments, "--json")
    found = json.loads(done.stdout)
    reports.check("batch-ending", found)
    return done, found


def test_retries_are_new_runs_and_a_case_that_passes_then_is_flaky(project: Project) -> None:
    """Each retry is said, and is a run of its own. A flaky case passes and shows what differed; with `--fail-on-flaky` it fails."""
    files = [flaky(project, "soon", 2), flaky(project, "late", 9), flaky(project, "never", 9, "rerun: never\n")]
    done, found = run(project, *files, "--retries", "2")
    assert (done.returncode, found["exit"]) == (1, 1)
    soon, late, never = found["runs"]
    assert [each["status"] for each in (soon, late, never)] == ["flaky", "failed", "failed"]
    assert [[each["status"] for each in case["attempts"]] for case in (soon, late, never)] == [
        ["failed", "passed"], ["failed"] * 3, ["failed"],
    ]  # fmt: skip
    ids = [each["run"] for case in (soon, late, never) for each in case["attempts"]]
    assert ids == [each["id"] for each in project.runs()]
    assert (soon["output"], soon["exit"], soon["run"]) == (2, 0, ids[1])
    assert {(each["path"], each["what"]) for each in soon["differed"]} >= {("try", "status")}
    assert f"-- retry 1/2 of soon.yaml (run {ids[0]} failed at try)" in done.stderr
    assert f"-- retry 2/2 of late.yaml (run {ids[3]} failed at try)" in done.stderr
    assert never["notes"] == ["not retried: its file says `rerun: never`"]
    summary = done.stderr[done.stderr.index("1 flaky, 2 failed") :].splitlines()
    assert summary[1].split()[:2] == ["flaky", "soon.yaml"]
    assert f"run {ids[0]} failed  try" in summary[1]
    assert summary[3].endswith("not retried: its file says `rerun: never`")
    for more, code in (([], 0), (["--fail-on-flaky"], 1)):
        (project.folder / "soon").unlink()
        done, found = run(project, "soon.yaml", "--retries", "1", *more)
        assert (done.returncode, found["exit"], found["runs"][0]["status"]) == (code, code, "flaky")
        assert ("it counts as failed: `--fail-on-flaky`" in done.stderr) == bool(more)
        before, after = (each["run"] for each in found["runs"][0]["attempts"])
        assert f"  look   runops diff {before} {after}   # soon.yaml\n" in done.stderr


def test_quiet_says_in_one_line_that_a_retry_passed(project: Project) -> None:
    """The failure that a retry repaired is not shown in full, and what failed to the end is shown once; so it is with workers."""
    files = [flaky(project, "soon", 2), flaky(project, "soon2", 2)]
    for workers in ("1", "2"):
        done = project.runops("run", *files, "--retries", "1", "--quiet", "-j", workers)
        lines = done.stderr.splitlines()
        assert sorted(line.split()[1] for line in lines) == files
        assert all(line.startswith("flaky ") and "failed  try" in line for line in lines)
        for name in ("soon", "soon2"):
            (project.folder / name).unlink()
    late = project.runops("run", flaky(project, "late", 9), "--retries", "2", "--quiet")
    assert (late.returncode, late.stderr.count("FAILED")) == (1, 1)


def test_so_many_failures_end_the_command_and_a_pause_does_not(project: Project) -> None:
    """Cases that were not begun are skipped. A case that waits for a person stops no other."""
    project.write("asks.yaml", ASKS)
    project.write("passes.yaml", PASSES)
    files = ["asks.yaml", flaky(project, "one", 9), "passes.yaml", flaky(project, "two", 9), "asks.yaml", "passes.yaml"]
    for arguments, states in (
        (["--max-failures", "2"], ["paused", "failed", "passed", "failed"]),
        (["-x"], ["paused", "failed", "skipped", "skipped"]),
    ):
        done, found = run(project, *files[:4], *arguments)
        assert (done.returncode, [each["status"] for each in found["runs"]]) == (1, states)
    assert "1 failed, 1 paused, 2 skipped" in done.stderr
    both = project.here("run", *files[:2], "-x", "--max-failures", "2")
    assert (both.returncode, "contradict each other" in both.stderr) == (2, True)


SLEEPS = """\
version: 1
{head}nodes:
  - {{id: before, type: transform, expr: 1}}
  - {{id: sleep, type: transform, python: "tries:sleeps", args: {{}}, timeout: 60}}
output: "{{{{ sleep }}}}"
"""


def test_a_run_that_takes_too_long_has_failed_and_can_be_resumed(project: Project) -> None:
    """It ends at the step it was in, with the command that resumes it; the flag, the setting and the file set the limit."""
    project.write(
        "tries.py",
        "import pathlib, time\ndef sleeps():\n    time.sleep(0 if pathlib.Path('go').exists() else 60)\n    return 1\n",
    )
    project.write("a.yaml", SLEEPS.format(head=""))
    project.write("b.yaml", SLEEPS.format(head="run_timeout: 0.3\n"))
    done, found = run(project, "a.yaml", "b.yaml", "--run-timeout", "0.5")
    assert done.returncode == 1
    assert [(each["status"], each["path"], each["error"]["code"]) for each in found["runs"]] == [
        ("failed", "sleep", "run-timeout")
    ] * 2
    assert [each["error"]["message"] for each in found["runs"]] == [
        "the run took longer than 0.5 s", "the run took longer than 0.3 s",
    ]  # fmt: skip
    project.write("go", "")
    again = project.runops("resume", found["runs"][0]["run"])
    assert (again.returncode, again.stdout) == (0, "1\n")
