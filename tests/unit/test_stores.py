"""Every store passes the conformance suite."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import LogError
from runtime import testing
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.testing import store_suite

HOLDER = """
import sys, time
from pathlib import Path
from runtime.log.store import file_store as files
from runtime.log.store import owners as holders
from runtime.log import entries as log
owned, _ = files.Files(Path(sys.argv[1])).claim(sys.argv[2])
owned.append(log.Note(name="claimed", data={**holders.me(), "epoch": owned.epoch}))
print("held", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def owned_by_a_process(home: Path, run: str) -> Generator[subprocess.Popen[str]]:
    """A process that owns the run and has logged its claim."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, home, run], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


class TestFileStore(store_suite.StoreConformance):
    @override
    @pytest.fixture
    def store(self, tmp_path: Path) -> file_store.FileStore:
        return file_store.FileStore(tmp_path / "home")

    @override
    def seen_by_another(self, store: log_store.Store) -> log_store.Store:
        assert isinstance(store, file_store.FileStore)
        return file_store.FileStore(store.files.home)

    @override
    @contextlib.asynccontextmanager
    async def held_elsewhere(self, store: log_store.Store, run: str) -> AsyncGenerator[None]:
        assert isinstance(store, file_store.FileStore)
        with owned_by_a_process(store.files.home, run) as process:
            process.send_signal(signal.SIGSTOP)
            yield
            # The stopped owner, which would write when continued, is killed.
            assert process.wait(30) == -signal.SIGKILL


class Clock:
    """Seconds that pass only when set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class TestMemoryStore(store_suite.FencingConformance):
    clock: Clock

    @override
    @pytest.fixture
    def store(self, tmp_path: Path) -> testing.MemoryStore:
        self.clock = Clock()
        return testing.MemoryStore(tmp_path, lease=30.0, clock=self.clock)

    @override
    def let_expire(self, store: log_store.Store) -> None:
        self.clock.now += 30.0

    @override
    @contextlib.asynccontextmanager
    async def held_elsewhere(self, store: log_store.Store, run: str) -> AsyncGenerator[None]:
        owned, _entries = await store.claim(run)
        await store_suite.claimed(owned)
        yield
        await owned.aclose()

    async def test_without_a_lease_a_claim_lasts_until_it_is_released(self, tmp_path: Path) -> None:
        """A claim without a lease does not expire."""
        clock = Clock()
        store, run = testing.MemoryStore(tmp_path, clock=clock), log_store.new_id()
        owned = await store.create(run)
        clock.now += 1e9
        assert store.reader.owned(run)
        assert owned.lease is None
        await owned.aclose()
        assert not store.reader.owned(run)


class TestHostileStore(TestMemoryStore):
    """The same suite with a store that loses or delays all it may."""

    @override
    @pytest.fixture
    def store(self, tmp_path: Path) -> testing.MemoryStore:
        self.clock = Clock()
        return testing.MemoryStore(tmp_path, lease=30.0, clock=self.clock, hostile=True, delay=0.002)

    async def test_writes_after_the_last_barrier_are_lost(self, store: testing.MemoryStore) -> None:
        """Lines and blobs written after the last barrier are invisible to readers and to the next owner."""
        run = log_store.new_id()
        owned = await store.create(run)
        covered = owned.put_blob(b"covered", "value")
        written = owned.append(store_suite.note(1))
        await owned.barrier()
        lost = owned.put_blob(b"lost", "value")
        owned.append(store_suite.note(2))
        assert store.reader.read(run).entries == [written]
        self.let_expire(store)
        later, entries = await store.claim(run)
        assert entries == [written]
        assert later.append(store_suite.note(3)).seq == 2
        assert store.reader.blob(covered.sha256) == b"covered"
        with pytest.raises(LogError, match="missing"):
            store.reader.blob(lost.sha256)
        await later.aclose()
