"""`runops init` and `runops new`: files to begin with, which pass as they are."""

from __future__ import annotations

import fnmatch
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from runtime.cli.commands import new
from tests.command import Project

FILES = ["workflows/example.yaml", "workflows/workflow.schema.json", ".env.example", ".gitignore"]
CI = [".github/workflows/runops.yml", ".gitlab-ci.yml"]


def states(project: Project, *arguments: str) -> dict[str, str]:
    """The files of `runops init --json`, with what was done to each."""
    done = project.here("init", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return {each["file"]: each["state"] for each in json.loads(done.stdout)["files"]}


def content(project: Project) -> dict[str, bytes]:
    return {
        str(each.relative_to(project.folder)): each.read_bytes() for each in project.folder.rglob("*") if each.is_file()
    }


def test_what_is_made_passes(tmp_path: Path) -> None:
    """In an empty folder the example, and a new workflow for any page, fit the schema that they name, and their runs pass."""
    project = Project(tmp_path)
    assert states(project) == dict.fromkeys(FILES, "created")
    page = 'data:text/html,<p>It\'s "here": {a}'
    done = project.here("new", "my-own", "--url", page)
    assert (done.returncode, done.stdout) == (0, "created  workflows/my-own.yaml\n")
    for file in (tmp_path / "workflows").glob("*.yaml"):
        text = file.read_text()
        schema = file.parent / text.partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
        jsonschema.Draft202012Validator(json.loads(schema.read_text())).validate(yaml.safe_load(text))
    ran = project.here("run", "workflows", "--quiet")
    assert (ran.returncode, ran.stderr) == (0, "")
    outputs: dict[str, Any] = yaml.safe_load(ran.stdout)
    assert outputs["workflows/example.yaml"] == {"answer": "Hello, Ada"}
    assert outputs["workflows/my-own.yaml"] == {"begins": 'It\'s "here": {a}'}


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """A second `init` changes no byte. What a person wrote stays without `--force`; `.gitignore` gets only the lines that it lacks."""
    project = Project(tmp_path)
    states(project, "--github", "--gitlab")
    before = content(project)
    assert states(project, "--github", "--gitlab") == dict.fromkeys([*FILES, *CI], "kept")
    assert content(project) == before
    project.write("workflows/example.yaml", "mine")
    project.write(".gitignore", "build\n.env")
    assert states(project)[FILES[0]] == "kept"
    assert (
        tmp_path / ".gitignore"
    ).read_text() == "build\n.env\n.runops/\nvenv/\nreport*.html\nreport*.json\nreport*.xml\n"
    assert (tmp_path / FILES[0]).read_text() == "mine"
    assert states(project, "--force")[FILES[0]] == "replaced"
    assert (tmp_path / FILES[0]).read_bytes() == before[FILES[0]]
    assert (
        tmp_path / ".gitignore"
    ).read_text() == "build\n.env\n.runops/\nvenv/\nreport*.html\nreport*.json\nreport*.xml\n"


def test_a_schema_of_another_version_is_named(tmp_path: Path) -> None:
    """A schema that differs from that of this version is kept, and the command that renews it makes it equal."""
    project = Project(tmp_path)
    states(project)
    before = content(project)["workflows/workflow.schema.json"]
    project.write("workflows/workflow.schema.json", "{}")
    (line,) = [each for each in project.here("init").stdout.splitlines() if "schema.json" in each]
    command = line.partition("renew it: ")[2].split()
    assert command[0] == "runops"
    project.here(*command[1:])
    assert content(project)["workflows/workflow.schema.json"] == before


def test_an_existing_gitlab_file_is_not_changed(tmp_path: Path) -> None:
    """The job to add is printed, even with `--force`, until the file has it."""
    project = Project(tmp_path)
    mine = "test:\n  script: [make]\n"
    file = project.write(".gitlab-ci.yml", mine)
    printed = project.here("init", "--gitlab", "--force").stdout
    job = printed.partition("to add to .gitlab-ci.yml:\n\n")[2]
    assert yaml.safe_load(mine + job)["workflows"]["script"]
    assert file.read_text() == mine
    file.write_text(mine + job)
    assert "to add" not in project.here("init", "--gitlab").stdout


@pytest.mark.parametrize("name", ["checks", "end to end: #1"])
def test_files_for_ci_are_at_the_root_of_the_repository(name: str, tmp_path: Path) -> None:
    """From a folder of a repository the files for CI go to its root, where a server reads them, and run the workflows of that folder.

    Secrets and reports are at the root then, so its `.gitignore` has them, too.
    """
    (tmp_path / ".git").mkdir()
    (tmp_path / name).mkdir()
    project = Project(tmp_path / name)
    done = states(project, "--github", "--gitlab")
    assert done == {
        **dict.fromkeys(FILES, "created"),
        **dict.fromkeys((f"../{each}" for each in (".gitignore", *CI)), "created"),
    }
    assert (tmp_path / ".gitignore").read_text() == (tmp_path / name / ".gitignore").read_text()
    assert not [*(tmp_path / name).glob(".git[hl]*")]
    for _, commands in lines_of(Project(tmp_path)):
        assert shlex.split(commands[-1])[:4] == ["runops", "run", f"{name}/workflows/", "-j"]
    assert " ../vendor" in project.here("init", "--github").stderr
    above = Project(tmp_path)
    before = content(above)
    assert states(above, name, "--github", "--gitlab") == dict.fromkeys(
        [*(f"{name}/{each}" for each in FILES), ".gitignore", *CI], "kept"
    )
    assert content(above) == before
    (tmp_path / "other").mkdir()
    second = Project(tmp_path / "other").here("init", "--github", "--gitlab").stdout
    assert "../.github/workflows/runops.yml  does not run other/workflows/" in second
    assert "to add to ../.gitlab-ci.yml" in second


def lines_of(project: Project) -> list[tuple[str, list[str]]]:
    """The commands of each file for CI."""
    github = yaml.safe_load((project.folder / CI[0]).read_text())
    gitlab = yaml.safe_load((project.folder / CI[1]).read_text())
    steps = github["jobs"]["workflows"]["steps"]
    return [("github", [each["run"] for each in steps if "run" in each]), ("gitlab", gitlab["workflows"]["script"])]


def test_the_jobs_are_scripts_of_a_shell(tmp_path: Path) -> None:
    """Both jobs have the same three commands, which a shell takes as they are; what they keep has no private files and is kept of a red run."""
    project = Project(tmp_path)
    states(project, "--github", "--gitlab")
    (_, github), (_, gitlab) = lines_of(project)
    assert github == gitlab
    assert [each.split()[:2] for each in github] == [["pip", "install"], ["runops", "install"], ["runops", "run"]]
    assert "${{" not in "".join(github)
    assert subprocess.run(["bash", "-n", "-c", "\n".join(github)], check=False).returncode == 0
    written = [word for word in github[-1].split() if word.startswith("report.")]
    kept = yaml.safe_load((tmp_path / CI[1]).read_text())["workflows"]["artifacts"]
    assert {*written} == {*kept["paths"], kept["reports"]["junit"]} - {".runops/"}
    assert (kept["when"], kept["exclude"]) == ("always", [".runops/private/**/*"])
    ignored = (tmp_path / ".gitignore").read_text().splitlines()
    assert ".runops/" in ignored
    assert all(any(fnmatch.fnmatch(each, line) for line in ignored) for each in [*written, "report-1.json"])
    (upload,) = [
        each
        for each in yaml.safe_load((tmp_path / CI[0]).read_text())["jobs"]["workflows"]["steps"]
        if "upload" in each.get("uses", "")
    ]
    assert (upload["if"], upload["with"]["include-hidden-files"]) == ("always()", True)
    assert upload["with"]["path"].split() == ["report.*", ".runops", "!.runops/private/**"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shop"], "is there already"),
        (["workflows/shop.yaml"], "is there already"),
        (["other", "--url", "shop.test"], "is no address"),
        (["other", "--url", "https://shop.test/{{ x }}"], "is no address"),
        (["shop/deep/"], "cannot be written"),
        (["/"], "is no name of a file"),
    ],
)
def test_what_cannot_be_made_is_refused(arguments: list[str], said: str, tmp_path: Path) -> None:
    """A file that is there, an address that is none, and a name that is none: exit code 2, and no byte is changed."""
    project = Project(tmp_path)
    states(project)
    project.here("new", "shop")
    project.write("shop", "a file")
    before = content(project)
    done = project.here("new", *arguments)
    assert (done.returncode, said in done.stderr, done.stdout) == (2, True, "")
    assert content(project) == before


def test_a_new_workflow_takes_the_nearest_schema(tmp_path: Path) -> None:
    """The schema in a folder above is used; where there is none in the project, one is written beside the file."""
    project = Project(tmp_path)
    states(project)
    project.here("new", "workflows/shop/orders.yaml")
    assert (
        (tmp_path / "workflows/shop/orders.yaml")
        .read_text()
        .startswith("# yaml-language-server: $schema=../workflow.schema.json\n")
    )
    done = project.here("new", "elsewhere/orders")
    assert "created  elsewhere/workflow.schema.json" in done.stdout
    assert (
        (tmp_path / "elsewhere/orders.yaml")
        .read_text()
        .startswith("# yaml-language-server: $schema=workflow.schema.json\n")
    )
    assert new.DEMO in (tmp_path / "elsewhere/orders.yaml").read_text()
    valid = project.here("validate", "elsewhere/orders.yaml", "workflows/shop/orders.yaml")
    assert (valid.returncode, valid.stderr) == (0, "")
