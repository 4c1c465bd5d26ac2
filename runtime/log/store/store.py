"""Interface of the store of conversations. ``runtime.log.store.file_store`` keeps them in a folder."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import secrets
import time
import zlib
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Literal, Protocol

from typing_extensions import override

from nodes.errors import LogError, UsageError
from runtime.log import entries as log_entries
from runtime.log.store import owners
from runtime.system import files, regular_files, tasks

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ID = re.compile(rf"^[{CROCKFORD}]{{26}}\Z")


def new_id() -> str:
    """Return a new conversation id: a ULID, so ids sort by time."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def key_text(conversation: str) -> bytes:
    """Return the content of a key's file: the id and its checksum, because one changed character would name another run."""
    return b"%b %08x\n" % (conversation.encode(), zlib.crc32(conversation.encode()))


def run_of_key(data: bytes) -> str | None:
    known = data[:26].decode(errors="replace")
    return known if ID.match(known) and data == key_text(known) else None


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file that a conversation keeps."""

    name: str
    place: str  # path or address of the file
    size: int
    sha256: str


class Conversation(Protocol):
    """An open log that this process owns, until it closes it or, in a store shared by several machines, another owner claims it.

    Entries are written in order. They may be lost with the process until a ``barrier`` has returned, and then only from the end: the rest is
    the log as it was at an earlier moment. Nothing here blocks the event loop.

    After a later claim, ``barrier`` and ``renew`` raise Replaced, and nothing written since reaches the log: the replaced owner must act no
    more. ``append`` and ``put_blob`` may raise it as well.
    """

    id: str
    epoch: int  # number of this claim: 1 for the creator of the conversation, higher with each later claim
    lease: float | None
    """Seconds after which another owner may claim the conversation unless it is renewed; None if it is owned until close or process end."""
    taken_from: owners.Holder | None  # the running owner that lost it by a take-over, if there was one

    def append(self, entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
        """Append the entry and return it with its ``seq``, ``at`` and, for a call, its id. Returns at once.

        Raises LogError ``log-write-failed`` if an earlier write failed, from then on always; also after ``close``.
        """
        ...

    def put_blob(self, data: bytes, path: str) -> log_entries.Blob:
        """Keep a large value under its hash, before any later entry. Returns at once; ``Store.blob`` has it from then on. Raises as append."""
        ...

    async def put_file(self, name: str, data: bytes | Path, *, private: bool = False) -> File:
        """Keep bytes, or a copy of a file of this machine, under a name, replacing the file that had it. It is synced when this returns.

        A ``private`` file may be read only by a process that continues the conversation: it is never shown, sent or searched.
        Raises OSError if it cannot be kept, and like barrier.
        """
        ...

    async def drop_file(self, name: str, *, private: bool = False) -> None:
        """Delete a file, if it is there. Raises OSError if that fails, and like barrier."""

    async def barrier(self) -> None:
        """Wait until everything written is synced. Raises like append.

        A task that is cancelled meanwhile is cancelled only at its next await: so it still knows that its announcement is synced.
        """

    async def renew(self) -> None:
        """Own the conversation for another ``lease`` from now on. Does nothing if there is no lease."""

    async def aclose(self) -> None:
        """Close the log with everything written; another process may then claim it. A replaced owner releases nothing by this."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """A log as read at one moment."""

    id: str
    entries: list[log_entries.AnyEntry]
    torn: int  # number of bytes of a torn last line
    owned: bool  # true if a running process owns the log


State = Literal["running", "passed", "failed", "paused", "interrupted", "out-of-budget", "died", "damaged"]
"""State of a run, or how it ended; ``died``: without a recorded end. A session has no end: it is ``running`` or ``died``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """Summary of a conversation, from the first and last entry of its log."""

    id: str
    state: State
    first: log_entries.AnyEntry | None
    last: log_entries.AnyEntry | None
    error: LogError | None = None  # the fault of a damaged log


