"""Who is ended for a run that is taken over, and who never is."""

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
    """A living process that does nothing."""
    with subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            one.stdout.readline()
            yield one
        finally:
            one.kill()


def claim_of(pid: int, **other: Any) -> log_entries.Note:
    """What a process says when it claims a run."""
    return log_entries.Note(
        name="claimed", data={**owners.me(), "pid": pid, "started": processes.started(pid), "epoch": 1, **other}
    )


@contextlib.contextmanager
def held(home: Path, *entries: log_entries.AnyEntry) -> Generator[tuple[file_store.Files, str]]:
    """A run with these entries, whose lock this process has."""
    store, run = file_store.Files(home), log_store.new_id()
    with contextlib.closing(store.create(run)) as owned:
        for entry in entries:
            owned.append(entry)
        yield store, run


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for who does not come."""
    monkeypatch.setattr(owners, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(owners, "SAY_SECONDS", 0.2)


def test_a_process_is_ended_only_where_it_is_the_one_that_is_meant() -> None:
    """One that has the id by now and began at another time lives on; the one that is meant is gone; one that is gone already is no error."""
    with bystander() as one:
        since = processes.started(one.pid)
        assert since is not None
        processes.end(one.pid, f"{since}0")
        assert one.poll() is None
        processes.end(one.pid, since)
        assert one.wait(30) == -9
        processes.end(one.pid, since)


def test_a_former_holder_is_not_ended_for_what_another_one_holds(tmp_path: Path) -> None:
    """The last entry names a process that lives, and the lock is another's who has not said so yet: nobody is ended."""
    with bystander() as one, held(tmp_path, claim_of(one.pid)) as (store, run):
        with pytest.raises(RunHeld, match="is held by process"):
            store.claim(run, take_over=True)
        assert one.poll() is None


def test_where_the_kernel_does_not_say_an_end_tells_that_the_holder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that wrote how the run ended is not taken for its holder where nobody says who has the lock."""
    monkeypatch.setattr(locks, "holder", lambda _path: None)
    ended = log_entries.Note(name="ended", data={"status": "failed", "exit": 1})
    with bystander() as one, held(tmp_path, claim_of(one.pid), ended) as (store, run):
        with pytest.raises(RunHeld):
            store.claim(run, take_over=True)
        assert one.poll() is None


def test_a_holder_on_another_machine_is_not_touched(tmp_path: Path) -> None:
    """A run that another machine holds is refused, with where to take it over, though a process here has the same id."""
    with bystander() as one, held(tmp_path, claim_of(one.pid, host="elsewhere.test")) as (store, run):
        with pytest.raises(RunHeld, match=r"on elsewhere\.test since") as caught:
            store.claim(run, take_over=True)
        assert "take it over there" in (caught.value.fix or "")
        assert one.poll() is None


def test_a_process_does_not_end_itself(tmp_path: Path) -> None:
    """A run that this very process holds is refused to it."""
    with held(tmp_path, log_entries.Note(name="claimed", data={**owners.me(), "epoch": 1})) as (store, run):
        with pytest.raises(RunHeld) as caught:
            store.claim(run, take_over=True)
        assert "this very process" in (caught.value.fix or "")


def test_a_dead_process_is_not_called_the_holder(tmp_path: Path) -> None:
    """While the holder has not said who it is, the one before it is not named in its place."""
    unsaid = "held by a process that has just claimed it"
    with held(tmp_path, claim_of(1, started="0")) as (store, run), pytest.raises(RunHeld, match=unsaid):
        store.claim(run)


def test_a_holder_that_is_about_to_say_so_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its lock and its entry a holder is given time to say who it is."""
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


def test_the_kernel_says_who_has_a_lock(tmp_path: Path) -> None:
    """On Linux the process that has a file's lock is known; of a free file nobody."""
    if not Path("/proc/locks").exists():
        pytest.skip("this system does not say who has a lock")
    with held(tmp_path) as (store, run):
        assert locks.holder(store.conversation_file(run)) == owners.me()["pid"]
    assert locks.holder(store.conversation_file(run)) is None
