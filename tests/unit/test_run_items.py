"""A run's thread as window items: each attempt is a call with its output, wherever the log ends. Reading writes nothing and loads only what is shown."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from director.subjects import run_items, runs
from nodes.errors import UsageError
from nodes.values import Json
from runtime.context import briefs, window
from runtime.context import items as window_items
from runtime.language import reader
from runtime.log import entries as log_entries
from runtime.log import history
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter, chars_of
from runtime.messages.messages import Item, ToolCall, ToolOutput
from runtime.models.client import client
from runtime.runs import run
from runtime.secrets import masking
from runtime.testing import memory_store
from runtime.testing.responses import rules
from tests.fakes import FakePage
from tests.now import now
from tests.rig import Killed, Rig
from tests.unit.test_subjects import rig_of


def demand_protocol(items: list[Item]) -> None:
    """Raises where the API would refuse these items."""
    rules.check_thread(rules.items_of([client._item(each) for each in items]), set())


def everything(parts: Iterable[window.WindowItem], *, pointers: bool) -> list[Item]:
    """The items of all parts of a window, in order."""
    return [item for part in parts for item in part.items(pointers=pointers)]


def check(parts: list[window.WindowItem], entries: list[log_entries.AnyEntry]) -> None:
    """Check that each call of the run's thread, and no other, has an item that the API accepts, with the right size."""
    begun = [each for each in entries if isinstance(each, log_entries.Call) and each.thread == log_entries.RUN_THREAD]
    over = {each.call for each in entries if isinstance(each, log_entries.Result)}
    assert [each.line for each in parts] == [each.seq for each in begun]
    for pointers in (False, True):
        items = everything(parts, pointers=pointers)
        demand_protocol(items)
        asked = [each for each in items if isinstance(each, ToolCall)]
        assert len({each.id for each in asked}) == len(begun)
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", each.name) for each in asked)
        assert [json.loads(each.arguments)["path"] for each in asked] == [briefs.ours(each.path) for each in begun]
        outputs = [each.text for each in items if isinstance(each, ToolOutput)]
        still = [text.startswith(run_items.OPEN) for text in outputs]
        assert still == [each.call not in over for each in begun]
        for item in parts:
            size = item.size(pointers=pointers)
            assert size.messages == len(item.items(pointers=pointers))
            assert size.chars == sum(map(chars_of, item.items(pointers=pointers)))
    assert all(each.size(pointers=True).within(each.size(pointers=False)) for each in parts)


@pytest.fixture(scope="module")
def rigs(tmp_path_factory: pytest.TempPathFactory) -> list[Rig]:
    """Three runs: one failed, resumed and failed again; one killed at its second payment and resumed; one passed."""
    return asyncio.run(_lived(tmp_path_factory))


async def _lived(tmp_path_factory: pytest.TempPathFactory) -> list[Rig]:
    failed = rig_of(tmp_path_factory.mktemp("failed"))
    await failed.start()
    failed.die()
    await failed.resume()
    failed.die()

    killed = rig_of(tmp_path_factory.mktemp("killed"), missing="")
    actions: list[str] = []

    async def kill(target: str, _page: FakePage) -> None:
        actions.append(target)
        if len(actions) == 2:
            raise Killed

    killed.site.before_click = kill
    with pytest.raises(Killed):
        await killed.start()
    killed.die()
    await killed.resume()
    killed.die()

    passed = rig_of(tmp_path_factory.mktemp("passed"), missing="")
    assert (await passed.start()).status == "passed"
    passed.die()
    return [failed, killed, passed]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_log_cut_anywhere_is_a_thread_that_a_model_may_read(rigs: list[Rig], data: st.DataObject) -> None:
    """A log cut at any byte gives items that the API accepts, shows an open call as open, and stays unchanged."""
    rig = data.draw(st.sampled_from(rigs))
    whole = (rig.home / "conversations" / f"{rig.id}.jsonl").read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    other = log_store.new_id()
    file = rig.home / "conversations" / f"{other}.jsonl"
    file.write_bytes(cut)
    try:
        if b"\n" not in cut:
            with pytest.raises(UsageError):
                runs.RunSubject(rig.reader, other)
            return
        subject = runs.RunSubject(rig.reader, other)
        check(list(subject.items()), rig.reader.read(other).entries)
        assert all([subject.title, subject.summary(), subject.outline(), subject.browser_state(), subject.directive()])
        assert subject.variables()
        assert file.read_bytes() == cut
        assert not rig.reader.read(other).owned
    finally:
        file.unlink()


