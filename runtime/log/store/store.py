"""Where conversations are kept: what the engine, and everything else, knows of it. ``runtime.log.store.file_store`` keeps them in a folder."""

from __future__ import annotations

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
from runtime.system import tasks

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


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file that a conversation keeps."""

    name: str
    place: str
    """Where it is found: a path, or an address."""
    size: int
    sha256: str


class Conversation(Protocol):
    """An open log that this process owns, until it gives it up or, in a store that several machines share, another owner claims it.

    What is written is written in order. It may be lost with the process until a ``barrier`` has returned, and then only from the end: what is left is
    the log as it stood at a moment before. Nothing here blocks the event loop.

    Once there is a later claim, ``barrier`` and ``renew`` raise Replaced, and nothing that was written since reaches the log: whoever was replaced
    must act no more. ``append`` and ``put_blob`` may raise it as well.
    """

    id: str
    epoch: int
    """The number of this claim: 1 for who made the conversation, and higher with each later claim."""
    lease: float | None
    """Seconds after which another owner may claim the conversation, unless it is renewed; None where it is held until it is closed, or its process ends."""
    taken_from: owners.Holder | None
    """The living owner from which it was taken over, if it was."""

    def append(self, entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
        """Write the entry behind all that was written before; returns it with its ``seq``, ``at`` and, for a call, its id. Returns at once.

        Raises LogError ``log-write-failed`` where anything written before could not be, from then on always; also after ``close``.
        """
        ...

    def put_blob(self, data: bytes, path: str) -> log_entries.Blob:
        """Keep a large value under its hash, before any entry that is written after it. Returns at once; ``Store.blob`` has it from now on. Raises like append."""
        ...

    async def put_file(self, name: str, data: bytes | Path, *, private: bool = False) -> File:
        """Keep bytes, or what a file of this machine holds, under a name, in the place of what had it before; on the disk when this returns.

        What is ``private`` is nobody's to read but who goes on with the conversation: it is never shown, sent or looked through.
        Raises OSError where it cannot be kept, and like barrier.
        """
        ...

    async def drop_file(self, name: str, *, private: bool = False) -> None:
        """Take a file away, if it is there. Raises OSError where that cannot be done, and like barrier."""
        ...

    async def barrier(self) -> None:
        """Everything written is on the disk when this returns. Raises like append.

        A task that is cancelled meanwhile is cancelled at what it awaits next: whoever made sure that an announcement is on the disk goes on knowing it.
        """
        ...

    async def renew(self) -> None:
        """Hold the conversation for another ``lease`` from this moment on. Where there is no lease, nothing is to be done."""
        ...

    async def aclose(self) -> None:
        """Give the log up, with everything in it that was written; another process may claim it. Who was replaced gives nothing up by it."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """A log as a reader finds it."""

    id: str
    entries: list[log_entries.AnyEntry]
    torn: int
    """Bytes of a torn last line."""
    held: bool
    """Whether a living process owns the log."""


State = Literal["running", "passed", "failed", "paused", "interrupted", "out-of-budget", "died", "damaged"]
"""What a run is doing, or how it ended; ``died``: without a word. A session, which has no end, is ``running`` or ``died``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """What the ends of a log tell of a conversation."""

    id: str
    state: State
    first: log_entries.AnyEntry | None
    last: log_entries.AnyEntry | None
    error: LogError | None = None
    """What is wrong with a damaged one."""


class Kept(Protocol):
    """What is kept, for code that runs in no event loop, or in a thread beside one: each of these takes as long as the disk, or the network, does."""

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

    def read(self, conversation: str, after: int = 0) -> Reading:
        """The entries behind number ``after`` as they stand now, also of a living run; writes nothing. Raises LogError ``log-damaged`` (file and line), UsageError ``unknown-run``.

        Costs what is new where a store can have that without the rest.
        """
        ...

    def first(self, conversation: str) -> log_entries.AnyEntry | None:
        """The first entry, also of a living run; None where it is not whole, or anything but ``read`` tells what is there.

        This and ``last`` cost less than ``read`` where a store can have them without the rest. Raises UsageError ``unknown-run``.
        """
        return next(iter(self.read(conversation).entries), None)

    def last(self, conversation: str) -> log_entries.AnyEntry | None:
        """The same of the last entry; also None where something follows it that is no entry, or anything before it is damaged."""
        reading = self.read(conversation)
        return reading.entries[-1] if reading.entries and not reading.torn else None

    def summaries(
        self, before: str | None = None, limit: int | None = None, state: State | None = None
    ) -> list[Summary]:
        """The conversations that are older than ``before``, in that ``state``, newest first and ``limit`` at the most."""
        found: list[Summary] = []
        for each in reversed(self.ids()):
            if limit is not None and len(found) >= limit:
                break
            if before is not None and each >= before:
                continue
            try:
                told = self._summary(each)
            except UsageError:
                # It was taken away since its name was read.
                continue
            if state in (None, told.state):
                found.append(told)
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
        return Summary(conversation, "running" if self.held(conversation) else "died", first, last)

    def ids(self) -> list[str]:
        """Every conversation, oldest first."""
        ...

    def blob(self, sha256: str) -> bytes:
        """A blob's bytes. Raises LogError ``blob-missing`` where they are not there or not those of the hash."""
        ...

    def get_file(self, conversation: str, name: str, *, private: bool = False) -> bytes:
        """What a file holds that ``Conversation.put_file`` has kept. Raises OSError, FileNotFoundError where there is none."""
        ...

    def file_names(self, conversation: str, *, private: bool = False) -> list[str]:
        """The names of the files that a conversation keeps, in order."""
        ...

    def private(self, conversation: str) -> Path:
        """The folder (0700) of what a conversation has on this machine alone, such as the profile of its browser; made where it is missing."""
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


