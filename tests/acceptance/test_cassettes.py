"""Cassettes with the command: the examples are recorded again byte for byte and replayed without a model. Also what counts as a miss, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from runtime.testing import responses, scripted_model
from tests.command import Project
from tests.shop_process import Shop

pytestmark = pytest.mark.drawn(share=0.5, of="cassettes")

ROOT = Path(__file__).parents[2]
SECONDS = 180.0
TOKEN = "sesame-open-1"

FLOW = """
version: 1
inputs:
  rows: {type: list, default: [{number: "1", note: tea}, {number: "2", note: milk}]}
  seen: {type: string, default: "2026-03-01T10:15:00Z"}
  ticket: {type: string, default: 0b8f7c1e-3d0a-4a5e-9d2b-6f1a2b3c4d5e}
secrets: [TOKEN]
nodes:
  - id: each
    type: iterate
    over: "{{ inputs.rows }}"
    as: row
    key: "{{ row.number }}"
    nodes:
      - id: kind
        type: cognition
        instruction: Sort it.
        input: {row: "{{ row }}", seen: "{{ inputs.seen }}", ticket: "{{ inputs.ticket }}"}
        output: {kind: [drink, food], why: string}
output: "{{ each }}"
"""


def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
    """A model that gives its reason in words of the row and names the ticket."""
    question = json.loads(asked.newest)
    return scripted_model.text({"kind": "drink", "why": f"{question['row']['note']}, ticket {question['ticket']}"})


def project_in(folder: Path, **settings: str) -> Project:
    """A project with the workflow and without a model server."""
    project = Project(folder, TOKEN=TOKEN, **settings)
    project.write("sort.yaml", FLOW)
    return project


def asking(project: Project, server: responses.Server) -> Project:
    """The project, with the server for its models."""
    project.environment |= {
        "RUNOPS_MODEL": "test-model",
        "RUNOPS_MODEL_BASE_URL": server.url,
        "RUNOPS_MODEL_KEY": server.key,
        "RUNOPS_MODEL_PROFILE": "openai",
    }
    return project


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The workflow's cassette, recorded by the command with the real client."""
    folder = tmp_path_factory.mktemp("recorded")
    with responses.serve(model, strict=True) as server:
        done = asking(project_in(folder), server).runops("run", "sort.yaml", "--model-calls", "record")
    assert done.returncode == 0, done.stderr
    assert "recorded in cassettes/sort.json" in done.stderr
    return (folder / "cassettes" / "sort.json").read_bytes()


@pytest.fixture
def project(tmp_path: Path, recorded: bytes) -> Project:
    """A project with the workflow and its cassette, and without a model server."""
    (tmp_path / "cassettes").mkdir()
    (tmp_path / "cassettes" / "sort.json").write_bytes(recorded)
    return project_in(tmp_path)


def replay(project: Project, *more: str) -> dict[str, Any]:
    """The `--json` result of a run whose model answers come from the cassette."""
    ended = project.here("run", "sort.yaml", "--model-calls", "replay", "--json", *more)
    (run,) = json.loads(ended.stdout)["runs"]
    assert ended.returncode == run["exit"]
    return run


# The examples


ONE_ALONE = """
import sys

import record_cassettes

there = {path.stem for path in (record_cassettes.WORKFLOWS / "cassettes").iterdir()}
assert there == record_cassettes.SCRIPTS.keys(), there
name = sys.argv.pop(1)
record_cassettes.SCRIPTS = {name: record_cassettes.SCRIPTS[name]}
sys.exit(record_cassettes.main())
"""


@pytest.mark.drawn(0)
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "workflows" / "cassettes").glob("*.json")))
def test_the_example_is_recorded_again_to_the_same_bytes(name: str) -> None:
    """Each example's script records the same bytes again with the real command, browser, shop and client, despite another port, other ids and times."""
    command = [sys.executable, "-c", ONE_ALONE, name, "--check"]
    done = subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


GUARD = """
import os
import sys

GUARDED, REFUSED = os.environ["GUARD_FILE"], os.environ.get("GUARD_REFUSES")


def tell(said):
    with open(GUARDED, "a") as file:
        print(said, file=file)


def hook(event, args):
    if event == "import" and args[0].partition(".")[0] == "openai":
        said = "import openai"
    elif event == "socket.connect" and isinstance(args[1], tuple):
        said = f"connect {args[1][0]} {args[1][1]}"
    elif event == "socket.getaddrinfo":
        said = f"look up {args[0]}"
    else:
        return
    tell(said)
    if REFUSED is not None and (event != "socket.connect" or str(args[1][1]) == REFUSED or args[1][0] != "127.0.0.1"):
        raise PermissionError(said)


sys.addaudithook(hook)
tell("guarded")
"""
"""Records each way out of a Python process, and blocks all except loopback connections to other ports than the model's."""


