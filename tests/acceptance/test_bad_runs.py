"""Runs that go wrong, as processes on a real site: each is told by a stable code, its step, its evidence and its mend, and the run can be read."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests import site
from tests.command import Project

HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class BadRun:
    """A run that goes wrong: an entry of bad_runs.yaml."""

    name: str
    nodes: str
    code: str
    at: str = "it"
    """The step path of the error."""
    mend: str = ""
    """What the mend must contain."""
    says: str = ""
    """What else must be said: the evidence."""
    exit: int = 1
    head: str = ""
    """A further field of the file."""
    pages: dict[str, str] = dataclasses.field(default_factory=dict)
    redirects: dict[str, str] = dataclasses.field(default_factory=dict)
    drops: tuple[str, ...] = ()
    """Paths at which the connection is closed in place of an answer."""
    hangs: tuple[str, ...] = ()
    """Paths that are not answered."""
    crashes: tuple[str, ...] = ()
    """Paths at which the processes that show the run's pages are killed."""

    @property
    def file(self) -> str:
        """The workflow."""
        lines = "".join(f"  {line}\n" for line in self.nodes.strip("\n").split("\n"))
        home = '{id: home, type: browser_action, action: goto, url: "{{ inputs.site }}/form"}'
        return f"version: 1\ninputs: {{site: {{type: string}}}}\n{self.head}\nnodes:\n  - {home}\n{lines}"

    def serve(self, served: site.Site, end: threading.Event, project: Path) -> None:
        """Put its pages on the site; what hangs hangs until the ``end``."""

        def crash(_request: site.Request) -> site.Answer:
            kill_pages(project)
            return site.Answer(drop=True)

        def hang(_request: site.Request) -> site.Answer:
            end.wait(60)
            return site.Answer(drop=True)

        for path, body in {"/form": (HERE / "bad_runs.html").read_text(), **self.pages}.items():
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
    """Kill the renderer processes of the run in a project: Chromium's profile lies there, and its switches say so."""
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


def cases() -> list[BadRun]:
    """All of them."""
    table: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "bad_runs.yaml").read_text())
    return [BadRun(**case) for group in table.values() for case in group]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_what_goes_wrong_is_told_with_its_step_and_its_mend(case: BadRun, tmp_path: Path) -> None:
    """The exit code, the stable code, the step path, what was seen and what to do; no traceback; `show` says the same."""
    project, end = Project(tmp_path), threading.Event()
    project.write("pyproject.toml", "")
    project.write("bad.yaml", case.file)
    with site.serve() as served:
        case.serve(served, end, tmp_path)
        done = project.runops("run", "bad.yaml", f"--input=site={served.origin}")
        end.set()
    word = "PAUSED" if case.exit == 4 else "FAILED"
    assert done.returncode == case.exit, done.stderr
    assert done.stdout == ""
    assert f"\n{word} {case.at} " in done.stderr
    assert case.says in done.stderr
    assert "\n  mend  " in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    shown = project.show()
    error = shown.get("question") or shown["error"]
    assert shown["state"] == {1: "failed", 4: "paused"}[case.exit]
    assert (error.get("code") or error["reason"], error.get("path") or shown["path"]) == (case.code, case.at)
    assert case.mend in (error.get("mend") or "")


def test_the_names_of_the_cases_differ() -> None:
    """No case hides another one."""
    names = [case.name for case in cases()]
    assert len(names) == len(set(names))


def test_the_table_can_fail(tmp_path: Path) -> None:
    """It is judged by what really happens: a case that expects another code does not pass."""
    wrong = dataclasses.replace(cases()[0], code="target-ambiguous")
    with pytest.raises(AssertionError):
        test_what_goes_wrong_is_told_with_its_step_and_its_mend(wrong, tmp_path)
