"""Where conversations are kept. The file store is below; ``Store`` and ``Conversation`` are what the engine knows."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import platform
import re
import secrets
import time
import zlib
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from nodes.errors import LogError, UsageError
from runtime import damage, durable, holders, locks, log, regular

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ID = re.compile(rf"^[{CROCKFORD}]{{26}}\Z")


def new_id() -> str:
    """A new conversation id: a ULID, so ids sort by time."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def key_text(conversation: str) -> bytes:
    """What the file of a key holds: the id, and a checksum of it, for with one character changed it would name another run."""
    return b"%b %08x\n" % (conversation.encode(), zlib.crc32(conversation.encode()))


def run_of_key(data: bytes) -> str | None:
    """The id in the file of a key; None where it is damaged."""
    known = data[:26].decode(errors="replace")
    return known if ID.match(known) and data == key_text(known) else None


class Conversation(Protocol):
    """An open log that this process owns, until it gives it up or, in a store that several machines share, another owner claims it.

    Once there is a later claim, ``append``, ``barrier``, ``put_blob`` and ``renew`` raise Replaced and write nothing: whoever was replaced
    must act no more.
    """

    id: str
    epoch: int
    """The number of this claim: 1 for who made the conversation, and higher with each later claim."""
    lease: float | None
    """Seconds after which another owner may claim the conversation, unless it is renewed; None where it is held until it is closed, or its process ends."""
    taken_from: holders.Holder | None
    """The living owner from which it was taken over, if it was."""

    def append(self, entry: log.AnyEntry) -> log.AnyEntry:
        """Write the entry; returns it with its ``seq``, ``at`` and, for a call, its id. It survives the process when this returns.

        Raises LogError ``log-write-failed``, from then on always; also after ``close``.
        """
        ...

    def barrier(self) -> None:
        """Everything appended is on the disk when this returns. Raises like append."""
        ...

    def put_blob(self, data: bytes, path: str) -> log.Blob:
        """Keep a large value under its hash; it is on the disk when this returns."""
        ...

    def renew(self) -> None:
        """Hold the conversation for another ``lease`` from this moment on. Where there is no lease, nothing is to be done."""
        ...

    def close(self) -> None:
        """Give the log up; another process may claim it. Who was replaced gives nothing up by it."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """A log as a reader finds it."""

    id: str
    entries: list[log.AnyEntry]
    torn: int
    """Bytes of a torn last line."""
    held: bool
    """Whether a living process owns the log."""


class Store(Protocol):
    """Keeps conversations and blobs."""

    @property
    def place(self) -> str:
        """What messages call it, such as the folder in which it keeps them."""
        ...

    def has(self, conversation: str) -> bool:
        """Whether there is a log of that id, whatever is in it."""
        ...

    def held(self, conversation: str) -> bool:
        """Whether a living owner has the conversation. Raises UsageError ``unknown-run``."""
        ...

    def create(self, conversation: str) -> Conversation:
        """A new, empty conversation, owned by this process. One whose maker died before its first entry was whole is made anew.

        Raises LogError ``run-exists`` where it holds an entry, ``log-damaged``, RunHeld where a living process holds it.
        """
        ...

    def claim(self, conversation: str, *, take_over: bool = False) -> tuple[Conversation, list[log.AnyEntry]]:
        """Own an existing conversation, and its entries. A torn last line is cut and noted.

        ``take_over``: also where a living owner holds it. That one is ended first, or can write nothing more from this moment on.
        Raises RunHeld, LogError ``log-damaged`` (file and line), UsageError ``unknown-run``.
        """
        ...

    def read(self, conversation: str, after: int = 0) -> Reading:
        """The entries behind number ``after`` as they stand now, also of a living run; writes nothing. Raises like claim, but never RunHeld.

        Costs what is new where a store can have that without the rest.
        """
        ...

    def first(self, conversation: str) -> log.AnyEntry | None:
        """The first entry, also of a living run; None where it is not whole, or anything but ``read`` tells what is there.

        A list of conversations asks for this and ``last`` of each; they cost less than ``read`` where a store can have them without the rest.
        Raises UsageError ``unknown-run``.
        """
        return next(iter(self.read(conversation).entries), None)

    def last(self, conversation: str) -> log.AnyEntry | None:
        """The same of the last entry; also None where something follows it that is no entry, or anything before it is damaged."""
        reading = self.read(conversation)
        return reading.entries[-1] if reading.entries and not reading.torn else None

    def ids(self) -> list[str]:
        """Every conversation, oldest first."""
        ...

    def keyed(self, key: str) -> str:
        """The id of the conversation that belongs to ``key``: the same for whoever asks, chosen when first asked, and on the disk when this returns.

        Whether that conversation was ever made is another question.
        """
        ...

    def blob(self, sha256: str) -> bytes:
        """A blob's bytes. Raises LogError ``blob-missing`` where they are not there or not those of the hash."""
        ...

    def private(self, conversation: str) -> Path:
        """The conversation's private folder (0700), made where it is missing."""
        ...

    def private_folders(self) -> list[Path]:
        """The private folders that there are, each named after its conversation."""
        ...

    def files(self, conversation: str) -> Path:
        """The folder for the files of the conversation's run; whoever keeps the first one makes it."""
        ...

    def stands_in(self, conversation: str, blobs: Iterable[str]) -> list[Path]:
        """The files that the conversation and the blobs of these hashes stand in; empty where they stand in none."""
        ...


