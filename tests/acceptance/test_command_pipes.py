"""A named pipe, a socket or a device instead of a file: no command waits for it."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import Project

FLOW = """
version: 1
name: One
inputs: {text: {type: string, default: x}}
nodes:
  - {id: one, type: transform, expr: "{{ inputs.text }}"}
"""
USES = "version: 1\nnodes:\n  - {id: used, type: group, use: odd.yaml}\n"
SECRET = FLOW.replace("inputs:", "secrets: [TOKEN_OF_MINE]\ninputs:")
ASKS = "version: 1\nnodes:\n  - {id: ask, type: cognition, instruction: Say it., output: [a, b]}\n"

SECONDS = 20.0
"""A command still running after this time waits for the pipe."""

Place = Callable[[Path], None]


def device(path: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


KINDS: dict[str, Place] = {"a named pipe": os.mkfifo, "a socket": listening, "a device": device}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, RUNOPS_MODEL="any", RUNOPS_MODEL_KEY="a-key-of-nobody")
    for name, text in {"flow": FLOW, "uses": USES, "secret": SECRET, "asks": ASKS}.items():
        project.write(f"{name}.yaml", text)
    return project


COMMANDS: dict[str, tuple[str, list[str], int, str]] = {
    "a workflow": ("odd.yaml", ["run", "odd.yaml"], 2, "file-not-read"),
    "a workflow that is checked": ("odd.yaml", ["validate", "odd.yaml"], 2, "file-not-read"),
    "a workflow that is used": ("odd.yaml", ["validate", "uses.yaml"], 2, "use-not-read"),
    "a file of a folder": ("all/odd.yaml", ["run", "all"], 2, "file-not-read"),
    "inputs": ("odd.yaml", ["run", "flow.yaml", "--inputs", "odd.yaml"], 2, "file-not-read"),
    "one input": ("odd.csv", ["run", "flow.yaml", "-i", "text=@odd.csv"], 2, "file-not-read"),
    "secrets": (".env", ["run", "secret.yaml"], 3, "env-file-unreadable"),
    "settings in .env": (".env", ["runs"], 3, "env-file-unreadable"),
    "settings": ("pyproject.toml", ["runs"], 2, "bad-setting"),
    "a cassette": ("cassettes/asks.json", ["run", "asks.yaml", "--model-calls", "replay"], 2, "file-not-read"),
    "the schema": ("odd.json", ["schema", "--output", "odd.json"], 2, "file-not-written"),
    "knowledge": ("odd.md", ["chat", "--knowledge", "odd.md", "-m", "Hello"], 2, "file-not-read"),
    "a file to try": ("odd.yaml", ["try", "odd.yaml", "one"], 2, "file-not-read"),
    "a file to talk about": ("odd.yaml", ["chat", "odd.yaml", "-m", "Hello"], 2, "file-not-read"),
}


LINKED = ("knowledge", "a workflow that is used")


@pytest.mark.drawn(share=0.3, of="pipes")
@pytest.mark.parametrize(
    ("place", "kind"),
    # A link out of the project is refused before anything is opened, and one to a device is no Markdown file.
    [(place, kind) for place in COMMANDS for kind in KINDS if kind != "a device" or place not in LINKED],
)
def test_an_irregular_file_is_refused_by_name(place: str, kind: str, project: Project) -> None:
    """The command ends at once, names the kind of file, and gives a fix."""
    name, arguments, code, error = COMMANDS[place]
    odd = project.folder / name
    odd.parent.mkdir(exist_ok=True)
    KINDS[kind](odd)
    done = project.runops(*arguments, seconds=SECONDS)
    assert (done.returncode, f"error[{error}]" in done.stderr) == (code, True), done.stderr
    assert f"it is {kind}, not a regular file" in done.stderr
    assert "\n  = " in done.stderr or "\n   = " in done.stderr


LOOKS = (
    ["runs"],
    ["ps"],
    ["show", "last"],
    ["query", "SELECT * FROM runs"],
    ["prune", "--dry-run"],
    ["prune"],
    ["resume", "last"],
)


@pytest.mark.drawn(1, of="pipes")
@pytest.mark.parametrize("kind", KINDS)
def test_an_irregular_log_is_reported_beside_the_readable_runs(kind: str, project: Project) -> None:
    """No command waits for a log that is no regular file: it is named and left alone, and the other runs are listed and queried."""
    assert project.runops("run", "flow.yaml").returncode == 0
    assert project.runops("run", "flow.yaml").returncode == 0
    logs = sorted((project.folder / ".runops" / "conversations").glob("*.jsonl"))
    logs[1].unlink()
    KINDS[kind](logs[1])
    before = logs[1].lstat().st_mode
    for arguments in LOOKS:
        done = project.runops(*arguments, seconds=SECONDS)
        assert done.returncode in (0, 1, 2), (arguments, done.stderr)
        assert logs[1].lstat().st_mode == before
    listed = project.runops("runs", "--json")
    assert logs[0].stem in listed.stdout
    shown = project.runops("show", logs[1].stem)
    assert (shown.returncode, "error[log-unreadable]" in shown.stderr) == (2, True)
    assert f"it is {kind}, not a regular file" in shown.stderr
    rows = project.runops("query", "SELECT run FROM runs", "--json")
    assert [row["run"] for row in json.loads(rows.stdout)["rows"]] == [logs[0].stem]
    assert f"it is {kind}, not a regular file" in rows.stderr
