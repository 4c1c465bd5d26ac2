"""Workflows that use other files, as a person runs them from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Project

ROOT = """version: 1
secrets: [TOKEN, OTHER]
nodes:
  - {id: first, type: transform, expr: "{{ 20 }}"}
  - {id: part, type: group, use: parts/part.yaml, with: {n: "{{ first }}"}, secrets: [TOKEN]}
output: "{{ part }}"
"""
PART = """version: 1
run: manual
inputs: {n: {type: integer}}
secrets: [TOKEN]
nodes:
  - {id: first, type: group, use: deep/inner.yaml, with: {n: "{{ inputs.n }}"}}
output: {sum: "{{ first }}"}
"""
INNER = """version: 1
inputs: {n: {type: integer}}
nodes:
  - {id: first, type: transform, expr: "{{ inputs.n + 1 }}"}
output: "{{ first }}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A workflow that uses a file that uses another."""
    project = Project(tmp_path, TOKEN="tell-nobody", OTHER="not-this-one")
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / ".runops").mkdir()
    for name, text in (("root.yaml", ROOT), ("parts/part.yaml", PART), ("parts/deep/inner.yaml", INNER)):
        project.write(name, text)
    return project


def test_a_workflow_runs_through_two_levels_and_shows_its_steps(project: Project) -> None:
    """The output comes from the innermost file through those that use it, and `show` has every step by its path."""
    done = project.here("run", "root.yaml", "--json")
    assert (done.returncode, json.loads(done.stdout)["runs"][0]["output"]) == (0, {"sum": 21}), done.stderr
    paths = json.dumps(project.show())
    assert '"part/first/first"' in paths
    assert "part/first/first" in project.here("show", "last", "--at", "part/first/first").stdout


def test_mistakes_are_reported_in_their_own_file(project: Project) -> None:
    """`validate` and `run` report the mistakes of all files at once, with line and column of the used file. Exit code 2, nothing starts."""
    project.write("root.yaml", ROOT.replace("with: {n:", "with: {m:"))
    project.write(
        "parts/deep/inner.yaml", INNER.replace("inputs.n +", "inputs.m +").replace('"{{ first }}"', '"{{ fist }}"')
    )
    for command in ("validate", "run"):
        done = project.here(command, "root.yaml")
        places = [line.partition("--> ")[2] for line in done.stderr.splitlines() if "-->" in line]
        assert (done.returncode, places) == (2, ["parts/deep/inner.yaml:4:51", "parts/deep/inner.yaml:5:13"])
        assert "Traceback" not in done.stderr
    project.write("parts/deep/inner.yaml", INNER)
    done = project.here("validate", "root.yaml")
    assert "--> root.yaml:5:58\n" in done.stderr
    assert "parts/part.yaml has no input `m`" in done.stderr
    assert project.runs() == []


def test_a_cycle_is_refused_with_its_path(project: Project) -> None:
    """A cycle of used files exits 2 at the `use` that closes it."""
    project.write(
        "parts/deep/inner.yaml", INNER.replace("type: transform, expr:", "type: group, use: ../part.yaml, description:")
    )
    done = project.here("run", "root.yaml")
    assert done.returncode == 2
    assert "error[use-cycle]" in done.stderr
    assert "parts/part.yaml → parts/deep/inner.yaml → parts/part.yaml" in done.stderr
    assert "--> parts/deep/inner.yaml:4:35" in done.stderr
    assert "`runops validate root.yaml` checks it again" in done.stderr


def test_a_file_reads_no_secret_that_it_was_not_given(project: Project) -> None:
    """A secret of the caller is unknown in a file that does not declare it. A declared one must be given."""
    fill = '{id: f, type: browser_action, action: fill, target: {css: p}, value: "{{ secrets.OTHER }}"}'
    project.write("parts/part.yaml", PART.replace("nodes:\n", f"nodes:\n  - {fill}\n"))
    done = project.here("validate", "root.yaml")
    assert done.returncode == 2
    assert "error[unknown-secret]: there is no secret `OTHER`" in done.stderr
    project.write("parts/part.yaml", PART.replace("[TOKEN]", "[TOKEN, OTHER]"))
    done = project.here("validate", "root.yaml")
    assert done.returncode == 2
    assert "parts/part.yaml needs the secret OTHER" in done.stderr


def test_a_failed_step_is_reported_by_its_path_and_a_folder_skips_used_files(project: Project) -> None:
    """A folder runs neither used files nor those with `run: manual`. A failed step is reported by its path, and `show --at` finds it."""
    project.write("parts/deep/inner.yaml", INNER.replace("inputs.n + 1", "1 / (inputs.n - 20)"))
    done = project.here("run", ".", "--json")
    assert done.returncode == 1
    (run,) = json.loads(done.stdout)["runs"]
    assert Path(run["file"]).name == "root.yaml"
    assert "part/first/first" in done.stderr
    shown = project.here("show", "last", "--at", "part/first/first")
    assert (shown.returncode, "expression-failed" in shown.stdout) == (0, True)


def test_a_run_resumes_in_a_used_file_without_the_files(project: Project) -> None:
    """A resume needs no files, since their text is kept with the run."""
    project.write("parts/deep/inner.yaml", INNER.replace("inputs.n + 1", "1 / (inputs.n - 20)"))
    assert project.here("run", "root.yaml").returncode == 1
    for name in ("root.yaml", "parts/part.yaml", "parts/deep/inner.yaml"):
        (project.folder / name).unlink()
    again = project.here("resume", "last")
    assert again.returncode == 1
    assert "part/first/first" in again.stderr
