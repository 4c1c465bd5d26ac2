"""The file store beyond its interface: leftovers of a dead process, concurrent use, and power cuts."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import LogError, RunHeld
from runtime.log import entries
from runtime.log.store import file_store, integrity
from runtime.log.store import store as log_store
from runtime.system import files, locks, regular_files


def note(number: int) -> entries.Note:
    """Any entry."""
    return entries.Note(name="restored", data={"mode": "attached", "number": number})


FIRST = entries.encode(entries.numbered(entries.Note(name="restored", data={"mode": "x" * 2000}), 1))
NO_SECTOR = b"\0" * integrity.SECTOR + FIRST[integrity.SECTOR :]


@pytest.mark.parametrize(
    "left",
    [b"", b'{"v":1,"seq":1,"at":"2026', b"\0" * 300, NO_SECTOR],
    ids=["empty", "torn", "zeros", "a sector is missing"],
)
def test_a_run_without_a_complete_first_entry_is_created_again(tmp_path: Path, left: bytes) -> None:
    """The remains of a creator that died before its first complete entry are discarded, and the run begins at line 1."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    store.conversation_file(run).write_bytes(left)
    assert store.read(run).entries == []
    conversation = store.create(run)
    written = conversation.append(note(1))
    conversation.close()
    assert store.read(run).entries == [written]


def test_a_started_run_is_not_created_again(tmp_path: Path) -> None:
    """Creating a run that has an entry is refused, and its log stays unchanged."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    conversation = store.create(run)
    conversation.append(note(1))
    conversation.close()
    before = store.conversation_file(run).read_bytes()
    with pytest.raises(LogError, match=f"there is a run {run} already") as caught:
        store.create(run)
    assert caught.value.code == "run-exists"
    assert store.conversation_file(run).read_bytes() == before
    assert not store.owned(run)


def test_a_run_is_owned_while_it_is_created(tmp_path: Path) -> None:
    """A new run is locked by its creator even before its first entry."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    conversation = store.create(run)
    with pytest.raises(RunHeld):
        store.create(run)
    written = conversation.append(note(1))
    conversation.close()
    assert store.read(run).entries == [written]


def test_a_file_deleted_while_waiting_for_its_lock_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file is deleted before the lock is acquired, the run is created again under its name."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    file = store.conversation_file(run)
    file.touch()
    really, removed = locks.fcntl.flock, list[bool]()

    def flock(handle: int, operation: int) -> None:
        if not removed:
            removed.append(True)
            file.unlink()
        really(handle, operation)

    with monkeypatch.context() as patched:
        patched.setattr(locks.fcntl, "flock", flock)
        conversation = store.create(run)
    written = conversation.append(note(1))
    conversation.close()
    assert removed
    assert store.read(run).entries == [written]


def test_concurrent_requests_for_a_key_get_the_same_run(tmp_path: Path) -> None:
    """Concurrent requests for a new key create one run."""
    many = 8
    for key in ("nightly", "a key\nwith anything in it ü", ""):
        ready = threading.Barrier(many)

        def ask(_number: int, key: str = key, ready: threading.Barrier = ready) -> str:
            store = file_store.Files(tmp_path)
            ready.wait()
            return store.keyed(key)

        with ThreadPoolExecutor(many) as pool:
            found = set(pool.map(ask, range(many)))
        assert len(found) == 1
        assert log_store.ID.match(found.pop())
    assert not list((tmp_path / "keys").glob(".*"))


def test_a_damaged_key_is_refused_by_its_path(tmp_path: Path) -> None:
    """A key file with a byte changed, cut or added is refused, and no other run is started in its place."""
    store = file_store.Files(tmp_path)
    store.keyed("nightly")
    (file,) = (tmp_path / "keys").iterdir()
    whole = file.read_bytes()
    changed = [whole[:at] + bytes([each]) + whole[at + 1 :] for at in range(len(whole)) for each in b"A0\n" if whole[at] != each]  # fmt: skip
    for data in (*changed, *(whole[:end] for end in range(len(whole))), whole + b"\n"):
        file.write_bytes(data)
        with pytest.raises(LogError, match=str(file)) as caught:
            store.keyed("nightly")
        assert caught.value.code == "log-damaged"


