"""Sessions begin, resume and fork; a fork copies its parent's state, changes nothing in the parent and costs nothing."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as draw

from director.session import open as open_session
from nodes.errors import LogError, RunHeld, RunOpsError, UsageError
from nodes.values import Json
from runtime.context import items as window_items
from runtime.log import entries as log_entries
from runtime.log import session as log_session
from runtime.log.store import file_store, integrity
from runtime.query import query
from runtime.secrets import masking
from runtime.settings import settings
from runtime.system import crash_points
from runtime.workspace import prune, retention, session_index
from tests.kept_runs import ended
from tests.now import let_go, now
from tests.rig import Killed
from tests.session_log import LARGE, STEPS, End, Hand, Step, everything, header, reopened

NO_SECRETS = masking.Masker({})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> file_store.Files:
    """An empty home for sessions, which the settings name."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    return file_store.Files(tmp_path / ".runops")


def folded(store: file_store.Files, session: str) -> log_session.Session:
    """The session as a reader folds it."""
    return session_index.fold(store.read(session))


def fork(store: file_store.Files, session: str, line: int | None = None) -> str:
    """The id of a fork that no process owns any more."""
    writer = now(open_session.fork(file_store.FileStore(store), session, NO_SECRETS, line))
    let_go(writer.conversation)
    return writer.conversation.id


def items(store: file_store.Files, past: log_session.Session, *, pointers: bool) -> list[str]:
    """Everything that a request could contain of its thread, with the log lines in pointers all replaced by 0."""
    texts = open_session.look(store, store.read(store.ids()[0]), past, NO_SECRETS)
    thread = window_items.Thread(past.thread(log_entries.SESSION_THREAD), texts)
    found = [thread[number].items(pointers=pointers) for number in range(len(thread))]
    summary = thread.summary.items(pointers=pointers) if thread.summary is not None else ()
    return [re.sub(r"@state/line/\d+", "@state/line/0", repr(each)) for each in (*found, summary)]


def kept_things(store: file_store.Files, past: log_session.Session) -> dict[str, object]:
    """The state that the session keeps, with all numbers and reasons."""
    texts = open_session.look(store, store.read(store.ids()[0]), past, NO_SECRETS)
    return {
        f"{of} {name}": [
            (each.number, each.reason, each.by, each.cleared, texts.value_of(each)) for each in past.versions(of, name)
        ]
        for of, name in [("plan", ""), ("description", ""), ("mode", ""), ("variable", "total"), ("variable", "seen")]
    }


def upto(store: file_store.Files, session: str, line: int) -> log_session.Session:
    """The session as it was up to that line."""
    return log_session.Session(store.read(session).entries[:line])