class Store(Protocol):
    """Keeps conversations and blobs. Nothing here blocks the event loop."""

    @property
    def kept(self) -> Kept:
        """What it keeps, for readers that may block."""
        ...

    async def create(self, conversation: str) -> Conversation:
        """A new, empty conversation, owned by this process. One whose maker died before its first entry was whole is made anew.

        Raises LogError ``run-exists`` where it holds an entry, ``log-damaged``, RunHeld where a living process holds it.
        """
        ...

    async def claim(
        self, conversation: str, *, take_over: bool = False
    ) -> tuple[Conversation, list[log_entries.AnyEntry]]:
        """Own an existing conversation, and its entries. A torn last line is cut and noted.

        ``take_over``: also where a living owner holds it. That one is ended first, or can write nothing more from this moment on.
        Raises RunHeld, LogError ``log-damaged`` (file and line), UsageError ``unknown-run``.
        """
        ...

    async def read(self, conversation: str, after: int = 0) -> Reading:
        """The entries behind number ``after`` as they stand now, also of a living run; writes nothing. Raises like claim, but never RunHeld.

        Costs what is new where a store can have that without the rest.
        """
        ...

    async def summaries(
        self, before: str | None = None, limit: int | None = None, state: State | None = None
    ) -> list[Summary]:
        """The conversations that are older than ``before``, in that ``state``, newest first and ``limit`` at the most: a page of a list."""
        ...

    async def keyed(self, key: str) -> str:
        """The id of the conversation that belongs to ``key``: the same for whoever asks, chosen when first asked, and on the disk when this returns.

        Whether that conversation was ever made is another question.
        """
        ...


class Unwritten(Conversation):
    """A conversation that belongs to somebody else, or to nobody: for whoever only reads it."""

    lease = None
    taken_from = None

    def __init__(self, conversation: str, epoch: int = 0) -> None:
        self.id, self.epoch = conversation, epoch

    @override
    def append(self, entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
        raise AssertionError(f"whoever only reads {self.id} writes a {entry.kind}")

    @override
    def put_blob(self, data: bytes, path: str) -> log_entries.Blob:
        raise AssertionError(f"whoever only reads {self.id} keeps {path}")

    @override
    async def barrier(self) -> None:
        pass

    @override
    async def put_file(self, name: str, data: bytes | Path, *, private: bool = False) -> File:
        raise AssertionError(f"whoever only reads {self.id} keeps {name}")

    @override
    async def drop_file(self, name: str, *, private: bool = False) -> None:
        raise AssertionError(f"whoever only reads {self.id} drops {name}")

    @override
    async def renew(self) -> None:
        pass

    @override
    async def aclose(self) -> None:
        pass


def unknown(kept: Kept, conversation: str) -> UsageError:
    """What to say where a store has no such conversation."""
    return UsageError(
        "unknown-run", f"there is no run {conversation} in {kept.place}", fix="`runops runs` lists the runs"
    )


def named_after_conversations(folder: Path) -> list[Path]:
    """What stands in ``folder`` under the id of a conversation, in order; nothing where there is no such folder."""
    return sorted(each for each in folder.iterdir() if ID.match(each.name)) if folder.is_dir() else []


@contextlib.asynccontextmanager
async def release_on_error(conversation: Conversation) -> AsyncGenerator[None]:
    """Until a run or a session is there to do it, the conversation is closed where something goes wrong: another process, or this one, may have it then."""
    try:
        yield
    except BaseException:
        await tasks.to_the_end(conversation.aclose())
        raise
