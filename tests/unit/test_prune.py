"""`runops prune`: what it deletes and keeps, also if it dies midway or another process works beside it."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from runtime.cli import app
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.system import locks
from runtime.workspace import prune, retention
from tests.kept_runs import WORKFLOW, begun, ended
from tests.now import let_go
from tests.watched import watched

HOURS = 3600.0
LONG_AGO = 30 * 24 * HOURS


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> file_store.Files:
    """An empty home for runs, which the command uses too."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    return file_store.Files(tmp_path / ".runops")


def put(file: Path, text: str = "some text", *, age: float = 0.0) -> Path:
    """The written file, last modified ``age`` seconds ago."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return aged(file, age)


def key(home: Path, name: str, run: str, *, age: float = 0.0) -> Path:
    """The file of a key that names the run."""
    return put(home / "keys" / name, log_store.key_text(run).decode(), age=age)


def aged(file: Path, age: float) -> Path:
    """The file, as if last modified ``age`` seconds ago."""
    os.utime(file, (time.time() - age, time.time() - age))
    return file


def blob(store: file_store.Files, data: bytes) -> Path:
    conversation = store.create(log_store.new_id())
    found = conversation.put_blob(data, "step")
    store.conversation_file(conversation.id).unlink()
    conversation.close()
    return store.blob_file(found.sha256)


def tree(store: file_store.Files) -> set[str]:
    files = (each for each in store.home.rglob("*") if each.is_file() and each != store.writers)
    return {str(each.relative_to(store.home)) for each in files}


def pruned(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert app.run(["prune", *arguments, "--json"]) == code
    out = json.loads(capsys.readouterr().out)
    assert out["version"] == 1
    return out


def sound(store: file_store.Files) -> None:
    """Check that every run has all values that its log names."""
    for run in store.ids():
        for sha256 in prune.named_in(store.conversation_file(run).read_bytes()):
            assert store.blob(sha256)


def populated(store: file_store.Files) -> tuple[set[str], set[str]]:
    """A home with every kind of file: those that prune deletes, and those that it keeps."""
    passed, died, failed = ended(store, "passed"), ended(store, None), ended(store, "failed")
    tried, unknown = ended(store, "failed", trial=True), log_store.new_id()
    home = store.home
    deleted = [
        put(home / "private" / passed / "checkpoint-4.json"),
        put(home / "private" / passed / "profile-x" / "Default" / "Cookies"),
        put(home / "private" / tried / "chromium.log"),
        put(home / "private" / died / ".checkpoint-9.json.abcd_123"),
        put(home / "files" / died / ".receipt.pdf.abcd_123"),
        put(home / "private" / unknown / "browser.json"),
        put(home / "files" / unknown / "receipt.pdf"),
        put(home / "files" / log_store.new_id() / "receipt.pdf"),
        key(home, "a" * 64, unknown, age=2 * HOURS),
        put(home / "keys" / f".{'c' * 40}.abcd_123", unknown, age=2 * HOURS),
        put(home / "conversations" / f"{log_store.new_id()}.jsonl", ""),
        put(home / "conversations" / f"{log_store.new_id()}.jsonl", '{"v":1,"se'),
        blob(store, b"unnamed"),
        put(home / "blobs" / "aa" / f".{'a' * 40}.abcd_123", age=2 * HOURS),
        put(home / "private" / "sessions" / ".shop.json.abcd_123", age=2 * HOURS),
    ]
    kept = [
        *(store.conversation_file(each) for each in (passed, died, failed, tried)),
        put(home / "private" / died / "checkpoint-8.json"),
        put(home / "private" / failed / "profile-y" / "Default" / "Cookies"),
        put(home / "files" / passed / "receipt.pdf"),
        put(home / "files" / died / "receipt.pdf"),
        key(home, "d" * 64, died, age=2 * HOURS),
        key(home, "e" * 64, log_store.new_id()),
        put(home / "private" / "sessions" / "shop.json", age=LONG_AGO),
        put(home / "private" / "sessions" / ".hidden.json", age=LONG_AGO),
        put(home / "runops-bug-1.txt", age=LONG_AGO),
        home / ".gitignore",
    ]
    # Values that runs name stay, however old they are.
    named = {
        store.blob_file(each)
        for run in store.ids()
        for each in prune.named_in(store.conversation_file(run).read_bytes())
    }
    kept += [aged(each, LONG_AGO) for each in named]
    below = [{str(each.relative_to(home)) for each in some} for some in (deleted, kept)]
    assert below[0] | below[1] == tree(store)
    return below[0], below[1]


def test_without_options_only_leftovers_are_deleted(
    store: file_store.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Leftovers of finished and unknown runs are deleted; runs, their files, signed-in states and young files stay. A dry run reports the same."""
    deleted, kept = populated(store)
    bytes_before = sum((store.home / each).stat().st_size for each in deleted)
    dry = pruned(capsys, "--dry-run")
    assert tree(store) == deleted | kept, "a dry run takes nothing away"
    out = pruned(capsys)
    assert tree(store) == kept
    assert (out["bytes"], out["left"], out["error"]) == (bytes_before, [], None)
    assert {**dry, "dry_run": False} == out
    assert pruned(capsys)["gone"] == []