@hypothesis.settings(max_examples=30)
@hypothesis.given(steps=STEPS, at=draw.integers(0, 200))
def test_a_fork_changes_nothing_and_renders_as_its_parent_did(steps: Sequence[Step], at: int) -> None:
    """A fork at any line leaves its parent's bytes unchanged, has the parent's thread and state up to that line, and costs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        store = file_store.Files(Path(folder))
        hand = Hand(store)
        for step in steps:
            hand.does(step)
        parent = hand.closed()
        before = store.conversation_file(parent).read_bytes()
        line = at % len(before.splitlines()) + 1
        child = fork(store, parent, line)
        assert store.conversation_file(parent).read_bytes() == before
        past = folded(store, child)
        assert past.header is not None
        assert past.header.forked is not None
        assert past.header.forked.conversation == parent
        last = past.header.forked.line
        assert last <= line
        like = upto(store, parent, last)
        for pointers in (False, True):
            assert items(store, past, pointers=pointers) == items(store, like, pointers=pointers)
        assert kept_things(store, past) == kept_things(store, like)
        assert (past.mode, past.about) == (like.mode, like.about)
        assert past.ledger.rows == []
        assert past.ledger.totals() is None
        assert past.open_calls() == []
        entries = store.read(child).entries
        assert not any(isinstance(each, log_entries.ModelError) and each.again is not None for each in entries)


@hypothesis.settings(max_examples=30)
@hypothesis.given(steps=STEPS)
def test_a_fork_of_a_fork_is_the_same_again(steps: Sequence[Step]) -> None:
    """A fork of a fork holds what the first fork holds, and names that one as its parent."""
    with tempfile.TemporaryDirectory() as folder:
        store = file_store.Files(Path(folder))
        hand = Hand(store)
        for step in steps:
            hand.does(step)
        first = fork(store, hand.closed())
        second = fork(store, first)
        one, other = folded(store, first), folded(store, second)
        assert items(store, other, pointers=False) == items(store, one, pointers=False)
        assert kept_things(store, other) == kept_things(store, one)
        assert other.header is not None
        assert other.header.forked is not None
        assert other.header.forked.conversation == first


@pytest.mark.parametrize("end", ["result", "called", "asked"])
def test_a_fork_ends_before_an_exchange_whose_calls_are_not_all_done(store: file_store.Files, end: End) -> None:
    """A fork leaves out an unfinished exchange with its answer, its results and the state kept meanwhile, so it has no open call."""
    hand = Hand(store)
    hand.says("Look.")
    hand.answers("I have looked.", ["get_current_plan"])
    hand.says("Again.")
    hand.answers("I look.", ["get_current_plan", "get_browser_state"], end)
    hand.keeps("variable", "total", 1)
    parent = hand.closed()
    child = folded(store, fork(store, parent))
    messages = child.thread(log_entries.SESSION_THREAD).said
    assert [each.text if isinstance(each, log_entries.User) else "exchange" for each in messages] == [
        "Look.",
        "exchange",
        "Again.",
    ]
    assert child.versions("variable", "total") == []
    assert child.open_calls() == []
    assert not any(isinstance(each, log_entries.Reasoning) for each in store.read(fork(store, parent)).entries[-3:])


def test_a_fork_in_the_middle_of_an_exchange_ends_before_it(store: file_store.Files) -> None:
    """A fork at a line inside an exchange ends before it, even if the parent continued and finished all its calls later."""
    parent = everything(store)
    entries = store.read(parent).entries
    first = next(each for each in entries if isinstance(each, log_entries.Assistant))
    last_result = [each for each in entries if isinstance(each, log_entries.ToolResult)][1]
    for line in range(first.seq, last_result.seq):
        assert not any(
            isinstance(each, log_entries.Assistant) for each in store.read(fork(store, parent, line)).entries
        )
    assert any(
        isinstance(each, log_entries.Assistant) for each in store.read(fork(store, parent, last_result.seq)).entries
    )


def test_a_path_leads_to_the_same_in_a_fork(store: file_store.Files) -> None:
    """Each line of a fork has number, time, thread and call of the one that it copies, or is left out: the paths of a summary hold, at any depth."""
    parent = everything(store)
    first = store.read(parent).entries
    for _fork in range(2):
        parent = fork(store, parent)
        header, *copied, claimed = store.read(parent).entries
        assert (header.kind, claimed.kind) == ("scope", "note")
        taken = [each for each in copied if not (isinstance(each, log_entries.Note) and each.name == "left-out")]
        assert {log_entries.Summary, log_entries.Call, log_entries.Result} <= {type(each) for each in taken}
        for each in taken:
            there = first[each.seq - 1]
            assert (each.at, each.thread, each.kind) == (there.at, there.thread, there.kind)
            assert getattr(each, "call", None) == getattr(there, "call", None)


def test_an_active_session_can_be_forked(store: file_store.Files) -> None:
    """The owner of a session that is forked keeps it and continues to write."""
    hand = Hand(store)
    hand.says("Look.")
    assert folded(store, fork(store, hand.id)).messages == 1
    hand.says("Go on.")
    assert folded(store, hand.id).messages == 2


def test_requests_that_a_fork_copied_cost_nothing_in_any_list(
    store: file_store.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`runops query costs` lists the parent's requests once, and none for the fork."""
    parent = everything(store)
    child = fork(store, parent)
    answer = query.ask(
        file_store.Files(settings.load().home),
        "SELECT run, count(*) AS n, sum(dollars) AS dollars FROM costs GROUP BY run",
    )
    rows = [row for batch in answer.result.batches for row in batch]
    assert [(row["run"], row["n"]) for row in rows] == [(parent, len(folded(store, parent).ledger.rows))]
    listed = {each.id: each.costs for each in session_index.list_sessions(file_store.Files(settings.load().home))}
    assert listed[child] is None
    assert listed[parent] is not None


def test_a_fork_outlives_its_parent(store: file_store.Files) -> None:
    """Texts, values and outputs that both name stay when the parent is pruned."""
    parent = everything(store)
    child = fork(store, parent)
    report = prune.Pruning(store, dry_run=False).carry_out(retention.Selection(keep_last=1, sessions=True))
    assert [each.run for each in report.gone if each.kind == "session"] == [parent]
    assert store.ids() == [child]
    past = folded(store, child)
    assert any(LARGE.strip() in repr(each) for each in items(store, past, pointers=False))
    assert past.latest("variable", "rows") is not None
    for sha256 in prune.named_in(store.conversation_file(child).read_bytes()) - {"k" * 64}:
        assert store.blob(sha256)


