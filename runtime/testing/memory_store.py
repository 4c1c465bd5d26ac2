"""A store in memory that behaves like one shared by machines: claims expire, active owners are replaced, lines arrive late or never."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

from typing_extensions import override

from nodes.errors import LogError
from runtime.log import entries as log_entries
from runtime.log.store import owners
from runtime.log.store import store as log_store
from runtime.system import files, tasks


@dataclasses.dataclass(slots=True)
class _Conversation:
    """One conversation. Entries are stored as lines, so that what a file could not store is refused here too."""

    lines: list[bytes] = dataclasses.field(default_factory=list[bytes])
    epoch: int = 0  # epoch of the last claim
    owned: bool = False  # true until the last owner gives it up
    until: float = 0.0  # expiry of the last owner's claim
    unsure: set[str] = dataclasses.field(default_factory=set[str])
    """In a hostile store: hashes of blobs that no barrier has covered."""

    def entries(self) -> list[log_entries.AnyEntry]:
        return [log_entries.decode(line) for line in self.lines]


class Memory(log_store.StoreReader):
    def __init__(self, folder: Path, lease: float | None, clock: Callable[[], float]) -> None:
        self.home = folder
        self.lease = lease
        self.conversations: dict[str, _Conversation] = {}
        self.blobs: dict[str, bytes] = {}
        self.keys: dict[str, str] = {}
        self.lock = threading.RLock()  # locked while anything is read or changed
        self._clock = clock

    @property
    @override
    def place(self) -> str:
        return "memory"

    @override
    def has(self, conversation: str) -> bool:
        with self.lock:
            return conversation in self.conversations

    @override
    def owned(self, conversation: str) -> bool:
        with self.lock:
            return self.is_held(self.existing(conversation))

    @override
    def read(self, conversation: str, after: int = 0) -> log_store.Reading:
        with self.lock:
            stored = self.existing(conversation)
            return log_store.Reading(conversation, stored.entries()[after:], 0, self.is_held(stored))

    @override
    def first(self, conversation: str) -> log_entries.AnyEntry | None:
        return next(iter(self.read(conversation).entries), None)

    @override
    def last(self, conversation: str) -> log_entries.AnyEntry | None:
        return next(reversed(self.read(conversation).entries), None)

    @override
    def ids(self) -> list[str]:
        with self.lock:
            return sorted(self.conversations)

    @override
    def blob(self, sha256: str) -> bytes:
        with self.lock:
            data = self.blobs.get(sha256)
        if data is None:
            raise LogError("blob-missing", f"a value of the run is missing: {sha256}", fix="put it back")
        return data

    @override
    def files_with(self, conversation: str, blobs: Iterable[str]) -> list[Path]:
        return []

    def expiry(self) -> float:
        """Return the expiry of a claim that is made or renewed now."""
        return self._clock() + (self.lease or 0.0)

    def existing(self, conversation: str) -> _Conversation:
        stored = self.conversations.get(conversation)
        if stored is None:
            raise log_store.unknown(self, conversation)
        return stored

    def is_held(self, stored: _Conversation) -> bool:
        return stored.owned and (self.lease is None or self._clock() < stored.until)


class MemoryStore(log_store.Store):
    """Conversations and blobs in the memory of this process; they end with it. Private files and files of runs are in a folder.

    Each claim has a higher epoch than the one before. From then on every write of the earlier owner raises Replaced. After its lease has
    expired, an owner may still write until another one claims the conversation. A ``hostile`` store does the worst that is allowed. What no
    ``barrier`` covered is invisible, and lost with its owner, large values too. Everything that is awaited takes ``delay`` seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        lease: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        hostile: bool = False,
        delay: float = 0.0,
    ) -> None:
        """``lease`` is in seconds of ``clock``; None: a claim lasts until its owner closes it or another one takes over."""
        self.memory = Memory(folder, lease, clock)
        self.hostile = hostile
        self._delay = delay

    @property
    @override
    def reader(self) -> Memory:
        return self.memory

    @override
    async def create(self, conversation: str) -> log_store.Conversation:
        await self.late()
        with self.memory.lock:
            stored = self.memory.conversations.setdefault(conversation, _Conversation())
            self._refuse_held(conversation, stored)
            if stored.lines:
                raise LogError(
                    "run-exists",
                    f"there is a run {conversation} already",
                    fix=f"continue with it: `runops resume {conversation}`",
                )
            return self._owned(conversation, stored, None)

    @override
    async def claim(
        self, conversation: str, *, take_over: bool = False
    ) -> tuple[log_store.Conversation, list[log_entries.AnyEntry]]:
        await self.late()
        with self.memory.lock:
            stored = self.memory.existing(conversation)
            if not take_over:
                self._refuse_held(conversation, stored)
            entries = stored.entries()
            before = owners.last(entries) if self.memory.is_held(stored) else None
            return self._owned(conversation, stored, before), entries

    def _refuse_held(self, conversation: str, stored: _Conversation) -> None:
        if self.memory.is_held(stored):
            raise owners.run_held(conversation, stored.entries())

    def _owned(self, conversation: str, stored: _Conversation, before: owners.Holder | None) -> _Owned:
        stored.epoch += 1
        stored.owned = True
        stored.until = self.memory.expiry()
        for sha256 in stored.unsure:
            self.memory.blobs.pop(sha256, None)
        stored.unsure.clear()
        return _Owned(self, conversation, stored, before)

    @override
    async def read(self, conversation: str, after: int = 0) -> log_store.Reading:
        await self.late()
        return self.memory.read(conversation, after)

    @override
    async def summaries(
        self, before: str | None = None, limit: int | None = None, state: log_store.State | None = None
    ) -> list[log_store.Summary]:
        await self.late()
        return self.memory.summaries(before, limit, state)

    @override
    async def keyed(self, key: str) -> str:
        await self.late()
        with self.memory.lock:
            return self.memory.keys.setdefault(key, log_store.new_id())

    def lose(self, conversation: str) -> None:
        """Simulate the end of the owner's process: the conversation is free. A hostile store loses everything that no barrier covered."""
        with self.memory.lock:
            self.memory.existing(conversation).owned = False

    async def late(self) -> None:
        if self.hostile:
            await tasks.to_the_end(asyncio.sleep(self._delay))


