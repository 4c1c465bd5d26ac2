"""Commands that only read leave a folder unchanged."""

import shutil
from pathlib import Path

import pytest

from runtime.cli import command_table
from tests.command import Project

FLOW = "version: 1\nname: One\nnodes:\n  - {id: one, type: transform, expr: '{{ 1 }}'}\n"

NONE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
"""The id of no run."""

LOOKS: dict[str, list[list[str]]] = {
    "resume": [[NONE], ["last"]],
    "decide": [[NONE, "one", "done"]],
    "answer": [[NONE, "x=1"]],
    "runs": [[], ["--sessions"], ["--json"]],
    "show": [[NONE], ["last"], [NONE, "--window"]],
    "query": [[], ["SELECT * FROM runs"], ["SELECT * FROM nothing"]],
    "ps": [[], ["--json"]],
    "prune": [[], ["--dry-run"], ["--older-than", "1d"], ["--json"]],
    "validate": [["flow.yaml"], ["missing.yaml"]],
    "schema": [[]],
    "nodes": [[], ["show", "goto"]],
    "agents": [[], ["show", "checker"], ["--json"]],
    "doctor": [[], ["--json"]],
    "diff": [[NONE, NONE]],
    "repair": [["--run", NONE], ["--run", "last"]],
    "chat": [["--resume", NONE], ["--resume", "last"]],
    "build": [["--resume", NONE]],
    "verify": [["missing.yaml"], ["flow.yaml", "-i", "nothing=1"]],
    "sign-ins": [[], ["export", "nobody", "x.json"], ["delete", "nobody"], ["--json"]],
    "run": [["missing.yaml"], ["flow.yaml", "-i", "nothing=1"]],
    "config": [[], ["--origin"], ["--json"]],
    "completion": [["bash"]],
    "report": [["merge", "missing.json"]],
    "export": [["missing.yaml", "--pytest"], ["flow.yaml"]],
    "new": [["flow.yaml"]],
    "try": [["flow.yaml", "missing"], ["missing.yaml", "one"]],
}
"""Arguments for each command that create nothing, whatever the outcome."""

WRITES = {"install", "init", "demo-site"}
"""Commands without such arguments: one installs a browser, one makes a project, one serves a site."""


def tree(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def test_every_command_is_known_here() -> None:
    """Every command is listed above with arguments that create nothing."""
    assert {each.name for each in command_table.every()} - LOOKS.keys() <= WRITES


@pytest.mark.parametrize("home", ["beside the project", "elsewhere"])
def test_commands_that_only_read_create_nothing(home: str, tmp_path: Path) -> None:
    """Without a folder for runs, no command that starts no run creates one or ends in a bug."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder)
    if home == "elsewhere":
        project.environment["RUNOPS_HOME"] = str(tmp_path / "no" / "home")
    project.write("pyproject.toml", "")
    project.write("flow.yaml", FLOW)
    before = tree(tmp_path)
    made: dict[tuple[str, ...], list[str]] = {}
    for name, forms in LOOKS.items():
        for form in forms:
            done = project.here(name, *form)
            assert done.returncode not in (70, -9), (name, form, done.stderr)
            if (after := tree(tmp_path)) != before:
                made[(name, *form)] = [each for each in after if each not in before]
                before = after
    assert made == {}


def test_reading_runs_creates_no_file(tmp_path: Path) -> None:
    """Runs copied without their private files are listed, shown and queried, and no file is created."""
    project = Project(tmp_path)
    project.write("flow.yaml", FLOW)
    assert project.runops("run", "flow.yaml").returncode == 0
    shutil.rmtree(tmp_path / ".runops" / "private")
    (tmp_path / ".runops" / ".gitignore").unlink()
    copied = tree(tmp_path)
    for arguments in (["runs"], ["show", "last"], ["query", "SELECT * FROM runs"], ["ps"]):
        assert project.here(*arguments).returncode == 0
    assert tree(tmp_path) == copied
