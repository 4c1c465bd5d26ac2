"""Failing runs, as processes on a real site: each reports a stable code, its step, its evidence and a fix, and the run can be read."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests import breadth, one_browser, site
from tests.command import Project

HERE = Path(__file__).parent
FORM = (HERE / "bad_runs.html").read_text()

ALONE = ("sites", "dialogs and tabs", "pauses")
"""Groups in which each run is its own command with its own browser. The same holds for each run that has its own pages."""

SECONDS = 300.0
"""Timeout of the runs of a group."""


@dataclasses.dataclass(frozen=True)
class BadRun:
    """A failing run: an entry of bad_runs.yaml."""

    name: str
    nodes: str
    code: str
    at: str = "it"
    """The step path of the error."""
    fix: str = ""
    """Text that the fix must contain."""
    says: str = ""
    """Text that the output must contain: the evidence."""
    exit: int = 1
    head: str = ""
    """A further field of the file."""
    pages: dict[str, str] = dataclasses.field(default_factory=dict)
    redirects: dict[str, str] = dataclasses.field(default_factory=dict)
    drops: tuple[str, ...] = ()
    """Paths at which the connection is closed without an answer."""
    hangs: tuple[str, ...] = ()
    """Paths that are not answered."""
    crashes: tuple[str, ...] = ()
    """Paths at which the processes that show the run's pages are killed."""

    @property
    def brings_pages(self) -> bool:
        """True if its site needs more than the common page."""
        return any((self.pages, self.redirects, self.drops, self.hangs, self.crashes))

    @property
    def file(self) -> str:
        lines = "".join(f"  {line}\n" for line in self.nodes.strip("\n").split("\n"))
        home = '{id: home, type: browser_action, action: goto, url: "{{ inputs.site }}/form"}'
        return f"version: 1\ninputs: {{site: {{type: string}}}}\n{self.head}\nnodes:\n  - {home}\n{lines}"

    def serve(self, served: site.Site, end: threading.Event, project: Path) -> None:
        """Serve the pages of this run. Paths that hang do so until the ``end``."""

        def crash(_request: site.Request) -> site.Answer:
            kill_pages(project)
            return site.Answer(drop=True)

        def hang(_request: site.Request) -> site.Answer:
            end.wait(60)
            return site.Answer(drop=True)

        for path, body in {"/form": FORM, **self.pages}.items():
            served.page(path, body)
        for path, to in self.redirects.items():
            served.redirect(path, to)
        for path in self.drops:
            served.answer(path, lambda _request: site.Answer(drop=True))
        for path in self.hangs:
            served.answer(path, hang)
        for path in self.crashes:
            served.answer(path, crash)


def kill_pages(project: Path) -> None:
    """Kill the renderer processes of a project's run, found by the profile folder in Chromium's arguments."""
    browsers = [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(switch.startswith(f"--user-data-dir={project}") for switch in process.info["cmdline"] or ())
    ]
    for browser in browsers:
        for child in browser.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if "--type=renderer" in child.cmdline():
                    child.kill()


def groups() -> dict[str, list[BadRun]]:
    """All cases, by the name of their group."""
    table: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "bad_runs.yaml").read_text())
    return {name: [BadRun(**case) for case in group] for name, group in table.items()}


def cases() -> list[BadRun]:
    return [case for group in groups().values() for case in group]


def alone() -> list[BadRun]:
    return [case for name, group in groups().items() for case in group if name in ALONE or case.brings_pages]


def together() -> dict[str, list[BadRun]]:
    """The cases that one command runs together, by the name of their group."""
    return {
        name: [case for case in group if not case.brings_pages] for name, group in groups().items() if name not in ALONE
    }


def judge(case: BadRun, code: int, screen: str, *results: dict[str, Any]) -> None:
    """Check the exit code, stable code, step path, evidence and fix, and that there is no traceback. Every `--json` or `show` result must agree."""
    word, state = {1: ("FAILED", "failed"), 4: ("PAUSED", "paused")}[case.exit]
    assert code == case.exit, screen
    assert f"\n{word} {case.at} " in screen
    assert case.says in screen
    assert "\n  fix  " in screen, screen
    assert "Traceback" not in screen
    for result in results:
        error = result.get("question") or result["error"]
        assert (result.get("status") or result["state"]) == state
        assert (error.get("code") or error["reason"], error.get("path") or result["path"]) == (case.code, case.at)
        assert case.fix in (error.get("fix") or "")


def project_in(folder: Path, **environment: str) -> Project:
    project = Project(folder, **environment)
    project.write("pyproject.toml", "")
    return project


@pytest.mark.drawn(share=0.08)
@pytest.mark.parametrize("case", alone(), ids=lambda case: case.name)
def test_a_failure_is_reported_with_its_step_and_its_fix(case: BadRun, tmp_path: Path) -> None:
    """A failing run reports what its case states, prints nothing to stdout, and `show` agrees."""
    project, end = project_in(tmp_path), threading.Event()
    project.write("bad.yaml", case.file)
    with site.serve() as served:
        case.serve(served, end, tmp_path)
        done = project.runops("run", "bad.yaml", f"--input=site={served.origin}")
        end.set()
    assert done.stdout == ""
    judge(case, done.returncode, done.stderr, project.show())


@pytest.mark.drawn(share=0.08)
@pytest.mark.parametrize("group", together())
def test_each_of_many_failures_is_reported_with_its_step_and_its_fix(
    group: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """Many failing runs of one command are each reported correctly on the screen, in the result and by `show`."""
    cases = breadth.some(together()[group], 8)
    project = project_in(tmp_path, **{one_browser.VARIABLE: "yes"})
    files = [project.write(f"{number}.yaml", case.file).name for number, case in enumerate(cases)]
    with site.serve() as served:
        served.page("/form", FORM)
        done = project.runops(
            "run", *files, f"--input=site={served.origin}", "--browser=shared", "--json", seconds=SECONDS
        )
    result = json.loads(done.stdout)
    assert done.returncode == result["exit"] == 1, done.stderr
    # The output of each run in order, followed by the summary.
    screens = re.split(r"^-- \d+/\d+  (?=\d+\.yaml$)|^\d+ failed  ", done.stderr, flags=re.MULTILINE)[1:-1]
    for case, file, screen, run in zip(cases, files, screens, result["runs"], strict=True):
        with subtests.test(case.name):
            assert screen.startswith(f"{file}\n")
            assert run["file"] == file
            judge(case, run["exit"], screen, run, project.show(run["run"]))


def test_the_names_of_the_cases_differ() -> None:
    """Case names are unique, and each case runs once."""
    names = [case.name for case in cases()]
    assert len(names) == len(set(names))
    assert sorted(names) == sorted(case.name for group in (alone(), *together().values()) for case in group)


@pytest.mark.parametrize(
    "wrong", [{"code": "page-crashed"}, {"at": "that"}, {"fix": "none"}, {"says": "none"}, {"exit": 4}]
)
def test_the_table_can_fail(wrong: dict[str, Any]) -> None:
    """The check compares with the output: a case that expects something else fails."""
    case = BadRun("a missing element", "", code="target-not-found", fix="correct", says="nearest")
    screen = "1.yaml\nFAILED it   no element matches\n  nearest  Pay\n  fix      look at it\n"
    result = {"status": "failed", "path": "it", "error": {"code": "target-not-found", "fix": "correct the target"}}
    judge(case, 1, screen, result)
    with pytest.raises(AssertionError):
        judge(dataclasses.replace(case, **wrong), 1, screen, result)
