"""The file store, where it is more than its interface: what a dead process left, several at once, and what a power cut would take."""

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
def test_a_run_whose_maker_died_before_its_first_line_is_made_anew(tmp_path: Path, left: bytes) -> None:
    """What a process left that died before its first entry was whole is emptied, and the run begins at line 1."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    store.conversation_file(run).write_bytes(left)
    assert store.read(run).entries == []
    conversation = store.create(run)
    written = conversation.append(note(1))
    conversation.close()
    assert store.read(run).entries == [written]


def test_a_run_that_began_is_not_made_anew(tmp_path: Path) -> None:
    """A run with an entry is refused to whoever would make it, and nothing of it is lost."""
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


def test_a_run_that_somebody_is_making_is_held(tmp_path: Path) -> None:
    """Between its making and its first entry a run belongs to its maker already."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    conversation = store.create(run)
    with pytest.raises(RunHeld):
        store.create(run)
    written = conversation.append(note(1))
    conversation.close()
    assert store.read(run).entries == [written]


def test_a_file_that_was_taken_away_while_its_lock_was_waited_for_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who gets the lock of a file that has no name any more makes the run anew under its name."""
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


def test_of_many_who_ask_for_a_key_at_once_all_get_the_same_run(tmp_path: Path) -> None:
    """However many ask for a new key at once, there is one run for it."""
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


def test_a_damaged_key_is_named(tmp_path: Path) -> None:
    """With any one byte of it changed, cut or added the file of a key is refused by its path: no other run is begun in its place."""
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
    """A first line that is there, and is another one now, is refused: the run may have begun."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    store.conversation_file(run).write_bytes(FIRST.replace(b"x", b"y", 1))
    with pytest.raises(LogError, match=":1: this line of the log is damaged"):
        store.create(run)


def test_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    """What cannot be read is told as that, with its file."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    store.make()
    store.conversation_file(run).mkdir()
    with pytest.raises(LogError, match="the log could not be read: Is a directory") as caught:
        store.read(run)
    assert (caught.value.code, str(store.conversation_file(run)) in caught.value.message) == ("log-unreadable", True)


def test_a_key_that_is_pruned_while_it_is_read_has_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks while `runops prune` takes the key away gets a run that stands on the disk."""
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
    """A value fails, and with it the line behind it, just while the next line is about to be written: that is refused, and the log is whole."""
    store, fails = file_store.Files(tmp_path), threading.Event()
    conversation = store.create(log_store.new_id())
    conversation.append(note(1))

    def write(_file: Path, _data: bytes) -> None:
        fails.wait()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "write", write)
    conversation.put_blob(b"large", "orders")
    conversation.append(note(2))
    turn, main = conversation._turn, threading.get_ident()

    class Late:
        """Lets the value fail before the next line has its turn."""

        def __enter__(self) -> None:
            if threading.get_ident() == main:
                fails.set()
                while conversation._waiting:
                    time.sleep(0.001)
            turn.acquire()

        def __exit__(self, *_error: object) -> None:
            turn.release()

    monkeypatch.setattr(conversation, "_turn", Late())
    with pytest.raises(LogError, match="could not be written"):
        conversation.append(note(3))
    conversation.close()
    assert [each.seq for each in store.read(conversation.id).entries] == [1]


def test_damage_to_a_value_is_not_handed_on(tmp_path: Path) -> None:
    """A run that keeps the same value as one whose file was damaged since writes it anew: both can be read."""
    store = file_store.Files(tmp_path)
    first, second = (store.create(log_store.new_id()) for _each in range(2))
    blob = first.put_blob(b"a value", "x")
    first.close()
    store.blob_file(blob.sha256).write_bytes(b"a Value")
    second.put_blob(b"a value", "y")
    second.close()
    assert store.blob(blob.sha256) == b"a value"


def test_every_name_is_on_the_disk_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder or file that the store made has its name brought to the disk: what a power cut leaves has all of them."""
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


def test_looking_for_what_is_new_costs_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log of many thousand lines who has seen all but the last few reads these, and so few others that it makes no difference how long the log is."""
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
    """A file of which is counted what is read."""

    def __init__(self, file: Any, read: list[int]) -> None:
        self._file, self._read = file, read

    def __getattr__(self, name: str) -> Any:
        """Everything else is the file's."""
        return getattr(self._file, name)

    def read(self) -> bytes:
        """The rest."""
        return self._counted(self._file.read())

    def readline(self) -> bytes:
        """A line."""
        return self._counted(self._file.readline())

    def _counted(self, data: bytes) -> bytes:
        self._read.append(len(data))
        return data
