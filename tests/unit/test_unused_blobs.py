"""Large values beside those who write them: no entry ever names one that is not there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.log import entries
from runtime.log.store import file_store, store
from runtime.workspace import prune as workspace_prune
from runtime.workspace import retention, unused_blobs
from tests.now import let_go

OLD = 7200.0


class Writer:
    """A run that is held, and puts a value before the entry that names it."""

    def __init__(self, kept: file_store.Files) -> None:
        self.kept = kept
        self.conversation = kept.create(store.new_id())
        self.named: list[str] = []
        self.append(entries.Note(name="claimed", data={"pid": os.getpid(), "host": "here", "epoch": 1}))

    def append(self, entry: entries.AnyEntry) -> None:
        """Write an entry."""
        self.conversation.append(entry)

    def put(self, data: bytes) -> entries.Blob:
        """Keep a value that nothing names yet."""
        blob = self.conversation.put_blob(data, "step")
        self.conversation.sync()
        return blob

    def name(self, blob: entries.Blob) -> None:
        """Name it."""
        self.append(entries.Scope(path="step", event="committed", node="group", blob=blob))
        self.named.append(blob.sha256)

    def missing(self) -> list[str]:
        """What was named and is not there."""
        found: list[str] = []
        for each in self.named:
            try:
                self.kept.blob(each)
            except Exception:  # noqa: BLE001 — whatever is wrong with it
                found.append(each)
        return found


def left_over(kept: file_store.Files, data: bytes) -> str:
    """A value that nobody has named for long; its hash."""
    conversation = kept.create(store.new_id())
    found = conversation.put_blob(data, "step")
    conversation.close()
    kept.conversation_file(conversation.id).unlink()
    age(kept.blob_file(found.sha256))
    return found.sha256


def age(file: Path) -> None:
    """Let a file be old."""
    os.utime(file, (time.time() - OLD, time.time() - OLD))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("way", ["put and named", "put, named later"])
@pytest.mark.parametrize("step", range(4))
def test_a_value_that_is_put_at_any_step_is_there(
    step: int, way: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after each single step of taking an old value away a run may put it: then it is there for good, and always readable."""
    kept = file_store.Files(tmp_path)
    sha256 = left_over(kept, b"value")
    writer = Writer(kept)
    put: list[entries.Blob] = []
    count = [0]

    def act() -> None:
        put.append(writer.put(b"value"))
        if way == "put and named":
            writer.name(put[0])

    def between(does: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **named: Any) -> Any:
            mine, count[0] = count[0] == step and not put, count[0] + 1
            if mine and moment == "before":
                act()
            result = does(*arguments, **named)
            if mine and moment == "after":
                act()
            assert writer.missing() == []
            return result

        return stepped

    with monkeypatch.context() as patched:
        for name in ("rename", "unlink"):
            # The writer's own steps count too, and do no harm.
            patched.setattr(os, name, between(getattr(os, name)))
        patched.setattr(unused_blobs, "touched", between(unused_blobs.touched))
        workspace_prune.prune(kept, retention.Selection(), dry_run=False)
    if not put:
        pytest.skip("there are fewer steps")
    if way == "put, named later":
        workspace_prune.prune(kept, retention.Selection(), dry_run=False)
        writer.name(put[0])
    assert (writer.named, writer.missing()) == ([sha256], [])
    assert kept.blob_file(sha256).exists()
    let_go(writer.conversation)


def test_a_value_that_nobody_puts_goes(tmp_path: Path) -> None:
    """Old and named by nobody, it is taken away, and nothing stands aside."""
    kept = file_store.Files(tmp_path)
    left_over(kept, b"value")
    workspace_prune.prune(kept, retention.Selection(), dry_run=False)
    assert [each for each in (tmp_path / "blobs").rglob("*") if each.is_file()] == []


