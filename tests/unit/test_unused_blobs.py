"""Deleting unused blobs beside writers: no entry ever names a missing blob."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from runtime.log import entries
from runtime.log.store import file_store, owners
from runtime.log.store import store as log_store
from runtime.workspace import prune, retention
from tests.now import let_go


def collected(store: file_store.Files) -> prune.Report:
    """Deletes unused blobs."""
    return prune.Pruning(store, dry_run=False).carry_out(retention.Selection())


def begun(store: file_store.Files) -> file_store.OpenFile:
    """A conversation that this process owns."""
    conversation = store.create(log_store.new_id())
    conversation.append(entries.Note(name="claimed", data={**owners.me(), "epoch": 1}))
    return conversation


def name(conversation: file_store.OpenFile, blob: entries.Blob) -> None:
    """Names a blob in the log."""
    conversation.append(entries.Scope(path="step", event="committed", node="group", blob=blob))
    conversation.sync()


def test_an_unused_blob_stays_while_any_log_is_open(tmp_path: Path) -> None:
    """An unused blob is left, with the reason, while any log is open. It is deleted once no log names it."""
    store = file_store.Files(tmp_path)
    conversation, other = begun(store), begun(store)
    blob = conversation.put_blob(b"value", "step")
    let_go(conversation)
    left = collected(store).left
    assert "a process works here" in left[0].why
    assert store.blob(blob.sha256) == b"value"
    again = other.put_blob(b"value", "step")
    name(other, again)
    let_go(other)
    collected(store)
    assert store.blob(blob.sha256) == b"value"
    store.conversation_file(other.id).unlink()
    assert [each.kind for each in collected(store).gone] == ["value"]
    assert not store.blob_file(blob.sha256).exists()


@pytest.mark.parametrize("begins", ["create", "claim"])
def test_a_writer_waits_while_blobs_are_deleted(begins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that starts during the deletion waits, and its copy of the deleted blob stays."""
    store = file_store.Files(tmp_path)
    one = begun(store)
    blob = one.put_blob(b"value", "step")
    let_go(one)
    opened: list[file_store.OpenFile] = []

    def write() -> None:
        opened.append(store.create(log_store.new_id()) if begins == "create" else store.claim(one.id)[0])
        name(opened[0], opened[0].put_blob(b"value", "step"))

    writer = threading.Thread(target=write)
    unlink = os.unlink

    def slowly(path: Path) -> None:
        writer.start()
        time.sleep(0.2)
        assert not opened
        unlink(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", slowly)
        assert [each.kind for each in collected(store).gone] == ["value"]
    writer.join()
    assert store.blob(blob.sha256) == b"value"
    let_go(opened[0])


def test_writers_in_a_loop_never_miss_a_blob(tmp_path: Path) -> None:
    """While one thread writes and names blobs and another deletes unused ones, no entry names a missing one."""
    store = file_store.Files(tmp_path)
    over = threading.Event()

    def collect() -> None:
        while not over.is_set():
            collected(store)

    pruner = threading.Thread(target=collect)
    pruner.start()
    try:
        until, rounds = time.monotonic() + 2, 0
        while rounds < 20 or time.monotonic() < until:
            rounds += 1
            conversation = begun(store)
            values = [f"{rounds % 7} {number}".encode() for number in range(5)]
            blobs = [conversation.put_blob(each, "step") for each in values]
            for blob in blobs:
                name(conversation, blob)
            assert [store.blob(each.sha256) for each in blobs] == values
            let_go(conversation)
            if rounds % 2:
                store.conversation_file(conversation.id).unlink()
    finally:
        over.set()
        pruner.join()


@pytest.mark.parametrize(
    "line", [b'"sha256":"%s"', b'{"path":"%s"}', b'"\\"sha256\\": \\"%s\\""', b"torn line %s", b'["%s"]']
)
def test_any_hash_in_a_log_names_a_blob(line: bytes) -> None:
    """A hash names a blob wherever it is in a line, in whatever form."""
    assert prune.named_in(line % (b"0123456789abcdef" * 4)) == {"0123456789abcdef" * 4}
    assert prune.named_in(b"f" * 63) == set()
