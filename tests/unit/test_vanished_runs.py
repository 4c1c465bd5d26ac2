"""A run that is deleted while a command reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.errors import UsageError
from runtime.cli import app
from runtime.language import prepare, reader
from runtime.log import entries
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host

WORKFLOW = """
version: 1
name: One
nodes: [{id: one, type: transform, expr: 1}]
"""


@pytest.fixture
def vanishing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two runs; the first is deleted as soon as its name has been read."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text(WORKFLOW)
    gone, left = (start.run_workflow("one.yaml").run for _ in range(2))
    listed, known = file_store.Files.ids, file_store.Files.has

    def ids(store: file_store.Files) -> list[str]:
        found = listed(store)
        store.conversation_file(gone).unlink(missing_ok=True)
        return found

    def has(store: file_store.Files, conversation: str) -> bool:
        found = known(store, conversation)
        store.conversation_file(gone).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(file_store.Files, "ids", ids)
    monkeypatch.setattr(file_store.Files, "has", has)
    return gone, left


def test_the_list_has_the_others(vanishing: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """`runs` lists the remaining runs."""
    _gone, left = vanishing
    assert app.run(["runs", "--json"]) == 0
    assert [each["id"] for each in json.loads(capsys.readouterr().out)["runs"]] == [left]


def test_a_query_has_the_others(vanishing: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """`query` has the remaining runs."""
    _gone, left = vanishing
    assert app.run(["query", "SELECT run FROM runs", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["left_out"]) == ([{"run": left}], [])


@pytest.mark.parametrize("command", ["show", "resume"])
def test_a_command_on_it_fails(command: str, vanishing: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command on a vanished run ends 2 with `unknown-run`."""
    gone, _left = vanishing
    assert app.run([command, gone]) == 2
    assert f"error[unknown-run]: there is no run {gone}" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["read", "claim", "owned"])
def test_the_store_refuses_a_deleted_run(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose file is deleted between the check and the opening is unknown, and nothing is written."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    conversation = store.create(run)
    conversation.append(entries.Note(name="tail-truncated", data={"bytes": 0}))
    conversation.close()
    there = store._existing

    def look(conversation: str) -> Path:
        found = there(conversation)
        found.unlink()
        return found

    monkeypatch.setattr(store, "_existing", look)
    with pytest.raises(UsageError) as caught:
        getattr(store, way)(run)
    assert caught.value.code == "unknown-run"
    assert store.ids() == []


async def test_a_key_deleted_during_a_start_has_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `prune` deletes an old key between the check and the start, the new run gets the key."""
    store = file_store.Files(tmp_path / ".runops")
    (tmp_path / "one.yaml").write_text(WORKFLOW)
    prepared = prepare.prepare(reader.load(tmp_path / "one.yaml"), {}, host.ENVIRONMENT)
    old, create = store.keyed("nightly"), file_store.Files.create

    def made(self: file_store.Files, conversation: str) -> log_store.Conversation:
        monkeypatch.setattr(file_store.Files, "create", create)
        (file,) = (tmp_path / ".runops" / "keys").iterdir()
        file.unlink()
        return create(self, conversation)

    monkeypatch.setattr(file_store.Files, "create", made)
    ended = await start.begin(prepared, host.of_command(settings.Settings(home=tmp_path / ".runops")), key="nightly")
    assert ended.status == "passed"
    assert ended.run == store.keyed("nightly") != old
    assert not store.read(old).entries
