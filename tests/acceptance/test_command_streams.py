"""The command between other programs: pipes, files, full disks, used ports."""

import json
import resource
import socket
from pathlib import Path

import pytest
import yaml

from tests.command import Project

pytestmark = pytest.mark.drawn(share=0.5, of="command streams")

SQUARES = """
version: 1
name: Squares
inputs:
  turns: {type: integer, default: 3}
nodes:
  - {id: numbers, type: transform, expr: "{{ [1, 2, 3] }}"}
  - id: each
    type: iterate
    over: "{{ numbers }}"
    as: number
    nodes:
      - {id: square, type: transform, expr: "{{ number * number }}"}
output: {squares: "{{ each }}", note: "größer ✓"}
"""
LONG = "\n".join(
    [
        "version: 1",
        "name: Long",
        "nodes:",
        *(f"  - {{id: step_{number}, type: transform, expr: '{{{{ {number} }}}}'}}" for number in range(400)),
        "output: '{{ step_399 }}'",
    ]
)
RESULT = {"squares": [1, 4, 9], "note": "größer ✓"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two workflows that need no browser."""
    project = Project(tmp_path)
    project.write("squares.yaml", SQUARES)
    project.write("long.yaml", LONG)
    return project


def test_the_result_goes_to_stdout_and_the_progress_to_stderr(project: Project) -> None:
    """Stdout is exactly the output; stderr has a line per step, without a control sequence."""
    done = project.runops("run", "squares.yaml")
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout) == RESULT
    lines = done.stderr.splitlines()
    assert [line.split("  ")[1] for line in lines if line.startswith("ok  ")] == [
        "numbers",
        "each[1]/square",
        "each[2]/square",
        "each[3]/square",
    ]
    assert lines[-1].startswith("passed")
    assert "\x1b" not in done.stderr + done.stdout


def test_json_is_one_object_with_a_version(project: Project) -> None:
    """`--json` prints one object: the exit code, and each run with its status and output."""
    found = json.loads(project.here("run", "squares.yaml", "--json").stdout)
    assert (found["version"], found["exit"]) == (1, 0)
    (run,) = found["runs"]
    assert (run["status"], run["exit"], run["output"], run["error"]) == ("passed", 0, RESULT, None)
    assert project.runs()[0]["id"] == run["run"]


def test_json_also_reports_a_failed_start(project: Project) -> None:
    """`--json` prints JSON when the file is missing, the option is wrong, or the run is unknown."""
    for arguments, code in [
        (["run", "no.yaml", "--json"], 2),
        (["run", "squares.yaml", "--jsonn", "--json"], 2),
        (["resume", "01NOSUCHRUN", "--json"], 2),
    ]:
        done = project.here(*arguments)
        found = json.loads(done.stdout)
        assert (done.returncode, found["version"], found["exit"]) == (code, 1, code), arguments
        error = found["runs"][0]["error"] if "runs" in found else found["error"]
        assert error["message"]
        assert error["message"] in done.stderr


def test_quiet_prints_nothing_but_the_output(project: Project) -> None:
    """Under `--quiet` a passing run prints only its output. A start that fails is still reported."""
    done = project.here("run", "squares.yaml", "--quiet")
    assert (done.returncode, done.stderr, yaml.safe_load(done.stdout)) == (0, "", RESULT)
    assert project.here("run", "no.yaml", "--quiet").stderr != ""


def test_head_ends_a_list_silently(project: Project) -> None:
    """A list, a help or an output piped into `head` has no traceback, no error message and exit code 0."""
    for line in (
        "runops run squares.yaml 2>/dev/null | head -1",
        "runops show last --json | head -1",
        "runops --help | head -1",
    ):
        done = project.shell(line)
        assert (done.returncode, done.stderr) == (0, ""), line
        assert len(done.stdout.splitlines()) == 1


def test_a_run_outlives_the_reader_of_its_progress(project: Project) -> None:
    """After `| head` has closed the progress, the run continues silently to its end."""
    done = project.shell("runops run long.yaml 2>&1 | head -2")
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 2, "")
    assert [(run["state"], run["steps"]) for run in project.runs()] == [("passed", 400)]


def test_a_closed_reader_changes_no_exit_code(project: Project) -> None:
    """A failing run keeps its exit code when the reader of its result has gone."""
    project.write(
        "fail.yaml", 'version: 1\nname: Fail\nnodes:\n  - {id: divide, type: transform, expr: "{{ 1 // 0 }}"}\n'
    )
    done = project.shell("runops run fail.yaml --json --quiet | true")
    assert done.returncode == 1
    assert "FAILED divide" in done.stderr


def test_a_closed_stdin_stdout_or_stderr_is_no_failure(project: Project) -> None:
    """A job without streams still runs."""
    for closed in (">&-", "<&- >&- 2>&-"):
        assert project.shell(f"runops run squares.yaml {closed}").returncode == 0, closed
    assert [run["state"] for run in project.runs()] == ["passed", "passed"]


def test_output_on_a_full_disk_is_an_error(project: Project) -> None:
    """A result that cannot be written exits 3 with a sentence and its own error code, never a traceback."""
    for command in ("run squares.yaml", "run squares.yaml --json", "runs", "show last", "schema", "--help"):
        done = project.shell(f"runops {command} > /dev/full")
        assert done.returncode == 3, command
        assert "output-not-written" in done.stderr
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr


def test_progress_on_a_full_disk_does_not_stop_a_run(project: Project) -> None:
    """When progress cannot be written the run continues, and its result is complete."""
    done = project.shell("runops run squares.yaml 2> /dev/full")
    assert (done.returncode, yaml.safe_load(done.stdout)) == (0, RESULT)


def test_a_log_on_a_full_disk_stops_the_run_with_a_sentence(project: Project) -> None:
    """A step that cannot be logged is not executed: exit code 2 with the reason and no traceback. With free space the run resumes."""

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    done = project.runops("run", "long.yaml", prepare=little_room)
    assert done.returncode == 2
    assert "the log could not be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert 0 < project.runs()[0]["steps"] < 400
    again = project.runops("resume", "last")
    assert (again.returncode, again.stdout) == (0, "399\n")


def test_an_unusable_home_is_reported(project: Project) -> None:
    """Without a writable home no run starts."""
    project.write("file", "")
    done = project.shell("RUNOPS_HOME=file/below runops run squares.yaml")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "file/below" in done.stderr


def test_a_used_port_is_reported(project: Project) -> None:
    """`runops demo-site` on a used port exits 3 with a fix."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = project.runops("demo-site", "--port", str(port))
    assert done.returncode == 3
    assert str(port) in done.stderr
    assert "--port 0" in done.stderr
    assert "Traceback" not in done.stderr
