"""`runops ps` and `runops prune` as processes, on what a killed run leaves behind."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import psutil

from tests import site
from tests.command import Project
from tests.terminal import still_running

WORKFLOW = """
version: 1
name: Wait for ever
inputs: {base_url: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/form"}
  - {id: never, type: browser_action, action: click, target: {role: button, name: Nobody}, timeout: 600}
"""


def alive(project: Project) -> list[dict[str, Any]]:
    return json.loads(project.here("ps", "--json").stdout)["alive"]


def below(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def test_what_a_killed_run_leaves_is_listed_and_pruned_on_request(tmp_path: Path) -> None:
    """`ps` lists the process of a running run, and after a kill its browser and time left. `prune` deletes them only when the run is selected."""
    project = Project(tmp_path, RUNOPS_LINGER="3000")
    project.write("wait.yaml", WORKFLOW)
    with site.serve() as shown:
        shown.page("/form", "<title>Form</title><label>Name<input></label>")
        engine = project.start("run", "wait.yaml", "-i", f"base_url={shown.origin}")
        try:
            until = time.monotonic() + 60
            while not [each for each in alive(project) if each["browser"]]:
                assert time.monotonic() < until, "its browser never came"
            (listed,) = alive(project)
            assert (listed["state"], listed["holder"]["pid"]) == ("running", engine.pid)
            assert (listed["browser"]["holders"], listed["browser"]["left"]) == (1, None)
            processes = [psutil.Process(listed["browser"][name]) for name in ("chromium", "watcher")]
            assert project.here("prune", "--older-than", "0s", "--state", "died", "--keep-last", "0").stdout == ""
        finally:
            engine.send_signal(signal.SIGKILL)
            engine.communicate()
    until = time.monotonic() + 60
    while alive(project)[0]["browser"]["left"] is None:
        assert time.monotonic() < until, "its watcher never saw that its engine is gone"
    report = project.here("ps")
    run, (_head, line) = listed["run"], report.stdout.splitlines()
    assert line.split()[:2] == [run, "died"]
    assert f"{processes[0].pid}, ends in 49 min" in line or "ends in 50 min" in line
    assert report.stderr.strip() == f"again  runops resume {run}"
    home = tmp_path / ".runops"
    assert project.here("prune").returncode == 0
    assert [each["run"] for each in alive(project)] == [run], "it can continue, so it is left"
    assert [each["state"] for each in project.runs()] == ["died"]
    done = project.here("prune", "--state", "died", "--older-than", "0s")
    assert done.returncode == 0, done.stderr
    assert f"run {run}  died" in done.stdout
    assert f"browser of run {run} (process {processes[0].pid})" in done.stdout
    assert still_running(processes) == []
    assert below(home) == {".gitignore", ".writers"}
    assert "nothing is active" in project.here("ps").stderr
    assert project.here("resume", run).returncode == 2
