"""`runops run FILE --resume-if-exists KEY`: the same key means the same run, for every caller and however often."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import junitparser
import pytest

from tests import shop_flows
from tests.command import TIMEOUT, Project

ADD = """\
version: 1
name: Add
inputs: {n: {type: integer, default: 1}}
nodes:
  - {id: sum, type: transform, expr: "{{ inputs.n + 1 }}"}
  - {id: check, type: transform, expr: "{{ 1 // inputs.n }}"}
output: "{{ sum }} {{ check }}"
"""

WAIT = """
version: 1
nodes: [{id: wait, type: transform, python: "waiting:until_told", timeout: 600}]
output: "{{ wait }}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a browser path that does not exist: starting one fails."""
    project = Project(tmp_path)
    project.environment["RUNOPS_BROWSER"] = str(tmp_path / "no-browser")
    project.write("add.yaml", ADD)
    return project


def keyed(project: Project, key: str, *more: str, file: str = "add.yaml") -> subprocess.CompletedProcess[str]:
    """Run with a key, as in a CI job."""
    return project.here("run", file, "--resume-if-exists", key, *more)


def test_the_same_key_is_the_same_run(project: Project) -> None:
    """A repeated key prints the result again, as text, JSON and report, and runs nothing. Another key starts another run."""
    first = keyed(project, "nightly 1", "-i", "n=1")
    assert (first.returncode, first.stdout) == (0, "2 1\n")
    again = keyed(project, "nightly 1", "-i", "n=1", "--json", "--junit", "report.xml")
    (run,) = json.loads(again.stdout)["runs"]
    assert (again.returncode, run["status"], run["output"]) == (0, "passed", "2 1")
    assert junitparser.JUnitXml.fromfile(str(project.folder / "report.xml")).tests == 1
    assert [(each["id"], each["key"]) for each in project.runs()] == [(run["run"], "nightly 1")]
    assert project.show()["key"] == "nightly 1"
    assert "nightly 1" in project.here("show", "last").stdout
    assert keyed(project, "nightly 2").returncode == 0
    assert [each["key"] for each in project.runs()] == ["nightly 1", "nightly 2"]


def test_a_run_that_failed_is_tried_again(project: Project) -> None:
    """A repeated key attempts the failed step again, in the same run. `--allow-changed` uses the file fixed meanwhile."""
    for _ in range(2):
        assert keyed(project, "k", "-i", "n=0").returncode == 1
    (run,) = project.runs()
    assert [len(step["attempts"]) for step in project.show(run["id"])["steps"]] == [1, 2]
    project.write("add.yaml", ADD.replace("1 // inputs.n", "7"))
    assert keyed(project, "k", "-i", "n=0").returncode == 1
    patched = keyed(project, "k", "-i", "n=0", "--allow-changed")
    assert (patched.returncode, patched.stdout) == (0, "1 7\n")
    assert len(project.runs()) == 1


def test_another_file_or_other_inputs_are_refused(project: Project) -> None:
    """Another file or other inputs exit 2 and name the run and the difference. The same text elsewhere, or a default given explicitly, is the same."""
    assert keyed(project, "k").returncode == 0
    (run,) = project.runs()
    other = keyed(project, "k", "-i", "n=2", "--json")
    assert other.returncode == 2
    error = json.loads(other.stdout)["runs"][0]["error"]
    assert (error["code"], error["evidence"]["n"]) == ("key-taken", {"begun": 1, "now": 2})
    assert run["id"] in error["message"]
    project.write("other.yaml", ADD.replace("Add", "Other"))
    file = keyed(project, "k", file="other.yaml")
    assert (file.returncode, "another file" in file.stderr, "add.yaml" in file.stderr) == (2, True, True)
    project.write("copy.yaml", ADD)
    assert [keyed(project, "k", *more, file=name).returncode for name, more in (("copy.yaml", ()), ("add.yaml", ("-i", "n=1")))] == [0, 0]  # fmt: skip
    assert len(project.runs()) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["add.yaml", "add2.yaml", "--resume-if-exists", "k"], "usage"),
        ([".", "--resume-if-exists", "k"], "usage"),
        (["add.yaml", "--resume-if-exists", "k", "--fail-fast"], "usage"),
        (["add.yaml", "--allow-changed"], "usage"),
        (["add.yaml", "--resume-if-exists", " "], "bad-key"),
        (["add.yaml", "--resume-if-exists", "a\nb"], "bad-key"),
        (["add.yaml", "--resume-if-exists", "k" * 201], "bad-key"),
        (["add.yaml", "--resume-if-exists", "of hunter22-secret"], "bad-key"),
    ],
)
def test_an_invalid_key_or_combination_is_refused(project: Project, arguments: list[str], code: str) -> None:
    """An invalid key or combination exits 2, starts nothing, and neither shows nor stores a secret."""
    project.environment["TOKEN"] = "hunter22-secret"
    project.write("add.yaml", ADD.replace("name: Add", "secrets: [TOKEN]"))
    refused = project.here("run", *arguments)
    assert (refused.returncode, f"error[{code}]" in refused.stderr) == (2, True)
    assert project.runs() == []
    assert "hunter22" not in refused.stderr + refused.stdout
    kept = [each for each in (project.folder / ".runops").rglob("*") if each.is_file()]
    assert not [each for each in kept if b"hunter22" in each.read_bytes()]


def test_a_run_that_died_before_its_first_line_starts_again(project: Project) -> None:
    """An empty log, or one with half a first line, does not count as a run."""
    assert keyed(project, "k").returncode == 0
    log = next((project.folder / ".runops" / "conversations").glob("*.jsonl"))
    for left in (b"", log.read_bytes()[:20]):
        log.write_bytes(left)
        assert keyed(project, "k").returncode == 0
    assert [each["id"] for each in project.runs()] == [log.stem]


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.02)


def test_only_one_of_two_commands_with_a_new_key_starts_a_run(project: Project) -> None:
    """One of two concurrent commands with a new key starts the run. The other exits 1 with the owner; repeated later it prints the result."""
    project.environment |= {"RUNOPS_PYTHON_MODULES": "waiting", "PYTHONPATH": str(project.folder)}
    project.write("waiting.py", shop_flows.WAITING)
    project.write("wait.yaml", WAIT)
    both = [project.start("run", "wait.yaml", "--resume-if-exists", "k") for _ in range(2)]
    try:
        wait_for(lambda: any(each.poll() is not None for each in both) and (project.folder / "begun").exists())
        loser = next(each for each in both if each.poll() is not None)
        winner = next(each for each in both if each is not loser)
        said = loser.communicate(timeout=TIMEOUT)[1]
        assert (loser.returncode, "run-held" in said, str(winner.pid) in said) == (1, True, True)
        (project.folder / "go").touch()
        assert winner.communicate(timeout=TIMEOUT)[0] == "told\n"
        assert winner.returncode == 0
    finally:
        for each in both:
            each.kill()
            each.communicate()
    assert len(project.runs()) == 1
    (project.folder / "go").unlink()
    assert keyed(project, "k", file="wait.yaml").stdout == "told\n"
