"""RunOps as a team installs it: a built wheel in an empty environment, outside the checkout, which is on no path."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import junitparser
import pytest
import yaml

from runtime.browser.chromium import find
from tests import pages
from tests.acceptance import test_docs, test_exported
from tests.command import Project
from tests.pages import ROOT
from tests.shop_process import Shop

pytestmark = [pytest.mark.drawn(0), pytest.mark.full_browser, pytest.mark.own_driver]

PAGE = ROOT / "docs" / "ci.md"
MINUTES = 10 * 60
NOT_SHIPPED = shutil.ignore_patterns(".*", "tests", "build", "dist", "*.egg-info", "__pycache__")


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """A folder with a built wheel, and the environment variables of a machine that has only the system's programs and a Python."""

    folder: Path
    vendor: Path

    def python(self, name: str) -> Path:
        """Make an empty virtual environment; its folder of programs."""
        home = self.folder / name
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        return home / "bin"

    def environment(self, programs: Path) -> dict[str, str]:
        path = os.pathsep.join([str(programs), "/usr/local/bin", "/usr/bin", "/bin"])
        kept = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_"))}
        return {**kept, "HOME": str(self.folder), "PATH": path, "LANG": "C.UTF-8"}

    def shell(self, script: str, programs: Path, where: Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=where,
            env={**self.environment(programs), **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=MINUTES,
            check=False,
        )


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    folder = tmp_path_factory.mktemp("machine")
    source, vendor = folder / "source", folder / "vendor"
    shutil.copytree(ROOT, source, ignore=NOT_SHIPPED)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(vendor), str(source)], check=True)
    shutil.rmtree(source)
    return Machine(folder, vendor)


@pytest.fixture(scope="module")
def programs(machine: Machine) -> Path:
    """The programs of an environment into which the wheel is installed."""
    found = machine.python("installed")
    done = machine.shell(f"pip install --quiet {machine.vendor}/runops-*.whl pytest-playwright", found, machine.folder)
    assert done.returncode == 0, done.stderr
    return found


class Elsewhere(Project):
    """A project whose `runops` is that of another environment."""

    def __init__(self, folder: Path, programs: Path, environment: dict[str, str]) -> None:
        super().__init__(folder)
        self.programs = programs
        self.environment = {**environment, "TERM": "xterm-256color"}

    def path(self, **_environment: str) -> str:
        return self.environment["PATH"]


def test_the_page_of_ci_can_be_done_with_the_wheel(machine: Machine, programs: Path, tmp_path: Path) -> None:
    """Every command of docs/ci.md prints what the page says, where only the wheel is installed."""
    folder = tmp_path / "project"
    folder.mkdir()
    port = test_docs.free_port()
    with Shop.start(tmp_path, port=port):
        done = test_docs.run(PAGE, Elsewhere(folder, programs, machine.environment(programs)), port)
    wrong = [
        f"{PAGE.name}:{command.line + found[0]}: $ {command.text}\n{found[1]}"
        for command, printed in done
        if (found := pages.difference(command.wanted, printed))
    ]
    assert not wrong, "\n\n".join(wrong)


def test_exported_workflows_pass_where_runops_is_not_installed(
    machine: Machine, programs: Path, tmp_path: Path
) -> None:
    """Examples that `runops export --pytest` wrote pass under plain pytest-playwright, in an environment that has nothing else."""
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    files = " ".join(f"workflows/{name}.yaml" for name in test_exported.EXAMPLES)
    made = machine.shell(f"runops export --pytest {files} --output plain", programs, tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "plain" / "conftest.py").write_text(test_exported.CONFTEST)
    plain = machine.python("plain")
    browser = {"CHROMIUM": str(find.find()), "SHOP_PASSWORD": "correct-horse"}
    with Shop.start(tmp_path / "shop", orders=6) as shop:
        script = "pip install --quiet pytest-playwright; ! python -c 'import runtime' 2> importing; pytest -q plain"
        done = machine.shell(script, plain, tmp_path, INPUT_BASE_URL=shop.url, **browser)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert f"{len(test_exported.EXAMPLES)} passed" in done.stdout


def github_steps(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each command of the jobs' steps, with the variables of its step; those of a matrix once for each of its values."""
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    for job in jobs.values():
        ((name, values),) = job.get("strategy", {}).get("matrix", {"": [None]}).items()
        for value in values:
            for step in job["steps"]:
                if "run" in step:
                    variables = {**job.get("env", {}), **step.get("env", {})}
                    matrix = f"${{{{ matrix.{name} }}}}"
                    yield step["run"], {each: of.replace(matrix, str(value)) for each, of in variables.items()}


def gitlab_steps(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    jobs: dict[str, Any] = yaml.safe_load(text)
    for job in jobs.values():
        if isinstance(job, dict) and "script" in job:
            yield "\n".join([*job.get("before_script", ()), *job["script"]]), job.get("variables", {})


JOBS = {"runops.yml": github_steps, "shards.yml": github_steps, ".gitlab-ci.yml": gitlab_steps}
"""The files for CI on the page, by name, and how their commands are read."""


@pytest.mark.parametrize(
    ("flag", "file", "steps"),
    [
        ("--github", ".github/workflows/runops.yml", github_steps),
        ("--gitlab", ".gitlab-ci.yml", gitlab_steps),
    ],
)
def test_the_steps_of_a_job_work_as_they_are(
    flag: str, file: str, steps: Any, machine: Machine, programs: Path, tmp_path: Path
) -> None:
    """The commands of a job that `runops init` wrote run in an empty environment, pass, and leave the reports that the job keeps."""
    made = machine.shell(f"runops init {flag}", programs, tmp_path)
    assert made.returncode == 0, made.stderr
    shutil.copytree(machine.vendor, tmp_path / "vendor")
    empty = machine.python(flag.strip("-"))
    commands = list(steps((tmp_path / file).read_text(encoding="utf-8")))
    assert commands
    for command, variables in commands:
        done = machine.shell(command, empty, tmp_path, CI="true", **variables)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert (tmp_path / "report.xml").stat().st_size > 0
    assert (tmp_path / "report.html").stat().st_size > 0


def test_the_jobs_of_the_page_work_as_they_are(machine: Machine, programs: Path, tmp_path: Path) -> None:
    """The commands of each job that docs/ci.md shows pass in a project, one machine after the other, and leave the reports that the job keeps."""
    jobs = {block.file: block.text for block in pages.blocks(PAGE) if block.file and Path(block.file).name in JOBS}
    assert {Path(file).name for file in jobs} == {*JOBS}
    for file, text in jobs.items():
        folder = tmp_path / Path(file).name
        folder.mkdir()
        assert (
            machine.shell("runops init && runops new other --url data:text/html,here", programs, folder).returncode == 0
        )
        shutil.copytree(machine.vendor, folder / "vendor")
        for command, variables in JOBS[folder.name](text):
            done = machine.shell(command, programs, folder, CI="true", **variables)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert len(junitparser.JUnitXml.fromfile(str(folder / "report.xml"))) == 2
        assert (folder / "report.html").stat().st_size > 0
