"""`runops ps`: what is alive, told from logs, locks and what runs wrote down of their browsers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from runtime.cli import app
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from tests.kept_runs import begun, ended
from tests.now import let_go
from tests.watched import watched


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> file_store.Files:
    """An empty place for runs, which the command uses too."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    return file_store.Files(tmp_path / ".runops")


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What `runops ps --json` says."""
    capsys.readouterr()
    assert app.run(["ps", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["version"] == 1
    return said["alive"]


def test_where_nothing_lives_it_says_so(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that are over are not alive: stdout is empty, stderr has a sentence and what to type."""
    for status in ("passed", "failed", None):
        ended(store, status)
    assert told(capsys) == []
    assert app.run(["ps"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing is active" in said.err
    assert "runops runs" in said.err


def test_a_held_run_names_its_holder(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that a process holds has a line: its id, that process, since when, and how to look at it."""
    writer = begun(store)
    ended(store, "passed")
    (found,) = told(capsys)
    assert (found["run"], found["state"], found["workflow"]) == (
        writer.conversation.id,
        "running",
        "Pay the open orders",
    )
    assert (found["holder"]["pid"], found["browser"]) == (os.getpid(), None)
    assert found["holder"]["since"] == writer.history.last_at
    assert app.run(["ps"]) == 0
    said = capsys.readouterr()
    head, line = said.out.splitlines()
    assert head.split() == ["run", "state", "process", "browser", "since", "workflow"]
    assert line.split()[:3] == [writer.conversation.id, "running", str(os.getpid())]
    assert f"runops show {writer.conversation.id}" in said.err
    let_go(writer.conversation)
    assert told(capsys) == []


def test_a_holder_on_another_machine_is_told_with_it(
    store: file_store.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process id means something only with its machine."""
    writer = begun(store)
    writer.note("claimed", pid=os.getpid(), started="1", boot="1", host="builder-7", epoch=2, version="0")
    capsys.readouterr()
    assert app.run(["ps"]) == 0
    assert f"{os.getpid()} on builder-7" in capsys.readouterr().out
    let_go(writer.conversation)


def test_a_run_that_has_not_said_who_holds_it_is_held(
    store: file_store.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between its making and its first words a run is held by nobody knows whom."""
    conversation = store.create(log_store.new_id())
    (found,) = told(capsys)
    assert (found["run"], found["state"], found["holder"]) == (conversation.id, "running", None)
    conversation.close()


def test_a_held_run_with_a_damaged_log_is_told(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Who holds it cannot be read, and that somebody does can."""
    writer = begun(store)
    file = store.conversation_file(writer.conversation.id)
    file.write_bytes(file.read_bytes().replace(b"a", b"b", 1))
    (found,) = told(capsys)
    assert (found["state"], found["next"]) == ("damaged", "runops runs")
    let_go(writer.conversation)


@pytest.mark.parametrize(
    ("status", "trial", "state", "command"),
    [
        (None, False, "died", "runops resume {run}"),
        ("failed", False, "failed", "runops resume {run}"),
        ("passed", False, "passed", "runops prune"),
        ("failed", True, "failed", "runops prune"),
        ("gone", False, "gone", "runops prune"),
    ],
)
async def test_a_browser_that_is_left_is_told_with_its_time(
    status: str | None,
    trial: bool,
    state: str,
    command: str,
    store: file_store.Files,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A browser of a run that nobody holds has a line: its process, when it ends, and what to type; looking does not keep it."""
    run = log_store.new_id() if status == "gone" else ended(store, status, trial=trial)
    async with watched(tmp_path) as found:
        found.note(store.private(run))
        held = await found.hold(4000)
        (line,) = told(capsys)
        assert line["browser"] == {"chromium": found.chromium, "watcher": found.watcher, "holders": 1, "left": None}
        await held.release()
        lefts: list[float] = []
        while len(lefts) < 2:
            (line,) = told(capsys)
            lefts += [line["browser"]["left"]] if line["browser"]["left"] is not None else []
        assert 0 < lefts[1] < lefts[0] <= 4000
        assert (line["run"], line["state"], line["next"]) == (run, state, command.format(run=run))
        assert app.run(["ps"]) == 0
        said = capsys.readouterr()
        assert f"{found.chromium}, ends in 1 h " in said.out
        assert said.err.split(maxsplit=1)[1].strip() == command.format(run=run)
        assert found.alive()
    assert told(capsys) == []


async def test_a_browser_whose_watcher_is_stuck_is_told(
    store: file_store.Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is there, and nobody knows for how long."""
    monkeypatch.setattr("runtime.browser.chromium.survivors.look", lambda _alive: None)
    run = ended(store, None)
    async with watched(tmp_path) as found:
        found.note(store.private(run))
        (line,) = told(capsys)
        assert (line["browser"]["holders"], line["browser"]["left"]) == (None, None)
        assert app.run(["ps"]) == 0
        assert f"{found.chromium}, does not answer" in capsys.readouterr().out
