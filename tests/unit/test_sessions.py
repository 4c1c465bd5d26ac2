"""A session folded from its log: entry by entry as at once, and after a kill at any write."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from runtime.cli import app
from runtime.log import entries as log_entries
from runtime.log import session as log_session
from runtime.log import threads
from runtime.log.store import file_store, integrity
from runtime.query import query
from runtime.settings import settings
from runtime.system import crash_points
from runtime.workspace import prune, retention, session_index
from tests.kept_runs import ended
from tests.now import let_go
from tests.rig import Killed
from tests.session_log import STEPS, Hand, Step, everything, reopened


def known(past: log_session.Session) -> dict[str, Any]:
    """Everything that a fold knows."""
    names = {each: past.thread(each) for each in past.threads}
    return {
        "header": past.header,
        "at": (past.started, past.last_at, past.last_seq, past.epoch),
        "state": (past.mode, past.about, past.budget, past.messages, past.begun, past.untouched),
        "spent": past.ledger.totals_by_step(),
        "actions": {call: (action.call, action.result) for call, action in past.actions.items()},
        "open": [action.call.call for action in past.open_calls()],
        "variables": list(past.variables()),
        "kept": {of: past.versions(of) for of in ("plan", "description", "draft", "mode", "window")},
        "threads": {
            name: (each.said, each.summary, each.newest_word, each.first, each.tokens_before(len(each.said)))
            for name, each in names.items()
        },
    }


@hypothesis.settings(max_examples=30)
@hypothesis.given(steps=STEPS)
def test_folding_entry_by_entry_is_folding_at_once(steps: Sequence[Step]) -> None:
    """The writer's fold, a fold of the whole log, and a fold entry by entry are equal."""
    with tempfile.TemporaryDirectory() as folder:
        store = file_store.Files(Path(folder))
        hand = Hand(store)
        for step in steps:
            hand.does(step)
        entries = store.read(hand.closed()).entries
        in_pieces = log_session.Session()
        for entry in entries:
            in_pieces.add(entry)
        assert known(in_pieces) == known(log_session.Session(entries)) == known(hand.writer.history)


@hypothesis.settings(max_examples=30)
@hypothesis.given(steps=STEPS)
def test_every_version_counts_from_one_and_the_last_one_holds(steps: Sequence[Step]) -> None:
    """Versions are numbered from 1 and the last one is current; a cleared variable has no value and keeps its versions."""
    with tempfile.TemporaryDirectory() as folder:
        store = file_store.Files(Path(folder))
        hand = Hand(store)
        for step in steps:
            hand.does(step)
        past = log_session.Session(store.read(hand.closed()).entries)
        for name in ("total", "seen"):
            versions = past.versions("variable", name)
            assert [each.number for each in versions] == list(range(1, len(versions) + 1))
            latest = past.latest("variable", name)
            assert latest == (versions[-1] if versions and not versions[-1].cleared else None)
            assert (name in {each.name for each in past.variables()}) == (latest is not None)