TEXTS = st.text(max_size=30) | st.sampled_from(
    ["[page]", "[end of page]", "x" * 5000, "\u2028", "\x00", "@state/run/line/1"]
)
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6)  # fmt: skip
STEPS = st.fixed_dictionaries(
    {
        "path": st.sampled_from(["a", "a", "g/b", "each[#1%2F2]/pay", "x" * 70, "each[#名]/p"]),
        "node": st.sampled_from(["browser_action", "transform", "acme.captcha", "n" * 90, "ü.ö"]),
        "action": st.none() | st.just("click"),
        "args": VALUES,
        "thread": st.sampled_from([log_entries.RUN_THREAD, log_entries.RUN_THREAD, "confirm:c2", "model:c2"]),
        "outcome": st.none() | st.sampled_from(["ok", "error", "recovered", "interrupted", "skipped"]),
        "value": VALUES,
    }
)


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=8))
def test_items_of_any_arguments_and_values_are_accepted(steps: list[dict[str, Json]]) -> None:
    """Items of any node type, path, arguments and values are accepted; calls of other threads are left out."""
    with tempfile.TemporaryDirectory() as folder:
        store = memory_store.MemoryStore(Path(folder))
        writer = LogWriter(now(store.create("r")), history.History(), masking.Masker({}), store.reader)
        run.write_header(writer, reader.parse("version: 1\nnodes: [{id: one, type: transform, expr: 1}]", "x.yaml"), {})
        for number, step in enumerate(steps, 1):
            call = log_entries.Call(
                path=step["path"], node=step["node"], action=step["action"], attempt=number, effect="read",
                args=step["args"], fingerprint="f", thread=step["thread"],
            )  # fmt: skip
            call = writer.call(call)
            error = {
                "code": "x",
                "who": "site",
                "phase": "after",
                "message": "m",
                "evidence": {"v": step["value"]},
                "fix": "n",
            }
            if step["outcome"] is not None:
                failed = step["outcome"] == "error"
                writer.result(
                    call, step["outcome"], value=None if failed else step["value"], error=error if failed else None
                )
        subject = runs.RunSubject(store.reader, "r")
        check(list(subject.items()), store.reader.read("r").entries)
        for item in subject.items():
            output = item.items(pointers=True)[1]
            assert isinstance(output, ToolOutput)
            if "kept at " in output.text:
                path = output.text.partition("kept at ")[2].partition(")")[0]
                assert subject.state(path) is not None


def test_a_long_run_is_read_no_further_than_it_is_shown() -> None:
    """The newest of 10,000 steps are built from log lines alone, without a store that could load blobs."""
    past = history.History()
    large = log_entries.blob_of(json.dumps("x" * 9000).encode(), "@state/r/each/pay")
    for number in range(10_000):
        line = 2 * number + 1
        call = log_entries.Call(
            path=f"each[{number}]/pay", node="browser_action", attempt=1, effect="read", args={"n": number}, fingerprint="f",
            seq=line, call=f"c{line}",
        )  # fmt: skip
        past.add(call)
        blob = large if number % 1000 == 999 else None
        past.add(
            log_entries.Result(call=call.call, status="ok", value=None if blob else number, blob=blob, seq=line + 1)
        )
    items = run_items.steps(past)
    assert [each.line for each in items] == list(range(2 * (10_000 - run_items.MOST) + 1, 20_000, 2))
    assert sum(each.size(pointers=True).tokens for each in items) < run_items.MOST * 200
    assert len(everything(items, pointers=False)) == 2 * run_items.MOST


def thread_of(writer: LogWriter, *messages: str) -> window_items.Thread:
    """A thread with these messages."""
    for each in messages:
        writer.said(log_entries.User(thread="model:c2"), each, "")
    return window_items.Thread(writer.history.thread("model:c2"), writer)


def test_a_session_follows_the_steps_of_its_run(tmp_path: Path) -> None:
    """In one window the run's steps are oldest and dropped first, the newest message is the session's, and token sums match the parts."""
    store = memory_store.MemoryStore(tmp_path)
    writer = LogWriter(now(store.create("r")), history.History(), masking.Masker({}), store.reader)
    for number in range(run_items.MOST + 20):
        call = log_entries.Call(path=f"s{number}", node="transform", attempt=1, effect="read", fingerprint="f")
        writer.result(writer.call(call), "ok", value=number)
    thread = thread_of(writer, "Why did it fail?", "And now?")
    both = run_items.AfterSteps(run_items.steps(writer.history), thread)
    assert len(both) == run_items.MOST + 2
    assert [both[number].what for number in (0, run_items.MOST - 1, run_items.MOST)] == ["step", "step", "user"]
    assert both.newest_word == run_items.MOST + 1
    assert both.word == thread.word
    for number in range(len(both) + 1):
        assert both.tokens_before(number) == sum(both[each].size(pointers=False).tokens for each in range(number))
    around = window.RequestFrame((window.Part("rules", "Work."),))
    most = 0
    for limit in (200, 1_000, 4_000, 100_000):
        built = window.build(both, around, window.Limits(compress_at=limit, max_messages=None))
        demand_protocol(list(built.items))
        assert built.items[-1] == thread[1].items(pointers=False)[0]
        assert len(built.items) >= most
        most = len(built.items)
    assert most == 2 * run_items.MOST + 2
