"""Each store does what every store must do."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from typing_extensions import override

from runtime import store, testing
from runtime.testing import conformance

HOLDER = """
import sys, time
from pathlib import Path
from runtime import holders, log, store
owned, _ = store.FileStore(Path(sys.argv[1])).claim(sys.argv[2])
owned.append(log.Note(name="claimed", data={**holders.me(), "epoch": owned.epoch}))
print("held", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def held_by_a_process(home: Path, run: str) -> Generator[subprocess.Popen[str]]:
    """A process that holds the run and has said so."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, home, run], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


class TestFileStore(conformance.StoreConformance):
    """Conversations in files."""

    @override
    @pytest.fixture
    def kept(self, tmp_path: Path) -> store.FileStore:
        return store.FileStore(tmp_path / "home")

    @override
    def seen_by_another(self, kept: store.Store) -> store.Store:
        assert isinstance(kept, store.FileStore)
        return store.FileStore(kept.home)

    @override
    @contextlib.contextmanager
    def held_elsewhere(self, kept: store.Store, run: str) -> Generator[None]:
        assert isinstance(kept, store.FileStore)
        with held_by_a_process(kept.home, run) as process:
            process.send_signal(signal.SIGSTOP)
            yield
            # Whoever stood still, and would have written when it was let go, is ended.
            assert process.wait(30) == -signal.SIGKILL


class Clock:
    """Seconds that pass when they are told to."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class TestMemoryStore(conformance.FencingConformance):
    """Conversations in memory."""

    clock: Clock

    @override
    @pytest.fixture
    def kept(self, tmp_path: Path) -> testing.MemoryStore:
        self.clock = Clock()
        return testing.MemoryStore(tmp_path, lease=30.0, clock=self.clock)

    @override
    def let_expire(self, kept: store.Store) -> None:
        self.clock.now += 30.0

    @override
    @contextlib.contextmanager
    def held_elsewhere(self, kept: store.Store, run: str) -> Generator[None]:
        owned, _entries = kept.claim(run)
        conformance.claimed(owned)
        yield
        owned.close()

    def test_without_a_lease_a_claim_holds_until_it_is_given_up(self, tmp_path: Path) -> None:
        """Time alone frees nothing."""
        clock = Clock()
        kept, run = testing.MemoryStore(tmp_path, clock=clock), store.new_id()
        owned = kept.create(run)
        clock.now += 1e9
        assert kept.read(run).held
        assert owned.lease is None
        owned.close()
        assert not kept.read(run).held
