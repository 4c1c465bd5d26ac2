"""The log: entries as lines, and files that survive damage."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.errors import LogError
from nodes.values import normalise
from runtime.log import entries as log_entries
from runtime.log import history, session, threads
from runtime.log.store import file_store
from runtime.log.store import store as log_store

GOLDEN = Path(__file__).parent / "golden" / "log-1.jsonl"
GOLDEN_SESSION = GOLDEN.with_name("session-1.jsonl")
GOLDEN_BUILD = GOLDEN.with_name("build-1.jsonl")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
).map(normalise)
paths = st.text(st.characters(codec="utf-8"), max_size=30)


@st.composite
def entries(draw: st.DrawFn) -> log_entries.AnyEntry:
    """Any entry but a result, whose call must come first."""
    match draw(st.sampled_from(["scope", "call", "checkpoint", "note"])):
        case "scope":
            event: Any = draw(st.sampled_from(["opened", "decided", "committed"]))
            return log_entries.Scope(path=draw(paths), event=event, node="group", value=draw(values))
        case "call":
            effect: Any = draw(st.sampled_from(["read", "idempotent", "effect"]))
            return log_entries.Call(
                path=draw(paths), node="transform", attempt=1, effect=effect, args=draw(values), fingerprint="f"
            )
        case "checkpoint":
            return log_entries.Checkpoint(file="checkpoint-1.json", urls=draw(st.lists(paths, max_size=2)), after=1)
        case _:
            return log_entries.Note(name="restored", data={"mode": "attached", "more": draw(values)})


def fill(store: file_store.Files, run: str, given: list[log_entries.AnyEntry]) -> list[log_entries.AnyEntry]:
    """A closed conversation with these entries."""
    conversation = store.create(run)
    try:
        return [conversation.append(entry) for entry in given]
    finally:
        conversation.close()


@given(given_entries=st.lists(entries(), min_size=1, max_size=6))
def test_any_appends_read_back(
    given_entries: list[log_entries.AnyEntry], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Appended entries are read back unchanged and in order, with line numbers from 1."""
    store, run = file_store.Files(tmp_path_factory.mktemp("home")), log_store.new_id()
    written = fill(store, run, given_entries)
    assert store.read(run).entries == written
    assert [entry.seq for entry in written] == list(range(1, len(given_entries) + 1))