class FileStore(Store):
    """Conversations as files in ``.runops/``."""

    def __init__(self, home: Path) -> None:
        """``home`` is made with the first conversation, for its owner only, and ignored by git; who only reads makes nothing."""
        self.home = home
        self._made = False
        self._known: tuple[str, bytes, list[log.AnyEntry]] = ("", b"", [])
        """The log that was read last: its id, its whole lines, its entries. Who reads a run and then claims it parses it once."""

    def make(self) -> None:
        """Make the folders where they are missing; their names are on the disk when this returns. Raises LogError ``log-write-failed``."""
        if self._made:
            return
        with _disk(self.home):
            for folder in (self.home, *(self.home / name for name in ("conversations", "blobs", "private"))):
                durable.folder(folder)
            ignore = self.home / ".gitignore"
            if not ignore.exists():
                durable.write_once(ignore, b"*\n")
        self._made = True

    @property
    @override
    def place(self) -> str:
        return str(self.home)

    @override
    def create(self, conversation: str) -> Conversation:
        self.make()
        path = self._file(conversation)
        with _disk(path):
            handle = locks.hold(path, make=True)
            if handle is None:
                raise holders.refused(conversation, lambda: _whole_entries(path))
            try:
                if damage.parse(path, regular.read(path))[0]:
                    raise _exists(conversation, path)
                # Whoever made it died before its first line was whole: nothing was done in it.
                os.ftruncate(handle, 0)
                durable.sync_folder(path.parent)
            except BaseException:
                os.close(handle)
                raise
        return _OpenFile(self, conversation, handle)

    @override
    def claim(self, conversation: str, *, take_over: bool = False) -> tuple[Conversation, list[log.AnyEntry]]:
        path = self._existing(conversation)
        self.make()
        before: holders.Holder | None = None
        with _disk(path), self._there(conversation):
            if take_over:
                handle, before = holders.take_over(path, conversation, lambda: _whole_entries(path))
            else:
                handle = locks.hold(path)
            if handle is None:
                raise holders.refused(conversation, lambda: _whole_entries(path))
        try:
            with _reads(path):
                entries, torn = self._parsed(conversation, path, regular.read(path))
            self._known = ("", b"", [])
            owned = _OpenFile(self, conversation, handle, entries, before)
            if torn:
                with _disk(path):
                    os.ftruncate(handle, os.fstat(handle).st_size - torn)
                    # Else a power cut could leave what is written next upon a piece of what was cut.
                    _sync(handle)
                thread = entries[0].thread if entries else log.RUN_THREAD
                entries.append(owned.append(log.Note(thread=thread, name="tail-cut", data={"bytes": torn})))
        except BaseException:
            os.close(handle)
            raise
        return owned, entries

    @override
    def read(self, conversation: str, after: int = 0) -> Reading:
        path = self._existing(conversation)
        if after:
            with _reads(path), self._there(conversation), regular.opened(path) as file:
                offset = damage.offset_behind(file, after)
                data = file.read()
            entries, torn = damage.parse(path, data, after=after, offset=offset)
            return Reading(conversation, entries, torn, self.held(conversation))
        with _reads(path), self._there(conversation):
            data = regular.read(path)
        entries, torn = self._parsed(conversation, path, data)
        self._known = (conversation, data[: len(data) - torn], entries)
        return Reading(conversation, [*entries], torn, self.held(conversation))

    def _parsed(self, conversation: str, path: Path, data: bytes) -> tuple[list[log.AnyEntry], int]:
        """What stands in a log, of which nothing is parsed again that stood in it when it was read last."""
        known, lines, entries = self._known
        if known != conversation or not data.startswith(lines):
            return damage.parse(path, data)
        return damage.parse(path, data, entries, len(lines))

    @override
    def first(self, conversation: str) -> log.AnyEntry | None:
        path = self._existing(conversation)
        with self._there(conversation), _told_by_reading(), regular.opened(path) as lines:
            return log.decode(lines.readline())
        return None

    @override
    def last(self, conversation: str) -> log.AnyEntry | None:
        path = self._existing(conversation)
        with self._there(conversation), _told_by_reading(), regular.opened(path) as lines:
            return damage.last_entry(lines)
        return None

    @override
    def ids(self) -> list[str]:
        try:
            with os.scandir(self.home / "conversations") as files:
                names = [each.name for each in files]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []
        return sorted(name[:-6] for name in names if name.endswith(".jsonl") and ID.match(name[:-6]))

    @override
    def blob(self, sha256: str) -> bytes:
        path = self.blob_file(sha256)
        found = map(_bytes_of, (path, self.blob_aside(sha256), path))
        try:
            data = next((each for each in found if each is not None), None)
        except OSError as error:
            raise LogError(
                "blob-missing",
                f"a value of the run cannot be read: {error.strerror or error} ({path})",
                mend="make the file readable, or put it back",
            ) from None
        if data is None:
            raise LogError("blob-missing", f"a value of the run is missing: {path}", mend="put the file back")
        if hashlib.sha256(data).hexdigest() != sha256:
            raise LogError(
                "blob-missing", f"a value of the run was changed: {path}", mend="put the file back as it was"
            )
        return data

    def blob_file(self, sha256: str) -> Path:
        """Where the blob of this hash stands."""
        return self.home / "blobs" / sha256[:2] / sha256

    def blob_aside(self, sha256: str) -> Path:
        """Where the blob stands while ``runops prune`` finds out whether somebody wants it after all."""
        return self.home / "blobs" / sha256[:2] / f"{sha256}.aside"

    @override
    def has(self, conversation: str) -> bool:
        return ID.match(conversation) is not None and self._file(conversation).exists()

    @override
    def held(self, conversation: str) -> bool:
        path = self._existing(conversation)
        with _reads(path), self._there(conversation):
            return locks.is_held(path)

    def conversation_file(self, conversation: str) -> Path:
        """Where the conversation's log stands."""
        return self._file(conversation)

    @override
    def keyed(self, key: str) -> str:
        self.make()
        path = self.home / "keys" / hashlib.sha256(key.encode()).hexdigest()
        data: bytes | None = None
        while data is None:  # `runops prune` may take it away between the two
            with _disk(path):
                if not path.exists():
                    durable.folder(path.parent)
                    durable.write_once(path, key_text(new_id()))
                # Whoever wrote it may have died before its name was on the disk.
                durable.sync_folder(path.parent)
            with _reads(path, "the file of the key"):
                data = _bytes_of(path)
        if (known := run_of_key(data)) is None:
            raise LogError(
                "log-damaged",
                f"{path}: this file should name the run of the key {key!r}, and names none",
                mend="put the file back from a copy, or use another key",
                evidence={"file": str(path)},
            )
        return known

    @override
    def private(self, conversation: str) -> Path:
        self.make()
        folder = self.home / "private" / conversation
        with _disk(folder):
            durable.folder(folder)
        return folder

    @override
    def private_folders(self) -> list[Path]:
        return named_after_conversations(self.home / "private")

    @override
    def files(self, conversation: str) -> Path:
        return self.home / "files" / conversation

    @override
    def stands_in(self, conversation: str, blobs: Iterable[str]) -> list[Path]:
        return [self._file(conversation), *map(self.blob_file, blobs)]

    def _file(self, conversation: str) -> Path:
        return self.home / "conversations" / f"{conversation}.jsonl"

    def _existing(self, conversation: str) -> Path:
        path = self._file(conversation)
        with _reads(path):
            known = self.has(conversation)
        if not known:
            raise unknown(self, conversation)
        return path

    @contextlib.contextmanager
    def _there(self, conversation: str) -> Generator[None]:
        """Whoever looked a moment ago found the log; ``runops prune`` may have taken it away meanwhile."""
        try:
            yield
        except FileNotFoundError:
            raise unknown(self, conversation) from None