def test_a_run_is_deleted_with_all_its_files(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is deleted with its log, private state, files, key and the values that no other run names; other runs' files stay."""
    other = WORKFLOW.replace("expr: 1", "expr: 2")
    kept, deleted = ended(store, None), ended(store, None, other)
    shared = ended(store, "passed")
    put(store.home / "private" / deleted / "checkpoint-8.json")
    put(store.home / "files" / deleted / "receipt.pdf")
    key(store.home, "d" * 64, deleted)
    put(store.home / "private" / kept / "checkpoint-8.json")
    before = tree(store)
    pruned(capsys, "--state", "failed", "--older-than", "0s")
    assert tree(store) == before
    # No option names a run, so the log of the run that stays is moved aside meanwhile.
    out = pruned(capsys, "--state", "died", "--keep-last", "0", "--older-than", "1w")
    assert out["gone"] == []
    store.conversation_file(kept).rename(store.home / "aside")
    out = pruned(capsys, "--state", "died", "--older-than", "0s")
    (store.home / "aside").rename(store.conversation_file(kept))
    assert [each["run"] for each in out["gone"] if each["kind"] == "run"] == [deleted]
    assert [each["kind"] for each in out["gone"] if each["kind"] != "run"] == ["private", "value"]
    assert store.ids() == sorted([kept, shared])
    assert not [each for each in tree(store) if deleted in each or each.startswith("keys")]
    sound(store)


@pytest.mark.parametrize("option", [["--older-than", "0s"], ["--keep-last", "0"], ["--state", "passed"]])
def test_runs_that_can_continue_are_deleted_only_by_state(
    option: list[str], store: file_store.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each option alone deletes only passed runs; the others stay unless `--state` names their state."""
    states = ["passed", "failed", "paused", "interrupted", None]
    made = {state: ended(store, state) for state in states}
    pruned(capsys, *option)
    assert store.ids() == sorted(run for state, run in made.items() if state != "passed")
    for state in ("failed", "paused", "interrupted", "died"):
        pruned(capsys, "--state", state)
        del made[None if state == "died" else state]
        assert store.ids() == sorted(run for left, run in made.items() if left != "passed")


def test_an_owned_run_is_never_touched(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that a process owns stays whole whatever the options, even if it has passed before."""
    writer = begun(store)
    writer.note("ended", status="passed", exit=0)
    for name in ("checkpoint-8.json", ".checkpoint-9.json.abcd_123"):
        put(store.home / "private" / writer.conversation.id / name)
    before = tree(store)
    out = pruned(capsys, "--state", "passed", "--state", "died", "--older-than", "0s", "--keep-last", "0")
    assert out["gone"] == []
    assert tree(store) == before
    let_go(writer.conversation)


def test_a_run_that_is_resumed_meanwhile_stays(
    store: file_store.Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is resumed between selection and locking stays, even if it has ended again; one that is still owned is reported."""
    owned, resumed = ended(store, None), ended(store, "failed")
    put(store.home / "private" / owned / "checkpoint-8.json")
    owner: list[log_store.Conversation] = []
    hold = locks.hold

    def hold_too_late(path: Path, *, make: bool = False) -> int | None:
        monkeypatch.setattr(locks, "hold", hold)
        owner.append(store.claim(owned)[0])
        conversation, entries = store.claim(resumed)
        conversation.append(entries[-1].model_copy(update={"at": ""}))
        conversation.close()
        return hold(path, make=make)

    monkeypatch.setattr(locks, "hold", hold_too_late)
    before = tree(store)
    out = pruned(capsys, "--state", "died", "--state", "failed")
    assert tree(store) == before
    assert (out["gone"], [each["run"] for each in out["left"]]) == ([], [owned])
    let_go(owner[0])


def test_no_run_is_resumed_while_it_is_deleted(
    store: file_store.Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run stays locked while its key and its log are deleted; then it is unknown."""
    run = ended(store, None)
    put(store.home / "private" / run / "checkpoint-8.json")
    key(store.home, "d" * 64, run)
    answers: list[str] = []

    def asked(step: Any) -> Any:
        def unlink(*arguments: Any, **named: Any) -> None:
            try:
                store.claim(run)[0].close()
                answers.append("claimed")
            except Exception as error:  # noqa: BLE001 — whatever it says is looked at
                answers.append(getattr(error, "code", repr(error)))
            step(*arguments, **named)

        return unlink

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", asked(os.unlink))
        pruned(capsys, "--state", "died")
    assert answers[:2] == ["run-held", "run-held"], "the key goes, then the log"
    assert set(answers[2:]) == {"unknown-run"}


def test_a_damaged_log_is_left_alone_and_named(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged log stays with all its files and is reported; as it may name any value, all large values stay and are reported too."""
    broken, sound_one = ended(store, "passed"), ended(store, "passed")
    file = store.conversation_file(broken)
    file.write_bytes(file.read_bytes().replace(b"a", b"b", 1))
    put(store.home / "private" / broken / "checkpoint-8.json")
    blob(store, b"unnamed")
    before = tree(store)
    out = pruned(capsys, "--older-than", "0s")
    assert before - tree(store) == {f"conversations/{sound_one}.jsonl"}
    assert out["left"][0]["run"] == broken
    assert f"{file}:1" in out["left"][0]["why"]
    assert "all large values" in out["left"][1]["why"]
    assert out["error"] is None


def test_a_log_that_cannot_be_read_is_like_a_damaged_one(
    store: file_store.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unreadable log is reported and left alone, all values stay, and the rest is deleted."""
    passed = ended(store, "passed")
    strange = log_store.new_id()
    store.conversation_file(strange).mkdir()
    blob(store, b"unnamed")
    before = tree(store)
    out = pruned(capsys, "--state", "passed")
    assert before - tree(store) == {f"conversations/{passed}.jsonl"}
    assert (out["left"][0]["run"], out["error"]) == (strange, None)
    assert "cannot be read" in out["left"][0]["why"]
    assert app.run(["ps"]) == 0


class Killed(BaseException):
    """The process dies here."""


def test_prune_may_die_at_any_step(store: file_store.Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after any single step, prune leaves every run whole or gone, and the next prune reaches the same end."""
    died, passed, unknown = (
        ended(store, None, WORKFLOW.replace("expr: 1", "expr: 3")),
        ended(store, "passed"),
        log_store.new_id(),
    )
    for each in died, passed, unknown:
        put(store.home / "private" / each / "checkpoint-8.json")
        put(store.home / "files" / each / "receipt.pdf")
        key(store.home, each.ljust(64, "0"), each, age=LONG_AGO)
    put(store.home / "private" / passed / "profile-x" / "Default" / "Cookies")
    put(store.home / "private" / ended(store, "failed") / ".checkpoint-9.json.abcd_123")
    put(store.home / "conversations" / f"{log_store.new_id()}.jsonl", '{"v":1,"se')
    blob(store, b"unnamed")
    wanted = retention.Selection(states=("died",))
    first = store.home.parent / "first"
    shutil.copytree(store.home, first)
    copy = _again(first, store.home.parent / "whole")
    prune.Pruning(copy, dry_run=False).carry_out(wanted)
    end, step = tree(copy), 0
    finished = False
    while not finished:
        step += 1
        copy = _again(first, store.home.parent / f"killed-{step}")
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", lambda _handle: None)
            _die_after(patched, step)
            try:
                prune.Pruning(copy, dry_run=False).carry_out(wanted)
                finished = True
            except Killed:
                pass
        sound(copy)
        for run in (each for each in copy.ids() if b"\n" in copy.conversation_file(each).read_bytes()):
            files = {each for each in tree(store) if f"/{run}" in each and not each.startswith("keys")}
            half = {each for each in files if prune._TEMPORARY.fullmatch(Path(each).name)}
            over = {each for each in files if each.startswith("private")} if _is_over(copy, run) else set()
            assert files - half - over <= tree(copy), f"run {run} is half there, killed after step {step}"
        prune.Pruning(copy, dry_run=False).carry_out(wanted)
        assert tree(copy) == end, f"killed after step {step}"
        shutil.rmtree(copy.home)
    assert step > 20


def _again(first: Path, folder: Path) -> file_store.Files:
    shutil.copytree(first, folder)
    return file_store.Files(folder)


def _is_over(store: file_store.Files, run: str) -> bool:
    known = retention.known(store.read(run))
    return known is not None and known.over


def _die_after(patched: pytest.MonkeyPatch, steps: int) -> None:
    left = [steps]

    def counted(step: Any) -> Any:
        def does(*arguments: Any, **named: Any) -> Any:
            if not left[0]:
                raise Killed
            left[0] -= 1
            return step(*arguments, **named)

        return does

    for name in ("unlink", "rmdir", "rename"):
        patched.setattr(os, name, counted(getattr(os, name)))


def test_a_failed_deletion_is_reported_and_stops_nothing_else(
    store: file_store.Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A deletion that fails is reported with its cause and exit code 2, and everything else is still deleted."""
    stuck, deleted = ended(store, "passed"), ended(store, "passed")
    for run in (stuck, deleted):
        put(store.home / "private" / run / "checkpoint-8.json")
    remove = shutil.rmtree

    def refuse(folder: Path) -> None:
        if folder.name == stuck:
            raise PermissionError(13, "Permission denied", str(folder))
        remove(folder)

    monkeypatch.setattr(shutil, "rmtree", refuse)
    out = pruned(capsys, code=2)
    assert [each["run"] for each in out["gone"]] == [deleted]
    assert (out["error"]["code"], out["left"][0]["run"], out["left"][0]["failed"]) == ("not-removed", stuck, True)
    assert app.run(["prune"]) == 2
    assert "error[not-removed]" in capsys.readouterr().err


async def test_browsers_without_a_run_that_can_continue_are_closed(
    store: file_store.Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Browsers of passed and unknown runs are closed by their watcher; that of a run that can continue stays until its run is deleted."""
    for name in ("passed", "nobody", "died"):
        run = log_store.new_id() if name == "nobody" else ended(store, "passed" if name == "passed" else None)
        (tmp_path / name).mkdir()
        async with watched(tmp_path / name) as found:
            found.note(store.private(run))
            pruned(capsys, "--dry-run", "--state", "passed", "--state", "died")
            assert found.alive()
            out = pruned(capsys)
            if name == "died":
                assert (out["gone"], found.alive()) == ([], True)
                out = pruned(capsys, "--state", "died", "--older-than", "0s")
            ends = [each for each in out["gone"] if each["kind"] == "browser"]
            assert [(each["run"], each["process"]) for each in ends] == [(run, found.chromium)]
            assert found.gone()
            assert not (store.home / "private" / run).exists()


def test_a_run_whose_browser_does_not_end_stays(
    store: file_store.Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of a run is deleted while its browser may still act, and the exit code reports a problem."""
    run = ended(store, None)
    note = json.dumps({"chromium": 1, "watcher": 1, "watcher_port": 1, "address": "", "folders": [], "token": ""})
    more = {"chromium_started": "1", "watcher_started": "1", "boot": "1"}
    put(store.home / "private" / run / "browser.json", json.dumps({**json.loads(note), **more}))
    monkeypatch.setattr("runtime.browser.chromium.survivors.end", lambda _alive: False)
    before = tree(store)
    out = pruned(capsys, "--state", "died", code=2)
    assert (out["gone"], tree(store)) == ([], before)
    assert "does not end" in out["left"][0]["why"]


def test_the_list_for_people_has_every_run_and_counts_the_rest(
    store: file_store.Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stdout has a line for each deleted run and each kind of leftover; stderr gives the total, and how to delete more."""
    assert app.run(["prune"]) == 0
    out = capsys.readouterr()
    assert out.out == ""
    assert "nothing to delete" in out.err
    run = ended(store, "passed")
    for number in range(2):
        put(store.home / "files" / log_store.new_id() / "receipt.pdf", "x" * 4096 * (number + 1))
    assert app.run(["prune", "--keep-last", "0", "--dry-run"]) == 0
    out = capsys.readouterr()
    head, first, second, _values = out.out.splitlines()
    assert head.split() == ["size", "what"]
    assert f"run {run}  passed 20" in first
    assert second.split() == ["12.3", "kB", "2", "folders", "of", "files", "of", "a", "run", "that", "is", "gone"]
    assert "would delete" in out.err
    assert app.run(["prune", "--keep-last", "0"]) == 0
    assert capsys.readouterr().err.startswith("deleted 1")
