"""Worker processes of `runops run -j N`: they die, are interrupted, and never outlive the command."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml

from tests import counted
from tests.command import Project
from tests.site import Answer, Request, serve
from tests.terminal import still_running

FUNCTIONS = """\
import os, pathlib, signal, time

def waits(name):
    file = pathlib.Path(f"pid-{name}")
    file.with_suffix(".new").write_text(str(os.getpid()))
    file.with_suffix(".new").rename(file)
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return name

def dies():
    os.kill(os.getpid(), signal.SIGKILL)

def prints(word):
    print(f"printed {word}")
    print(f"{os.environ['PASSWORD_OF_IT']}")
    return 1
"""
CALL = 'version: 1\nnodes: [{{id: one, type: transform, expr: 1}}, {{id: call, type: transform, python: "many:{call}"{args}}}]\noutput: "{{{{ call }}}}"\n'
PASSES = "version: 1\ninputs: {n: {type: string, default: null}}\nnodes: [{id: one, type: transform, expr: 1}]\noutput: '{{ one }}'\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("pyproject.toml", '[tool.runops]\npython_modules = ["many"]\n')
    project.write("many.py", FUNCTIONS)
    for name in ("a", "b", "c"):
        project.write(f"{name}.yaml", CALL.format(call="waits", args=f", args: {{name: {name}}}, timeout: 60"))
    project.write("dies.yaml", CALL.format(call="dies", args=""))
    project.write("passes.yaml", PASSES)
    return project


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def workers(project: Project, *names: str) -> list[psutil.Process]:
    """The processes that carry out these waiting cases, once they do."""
    files = [project.folder / f"pid-{name}" for name in names]
    until(lambda: all(file.exists() for file in files))
    return [psutil.Process(int(file.read_text())) for file in files]


def test_ctrl_c_interrupts_all_current_runs(project: Project) -> None:
    """Each of them can be resumed, and the summary has the command for it; the others are skipped. No process is left."""
    with project.start("run", "a.yaml", "b.yaml", "c.yaml", "passes.yaml", "-j", "2", "--json") as command:
        at_work = workers(project, "a", "b")
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=60)
    found = json.loads(out)
    assert (command.returncode, found["exit"]) == (130, 130)
    states = {run["case"]: (run["status"], run["exit"]) for run in found["runs"]}
    interrupted, skipped = ("interrupted", 130), ("skipped", None)
    assert states == {"a.yaml": interrupted, "b.yaml": interrupted, "c.yaml": skipped, "passes.yaml": skipped}
    assert still_running(at_work) == []
    summary = err[err.index("2 interrupted, 2 skipped") :]
    runs = [run["run"] for run in found["runs"] if run["run"]]
    assert [line.split()[-1] for line in summary.splitlines() if "again" in line] == runs
    assert "Traceback" not in err
    project.write("go", "")
    for run, name in zip(runs, ("a", "b"), strict=True):
        assert project.runops("resume", run, "--quiet").stdout == f"{name}\n"


@pytest.mark.drawn(share=0.3, of="workers")
def test_a_second_ctrl_c_ends_everything_at_once(project: Project) -> None:
    """The workers are stopped, so they cannot answer the first one: they are killed, and the runs can be resumed."""
    with project.start("run", "a.yaml", "b.yaml", "-j", "2") as command:
        at_work = workers(project, "a", "b")
        for each in at_work:
            each.suspend()
        while command.poll() is None:
            command.send_signal(signal.SIGINT)
            time.sleep(0.2)  # two signals within a tenth of a second count as one
        _out, err = command.communicate(timeout=60)
    assert command.returncode == 130
    assert still_running(at_work) == []
    assert "Traceback" not in err
    assert sorted(run["state"] for run in project.runs()) == ["died", "died"]


def test_workers_end_with_a_command_that_is_killed(project: Project) -> None:
    """Without their command they interrupt their runs, which can be resumed, and end: no orphan is left."""
    with project.start("run", "a.yaml", "b.yaml", "c.yaml", "-j", "2") as command:
        at_work = workers(project, "a", "b")
        command.kill()
        command.communicate(timeout=60)
    assert still_running(at_work) == []
    assert [run["state"] for run in project.runs()] == ["interrupted", "interrupted"]


@pytest.mark.drawn(share=0.3, of="workers")
def test_a_case_that_kills_each_worker_is_interrupted_and_the_others_pass(project: Project) -> None:
    """It is resumed once; then the summary has the command that resumes it."""
    done = project.runops("run", "dies.yaml", "passes.yaml", "-j", "2", "--json")
    dies, passes = json.loads(done.stdout)["runs"]
    assert (done.returncode, dies["status"], passes["status"]) == (130, "interrupted", "passed")
    assert dies["notes"] == [
        "its process died, and the run was resumed in another one", "its processes died, the second one too",
    ]  # fmt: skip
    assert f"  again  runops resume {dies['run']}" in done.stderr
    assert len(dies["attempts"]) == 1


@pytest.mark.drawn(share=0.3, of="workers")
def test_what_functions_print_goes_to_stderr_without_secrets(project: Project) -> None:
    """The outputs alone are on stdout, each with its case."""
    project.environment["PASSWORD_OF_IT"] = "horse-correct"
    secret = "secrets: [PASSWORD_OF_IT]\nnodes:"
    for word in ("one", "two"):
        text = CALL.format(call="prints", args=f", args: {{word: {word}}}").replace("nodes:", secret)
        project.write(f"{word}.yaml", text)
    done = project.runops("run", "one.yaml", "two.yaml", "-j", "2")
    assert yaml.safe_load(done.stdout) == {"one.yaml": 1, "two.yaml": 1}
    assert {"printed one", "printed two"} <= {*done.stderr.splitlines()}
    assert "horse-correct" not in done.stderr + done.stdout


@pytest.mark.drawn(share=0.3, of="workers")
def test_a_terminal_shows_what_each_worker_does(project: Project) -> None:
    """A line for each current case with its step, and a line with the sum; cases that ended stay above."""
    with project.terminal("run", "passes.yaml", "a.yaml", "b.yaml", "-j", "2", columns=100) as terminal:
        workers(project, "a", "b")
        terminal.wait_for(lambda: "1/3" in terminal.text and terminal.text.count("  call  ") == 2)
        assert ">>  a.yaml  call" in terminal.text
        assert "-- 1/3  passed  passes.yaml" in terminal.text
        project.write("go", "")
        assert terminal.wait() == 0
        assert "3 passed" in terminal.everything
        assert ">>" not in terminal.text


@pytest.mark.parametrize("given", ["0", "65", "many", "-1", "1.5"])
def test_a_number_of_workers_that_cannot_be_is_refused(project: Project, given: str) -> None:
    done = project.here("run", "a.yaml", f"-j{given}")
    assert (done.returncode, "is no number of workers" in done.stderr) == (2, True)


@pytest.mark.drawn(0)
@pytest.mark.parametrize("engine", ["chromium"])
def test_each_worker_has_one_browser(tmp_path: Path, engine: str) -> None:
    """Six files and two workers start two browsers, and no run sees another's state."""
    browser = counted.browser(tmp_path)
    project = Project(tmp_path, RUNOPS_BROWSER=str(browser.script))
    with serve() as site:

        def page(request: Request) -> Answer:
            seen = request.headers.get("cookie", "none")
            return Answer(f"<title>{seen}</title>", headers={"set-cookie": "left=behind"})

        site.answer("/", page)
        for number in range(6):
            project.write(
                f"{number}.yaml",
                "version: 1\nnodes:\n"
                f'  - {{id: open, type: browser_action, action: goto, url: "{site.origin}/"}}\n'
                "  - {id: seen, type: browser_query, query: title}\noutput: '{{ seen }}'\n",
            )
        done = project.runops("run", *(f"{number}.yaml" for number in range(6)), "-j", "2", "--engine", engine)
        assert (done.returncode, [*yaml.safe_load(done.stdout).values()]) == (0, ["none"] * 6)
        assert len(browser.processes) == 2