class StoreReader(Protocol):
    """Contents of a store, for blocking callers outside the event loop. Each method takes as long as the disk or the network does.

    Files of runs and data of this machine alone are in the folder ``home``, unless a store overrides the methods about them.
    """

    home: Path

    @property
    def place(self) -> str:
        """Name of the store in messages."""
        return str(self.home)

    def has(self, conversation: str) -> bool:
        """True if there is a log of that id, whatever is in it."""
        ...

    def owned(self, conversation: str) -> bool:
        """True if a running owner has the conversation. Raises UsageError ``unknown-run``."""
        ...

    def read(self, conversation: str, after: int = 0) -> Reading:
        """Return the entries after number ``after``, also of an active run; writes nothing. Reads only what is new if the store can do that.

        Raises LogError ``log-damaged`` (file and line), UsageError ``unknown-run``.
        """
        ...

    def first(self, conversation: str) -> log_entries.AnyEntry | None:
        """Return the first entry, also of an active run; None if it is not whole, or if only ``read`` can show what is there.

        This and ``last`` cost less than ``read`` if a store can find them without the rest. Raises UsageError ``unknown-run``.
        """
        return next(iter(self.read(conversation).entries), None)

    def last(self, conversation: str) -> log_entries.AnyEntry | None:
        """Return the last entry, like ``first``; also None if something after it is no entry, or anything before it is damaged."""
        reading = self.read(conversation)
        return reading.entries[-1] if reading.entries and not reading.torn else None

    def summaries(
        self, before: str | None = None, limit: int | None = None, state: State | None = None
    ) -> list[Summary]:
        """Return the conversations older than ``before``, in that ``state``, newest first, at most ``limit``."""
        found: list[Summary] = []
        for each in reversed(self.ids()):
            if limit is not None and len(found) >= limit:
                break
            if before is not None and each >= before:
                continue
            # It may have been deleted after its name was read.
            with contextlib.suppress(UsageError):
                summary = self._summary(each)
                if state in (None, summary.state):
                    found.append(summary)
        return found

    def _summary(self, conversation: str) -> Summary:
        try:
            first, last = self.first(conversation), self.last(conversation)
            if first is None or last is None:
                entries = self.read(conversation).entries
                first, last = next(iter(entries), None), next(reversed(entries), None)
        except LogError as error:
            return Summary(conversation, "damaged", None, None, error)
        if isinstance(last, log_entries.Note) and last.name == "ended":
            return Summary(conversation, last.data["status"], first, last)
        return Summary(conversation, "running" if self.owned(conversation) else "died", first, last)

    def ids(self) -> list[str]:
        """Return every conversation, oldest first."""
        ...

    def blob(self, sha256: str) -> bytes:
        """Return a blob's bytes. Raises LogError ``blob-missing`` if they are missing or do not match the hash."""
        ...

    def file(self, conversation: str, name: str, *, private: bool) -> Path:
        return self._folder(conversation, private=private) / name

    def _folder(self, conversation: str, *, private: bool) -> Path:
        return self.home / ("private" if private else "files") / conversation

    def get_file(self, conversation: str, name: str, *, private: bool = False) -> bytes:
        """Return the content of a file that ``Conversation.put_file`` kept. Raises OSError; FileNotFoundError if there is none."""
        return regular_files.read(self.file(conversation, name, private=private))

    def file_names(self, conversation: str, *, private: bool = False) -> list[str]:
        """Return the names of the files that a conversation keeps, in order."""
        folder = self._folder(conversation, private=private)
        return sorted(each.name for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []

    def private(self, conversation: str) -> Path:
        """Return the folder (0700) for a conversation's data on this machine alone, such as its browser profile; created if missing."""
        folder = self._folder(conversation, private=True)
        files.folder(folder)
        return folder

    def private_folders(self) -> list[Path]:
        """Return the existing private folders, each named after its conversation."""
        return named_after_conversations(self.home / "private")

    def files(self, conversation: str) -> Path:
        """Return the folder for the files of the conversation's run. The first caller that keeps one creates it."""
        return self._folder(conversation, private=False)

    def files_with(self, conversation: str, blobs: Iterable[str]) -> list[Path]:
        """Return the files that hold the conversation and the blobs of these hashes; empty if there are none."""
        ...


class Store(Protocol):
    """Keeps conversations and blobs. Nothing here blocks the event loop."""

    @property
    def reader(self) -> StoreReader:
        """Contents, for readers that may block."""
        ...

    async def create(self, conversation: str) -> Conversation:
        """Create an empty conversation, owned by this process. One whose creator died before its first entry was whole is created anew.

        Raises LogError ``run-exists`` if it holds an entry, ``log-damaged``, RunHeld if a running process owns it.
        """
        ...

    async def claim(
        self, conversation: str, *, take_over: bool = False
    ) -> tuple[Conversation, list[log_entries.AnyEntry]]:
        """Own an existing conversation, and return it with its entries. A torn last line is cut and noted.

        ``take_over``: also if a running owner has it. That one is ended first, or can write nothing more from now on.
        Raises RunHeld, LogError ``log-damaged`` (file and line), UsageError ``unknown-run``.
        """
        ...

    async def read(self, conversation: str, after: int = 0) -> Reading:
        """Like ``StoreReader.read``."""
        return await asyncio.to_thread(self.reader.read, conversation, after)

    async def summaries(
        self, before: str | None = None, limit: int | None = None, state: State | None = None
    ) -> list[Summary]:
        """Like ``StoreReader.summaries``: a page of a list."""
        return await asyncio.to_thread(self.reader.summaries, before, limit, state)

    async def keyed(self, key: str) -> str:
        """Return the id of the conversation for ``key``: chosen at the first call, the same for every caller, and synced when this returns.

        That conversation need not exist yet.
        """
        ...


class Unwritten(Conversation):
    """A conversation of another owner, or of none, for code that only reads it."""

    lease = None
    taken_from = None

    def __init__(self, conversation: str, epoch: int = 0) -> None:
        self.id, self.epoch = conversation, epoch

    @override
    def append(self, entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
        raise AssertionError(f"a reader of {self.id} writes a {entry.kind}")

    @override
    def put_blob(self, data: bytes, path: str) -> log_entries.Blob:
        raise AssertionError(f"a reader of {self.id} keeps {path}")

    @override
    async def put_file(self, name: str, data: bytes | Path, *, private: bool = False) -> File:
        raise AssertionError(f"a reader of {self.id} keeps {name}")


def unknown(store: StoreReader, conversation: str) -> UsageError:
    return UsageError(
        "unknown-run", f"there is no run {conversation} in {store.place}", fix="`runops runs` lists the runs"
    )


def named_after_conversations(folder: Path) -> list[Path]:
    """Return the entries of ``folder`` that are named after a conversation, in order; empty if there is no such folder."""
    return sorted(each for each in folder.iterdir() if ID.match(each.name)) if folder.is_dir() else []


@contextlib.asynccontextmanager
async def release_on_error(conversation: Conversation) -> AsyncGenerator[None]:
    """Close the conversation if the block fails, before a run or session owns it. Another process, or this one, may then claim it."""
    try:
        yield
    except BaseException:
        await tasks.to_the_end(conversation.aclose())
        raise
