"""Conversations as files in a folder."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import platform
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

from typing_extensions import override

from nodes.errors import LogError
from runtime.log import entries as log_entries
from runtime.log.store import integrity, owners
from runtime.log.store import store as log_store
from runtime.system import files as system_files
from runtime.system import locks, regular_files, tasks


class FileStore(log_store.Store):
    def __init__(self, home: Path | Files) -> None:
        self.files = home if isinstance(home, Files) else Files(home)

    @property
    @override
    def reader(self) -> Files:
        return self.files

    @override
    async def create(self, conversation: str) -> log_store.Conversation:
        return await tasks.in_thread(self.files.create, conversation)

    @override
    async def claim(
        self, conversation: str, *, take_over: bool = False
    ) -> tuple[log_store.Conversation, list[log_entries.AnyEntry]]:
        return await tasks.in_thread(self.files.claim, conversation, take_over=take_over)

    @override
    async def keyed(self, key: str) -> str:
        return await asyncio.to_thread(self.files.keyed, key)


class Files(log_store.StoreReader):
    """Conversations as files in ``.runops/``, for callers that may block."""

    opens: type[OpenFile]

    def __init__(self, home: Path) -> None:
        """``home`` is created with the first conversation, for its owner only, and ignored by git. Readers create nothing."""
        self.home = home
        self._made = False
        self.coming: dict[str, bytes] = {}
        self._known: tuple[str, bytes, list[log_entries.AnyEntry]] = ("", b"", [])
        """Log that was read last: its id, whole lines, entries. So a caller that reads a run and then claims it parses it once."""

    def make(self) -> None:
        """Create the folders if they are missing; their names are synced when this returns. Raises LogError ``log-write-failed``."""
        if self._made:
            return
        with _disk(self.home):
            for folder in (self.home, *(self.home / name for name in ("conversations", "blobs", "private"))):
                system_files.folder(folder)
            ignore = self.home / ".gitignore"
            if not ignore.exists():
                system_files.write_once(ignore, b"*\n")
        self._made = True

    def create(self, conversation: str) -> OpenFile:
        self.make()
        path = self.conversation_file(conversation)
        with _disk(path), contextlib.ExitStack() as undone:
            if (handle := locks.hold(path, make=True)) is None:
                raise owners.refused(conversation, lambda: _whole_entries(path))
            undone.callback(os.close, handle)
            if integrity.parse(path, regular_files.read(path))[0]:
                raise LogError(
                    "run-exists",
                    f"there is a run {conversation} already ({path})",
                    fix=f"continue with it: `runops resume {conversation}`",
                    evidence={"file": str(path)},
                )
            # Its creator died before its first line was whole: nothing was done in it.
            os.ftruncate(handle, 0)
            system_files.sync_folder(path.parent)
            owned = self.opens(self, conversation, handle)
            undone.pop_all()
        return owned

    def claim(self, conversation: str, *, take_over: bool = False) -> tuple[OpenFile, list[log_entries.AnyEntry]]:
        path = self._existing(conversation)
        self.make()
        before: owners.Holder | None = None
        with _disk(path), self._there(conversation):
            if take_over:
                handle, before = owners.take_over(path, conversation, lambda: _whole_entries(path))
            else:
                handle = locks.hold(path)
            if handle is None:
                raise owners.refused(conversation, lambda: _whole_entries(path))
        with contextlib.ExitStack() as undone:
            undone.callback(os.close, handle)
            with _reads(path):
                entries, torn = self._parsed(conversation, path, regular_files.read(path))
            self._known = ("", b"", [])
            with _disk(path):
                owned = self.opens(self, conversation, handle, entries, before)
            undone.pop_all()
            undone.callback(owned.close)
            if torn:
                with _disk(path):
                    os.ftruncate(handle, os.fstat(handle).st_size - torn)
                    # Otherwise a power cut could leave the next line on top of a remainder of the cut one.
                    _sync(handle)
                thread = entries[0].thread if entries else log_entries.RUN_THREAD
                entries.append(
                    owned.append(log_entries.Note(thread=thread, name="tail-truncated", data={"bytes": torn}))
                )
            undone.pop_all()
        return owned, entries

    @override
    def read(self, conversation: str, after: int = 0) -> log_store.Reading:
        path = self._existing(conversation)
        with _reads(path), self._there(conversation), regular_files.opened(path) as file:
            offset = integrity.offset_after(file, after) if after else 0
            data = file.read()
        if after:
            entries, torn = integrity.parse(path, data, after=after, offset=offset)
        else:
            entries, torn = self._parsed(conversation, path, data)
            self._known = (conversation, data[: len(data) - torn], entries)
        return log_store.Reading(conversation, [*entries], torn, self.owned(conversation))

    def _parsed(self, conversation: str, path: Path, data: bytes) -> tuple[list[log_entries.AnyEntry], int]:
        """Parse a log. Lines that are unchanged since it was read last are not parsed again."""
        known, lines, entries = self._known
        if known != conversation or not data.startswith(lines):
            return integrity.parse(path, data)
        return integrity.parse(path, data, entries, len(lines))

    @override
    def first(self, conversation: str) -> log_entries.AnyEntry | None:
        return self._at_once(conversation, lambda lines: log_entries.decode(lines.readline()))

    @override
    def last(self, conversation: str) -> log_entries.AnyEntry | None:
        return self._at_once(conversation, integrity.last_entry)

    def _at_once(
        self, conversation: str, find: Callable[[BinaryIO], log_entries.AnyEntry | None]
    ) -> log_entries.AnyEntry | None:
        """Return an entry found without reading all of the log; None if that fails: ``read`` reports why."""
        path = self._existing(conversation)
        try:
            with self._there(conversation), regular_files.opened(path) as lines:
                return find(lines)
        except (OSError, log_entries.BadLine, LogError):
            return None

    @override
    def ids(self) -> list[str]:
        try:
            with os.scandir(self.home / "conversations") as files:
                names = [each.name for each in files]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []
        return sorted(name[:-6] for name in names if name.endswith(".jsonl") and log_store.ID.match(name[:-6]))

    @override
    def blob(self, sha256: str) -> bytes:
        if (coming := self.coming.get(sha256)) is not None:
            return coming
        path = self.blob_file(sha256)
        try:
            data = _bytes_of(path)
        except OSError as error:
            raise LogError(
                "blob-missing",
                f"a value of the run cannot be read: {error.strerror or error} ({path})",
                fix="make the file readable, or put it back",
            ) from None
        if data is None or hashlib.sha256(data).hexdigest() != sha256:
            what = "is missing" if data is None else "was changed"
            raise LogError("blob-missing", f"a value of the run {what}: {path}", fix="put the file back as it was")
        return data

    def blob_file(self, sha256: str) -> Path:
        return self.home / "blobs" / sha256[:2] / sha256

    @property
    def writers(self) -> Path:
        """File whose lock every open log shares. Its exclusive owner may delete blobs: no process is about to name one."""
        return self.home / ".writers"

    @override
    def has(self, conversation: str) -> bool:
        return log_store.ID.match(conversation) is not None and self.conversation_file(conversation).exists()

    @override
    def owned(self, conversation: str) -> bool:
        path = self._existing(conversation)
        with _reads(path), self._there(conversation):
            return locks.is_held(path)

    def keyed(self, key: str) -> str:
        self.make()
        path = self.home / "keys" / hashlib.sha256(key.encode()).hexdigest()
        data: bytes | None = None
        while data is None:  # `runops prune` may take it away between the two
            with _disk(path):
                if not path.exists():
                    system_files.folder(path.parent)
                    system_files.write_once(path, log_store.key_text(log_store.new_id()))
                # Its writer may have died before its name was synced.
                system_files.sync_folder(path.parent)
            with _reads(path, "the file of the key"):
                data = _bytes_of(path)
        if (known := log_store.run_of_key(data)) is None:
            raise LogError(
                "log-damaged",
                f"{path}: this file should name the run of the key {key!r}, and names none",
                fix="put the file back from a copy, or use another key",
                evidence={"file": str(path)},
            )
        return known

    @override
    def private(self, conversation: str) -> Path:
        self.make()
        with _disk(self._folder(conversation, private=True)):
            return super().private(conversation)

    @override
    def files_with(self, conversation: str, blobs: Iterable[str]) -> list[Path]:
        return [self.conversation_file(conversation), *map(self.blob_file, blobs)]

    def conversation_file(self, conversation: str) -> Path:
        return self.home / "conversations" / f"{conversation}.jsonl"

    def _existing(self, conversation: str) -> Path:
        path = self.conversation_file(conversation)
        with _reads(path):
            known = self.has(conversation)
        if not known:
            raise log_store.unknown(self, conversation)
        return path

    @contextlib.contextmanager
    def _there(self, conversation: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError:
            raise log_store.unknown(self, conversation) from None


class OpenFile(log_store.Conversation):
    """A log file with its lock.

    Lines are written at once, so that they outlive the process. A separate thread writes large values, and syncs. A line that follows a
    value waits until that is synced, so that no line names a value that is missing.
    """

    lease = None
    # The kernel's lock is the lease: the process that has it is the owner, and no other can claim the log.

    def __init__(
        self,
        store: Files,
        conversation: str,
        handle: int,
        entries: Sequence[log_entries.AnyEntry] = (),
        taken_from: owners.Holder | None = None,
    ) -> None:
        self.id = conversation
        before = owners.last(entries)
        self.epoch = before.epoch + 1 if before is not None else 1
        self.taken_from = taken_from
        self._files = store
        self._path = store.conversation_file(conversation)
        self._shared = locks.share(store.writers)
        self._handle = handle
        self._seq = len(entries)
        self._failed: OSError | None = None
        self._unsynced = False
        self._kept: set[str] = set()
        self._thread: ThreadPoolExecutor | None = None
        self._turn = threading.Lock()
        self._waiting = 0  # number of items that the thread has yet to write

    @override
    def append(self, entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
        written = log_entries.numbered(entry, self._seq + 1)
        line = log_entries.encode(written)
        with self._turn:
            waits = self._waiting > 0
            # Checked only here: a blob that failed meanwhile has dropped the lines after it, and none may follow them.
            self._refuse_failed()
            if waits:
                self._waiting += 1
        if waits:
            self._submit(partial(self._in_turn, self._write, line))
        else:
            with self._trusted():
                self._write(line)
        self._seq += 1
        self._unsynced = True
        return written

    @override
    def put_blob(self, data: bytes, path: str) -> log_entries.Blob:
        self._refuse_failed()
        blob = log_entries.blob_of(data, f"@state/{self.id}/{path}")
        if blob.sha256 in self._kept and self._files.blob_file(blob.sha256).exists():
            return blob
        self._files.coming[blob.sha256] = data
        with self._turn:
            self._waiting += 1
        self._submit(partial(self._in_turn, self._keep, blob.sha256, data))
        return blob

    @override
    async def barrier(self) -> None:
        self._refuse_failed()
        if self._unsynced or self._waiting:
            await tasks.to_the_end(asyncio.wrap_future(self._submit(self._sync)))

    @override
    async def put_file(self, name: str, data: bytes | Path, *, private: bool = False) -> log_store.File:
        self._refuse_failed()
        path = self._files.file(self.id, name, private=private)
        size, sha256 = await system_files.keep(path, data)
        return log_store.File(path.name, str(path), size, sha256)

    @override
    async def drop_file(self, name: str, *, private: bool = False) -> None:
        self._refuse_failed()
        await asyncio.to_thread(self._files.file(self.id, name, private=private).unlink, missing_ok=True)

    @override
    async def renew(self) -> None:
        pass

    @override
    async def aclose(self) -> None:
        if self._thread is None:
            self.close()
        else:
            await tasks.in_thread(self.close)

    def sync(self) -> None:
        """Like ``barrier``, for callers that may block."""
        self._refuse_failed()
        self._submit(self._sync).result()

    def close(self) -> None:
        """Like ``aclose``, for callers that may block."""
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        if self._handle >= 0:
            os.close(self._handle)
            os.close(self._shared)
            self._handle = -1

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, f"log of {self.id}")
        return self._thread.submit(work)

    def _in_turn(self, work: Callable[..., None], *given: object) -> None:
        """Do submitted work in the thread, unless something before it failed."""
        try:
            if self._failed is None:
                with self._trusted():
                    work(*given)
        except LogError:
            # The next append or barrier raises the error.
            pass
        finally:
            with self._turn:
                self._waiting -= 1

    def _sync(self) -> None:
        self._refuse_failed()
        # Anything written from now on may not be synced by this.
        self._unsynced = False
        with self._trusted():
            _sync(self._handle)

    def _write(self, line: bytes) -> None:
        done = os.write(self._handle, line)
        while done < len(line):
            done += os.write(self._handle, line[done:])

    def _keep(self, sha256: str, data: bytes) -> None:
        file = self._files.blob_file(sha256)
        if _bytes_of(file) == data:
            # Its writer may have died before its name was synced.
            system_files.sync_folder(file.parent)
        else:
            system_files.folder(file.parent)
            system_files.write(file, data)
        self._kept.add(sha256)
        self._files.coming.pop(sha256, None)

    def _refuse_failed(self) -> None:
        """Raise if a write or sync failed before: the handle is not trusted again, because it is unknown what reached the disk."""
        if self._failed is not None:
            raise system_files.not_written("the log", self._path, self._failed)
        if self._handle < 0:
            raise system_files.not_written("the log", self._path, OSError(errno.EBADF, "it was given up"))

    @contextlib.contextmanager
    def _trusted(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            self._failed = error
            raise system_files.not_written("the log", self._path, error) from None


Files.opens = OpenFile


def _bytes_of(file: Path) -> bytes | None:
    try:
        return regular_files.read(file)
    except FileNotFoundError:
        return None


def _sync(handle: int) -> None:
    if platform.system() == "Darwin":
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(handle)


def _whole_entries(path: Path) -> list[log_entries.AnyEntry]:
    """Return the readable entries of a log that may be being written; empty if it is damaged."""
    try:
        return integrity.parse(path, regular_files.read(path))[0]
    except LogError:
        return []


@contextlib.contextmanager
def _disk(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise system_files.not_written("the log", path, error) from None


@contextlib.contextmanager
def _reads(path: Path, what: str = "the log") -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise system_files.not_read(what, path, error) from None