def test_a_value_that_is_touched_while_it_is_taken_away_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer found it under its name, and made it young when it had been found old under the other one: it is as good as gone."""
    kept = file_store.Files(tmp_path)
    writer = Writer(kept)
    sha256 = writer.put(b"value").sha256
    age(kept.blob_file(sha256))
    touch = os.utime

    def touched_late(path: Path) -> None:
        handle = os.open(path, os.O_RDONLY)
        monkeypatch.undo()
        assert unused_blobs.take(kept, sha256, time.time() - OLD / 2)
        touch(handle)
        os.close(handle)

    monkeypatch.setattr(os, "utime", touched_late)
    writer.name(writer.put(b"value"))
    assert (writer.named, writer.missing()) == ([sha256], [])
    let_go(writer.conversation)


def test_writers_in_a_loop_never_miss_a_value(tmp_path: Path) -> None:
    """While values that look old are put and named in one thread and taken away in another, no entry ever names a missing one."""
    kept = file_store.Files(tmp_path)
    writer = Writer(kept)
    over = threading.Event()

    def prune() -> None:
        while not over.is_set():
            workspace_prune.prune(kept, retention.Selection(), dry_run=False)

    pruner = threading.Thread(target=prune)
    pruner.start()
    try:
        until = time.monotonic() + 2
        rounds = 0
        while rounds < 20 or time.monotonic() < until:
            rounds += 1
            values = [f"{rounds % 7} {number}".encode() for number in range(5)]
            # No writer leaves an old one behind in reality; here they all look old.
            olds = [writer.put(value) for value in values]
            for each in olds:
                if each.sha256 not in writer.named and kept.blob_file(each.sha256).exists():
                    try:
                        age(kept.blob_file(each.sha256))
                    except FileNotFoundError:
                        continue
            for value in values:
                writer.name(writer.put(value))
            assert writer.missing() == []
            if rounds % 7 == 0:
                let_go(writer.conversation)
                kept.conversation_file(writer.conversation.id).unlink()
                writer = Writer(kept)
    finally:
        over.set()
        pruner.join()
        let_go(writer.conversation)
    assert rounds >= 20


def test_a_writer_that_was_stopped_for_long_finds_its_value(tmp_path: Path) -> None:
    """What was put since a held run was claimed stays, however long ago that is: its holder may be about to name it."""
    kept = file_store.Files(tmp_path)
    writer = Writer(kept)
    blob = writer.put(b"value")
    claim, much_later = time.time() - 1, time.time() + 100 * OLD
    file = kept.blob_file(blob.sha256)
    while_held = unused_blobs.Limits.at(much_later, [claim])
    assert unused_blobs.touched(file) > max(while_held.unnamed, while_held.just_unnamed)
    held_by_nobody = unused_blobs.Limits.at(much_later, [])
    assert unused_blobs.touched(file) <= held_by_nobody.unnamed
    let_go(writer.conversation)


def test_a_value_of_a_held_run_outlasts_the_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that was stopped for hours between a value and its name continues as if nothing had been."""
    kept = file_store.Files(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(entries, "now", lambda: "2020-01-01T00:00:00.000Z")
        writer = Writer(kept)
    blob = writer.put(b"value")
    age(kept.blob_file(blob.sha256))
    workspace_prune.prune(kept, retention.Selection(states=("passed",)), dry_run=False)
    writer.name(blob)
    assert writer.missing() == []
    let_go(writer.conversation)


def test_what_a_process_left_aside_comes_back(tmp_path: Path) -> None:
    """A value that a process left aside where it died is put back if a log names it or it is young; an old one that nobody names goes."""
    kept = file_store.Files(tmp_path)
    writer = Writer(kept)
    named = writer.put(b"named")
    writer.name(named)
    young, old, twice = (left_over(kept, each) for each in (b"young", b"old", b"twice"))
    os.utime(kept.blob_file(young))
    for each in (named.sha256, young, old):
        if each == named.sha256:
            age(kept.blob_file(each))
        kept.blob_file(each).rename(kept.blob_aside(each))
    kept.blob_aside(twice).write_bytes(b"twice")
    age(kept.blob_aside(twice))
    os.utime(kept.blob_file(twice))
    workspace_prune.prune(kept, retention.Selection(), dry_run=False)
    there = {each.name for each in (tmp_path / "blobs").rglob("*") if each.is_file()}
    assert there == {named.sha256, young, twice}
    let_go(writer.conversation)


@pytest.mark.parametrize(
    "line", [b'"sha256":"%s"', b'{"path":"%s"}', b'"\\"sha256\\": \\"%s\\""', b"torn line %s", b'["%s"]']
)
def test_whatever_looks_like_a_name_is_one(line: bytes) -> None:
    """A hash names a value wherever it stands in a log, so no form that a later entry gives it is missed."""
    assert unused_blobs.named_in(line % (b"0123456789abcdef" * 4)) == {"0123456789abcdef" * 4}
    assert unused_blobs.named_in(b"f" * 63) == set()
