"""A store in memory, with what a store has that several machines share: claims that expire, and owners that are replaced while they live."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

from typing_extensions import override

from nodes.errors import LogError
from runtime import durable, holders, log, store


@dataclasses.dataclass(slots=True)
class _Kept:
    """One conversation. Its entries stand as lines, so that what a file could not hold is refused here too."""

    lines: list[bytes] = dataclasses.field(default_factory=list[bytes])
    epoch: int = 0
    """Of the last claim."""
    held: bool = False
    """Whether the last owner has not given it up."""
    until: float = 0.0
    """When the last owner's claim expires."""


class MemoryStore(store.Store):
    """Conversations and blobs in the memory of this process; they end with it. Private files and those of a run stand in a folder.

    An entry counts from the moment at which ``append`` returns, whether or not a ``barrier`` came after it: a claim finds everything that
    earlier owners have appended. Each claim has a higher epoch than the one before, and from that moment on the earlier owner gets Replaced
    from ``append``, ``barrier``, ``put_blob`` and ``renew``. An owner whose lease has run out and whom nobody has replaced still owns the
    conversation: the lease says when another one may claim it. It may be used from several threads.
    """

    def __init__(
        self, folder: Path, *, lease: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``lease`` in seconds of ``clock``; None: a claim holds until its owner closes it, or another one takes over."""
        self.folder = folder
        self.lease = lease
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._blobs: dict[str, bytes] = {}
        self._keys: dict[str, str] = {}
        self.lock = threading.RLock()
        """Held while anything is read or changed."""

    @property
    @override
    def place(self) -> str:
        return "memory"

    @override
    def has(self, conversation: str) -> bool:
        with self.lock:
            return conversation in self._kept

    @override
    def held(self, conversation: str) -> bool:
        with self.lock:
            return self._is_held(self._existing(conversation))

    @override
    def create(self, conversation: str) -> store.Conversation:
        with self.lock:
            kept = self._kept.setdefault(conversation, _Kept())
            self._refuse_held(conversation, kept)
            if kept.lines:
                raise LogError(
                    "run-exists",
                    f"there is a run {conversation} already",
                    mend=f"go on with it: `runops resume {conversation}`",
                )
            return self._owned(conversation, kept, None)

    @override
    def claim(self, conversation: str, *, take_over: bool = False) -> tuple[store.Conversation, list[log.AnyEntry]]:
        with self.lock:
            kept = self._existing(conversation)
            entries = self._entries(conversation)
            if not take_over:
                self._refuse_held(conversation, kept)
            before = holders.last(entries) if self._is_held(kept) else None
            return self._owned(conversation, kept, before), entries

    def _owned(self, conversation: str, kept: _Kept, taken_from: holders.Holder | None) -> store.Conversation:
        kept.epoch += 1
        kept.held = True
        owned = _Owned(self, conversation, kept, taken_from)
        owned.renew()
        return owned

    @override
    def read(self, conversation: str, after: int = 0) -> store.Reading:
        with self.lock:
            kept = self._existing(conversation)
            return store.Reading(conversation, self._entries(conversation)[after:], 0, self._is_held(kept))

    @override
    def first(self, conversation: str) -> log.AnyEntry | None:
        with self.lock:
            lines = self._existing(conversation).lines
            return log.decode(lines[0]) if lines else None

    @override
    def last(self, conversation: str) -> log.AnyEntry | None:
        with self.lock:
            lines = self._existing(conversation).lines
            return log.decode(lines[-1]) if lines else None

    @override
    def ids(self) -> list[str]:
        with self.lock:
            return sorted(self._kept)

    @override
    def keyed(self, key: str) -> str:
        with self.lock:
            return self._keys.setdefault(key, store.new_id())

    @override
    def blob(self, sha256: str) -> bytes:
        with self.lock:
            data = self._blobs.get(sha256)
        if data is None:
            raise LogError("blob-missing", f"a value of the run is missing: {sha256}", mend="put it back")
        return data

    @override
    def private(self, conversation: str) -> Path:
        folder = self.folder / "private" / conversation
        durable.folder(folder)
        return folder

    @override
    def private_folders(self) -> list[Path]:
        return store.named_after_conversations(self.folder / "private")

    @override
    def files(self, conversation: str) -> Path:
        return self.folder / "files" / conversation

    @override
    def stands_in(self, conversation: str, blobs: Iterable[str]) -> list[Path]:
        return []

    def keep_blob(self, data: bytes, path: str) -> log.Blob:
        """Keep a blob; its entry in the log, with ``path`` as its name."""
        blob = log.blob_of(data, path)
        self._blobs[blob.sha256] = data
        return blob

    def expiry(self) -> float:
        """When a claim expires that is made or renewed now."""
        return self._clock() + (self.lease or 0.0)

    def _existing(self, conversation: str) -> _Kept:
        kept = self._kept.get(conversation)
        if kept is None:
            raise store.unknown(self, conversation)
        return kept

    def _entries(self, conversation: str) -> list[log.AnyEntry]:
        return [log.decode(line) for line in self._kept[conversation].lines]

    def _is_held(self, kept: _Kept) -> bool:
        return kept.held and (self.lease is None or self._clock() < kept.until)

    def _refuse_held(self, conversation: str, kept: _Kept) -> None:
        if self._is_held(kept):
            raise holders.held(conversation, self._entries(conversation))


class _Owned(store.Conversation):
    """One claim of a conversation."""

    def __init__(self, owner: MemoryStore, conversation: str, kept: _Kept, taken_from: holders.Holder | None) -> None:
        self.id = conversation
        self.epoch = kept.epoch
        self.lease = owner.lease
        self.taken_from = taken_from
        self._store = owner
        self._kept = kept

    @override
    def append(self, entry: log.AnyEntry) -> log.AnyEntry:
        with self._fenced():
            written = log.numbered(entry, len(self._kept.lines) + 1)
            self._kept.lines.append(log.encode(written))
            return written

    @override
    def barrier(self) -> None:
        with self._fenced():
            pass

    @override
    def put_blob(self, data: bytes, path: str) -> log.Blob:
        with self._fenced():
            return self._store.keep_blob(data, f"@state/{self.id}/{path}")

    @override
    def renew(self) -> None:
        with self._fenced():
            self._kept.until = self._store.expiry()

    @override
    def close(self) -> None:
        with self._store.lock:
            if self._kept.epoch == self.epoch:
                self._kept.held = False

    @contextlib.contextmanager
    def _fenced(self) -> Generator[None]:
        """Only for the owner of the last claim, and one at a time."""
        with self._store.lock:
            if self._kept.epoch != self.epoch:
                raise holders.replaced(self.id, self.epoch, [log.decode(line) for line in self._kept.lines])
            if not self._kept.held:
                raise LogError(
                    "log-write-failed",
                    f"the log could not be written: run {self.id} was given up",
                    mend="claim it again",
                )
            yield