class _OpenFile(Conversation):
    """A log file with its lock."""

    lease = None
    # The kernel's lock is the lease: who has it is the owner, so nobody needs to be told that there is another one.

    def __init__(
        self,
        store: FileStore,
        conversation: str,
        handle: int,
        entries: Sequence[log.AnyEntry] = (),
        taken_from: holders.Holder | None = None,
    ) -> None:
        self.id = conversation
        before = holders.last(entries)
        self.epoch = before.epoch + 1 if before is not None else 1
        self.taken_from = taken_from
        self._store = store
        self._path = store.conversation_file(conversation)
        self._handle = handle
        self._seq = len(entries)
        self._failed: OSError | None = None
        self._unsynced = False
        self._kept: set[str] = set()
        """Hashes of the blobs whose names are known to be on the disk."""

    @override
    def append(self, entry: log.AnyEntry) -> log.AnyEntry:
        written = log.numbered(entry, self._seq + 1)
        line = log.encode(written)
        self._write(line)
        self._seq += 1
        self._unsynced = True
        return written

    def _write(self, line: bytes) -> None:
        with self._trusted():
            done = os.write(self._handle, line)
            while done < len(line):
                done += os.write(self._handle, line[done:])

    @override
    def barrier(self) -> None:
        if self._unsynced:
            with self._trusted():
                _sync(self._handle)
            self._unsynced = False

    @override
    def put_blob(self, data: bytes, path: str) -> log.Blob:
        blob = log.blob_of(data, f"@state/{self.id}/{path}")
        file = self._store.blob_file(blob.sha256)
        with self._trusted():
            known = _touched(file)
            if known and blob.sha256 not in self._kept:
                # Whoever wrote it may have died before its name was on the disk, and what stands there may have been damaged since.
                known = _bytes_of(file) == data
                durable.sync_folder(file.parent)
            if not known:
                durable.folder(file.parent)
                durable.write(file, data)
        self._kept.add(blob.sha256)
        return blob

    @override
    def renew(self) -> None:
        pass

    @override
    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    @contextlib.contextmanager
    def _trusted(self) -> Generator[None]:
        """After one failed write or sync the handle is not trusted again: nobody knows what reached the disk."""
        if self._failed is not None:
            raise durable.not_written("the log", self._path, self._failed)
        try:
            yield
        except OSError as error:
            self._failed = error
            raise durable.not_written("the log", self._path, error) from None