def guard(project: Project, model_port: int | None) -> Path:
    """Guard the project's commands, and block all but loopback where the port of the model is given. Return the file that the guard writes."""
    folder = project.folder / "guard"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(GUARD)
    # Python reads the guard at startup, so no command may be forked from a running one: LC_ALL prevents it.
    project.environment |= {"PYTHONPATH": str(folder), "GUARD_FILE": str(folder / "told"), "LC_ALL": "C.UTF-8"}
    if model_port is not None:
        project.environment["GUARD_REFUSES"] = str(model_port)
    return folder / "told"


def test_the_example_is_replayed_without_a_model(tmp_path: Path) -> None:
    """The example runs from its cassette without key or model and with blocked sockets. Every message is assigned once, and no model client is imported."""
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    project = Project(tmp_path, SHOP_PASSWORD="correct-horse")
    with Shop.start(tmp_path) as shop, socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        guarded = guard(project, port)
        project.environment |= dict.fromkeys(
            ("OPENAI_BASE_URL", "RUNOPS_MODEL_BASE_URL"), f"http://127.0.0.1:{port}/v1"
        )
        done = project.runops(
            "run",
            "workflows/sort_messages.yaml",
            "--model-calls",
            "replay",
            f"--input=base_url={shop.url}",
            seconds=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        assert "guarded" in guarded.read_text()
        assert "8 requests" in done.stderr
        assert "nothing paid" in done.stderr
        given = {row["subject"]: row["detail"] for row in shop.ledger("assignment")}
        assert len(given) == len(shop.ledger("assignment")) == 5
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    queues = {"1001": "Delivery", "1003": "Refunds", "1004": "Refunds", "1006": "General", "1008": "Invoices"}
    assert {number: detail["queue"] for number, detail in given.items()} == queues
    assert [number for number, detail in given.items() if detail["urgent"]] == ["1001"]
    assert given["1003"]["note"].endswith("The customer wants 24.8 of 338.57 back.")
    lines = set(guarded.read_text().splitlines()) - {"guarded"}
    assert [each for each in lines if not each.startswith("connect 127.0.0.1 ") or each.endswith(f" {port}")] == []


def test_the_guard_sees_a_model_request(tmp_path: Path) -> None:
    """Control: for a run that asks a model, the guard records the import of the client and the connection."""
    project = project_in(tmp_path)
    guarded = guard(project, None)
    with responses.serve(model, strict=True) as server:
        done = asking(project, server).runops("run", "sort.yaml")
        assert done.returncode == 0, done.stderr
        port = server.url.split(":")[2].split("/")[0]
    assert {"import openai", f"connect 127.0.0.1 {port}"} <= set(guarded.read_text().splitlines())


def test_frozen_refuses_before_a_browser_starts(tmp_path: Path) -> None:
    """`--frozen` exits 2 with the node and its place, before a browser or a run starts. The control does start the stand-in."""
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    browser, started = tmp_path / "browser", tmp_path / "started"
    browser.write_text(f"#!/bin/sh\n: > {started}\nexit 1\n")
    browser.chmod(0o755)
    project = Project(tmp_path, SHOP_PASSWORD="correct-horse")
    project.environment["RUNOPS_BROWSER"] = str(browser)
    line = (tmp_path / "workflows" / "sort_messages.yaml").read_text().split("\n").index("      - id: wish") + 1
    done = project.here("run", "workflows/sort_messages.yaml", "--frozen")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"error[model-node-frozen]: workflows/sort_messages.yaml:{line}:9: the node `wish` (cognition) asks a model"
    )
    assert not started.exists()
    assert project.runs() == []
    control = project.here("run", "workflows/sort_messages.yaml", "--model-calls", "replay")
    assert control.returncode == 3
    assert started.exists()


# Misses and matches