class _Owned(log_store.Conversation):
    def __init__(
        self, owner: MemoryStore, conversation: str, stored: _Conversation, taken_from: owners.Holder | None
    ) -> None:
        self.id = conversation
        self.epoch = stored.epoch
        self.lease = owner.memory.lease
        self.taken_from = taken_from
        self._store, self._memory = owner, owner.memory
        self._stored = stored
        self._coming: list[bytes] = []  # in a hostile store: lines that no barrier has covered

    @override
    def append(self, entry: log_entries.AnyEntry) -> log_entries.AnyEntry:
        with self._fenced():
            written = log_entries.numbered(entry, len(self._stored.lines) + len(self._coming) + 1)
            (self._coming if self._store.hostile else self._stored.lines).append(log_entries.encode(written))
            return written

    @override
    def put_blob(self, data: bytes, path: str) -> log_entries.Blob:
        with self._fenced():
            blob = log_entries.blob_of(data, f"@state/{self.id}/{path}")
            if self._store.hostile and blob.sha256 not in self._memory.blobs:
                self._stored.unsure.add(blob.sha256)
            self._memory.blobs[blob.sha256] = data
            return blob

    @override
    async def barrier(self) -> None:
        await self._store.late()
        with self._fenced():
            self._write()

    @override
    async def put_file(self, name: str, data: bytes | Path, *, private: bool = False) -> log_store.File:
        await self._store.late()
        with self._fenced():
            path = self._memory.file(self.id, name, private=private)
        size, sha256 = await files.keep(path, data)
        return log_store.File(path.name, str(path), size, sha256)

    @override
    async def drop_file(self, name: str, *, private: bool = False) -> None:
        await self._store.late()
        with self._fenced():
            self._memory.file(self.id, name, private=private).unlink(missing_ok=True)

    @override
    async def renew(self) -> None:
        await self._store.late()
        with self._fenced():
            self._stored.until = self._memory.expiry()

    @override
    async def aclose(self) -> None:
        await self._store.late()
        with self._memory.lock:
            if self._stored.epoch == self.epoch and self._stored.owned:
                self._write()
                self._stored.owned = False

    def _write(self) -> None:
        self._stored.lines += self._coming
        self._coming.clear()
        self._stored.unsure.clear()

    @contextlib.contextmanager
    def _fenced(self) -> Generator[None]:
        with self._memory.lock:
            if self._stored.epoch != self.epoch:
                raise owners.replaced(self.id, self.epoch, self._stored.entries())
            if not self._stored.owned:
                raise LogError(
                    "log-write-failed",
                    f"the log could not be written: run {self.id} was given up",
                    fix="claim it again",
                )
            yield
