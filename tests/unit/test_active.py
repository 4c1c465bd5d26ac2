"""`runops ps`: active runs and browsers, from logs, locks and browser notes."""

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
    """An empty store for runs, which the command uses too."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    return file_store.Files(tmp_path / ".runops")


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The output of `runops ps --json`."""
    capsys.readouterr()
    assert app.run(["ps", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["version"] == 1
    return output["alive"]


def test_without_active_runs_it_says_so(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Ended runs are not active: stdout is empty, and stderr has a sentence and the next command."""
    for status in ("passed", "failed", None):
        ended(store, status)
    assert listed(capsys) == []
    assert app.run(["ps"]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "nothing is active" in output.err
    assert "runops runs" in output.err


def test_an_owned_run_names_its_owner(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """The line of a run that a process owns has its id, that process, the start time, and a command to show it."""
    writer = begun(store)
    ended(store, "passed")
    (found,) = listed(capsys)
    assert (found["run"], found["state"], found["workflow"]) == (
        writer.conversation.id,
        "running",
        "Pay the open orders",
    )
    assert (found["holder"]["pid"], found["browser"]) == (os.getpid(), None)
    assert found["holder"]["since"] == writer.history.last_at
    assert app.run(["ps"]) == 0
    output = capsys.readouterr()
    head, line = output.out.splitlines()
    assert head.split() == ["run", "state", "process", "browser", "since", "workflow"]
    assert line.split()[:3] == [writer.conversation.id, "running", str(os.getpid())]
    assert f"runops show {writer.conversation.id}" in output.err
    let_go(writer.conversation)
    assert listed(capsys) == []


def test_an_owner_on_another_machine_is_shown_with_its_host(
    store: file_store.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """The owner's process id is shown with the name of its machine."""
    writer = begun(store)
    writer.note("claimed", pid=os.getpid(), started="1", boot="1", host="builder-7", epoch=2, version="0")
    capsys.readouterr()
    assert app.run(["ps"]) == 0
    assert f"{os.getpid()} on builder-7" in capsys.readouterr().out
    let_go(writer.conversation)


def test_a_run_without_a_logged_owner_is_running(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A locked run that has not yet written its owner is running with an unknown owner."""
    conversation = store.create(log_store.new_id())
    (found,) = listed(capsys)
    assert (found["run"], found["state"], found["holder"]) == (conversation.id, "running", None)
    conversation.close()


def test_an_owned_run_with_a_damaged_log_is_listed(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Its owner is unreadable, but the lock shows that it is active."""
    writer = begun(store)
    file = store.conversation_file(writer.conversation.id)
    file.write_bytes(file.read_bytes().replace(b"a", b"b", 1))
    (found,) = listed(capsys)
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
async def test_a_surviving_browser_is_listed_with_its_time(
    status: str | None,
    trial: bool,
    state: str,
    command: str,
    store: file_store.Files,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line of a browser without an owned run has its process, remaining time and next command. Listing does not extend the time."""
    run = log_store.new_id() if status == "gone" else ended(store, status, trial=trial)
    async with watched(tmp_path) as found:
        found.note(store.private(run))
        connection = await found.hold(4000)
        (line,) = listed(capsys)
        assert line["browser"] == {"chromium": found.chromium, "watcher": found.watcher, "holders": 1, "left": None}
        await connection.release()
        lefts: list[float] = []
        while len(lefts) < 2:
            (line,) = listed(capsys)
            lefts += [line["browser"]["left"]] if line["browser"]["left"] is not None else []
        assert 0 < lefts[1] < lefts[0] <= 4000
        assert (line["run"], line["state"], line["next"]) == (run, state, command.format(run=run))
        assert app.run(["ps"]) == 0
        output = capsys.readouterr()
        assert f"{found.chromium}, ends in 1 h " in output.out
        assert output.err.split(maxsplit=1)[1].strip() == command.format(run=run)
        assert found.alive()
    assert listed(capsys) == []


async def test_a_browser_whose_watcher_is_stuck_is_listed(
    store: file_store.Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The browser is listed, and its remaining time is unknown."""
    monkeypatch.setattr("runtime.browser.chromium.survivors.look", lambda _alive: None)
    run = ended(store, None)
    async with watched(tmp_path) as found:
        found.note(store.private(run))
        (line,) = listed(capsys)
        assert (line["browser"]["holders"], line["browser"]["left"]) == (None, None)
        assert app.run(["ps"]) == 0
        assert f"{found.chromium}, does not answer" in capsys.readouterr().out