def test_a_damaged_first_line_is_no_new_run(tmp_path: Path) -> None:
    """A damaged but complete first line is refused, since the run may have started."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    store.conversation_file(run).write_bytes(FIRST.replace(b"x", b"y", 1))
    with pytest.raises(LogError, match=":1: this line of the log is damaged"):
        store.create(run)


def test_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    """The error for an unreadable log names its file."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    store.conversation_file(run).mkdir()
    with pytest.raises(LogError, match="the log could not be read: Is a directory") as caught:
        store.read(run)
    assert (caught.value.code, str(store.conversation_file(run)) in caught.value.message) == ("log-unreadable", True)


def test_a_key_pruned_while_it_is_read_gets_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request during `runops prune` of the key gets a run that is on disk."""
    store = file_store.Files(tmp_path)
    before = store.keyed("nightly")
    (file,) = (tmp_path / "keys").iterdir()
    really, removed = files.sync_folder, list[bool]()

    def sync_folder(folder: Path) -> None:
        if not removed:
            removed.append(True)
            file.unlink()
        really(folder)

    monkeypatch.setattr(files, "sync_folder", sync_folder)
    after = store.keyed("nightly")
    assert after != before
    assert log_store.run_of_key(file.read_bytes()) == after


def test_no_line_follows_one_that_was_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a value and its line fail just before the next append, that append is refused, and the log stays complete."""
    store, fails = file_store.Files(tmp_path), threading.Event()
    conversation = store.create(log_store.new_id())
    conversation.append(note(1))

    def write(_file: Path, _data: bytes) -> None:
        fails.wait()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "write", write)
    conversation.put_blob(b"large", "orders")
    conversation.append(note(2))
    lock, main = conversation._turn, threading.get_ident()

    class Late:
        """Makes the value fail before the next line is written."""

        def __enter__(self) -> None:
            if threading.get_ident() == main:
                fails.set()
                while conversation._waiting:
                    time.sleep(0.001)
            lock.acquire()

        def __exit__(self, *_error: object) -> None:
            lock.release()

    monkeypatch.setattr(conversation, "_turn", Late())
    with pytest.raises(LogError, match="could not be written"):
        conversation.append(note(3))
    conversation.close()
    assert [each.seq for each in store.read(conversation.id).entries] == [1]


def test_a_damaged_value_is_written_again(tmp_path: Path) -> None:
    """A run that stores the value of a damaged blob rewrites it, so both runs can read it."""
    store = file_store.Files(tmp_path)
    first, second = (store.create(log_store.new_id()) for _each in range(2))
    blob = first.put_blob(b"a value", "x")
    first.close()
    store.blob_file(blob.sha256).write_bytes(b"a Value")
    second.put_blob(b"a value", "y")
    second.close()
    assert store.blob(blob.sha256) == b"a value"


def test_each_new_name_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of each new file or folder is synced, so that a power cut loses none."""
    synced: set[Path] = set()
    really = files.sync_folder

    def sync_folder(folder: Path) -> None:
        really(folder)
        synced.update(folder.iterdir())

    monkeypatch.setattr(files, "sync_folder", sync_folder)
    store, run = file_store.Files(tmp_path / "home"), log_store.new_id()
    store.keyed("nightly")
    conversation = store.create(run)
    conversation.put_blob(b"large", "orders")
    conversation.close()
    store.private(run)
    made = {each for each in tmp_path.rglob("*") if each.name not in (".gitignore", ".writers")}
    assert made - synced == set()


def test_reading_new_entries_reads_only_those(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who knows all but the last few of 5,000 lines reads at most about 60 more."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    with contextlib.closing(store.create(run)) as owned:
        for number in range(5000):
            owned.append(note(number))
    lines = store.conversation_file(run).read_bytes().splitlines(keepends=True)
    read: list[int] = []
    opened = regular_files.opened

    @contextlib.contextmanager
    def counted(path: Path) -> Generator[Any]:
        with opened(path) as file:
            yield Counted(file, read)

    monkeypatch.setattr(regular_files, "opened", counted)
    for new in (0, 1, 7):
        read.clear()
        assert len(store.read(run, 5000 - new).entries) == new
        assert sum(read) < sum(map(len, lines[-new - 60 :]))


class Counted:
    """A file that counts the bytes read."""

    def __init__(self, file: Any, read: list[int]) -> None:
        self._file, self._read = file, read

    def __getattr__(self, name: str) -> Any:
        """Delegates all else to the file."""
        return getattr(self._file, name)

    def read(self) -> bytes:
        """Reads the rest."""
        return self._counted(self._file.read())

    def readline(self) -> bytes:
        """Reads a line."""
        return self._counted(self._file.readline())

    def _counted(self, data: bytes) -> bytes:
        self._read.append(len(data))
        return data