@given(given_entries=st.lists(entries(), min_size=2, max_size=5), data=st.data())
@settings(max_examples=60)
def test_any_cut_of_the_tail_recovers(
    given_entries: list[log_entries.AnyEntry], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A log cut anywhere after its first line has all complete lines before the cut, and can be resumed."""
    store, run = file_store.Files(tmp_path_factory.mktemp("home")), log_store.new_id()
    written = fill(store, run, given_entries)
    file = store.conversation_file(run)
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    cut = data.draw(st.integers(first, len(whole)))
    file.write_bytes(whole[:cut])
    left = whole[:cut].count(b"\n")
    assert store.read(run).entries == written[:left]
    conversation, recovered = store.claim(run)
    conversation.append(log_entries.Note(name="claimed", data={"epoch": 2}))
    conversation.close()
    assert recovered[:left] == written[:left]
    torn = cut - (whole[:cut].rindex(b"\n") + 1)
    assert [entry.data for entry in recovered[left:] if isinstance(entry, log_entries.Note)] == (
        [{"bytes": torn}] if torn else []
    )
    assert len(store.read(run).entries) == left + 1 + bool(torn)


def test_a_flipped_byte_refuses_that_run_by_its_line_and_no_other(tmp_path: Path) -> None:
    """Damage before the last line names file and line, and another run stays readable."""
    store = file_store.Files(tmp_path)
    hurt, whole = log_store.new_id(), log_store.new_id()
    notes: list[log_entries.AnyEntry] = [
        log_entries.Note(name="restored", data={"mode": "attached", "n": n}) for n in range(3)
    ]
    fill(store, hurt, notes)
    fill(store, whole, notes)
    file = store.conversation_file(hurt)
    lines = file.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b'"n":1', b'"n":7')
    file.write_bytes(b"\n".join(lines))
    for attempt in (store.read, store.claim):
        with pytest.raises(LogError) as caught:
            attempt(hurt)
        assert caught.value.code == "log-damaged"
        assert f"{file}:2:" in caught.value.message
    assert file.read_bytes() == b"\n".join(lines)
    assert len(store.read(whole).entries) == 3


def test_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    """The error for a log of a later version names that version and the readable ones."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    fill(store, run, [log_entries.Note(name="restored", data={})])
    later = log_entries.seal(b'{"v":2,"seq":1,"at":"x","thread":"run","kind":"dream"')
    store.conversation_file(run).write_bytes(later)
    with pytest.raises(LogError, match="format version 2, and this RunOps reads versions up to 1") as caught:
        store.read(run)
    assert caught.value.code == "log-too-new"


def test_after_a_failed_write_the_writer_stays_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed write each append and sync is refused, even if the disk would work again."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    conversation = store.create(run)
    conversation.append(log_entries.Note(name="restored", data={}))

    def full(_handle: int, _line: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(LogError, match="No space left on device"):
            conversation.append(log_entries.Note(name="restored", data={}))
    for attempt in (lambda: conversation.append(log_entries.Note(name="restored", data={})), conversation.sync):
        with pytest.raises(LogError) as caught:
            attempt()
        assert caught.value.code == "log-write-failed"
    conversation.close()
    assert len(store.read(run).entries) == 1


def test_blobs_are_named_by_their_hash(tmp_path: Path) -> None:
    """A blob is read by its hash; a changed or lost one is refused."""
    store, run = file_store.Files(tmp_path), log_store.new_id()
    conversation = store.create(run)
    blob = conversation.put_blob(b"large", "orders")
    conversation.close()
    assert store.blob(blob.sha256) == b"large"
    assert blob.path == f"@state/{run}/orders"
    store.blob_file(blob.sha256).write_bytes(b"other")
    with pytest.raises(LogError, match="was changed"):
        store.blob(blob.sha256)
    store.blob_file(blob.sha256).unlink()
    with pytest.raises(LogError, match="is missing"):
        store.blob(blob.sha256)


def test_the_home_is_private(tmp_path: Path) -> None:
    """Folders and files are only for their owner, and git ignores them."""
    store, run = file_store.Files(tmp_path / ".runops"), log_store.new_id()
    fill(store, run, [log_entries.Note(name="restored", data={})])
    assert [oct(path.stat().st_mode & 0o777) for path in (store.home, store.private(run))] == ["0o700", "0o700"]
    assert oct(store.conversation_file(run).stat().st_mode & 0o777) == "0o600"
    assert (store.home / ".gitignore").read_text() == "*\n"


def golden_conversation(blob: log_entries.Blob, error: dict[str, Any]) -> list[log_entries.AnyEntry]:
    """The conversation of a step with its model: a failed answer, tool calls with their results, and a continuation."""
    thread = "model:c15"
    usage = log_entries.Usage(input=100, cached=20, output=30, reasoning=5)
    asked: dict[str, Any] = {"key": "0" * 64, "model": "m", "estimate": 90, "raw": 90, "limit": 500, "seconds": 60.0}
    lost: dict[str, Any] = {"thread": thread, "error": {**error, "code": "model-failed", "who": "model"}}
    step: dict[str, Any] = {"path": "buy", "node": "agent", "effect": "effect", "fingerprint": "f" * 64}
    action: dict[str, Any] = {"thread": thread, "attempt": 1, "fingerprint": "f" * 64}
    return [
        log_entries.Call(call="c15", attempt=1, **step),
        log_entries.User(thread=thread, text="Pay the order."),
        log_entries.Note(thread=thread, name="requested", data={**asked, "try": 1}),
        log_entries.ModelError(
            **lost, text="I w", usage=usage, dollars="0.1", seconds=1.5, again=0.5, free=True, pending=True
        ),
        log_entries.Note(thread=thread, name="requested", data={**asked, "try": 2}),
        log_entries.Reasoning(thread=thread, text="It has a button."),
        log_entries.Assistant(
            thread=thread,
            key="0" * 64,
            source="model",
            text="",
            model="m-1",
            response="resp_1",
            stored=True,
            usage=usage,
            dollars="0.25",
            seconds=1.5,
            calls=[
                log_entries.ToolCallEntry(id="a", name="find", arguments='{"name": "Pay"}'),
                log_entries.ToolCallEntry(id="b", name="click", arguments='{"ref": "e5"}'),
                log_entries.ToolCallEntry(
                    id="c", name="fill", arguments='{"ref": "e6", "text": "[hidden]"}', masked=True
                ),
                log_entries.ToolCallEntry(id="d", name="read", blob=blob),
            ],
            thoughts=[
                log_entries.ThoughtEntry(id="rs_1", before=1, tokens=3, reader="m at http://127.0.0.1:9", sealed="x"),
                log_entries.ThoughtEntry(id="rs_2", before=2, tokens=2, reader="m at http://127.0.0.1:9", blob=blob),
            ],
        ),
        log_entries.Call(
            call="c22",
            path="buy/1_find",
            node="agent",
            action="find",
            asked="a",
            effect="read",
            args={"name": "Pay"},
            **action,
        ),
        log_entries.Result(call="c22", thread=thread, status="ok", seconds=0.5),
        log_entries.ToolResult(thread=thread, asked="a", text='button "Pay" [ref=e5]'),
        log_entries.Call(
            call="c25", path="buy/2_click", node="browser_action", action="click", asked="b", effect="effect", **action
        ),
        log_entries.Result(call="c15", status="interrupted"),
        log_entries.Call(call="c27", attempt=2, again="c15", **step),
        log_entries.Result(call="c25", thread=thread, status="interrupted"),
        log_entries.ToolResult(
            thread=thread, asked="b", blob=blob, picture=log_entries.PictureEntry(blob=blob, width=1280, height=720)
        ),
        log_entries.Assistant(thread=thread, key="1" * 64, source="log", blob=blob, masked=True, model="m-1"),
        log_entries.User(thread=thread, blob=blob),
    ]


def golden_entries() -> list[log_entries.AnyEntry]:
    """One entry of each kind, with all fields, as the specification has them."""
    blob = log_entries.Blob(sha256="0" * 64, bytes=5000, preview="version: 1", path="@state/01/workflow.yaml")
    header = log_entries.RunHeader(
        workflow="Pay",
        file="pay.yaml",
        text=blob,
        callees={"sign-in.yaml": blob},
        inputs={"base_url": "http://127.0.0.1:8765"},
        secrets=["SHOP_PASSWORD"],
        origins=["http://127.0.0.1:8765"],
        browser={"mode": "own"},
        versions={"runops": "0.1.0"},
    )
    error: dict[str, Any] = {
        "code": "target-not-found",
        "who": "site",
        "message": "no element matches",
        "phase": "before",
    }
    at = {**error, "step": "clean/try[2]/pay"}
    made: list[log_entries.AnyEntry] = [
        log_entries.Scope(path="", event="opened", node="run", run=header),
        log_entries.Note(
            name="claimed",
            data={
                "pid": 1,
                "started": "4711",
                "boot": "a boot",
                "host": "ci",
                "epoch": 2,
                "version": "0.1.0",
                "taken_from": {"pid": 3, "host": "ci", "since": "2026-01-01T00:00:00.000Z", "epoch": 1},
            },
        ),
        log_entries.Call(
            call="c3",
            path="each[#1007]/pay",
            node="browser_action",
            action="click",
            attempt=1,
            effect="effect",
            args={"target": {"role": "button"}, "value": "{{ secrets.SHOP_PASSWORD }}", "nothing": None},
            held_before=False,
            matched=["role=button"],
            recorded=["2026-01-01T00:00:00Z"],
            fingerprint="f" * 64,
        ),
        log_entries.Result(
            call="c3",
            status="error",
            error=error,
            tolerated=True,
            seconds=0.5,
            page=log_entries.PageState(documents=1, pending=True),
        ),
        log_entries.Scope(
            path="each",
            event="decided",
            node="iterate",
            value={"items": [1], "keys": [None]},
            recorded=["x"],
            masked=True,
        ),
        log_entries.Scope(path="each", event="failed", node="iterate", error=error, tolerated=True),
        log_entries.Scope(path="each", event="committed", node="iterate", blob=blob),
        log_entries.Checkpoint(file="checkpoint-7.json", urls=["http://127.0.0.1:8765/"], after=7, sha256="0" * 64),
        log_entries.Scope(path="pages[2]", event="decided", node="item", value="go on"),
        log_entries.Scope(path="pages[3]", event="failed", node="item", value="stop", error=at, tolerated=True),
        log_entries.Scope(path="clean/try[2]", event="failed", node="try", error=at),
        log_entries.Note(name="answered", data={"path": "who", "answers": {"approver": "Ada", "amount": 21}}),
        log_entries.Note(name="ended", data={"status": "failed", "exit": 1, "error": error, "path": "each"}),
        log_entries.Note(
            name="changed",
            data={
                "taken": {
                    "workflow": "Pay",
                    "text": blob.model_dump(),
                    "callees": {},
                    "inputs": {"base_url": "http://127.0.0.1:8765"},
                    "secrets": ["SHOP_PASSWORD"],
                    "origins": ["http://127.0.0.1:8765"],
                },
                "invalidated": ["clean/try[2]"],
                "edited": ["each[#1007]/pay"],
                "reopened": ["each"],
                "rebuild": True,
            },
        ),
        *golden_conversation(blob, error),
    ]
    return [
        entry.model_copy(update={"seq": n, "at": "2026-01-01T00:00:00.000Z"}) for n, entry in enumerate(made, start=1)
    ]


def golden_session() -> list[log_entries.AnyEntry]:
    """Entries that only a session has, with all fields."""
    blob = log_entries.Blob(sha256="0" * 64, bytes=5000, preview="Pay", path="@state/01/plan")
    thread = log_entries.SESSION_THREAD
    error: dict[str, Any] = {"code": "model-timeout", "who": "model", "message": "it did not answer"}
    header = log_entries.SessionHeader(
        purpose="chat",
        run="01JD0000000000000000000002",
        file="pay.yaml",
        parent="01JD0000000000000000000003",
        forked=log_entries.Forked(conversation="01JD0000000000000000000001", line=9),
        versions={"runops": "0.1.0"},
        budget="money=1usd",
    )
    made: list[log_entries.AnyEntry] = [
        log_entries.Scope(thread=thread, path="", event="opened", node="session", session=header),
        log_entries.Version(thread=thread, of="mode", number=1, value="agent", reason="/mode agent", by="person"),
        log_entries.Version(thread=thread, of="plan", number=1, blob=blob, masked=True, reason="first", by="model"),
        log_entries.Version(
            thread=thread, of="variable", name="total", number=1, value=12.5, reason="seen", by="model"
        ),
        log_entries.Version(
            thread=thread, of="variable", name="total", number=2, cleared=True, reason="old", by="person"
        ),
        log_entries.User(thread=thread, text="Pay it.", mode="agent", tokens=7, chars=7),
        log_entries.ModelError(thread=thread, error=error, text="I w", blob=blob, tokens=6, chars=3),
        log_entries.Heard(thread=thread, text="Now.", blob=blob, mode="agent", tokens=6, chars=4),
        log_entries.Arrived(thread=thread, text="I am"),
        log_entries.User(thread=thread, text="Now.", mode="agent", heard=8, tokens=6, chars=4),
        log_entries.Event(
            thread=thread,
            text="/run pay.yaml: passed",
            blob=blob,
            tokens=9,
            chars=21,
            run="01JD0000000000000000000004",
            asked="run_1",
            what="/run pay.yaml",
            upto=31,
            spent=log_entries.Ran(calls=1, tokens=1_200, dollars="0.01", seconds=2.5, totals={"requests": 1}),
        ),
        log_entries.User(
            thread=log_entries.summary_thread(thread, 1), upto=6, until=8, text="Sum it up.", tokens=8, chars=10
        ),
        log_entries.Summary(
            thread=thread,
            upto=6,
            until=8,
            refresh=["get_current_plan"],
            text="The order is to be paid.",
            blob=blob,
            tokens=10,
            chars=24,
        ),
    ]
    return [
        entry.model_copy(update={"seq": n, "at": "2026-01-01T00:00:00.000Z"}) for n, entry in enumerate(made, start=1)
    ]


def golden_build() -> list[log_entries.AnyEntry]:
    """Entries that only a build has: goal, runs of tools, questions, and versions of bench and grants."""
    thread, run = log_entries.SESSION_THREAD, "01JD0000000000000000000004"
    goal = log_entries.Build(
        goal="Pay every open order",
        url="http://127.0.0.1:8765/login",
        save="/srv/shop/pay.yaml",
        force=True,
        runs=2,
        effects="ask",
        inputs={"user": "admin"},
        secrets=["SHOP_PASSWORD"],
    )
    header = log_entries.SessionHeader(purpose="build", versions={"runops": "0.1.0"}, build=goal)
    asked: dict[str, Any] = {"question": "Pay it?", "choices": ["yes", "no"], "free": False, "place": "7_execute_nodes"}
    spent: dict[str, Any] = {"calls": 0, "tokens": 0, "dollars": "0", "seconds": 0}
    following: dict[str, Any] = {"run": run, "what": "execute_nodes", "call": "c9", "spent": spent}
    made: list[log_entries.AnyEntry] = [
        log_entries.Scope(thread=thread, path="", event="opened", node="session", session=header),
        log_entries.Version(thread=thread, of="draft", number=1, value="version: 1\n", reason="first", by="model"),
        log_entries.Note(thread=thread, name="paused", data=asked),
        log_entries.Note(thread=thread, name="answered", data={**asked, "answer": "yes"}),
        log_entries.Version(
            thread=thread, of="grant", name="0" * 32, number=1, value="yes", reason="asked", by="person"
        ),
        log_entries.Note(thread=thread, name="child-started", data=following),
        log_entries.Note(thread=thread, name="child-ended", data={"run": run, "status": "passed", "spent": None}),
        log_entries.Version(
            thread=thread, of="bench", name="orders", number=1, value={"value": []}, reason="seen", by="model"
        ),
    ]
    return [
        entry.model_copy(update={"seq": n, "at": "2026-01-01T00:00:00.000Z"}) for n, entry in enumerate(made, start=1)
    ]


def test_a_build_is_folded_to_its_mode_its_runs_and_its_questions() -> None:
    """A build has mode agent from its first line, the runs of its calls, and its questions with answers."""
    folded = session.Session(golden_build())
    assert session.Session(golden_build()[:1]).mode == folded.mode == "agent"
    assert folded.runs_of == {"c9": ["01JD0000000000000000000004"]}
    assert folded.open_runs == {}
    assert folded.waits_for is None
    assert [each.answer for each in folded.questions] == ["yes"]
    asked = session.Session(golden_build()[:3]).waits_for
    assert asked is not None
    assert (asked.question, asked.choices, asked.place) == ("Pay it?", ["yes", "no"], "7_execute_nodes")


@pytest.mark.parametrize(
    ("file", "entries"),
    [(GOLDEN, golden_entries), (GOLDEN_SESSION, golden_session), (GOLDEN_BUILD, golden_build)],
)
def test_the_golden_log_is_written_and_read_the_same(
    file: Path, entries: Callable[[], list[log_entries.AnyEntry]]
) -> None:
    """Format 1 is stable: the golden file has exactly these lines, and reads back as these entries."""
    written = b"".join(log_entries.encode(entry) for entry in entries())
    assert file.read_bytes() == written
    assert [log_entries.decode(line) for line in file.read_bytes().splitlines()] == entries()


def test_a_session_is_folded_to_its_state() -> None:
    """A cleared variable has no value, a summary replaces earlier entries, and the partial text of a failed answer is kept."""
    folded = session.Session(golden_session())
    assert folded.mode == "agent"
    assert folded.about == "01JD0000000000000000000004"
    assert folded.latest("variable", "total") is None
    assert [each.number for each in folded.versions("variable", "total")] == [1, 2]
    thread = folded.thread(log_entries.SESSION_THREAD)
    assert [type(each) for each in thread.said] == [
        log_entries.User,
        log_entries.ModelError,
        log_entries.User,
        log_entries.Event,
    ]
    assert (thread.first, thread.newest_word, thread.tokens_before(4), thread.heard) == (1, 2, 28, {})


def test_the_golden_log_has_every_kind_of_entry_and_every_field_of_a_conversation() -> None:
    """The golden log covers each kind of entry and each field of conversation entries, so additions must appear there."""
    kinds: dict[type[log_entries.AnyEntry], set[str]] = {}
    for each in [*golden_entries(), *golden_session()]:
        kinds.setdefault(type(each), set()).update(each.model_dump(exclude_none=True))
    assert set(kinds) == set(get_args(log_entries.AnyEntry))
    conversation = (
        log_entries.User,
        log_entries.Heard,
        log_entries.Arrived,
        log_entries.Reasoning,
        log_entries.Assistant,
        log_entries.ToolResult,
        log_entries.ModelError,
        log_entries.Event,
        log_entries.Summary,
    )
    for kind in (*conversation, log_entries.Version):
        assert kinds[kind] == set(kind.model_fields)
    assert {"asked", "again"} <= kinds[log_entries.Call]


def test_the_golden_conversation_is_folded_with_its_call_results() -> None:
    """An answer has its calls in order, each with its last call entry, result and output; calls that did not begin have none."""
    items = history.History(golden_entries()).thread("model:c15").said
    answer = next(each for each in items if isinstance(each, threads.Exchange))
    assert [
        each.answer.key[0] if isinstance(each, threads.Exchange) else type(each).__name__.lower() for each in items
    ] == [
        "user",
        "0",
        "1",
        "user",
    ]
    found, clicked, *others = answer.done.values()
    assert [*answer.done] == ["a", "b", "c", "d"]
    assert found.call is not None
    assert found.result is not None
    assert found.output is not None
    assert (found.call.call, found.result.status, found.output.text) == ("c22", "ok", 'button "Pay" [ref=e5]')
    assert clicked.call is not None
    assert clicked.result is not None
    assert clicked.output is not None
    assert (clicked.call.call, clicked.result.status, clicked.output.blob is None) == ("c25", "interrupted", False)
    assert others == [threads.Done(), threads.Done()]


def test_the_golden_log_agrees_with_its_page() -> None:
    """docs/log-format.md names each field in the golden log."""
    page = (Path(__file__).parents[2] / "docs" / "log-format.md").read_text()
    for line in (GOLDEN.read_text() + GOLDEN_SESSION.read_text()).splitlines():
        for field in json.loads(line):
            assert f"`{field}`" in page or f"`{field}`/" in page or f"/`{field}`" in page, field


def test_incremental_folding_equals_folding_at_once() -> None:
    """A history fed entry by entry equals one made from the whole log."""
    at_once, incremental = history.History(golden_entries()), history.History()
    for entry in golden_entries():
        incremental.add(entry)
    assert (
        incremental.order
        == at_once.order
        == [
            "",
            "each[#1007]/pay",
            "each",
            "pages[2]",
            "pages[3]",
            "buy",
        ]
    )
    assert incremental.status == at_once.status == "failed"
    assert [attempt.result for attempt in incremental.all_attempts()] == [
        attempt.result for attempt in at_once.all_attempts()
    ]