def unknown(kept: Store, conversation: str) -> UsageError:
    """What to say where a store has no such conversation."""
    return UsageError(
        "unknown-run", f"there is no run {conversation} in {kept.place}", mend="`runops runs` lists the runs"
    )


def named_after_conversations(folder: Path) -> list[Path]:
    """What stands in ``folder`` under the id of a conversation, in order; nothing where there is no such folder."""
    return sorted(each for each in folder.iterdir() if ID.match(each.name)) if folder.is_dir() else []


def _bytes_of(file: Path) -> bytes | None:
    try:
        return regular.read(file)
    except FileNotFoundError:
        return None


def _touched(blob: Path) -> bool:
    """Whether the blob is there; it is then as young as one that was written just now.

    ``runops prune`` takes away blobs that no log names and that are older than an hour: it gives them another name, looks at their
    age again, and puts back what was touched meanwhile. So a blob that is found here stays until an entry names it.
    """
    try:
        os.utime(blob)
    except FileNotFoundError:
        return False
    return True


def _sync(handle: int) -> None:
    if platform.system() == "Darwin":
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(handle)


def _exists(conversation: str, path: Path) -> LogError:
    return LogError(
        "run-exists",
        f"there is a run {conversation} already ({path})",
        mend=f"go on with it: `runops resume {conversation}`",
        evidence={"file": str(path)},
    )


def _whole_entries(path: Path) -> list[log.AnyEntry]:
    """What can be read of a log that somebody may be writing; nothing where it is damaged."""
    try:
        return damage.parse(path, regular.read(path))[0]
    except LogError:
        return []


@contextlib.contextmanager
def _told_by_reading() -> Generator[None]:
    """What cannot be read is told by who reads all of it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, log.BadLine, LogError):
        pass


@contextlib.contextmanager
def _disk(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise durable.not_written("the log", path, error) from None


@contextlib.contextmanager
def _reads(path: Path, what: str = "the log") -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise durable.not_read(what, path, error) from None