def test_a_fork_that_dies_counts_as_nothing_until_it_is_whole(
    store: file_store.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork killed before it is whole is not listed, found, reopened or forked, and prune deletes it. The parent never changes."""
    chosen, parent = settings.load(), everything(store)
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    monkeypatch.setattr(os, "fdatasync", lambda _handle: None)
    before = store.conversation_file(parent).read_bytes()
    whole, died = 0, 0
    for number in itertools.count(1):
        known = set(store.ids())
        left = [number]

        def hook(_point: crash_points.CrashPoint, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        monkeypatch.setattr(crash_points, "hook", hook)
        try:
            fork(store, parent)
            break
        except Killed:
            pass
        finally:
            monkeypatch.setattr(crash_points, "hook", None)
        assert store.conversation_file(parent).read_bytes() == before
        (child,) = set(store.ids()) - known
        if any(isinstance(each, log_entries.Note) and each.name == "claimed" for each in store.read(child).entries):
            whole += 1
            assert items(store, folded(store, child), pointers=False) == items(
                store, folded(store, parent), pointers=False
            )
            store.conversation_file(child).unlink()
            continue
        died += 1
        assert [each.id for each in session_index.list_sessions(file_store.Files(chosen.home))] == [parent]
        assert open_session.find(file_store.Files(chosen.home), "last") == parent
        for use in (reopened, fork, folded):
            with pytest.raises(UsageError) as raised:
                use(store, child)
            assert raised.value.code == "not-a-session"
        if died % 8 == 1:
            rows = query.ask(file_store.Files(chosen.home), "SELECT session FROM sessions").result.batches
            assert [row["session"] for batch in rows for row in batch] == [parent]
        gone = prune.Pruning(store, dry_run=False).carry_out(retention.Selection()).gone
        assert [(each.kind, each.run) for each in gone] == [("log", child)]
        assert store.ids() == [parent]
    assert whole == 1
    assert died > 15


def test_a_fork_syncs_its_header_before_it_copies_anything(
    store: file_store.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork syncs its first line alone, and all of it once it is whole: a power cut in between leaves a recognizable partial fork."""
    parent, synced = everything(store), list[int]()
    barrier = file_store.OpenFile.barrier

    async def counted(conversation: file_store.OpenFile) -> None:
        await barrier(conversation)
        synced.append(len(store.read(conversation.id).entries))

    monkeypatch.setattr(file_store.OpenFile, "barrier", counted)
    child = fork(store, parent)
    assert synced == [1, len(store.read(child).entries)]


@pytest.mark.parametrize("claimed", [False, True])
def test_a_power_cut_leaves_a_fork_that_is_torn_and_never_one_that_is_damaged(
    store: file_store.Files, *, claimed: bool
) -> None:
    """Sectors that were lost before the fork was whole are cut; after the fork's first own entry they are damage."""
    child = fork(store, everything(store))
    file = store.conversation_file(child)
    data = file.read_bytes()
    header_ends = data.index(b"\n") + 1
    placeholders = range(
        -(-header_ends // integrity.SECTOR) * integrity.SECTOR, len(data) - integrity.SECTOR, integrity.SECTOR
    )
    assert len(placeholders) > 5
    if claimed:
        writer = reopened(store, child)
        writer.said(log_entries.User(thread=log_entries.SESSION_THREAD, mode="chat"), "Go on.", "")
        writer.noted("requested", announced(), log_entries.SESSION_THREAD)
        let_go(writer.conversation)
        data = file.read_bytes()
    for placeholder in placeholders:
        torn = data[:placeholder] + b"\0" * integrity.SECTOR + data[placeholder + integrity.SECTOR :]
        if claimed:
            with pytest.raises(LogError, match="damaged"):
                integrity.parse(file, torn)
        else:
            entries, cut = integrity.parse(file, torn)
            assert cut > 0
            assert integrity.is_copying(entries)
            file.write_bytes(torn)
            assert [entry.seq for entry in query.entries(file)] == [entry.seq for entry in entries]


def announced() -> dict[str, Json]:
    """The data of a note that announces a request."""
    return {"key": "k" * 64, "model": "m", "estimate": 9, "raw": 9, "limit": 5, "seconds": 6.0, "try": 1}


def test_a_fork_of_a_line_that_is_not_there_is_wrong_usage(store: file_store.Files) -> None:
    """A line that does not exist is a usage error that names the existing lines, and nothing is created."""
    parent = everything(store)
    for line in (0, 10_000):
        with pytest.raises(UsageError, match="no line"):
            fork(store, parent, line)
    assert store.ids() == [parent]


def test_a_missing_value_of_the_parent_is_reported_and_the_fork_counts_as_nothing(store: file_store.Files) -> None:
    """A fork that lacks a value of its parent raises an error and counts as nothing."""
    parent = everything(store)
    for file in (store.home / "blobs").glob("??/*"):
        file.unlink()
    with pytest.raises(LogError, match="missing"):
        fork(store, parent)
    assert [each.id for each in session_index.list_sessions(file_store.Files(settings.load().home))] == [parent]


# Beginning, continuing, finding.


def test_a_session_begins_with_its_header_and_its_owner(store: file_store.Files) -> None:
    """A session's thread begins with its header and its claim, and no other process can claim it meanwhile."""
    hand = Hand(store, file="pay.yaml", budget="calls=3")
    opened, claimed = store.read(hand.id).entries
    assert isinstance(opened, log_entries.Scope)
    assert opened.session is not None
    assert isinstance(claimed, log_entries.Note)
    assert (opened.session.file, claimed.name, claimed.data["epoch"]) == ("pay.yaml", "claimed", 1)
    assert {opened.thread, claimed.thread} == {log_entries.SESSION_THREAD}
    with pytest.raises(RunHeld, match=f"session {hand.id} is held") as raised:
        reopened(store, hand.id)
    assert f"runops chat --resume {hand.id} --take-over" in str(raised.value.fix)


def test_a_reopened_session_continues_with_all_that_it_holds(store: file_store.Files) -> None:
    """Each claim has a higher epoch, a new budget applies from then on, and open calls stay open for the next turn."""
    session = everything(store, "called", budget="calls=3")
    writer = now(open_session.reopen(file_store.FileStore(store), session, NO_SECRETS, budget="calls=30"))
    let_go(writer.conversation)
    past = folded(store, session)
    assert (past.epoch, past.budget, len(past.open_calls())) == (2, "calls=30", 1)
    assert past.messages == folded(store, session).messages


def test_a_torn_last_line_is_cut_and_noted_in_the_thread_of_the_session(store: file_store.Files) -> None:
    """A torn last line is cut and noted as in a run, but in the session's thread: a session has no thread `run`."""
    session = everything(store)
    file = store.conversation_file(session)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"v":1,"se')
    writer = reopened(store, session)
    let_go(writer.conversation)
    note = store.read(session).entries[len(whole.splitlines())]
    assert isinstance(note, log_entries.Note)
    assert (note.name, note.thread, note.data) == ("tail-truncated", log_entries.SESSION_THREAD, {"bytes": 10})
    assert {each.thread.partition(":")[0] for each in store.read(session).entries} == {"session", "summary", "delegate"}


@pytest.mark.parametrize("use", [reopened, fork])
def test_a_run_is_no_session(store: file_store.Files, use: Callable[[file_store.Files, str], object]) -> None:
    """A run used as a session is refused with a fix, and its file stays unchanged."""
    run = ended(store, "failed")
    before = store.conversation_file(run).read_bytes()
    with pytest.raises(UsageError) as raised:
        use(store, run)
    assert raised.value.code == "not-a-session"
    assert f"runops chat {run}" in str(raised.value.fix)
    assert store.conversation_file(run).read_bytes() == before


def test_the_last_session_is_no_run_and_the_parts_of_ids_work(store: file_store.Files) -> None:
    """`last` skips runs; the beginning or the end of an id is enough; a name that is no session is refused."""
    chosen = settings.load()
    with pytest.raises(UsageError, match="no sessions"):
        open_session.find(file_store.Files(chosen.home), "last")
    session = everything(store)
    run = ended(store, "failed")
    assert open_session.find(file_store.Files(chosen.home), "last") == session
    assert open_session.find(file_store.Files(chosen.home), session[-6:].lower()) == session
    for name, code in ((run, "not-a-session"), ("nothing", "unknown-session"), ("", "unknown-session")):
        with pytest.raises(RunOpsError) as raised:
            open_session.find(file_store.Files(chosen.home), name)
        assert raised.value.code == code


def test_a_reader_cannot_write(store: file_store.Files) -> None:
    """A reader's writer raises on every write, so a session that is only shown cannot change."""
    session = everything(store)
    reading = store.read(session)
    writer = open_session.look(store, reading, session_index.fold(reading), NO_SECRETS)
    with pytest.raises(AssertionError, match="a reader of"):
        writer.said(log_entries.User(thread=log_entries.SESSION_THREAD), "Hello.", "")
    with pytest.raises(AssertionError, match="a reader of"):
        writer.put_text("Hello.", "x")


def test_a_header_names_no_secret_and_no_model() -> None:
    """A header holds purpose, file and versions, but no secret and no model."""
    assert set(header(file="a.yaml").model_dump(exclude_none=True)) == {"purpose", "file", "versions"}
