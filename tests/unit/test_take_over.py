"""Taking over a run ends its owner, and never another process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import RunHeld
from runtime.log import entries as log_entries
from runtime.log.store import file_store, owners
from runtime.log.store import store as log_store
from runtime.system import locks, processes

SLEEPER = "import time; print('there', flush=True); time.sleep(600)"


@contextlib.contextmanager
def bystander() -> Generator[subprocess.Popen[str]]:
    """A running process that does nothing."""
    with subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            one.stdout.readline()
            yield one
        finally:
            one.kill()


def claim_of(pid: int, **other: Any) -> log_entries.Note:
    """The note of a process that claims a run."""
    return log_entries.Note(
        name="claimed", data={**owners.me(), "pid": pid, "started": processes.started(pid), "epoch": 1, **other}
    )


@contextlib.contextmanager
def owned_run(home: Path, *entries: log_entries.AnyEntry) -> Generator[tuple[file_store.Files, str]]:
    """A run with these entries, whose lock this process owns."""
    store, run = file_store.Files(home), log_store.new_id()
    with contextlib.closing(store.create(run)) as owned:
        for entry in entries:
            owned.append(entry)
        yield store, run


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the waits for an owner."""
    monkeypatch.setattr(owners, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(owners, "SAY_SECONDS", 0.2)


def test_only_the_process_with_the_right_start_time_is_ended() -> None:
    """A process with the same id and another start time is not ended; the right one is; one already gone is no error."""
    with bystander() as one:
        since = processes.started(one.pid)
        assert since is not None
        processes.end(one.pid, f"{since}0")
        assert one.poll() is None
        processes.end(one.pid, since)
        assert one.wait(30) == -9
        processes.end(one.pid, since)


def test_a_former_owner_is_not_ended_for_another_ones_lock(tmp_path: Path) -> None:
    """No process is ended where the last entry names a running process and another one has the lock."""
    with bystander() as one, owned_run(tmp_path, claim_of(one.pid)) as (store, run):
        with pytest.raises(RunHeld, match="is held by process"):
            store.claim(run, take_over=True)
        assert one.poll() is None


def test_without_lock_information_an_ended_run_has_no_owner_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without lock information from the kernel, the process that logged the run's end is not taken for its owner."""
    monkeypatch.setattr(locks, "holder", lambda _path: None)
    ended = log_entries.Note(name="ended", data={"status": "failed", "exit": 1})
    with bystander() as one, owned_run(tmp_path, claim_of(one.pid), ended) as (store, run):
        with pytest.raises(RunHeld):
            store.claim(run, take_over=True)
        assert one.poll() is None


def test_an_owner_on_another_machine_is_not_ended(tmp_path: Path) -> None:
    """A run owned on another machine is refused with a fix, and a local process with the same id is not ended."""
    with bystander() as one, owned_run(tmp_path, claim_of(one.pid, host="elsewhere.test")) as (store, run):
        with pytest.raises(RunHeld, match=r"on elsewhere\.test since") as caught:
            store.claim(run, take_over=True)
        assert "take it over there" in (caught.value.fix or "")
        assert one.poll() is None


def test_a_process_does_not_end_itself(tmp_path: Path) -> None:
    """A process cannot take over a run that it owns itself."""
    with owned_run(tmp_path, log_entries.Note(name="claimed", data={**owners.me(), "epoch": 1})) as (store, run):
        with pytest.raises(RunHeld) as caught:
            store.claim(run, take_over=True)
        assert "this very process" in (caught.value.fix or "")


def test_a_dead_process_is_not_named_as_owner(tmp_path: Path) -> None:
    """Until the new owner has logged its claim, the dead one before it is not named."""
    unsaid = "held by a process that has just claimed it"
    with owned_run(tmp_path, claim_of(1, started="0")) as (store, run), pytest.raises(RunHeld, match=unsaid):
        store.claim(run)


def test_an_owner_that_is_about_to_log_its_claim_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner has time between taking the lock and logging its claim."""
    monkeypatch.setattr(owners, "SAY_SECONDS", 60.0)
    store, run = file_store.Files(tmp_path), log_store.new_id()
    with contextlib.closing(store.create(run)) as owned:
        speaking = threading.Thread(
            target=lambda: (
                time.sleep(0.1),
                owned.append(log_entries.Note(name="claimed", data={**owners.me(), "epoch": 1})),
            )
        )
        speaking.start()
        with pytest.raises(RunHeld, match=f"held by process {owners.me()['pid']} "):
            store.claim(run)
        speaking.join()


def test_the_owner_of_a_lock_is_known_on_linux(tmp_path: Path) -> None:
    """On Linux the process that owns a file's lock is known; a free file has none."""
    if not Path("/proc/locks").exists():
        pytest.skip("this system does not say who has a lock")
    with owned_run(tmp_path) as (store, run):
        assert locks.holder(store.conversation_file(run)) == owners.me()["pid"]
    assert locks.holder(store.conversation_file(run)) is None