def test_a_session_that_is_killed_at_any_write_can_be_read_and_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill at any write the stored part can be folded and claimed, and new entries are appended to it."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    monkeypatch.setattr(os, "fdatasync", lambda _handle: None)
    number = 0
    while True:
        number += 1
        store = file_store.Files(tmp_path / str(number))
        left = [number]

        def hook(_point: crash_points.CrashPoint, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        opened: list[file_store.OpenFile] = []
        create = store.create
        monkeypatch.setattr(store, "create", lambda name, to=opened, create=create: to.append(create(name)) or to[-1])
        monkeypatch.setattr(crash_points, "hook", hook)
        try:
            everything(store)
        except Killed:
            # The process's end releases its lock.
            opened[0].close()
        else:
            break
        finally:
            monkeypatch.setattr(crash_points, "hook", None)
        (session,) = store.ids()
        before = store.read(session).entries
        assert session_index.fold(store.read(session)).last_seq == len(before)
        writer = reopened(store, session)
        writer.said(log_entries.User(thread=log_entries.SESSION_THREAD, mode="chat"), "Go on.", "")
        let_go(writer.conversation)
        after = store.read(session).entries
        assert after[: len(before)] == before
        assert [each.kind for each in after[len(before) :]] == ["note", "user"]
    assert number > 40


def test_every_cut_of_a_session_is_a_session_or_none(tmp_path: Path) -> None:
    """A log cut at any byte is read up to its last whole line, and is never damaged."""
    store = file_store.Files(tmp_path)
    file = store.conversation_file(everything(store))
    data = file.read_bytes()
    for end in range(0, len(data), 97):
        entries, torn = integrity.parse(file, data[:end])
        assert torn == end - data[:end].rfind(b"\n") - 1
        past = log_session.Session(entries)
        assert past.begun == bool(entries)
        for name in past.threads:
            said = past.thread(name).said
            assert all(
                isinstance(each, log_entries.User | log_entries.ModelError | threads.Exchange | threads.Happened)
                for each in said
            )


def test_a_damaged_line_refuses_this_session_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged line is refused by its number, nothing is written, and other sessions can be queried."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path))
    store = file_store.Files(tmp_path)
    session, other = everything(store), everything(store)
    file = store.conversation_file(session)
    file.write_bytes(file.read_bytes().replace(b"continue", b"continua"))
    before = file.read_bytes()
    with pytest.raises(Exception, match=rf"{session}.jsonl:\d+: this line of the log is damaged"):
        reopened(store, session)
    assert file.read_bytes() == before
    answer = query.ask(file_store.Files(settings.load().home), "SELECT session FROM sessions")
    assert [row["session"] for batch in answer.result.batches for row in batch] == [other]
    assert len(answer.left_out) == 1


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> file_store.Files:
    """An empty store that the command uses too."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    return file_store.Files(tmp_path / ".runops")


def gone(
    store: file_store.Files, wanted: retention.Selection, *, dry_run: bool = False
) -> list[tuple[str, str | None]]:
    """The kind and id of everything that prune deletes."""
    return [(each.kind, each.run) for each in prune.Pruning(store, dry_run=dry_run).carry_out(wanted).gone]


def test_a_session_is_pruned_only_where_sessions_are_selected(store: file_store.Files) -> None:
    """Selections of runs delete no sessions, and those of sessions no runs; an owned session stays."""
    run, session, active = ended(store, "passed"), everything(store), Hand(store)
    active.says("Hello.")
    states: tuple[retention.Ended, ...] = ("passed", "failed", "died", "paused", "interrupted", "out-of-budget")
    assert gone(store, retention.Selection(older_than=0, states=states), dry_run=True) == [("run", run)]
    assert gone(store, retention.Selection(keep_last=1, sessions=True)) == []
    assert gone(store, retention.Selection(older_than=1000, sessions=True)) == []
    assert ("session", session) in gone(store, retention.Selection(older_than=0, sessions=True))
    assert store.ids() == sorted([run, active.id])


def test_blobs_that_a_session_names_stay(store: file_store.Files) -> None:
    """Blobs named by a session's log are not deleted as unused."""
    session = everything(store)
    for file in (store.home / "blobs").glob("??/*"):
        os.utime(file, (0, 0))
    assert gone(store, retention.Selection()) == []
    assert store.ids() == [session]


def test_an_unused_session_is_pruned_after_an_hour(store: file_store.Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session without messages and stored state is deleted after an hour; one with either stays."""
    empty, spoken = Hand(store).closed(), Hand(store)
    spoken.says("Hello.")
    spoken.closed()
    keeping = Hand(store)
    keeping.keeps("mode", "", "agent")
    keeping.closed()
    assert gone(store, retention.Selection()) == []
    now = prune.time.time()
    monkeypatch.setattr(prune.time, "time", lambda: now + 3601)
    assert gone(store, retention.Selection()) == [("session", empty)]


def test_the_command_lists_the_sessions_it_deletes(store: file_store.Files, capsys: pytest.CaptureFixture[str]) -> None:
    """`--sessions` needs a selection, refuses `--state`, and lists the deleted sessions."""
    session = everything(store)
    assert app.run(["prune", "--sessions"]) == 2
    assert app.run(["prune", "--sessions", "--older-than", "1d", "--state", "failed"]) == 2
    capsys.readouterr()
    assert app.run(["prune", "--sessions", "--keep-last", "0"]) == 0
    assert f"session {session}" in capsys.readouterr().out
    assert app.run(["prune", "--sessions", "--keep-last", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gone"] == []