MISSES: dict[str, tuple[dict[str, str], str, str, list[str]]] = {
    "a word of the instruction": (
        {"Sort it.": "Judge it."},
        "each[#1]/kind",
        "instruction",
        ["- Sort it.", "+ Judge it."],
    ),
    "a field of the schema": (
        {"why: string": "reason: string"},
        "each[#1]/kind",
        "schema.properties.why, schema.properties.reason, schema.required[1]",
        ['- "why"', '+ "reason"'],
    ),
    "an input row": ({"note: milk": "note: beer"}, "each[#2]/kind", "message 1", ['"note": "milk"', '"note": "beer"']),
    "the model": (
        {"input: {row": "model: other-model\n        input: {row"},
        "each[#1]/kind",
        "model",
        ["- test-model", "+ other-model"],
    ),
    "the order of two requests": (
        {'{number: "1", note: tea}, {number: "2", note: milk}': '{number: "2", note: milk}, {number: "1", note: tea}'},
        "each[#2]/kind",
        "step, message 1",
        ["- each[#1]/kind", "+ each[#2]/kind"],
    ),
}
"""The changes to the file, then the step that misses, the parts that differ, and lines of the difference."""


@pytest.mark.parametrize("name", MISSES)
def test_a_changed_request_misses(project: Project, name: str) -> None:
    """A changed request fails the run with exit 1 at its step. The error names the step and shows the recorded and the new request."""
    changed, step, parts, lines = MISSES[name]
    text = FLOW
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    project.write("sort.yaml", text)
    run = replay(project)
    error = run["error"]
    assert (run["exit"], error["code"]) == (1, "cassette-miss")
    assert error["message"].startswith(f"step {step} asks its model what the cassette does not have: ")
    assert error["evidence"]["differs"] == parts
    assert [each for each in lines if each not in error["evidence"]["difference"]] == []
    assert error["fix"].endswith("runops run sort.yaml --model-calls record")


def test_an_irrelevant_change_does_not_miss(project: Project) -> None:
    """Another time stamp, id or secret gets the recorded answers, with the id of this run in them."""
    ours, theirs = "0b8f7c1e-3d0a-4a5e-9d2b-6f1a2b3c4d5e", "11111111-2222-4333-8444-555555555555"
    assert [each["why"] for each in replay(project)["output"]] == [f"tea, ticket {ours}", f"milk, ticket {ours}"]
    project.environment["TOKEN"] = "another-secret-2"
    later = replay(project, "--input=seen=2031-12-24 18:00:00+01:00", f"--input=ticket={theirs}")
    assert [each["why"] for each in later["output"]] == [f"tea, ticket {theirs}", f"milk, ticket {theirs}"]


# Refused and resumed recordings


def test_a_cassette_with_a_secret_in_it_is_not_written(project: Project, recorded: bytes) -> None:
    """When the model states a secret, the recording exits 2, names step and secret but not its value, and keeps the old cassette."""
    with responses.serve([scripted_model.text({"kind": "food", "why": f"it says {TOKEN}"})] * 2, strict=True) as server:
        done = asking(project, server).runops("run", "sort.yaml", "--model-calls", "record")
    assert done.returncode == 2
    assert "cassette-secret" in done.stderr
    assert "the secret TOKEN is in the texts of step each[#1]/kind and its model" in done.stderr
    assert TOKEN not in done.stderr + done.stdout
    assert [each.name for each in (project.folder / "cassettes").iterdir()] == ["sort.json"]
    assert (project.folder / "cassettes" / "sort.json").read_bytes() == recorded


def _but_input(cassette: Path | bytes) -> bytes:
    """A cassette without the input token counts of its requests."""
    text = cassette if isinstance(cassette, bytes) else cassette.read_bytes()
    bare, found = re.subn(rb'("usage": \{\s*"input": )\d+', rb"\1?", text)
    assert found
    return bare


def test_a_killed_recording_resumes(tmp_path: Path, recorded: bytes) -> None:
    """A recording killed during its second request and resumed with `--model-calls record` yields the same cassette as an uninterrupted one.

    Only the input token counts differ: a resumed run tells its model that it was interrupted.
    """
    came, gate = threading.Event(), threading.Event()

    def says(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        said = model(asked)
        assert isinstance(said, scripted_model.Answer)
        if asked.number != 2:
            return said
        came.set()
        return said.held(gate)

    with responses.serve(says) as server:
        project = asking(project_in(tmp_path), server)
        with project.start("run", "sort.yaml", "--model-calls", "record") as engine:
            assert came.wait(SECONDS)
            engine.send_signal(signal.SIGKILL)
            engine.communicate()
        gate.set()
        assert not (tmp_path / "cassettes").exists()
        resumed = project.here("resume", "last", "--model-calls", "record")
        assert resumed.returncode == 0, resumed.stderr
        assert len(server.asked) == 3
    assert _but_input(tmp_path / "cassettes" / "sort.json") == _but_input(recorded)
