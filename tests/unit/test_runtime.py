"""``Runtime``: many runs in one event loop, each started, followed, answered and interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from nodes.errors import RunHeld, RunOpsError, UsageError
from runtime import Runtime, events
from runtime.language import prepare, reader
from runtime.log import entries as log_entries
from runtime.log.store import file_store
from runtime.runs import start
from runtime.runs.runtime import Run
from runtime.secrets import sources
from runtime.settings import settings
from runtime.testing import memory_store

FLOW = """version: 1
name: Slow
inputs: {who: {type: string}}
secrets: [TOKEN]
nodes:
  - {id: first, type: transform, expr: "{{ inputs.who }}"}
  - {id: gate, type: transform, python: "gates:wait", args: {who: "{{ inputs.who }}"}}
  - {id: last, type: transform, expr: "{{ gate | length }}"}
output: "{{ first }}-{{ last }}"
"""

ASKS = """version: 1
name: Asks
nodes:
  - {id: who, type: context, ask: {name: {question: Who?}, count: {question: How many?, type: integer, default: 2}}}
  - {id: said, type: transform, expr: "{{ who.name }} {{ who.count }}"}
output: "{{ said }}"
"""


class Gates:
    """Gates at which runs wait, by name, until the test opens them."""

    def __init__(self) -> None:
        """All are shut."""
        self.open: dict[str, threading.Event] = {}

    def of(self, who: str) -> threading.Event:
        """The gate of a run."""
        return self.open.setdefault(who, threading.Event())

    def wait(self, who: str) -> str:
        """Called by a node."""
        assert self.of(who).wait(20)
        return "a-secret-token"


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gates]:
    """A module with the function."""
    gates, module = Gates(), ModuleType("gates")

    def wait(who: str) -> str:
        return gates.wait(who)

    wait.__module__ = "gates"
    module.wait = wait  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gates", module)
    yield gates
    for gate in gates.open.values():
        gate.set()


def runtime(folder: Path, token: str = "a-secret-token") -> Runtime:
    """A runtime that keeps runs below ``folder``."""
    chosen = settings.Settings(home=folder / "home", python_modules=("gates",))
    return Runtime(settings=chosen, secrets={"TOKEN": token})


def flow(folder: Path, text: str = FLOW) -> Path:
    """A workflow file."""
    file = folder / "flow.yaml"
    file.write_text(text)
    return file


async def at_gate(run: Run) -> list[log_entries.AnyEntry]:
    """Wait until the run has called its function; return its log entries up to there."""
    seen: list[log_entries.AnyEntry] = []
    async with asyncio.timeout(20), contextlib.aclosing(run.follow()) as entries:
        async for entry in entries:
            seen.append(entry)
            if isinstance(entry, log_entries.Call) and entry.path == "gate":
                break
    return seen


async def test_runs_execute_side_by_side(tmp_path: Path, gates: Gates) -> None:
    """Each run yields its own output, whichever ends first."""
    file = flow(tmp_path)
    async with runtime(tmp_path) as one:
        runs = [await one.start(file, {"who": who}) for who in ("a", "b", "c")]
        for run in reversed(runs):
            await at_gate(run)
        for who in ("c", "a", "b"):
            gates.of(who).set()
        assert [(await run.wait()).output for run in runs] == ["a-14", "b-14", "c-14"]
    assert len({run.id for run in runs}) == 3


async def test_an_interrupted_run_resumes_elsewhere(tmp_path: Path, gates: Gates) -> None:
    """An interrupted run gives up its lock, and another runtime resumes it; while it ran, no other runtime could."""
    async with runtime(tmp_path) as one, runtime(tmp_path) as other:
        run = await one.start(flow(tmp_path), {"who": "a"})
        await at_gate(run)
        with pytest.raises(RunHeld):
            await other.resume(run.id)
        assert (await one.interrupt(run.id)).status == "interrupted"
        with pytest.raises(UsageError) as refused:
            await one.interrupt(run.id)
        assert refused.value.code == "run-not-carried"
        gates.of("a").set()
        assert (await (await other.resume(run.id)).wait()).output == "a-14"


async def test_only_to_its_end_interrupts_its_run_when_it_is_cancelled(tmp_path: Path, gates: Gates) -> None:
    """A cancelled ``wait`` leaves the run alone; a cancelled ``to_its_end`` interrupts it and ends once the end is written, however often it is cancelled."""
    async with runtime(tmp_path) as one:
        left, taken = [await one.start(flow(tmp_path), {"who": who}) for who in ("left", "taken")]
        waiters = [asyncio.create_task(left.wait()), asyncio.create_task(taken.to_its_end())]
        for run in (left, taken):
            await at_gate(run)
        for _twice in range(2):
            for each in waiters:
                each.cancel()
            await asyncio.sleep(0)
        gone = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(each) for each in gone] == [asyncio.CancelledError] * 2
        store = file_store.Files(tmp_path / "home")
        assert [store.owned(each.id) for each in (left, taken)] == [True, False]
        last = store.read(taken.id).entries[-1]
        assert isinstance(last, log_entries.Note)
        assert (last.name, last.data["status"]) == ("ended", "interrupted")
        gates.of("left").set()
        assert (await left.wait()).output == "left-14"


async def test_a_run_that_was_announced_exists_whatever_is_lost(tmp_path: Path) -> None:
    """The first line of a run is synced before a session writes that it follows the run."""
    store, found = memory_store.MemoryStore(tmp_path, hostile=True), list[str]()

    async def begun(run: str) -> None:
        store.lose(run)
        found.extend(each.kind for each in store.reader.read(run).entries)

    chosen = settings.Settings(home=tmp_path / "home")
    async with Runtime(store=store, settings=chosen) as one:
        fit = prepare.prepare(reader.load(flow(tmp_path, ASKS)), {}, sources.Given({}))
        run = await one.begin(fit, options=start.Options(begun=begun))
        await run.wait()
    assert found[:1] == ["scope"]


async def test_leaving_the_block_interrupts_active_runs(tmp_path: Path, gates: Gates) -> None:
    """Leaving the block writes the end of each run and frees each lock."""
    async with runtime(tmp_path) as one:
        runs = [await one.start(flow(tmp_path), {"who": who}) for who in ("a", "b")]
        for run in runs:
            await at_gate(run)
    store = file_store.Files(tmp_path / "home")
    assert [(await run.wait()).status for run in runs] == ["interrupted"] * 2
    assert [store.owned(run.id) for run in runs] == [False] * 2


async def test_a_wait_that_times_out_stops_no_run(tmp_path: Path, gates: Gates) -> None:
    """A ``wait`` that times out leaves the run alone."""
    async with runtime(tmp_path) as one:
        run = await one.start(flow(tmp_path), {"who": "a"})
        await at_gate(run)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await run.wait()
        gates.of("a").set()
        assert (await run.wait()).status == "passed"


@pytest.mark.parametrize("key", ["nobody", "../x"])
async def test_missing_runs_files_and_secrets_are_refused(key: str, tmp_path: Path) -> None:
    """An unknown run, a missing file and a missing secret each raise an error of RunOps, and nothing is left running."""
    async with runtime(tmp_path) as one:
        for attempt in (
            one.resume(key),
            one.start(tmp_path / "none.yaml"),
            Runtime(secrets={}).start(flow(tmp_path), {"who": "a"}),
        ):
            with pytest.raises(RunOpsError):
                await attempt


async def test_the_environment_of_the_process_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets and settings of the environment are not used, and no folder of the process is written to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "of-the-environment")
    monkeypatch.setenv("RUNOPS_PYTHON_MODULES", "gates")
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / "elsewhere"))
    file = flow(tmp_path)
    async with Runtime(store=memory_store.MemoryStore(tmp_path / "memory")) as one:
        with pytest.raises(RunOpsError, match="gates"):
            await one.start(file, {"who": "a"})
        file.write_text("version: 1\nname: t\nsecrets: [TOKEN]\nnodes: [{id: a, type: transform, expr: 1}]\n")
        with pytest.raises(RunOpsError, match="TOKEN"):
            await one.start(file)
        file.write_text("version: 1\nname: t\nnodes: [{id: a, type: transform, expr: 1}]\n")
        assert (await (await one.start(file)).wait()).status == "passed"
    assert sorted(each.name for each in tmp_path.iterdir() if each.name != "memory") == ["flow.yaml"]


async def test_questions_are_answered_and_the_run_continues(tmp_path: Path) -> None:
    """A pause reports its questions; a missing, unknown or invalid answer is refused and loses nothing; the right one continues the run."""
    async with runtime(tmp_path) as one:
        paused = await (await one.start(flow(tmp_path, ASKS))).wait()
        assert paused.question is not None
        assert set(paused.question["evidence"]["questions"]) == {"name", "count"}
        for given, code in (
            ({}, "missing-answer"),
            ({"nam": "x"}, "unknown-answer"),
            ({"name": "x", "count": "many"}, "bad-answer"),
        ):
            with pytest.raises(UsageError) as refused:
                await one.answer(paused.run, given)
            assert refused.value.code == code
        assert (await (await one.answer(paused.run, {"name": "Ada"})).wait()).output == "Ada 2"


async def test_a_key_has_one_run(tmp_path: Path) -> None:
    """Starting twice with the same key yields the same run and its result again."""
    async with runtime(tmp_path) as one:
        runs = [
            await one.start(
                flow(tmp_path, "version: 1\nname: t\nnodes: [{id: a, type: transform, expr: 1}]\noutput: '{{ a }}'\n"),
                key="nightly",
            )
            for _ in range(2)
        ]
        assert [(await run.wait()).output for run in runs] == [1, 1]
    assert runs[0].id == runs[1].id


async def test_following_sees_each_entry_once(tmp_path: Path, gates: Gates) -> None:
    """A follower sees each entry once, in order, masked and to the end, from any cursor of an active, an interrupted or a resumed run."""
    async with runtime(tmp_path) as one:
        run = await one.start(flow(tmp_path), {"who": "a"})

        async def followed(after: int) -> list[int]:
            return [entry.seq async for entry in one.follow(run.id, after)]

        begun = await at_gate(run)
        cursor = begun[-1].seq
        followers = [asyncio.create_task(followed(after)) for after in range(cursor + 1)]
        await run.interrupt()
        seen = [await each for each in followers]
        last = seen[0][-1]
        assert seen == [list(range(after + 1, last + 1)) for after in range(cursor + 1)]
        gates.of("a").set()
        again = await one.resume(run.id)
        assert await followed(last) == list(range(last + 1, await _length(tmp_path, again)))
        whole = [entry async for entry in one.follow(run.id)]
    assert [entry.seq for entry in whole] == list(range(1, len(whole) + 1))
    assert "a-secret-token" not in json.dumps([entry.model_dump(mode="json") for entry in whole])


async def _length(folder: Path, run: Run) -> int:
    await run.wait()
    return len(file_store.Files(folder / "home").read(run.id).entries) + 1


async def test_events_name_their_run_and_can_be_sent(tmp_path: Path) -> None:
    """Each event has its run and a number without gaps, and is JSON; a listener that raises disturbs nothing."""
    received: list[events.Event] = []

    def listen(event: events.Event) -> None:
        received.append(event)
        raise ZeroDivisionError

    async with runtime(tmp_path) as one:
        text = "version: 1\nname: t\nnodes: [{id: a, type: transform, expr: 1}]\n"
        run = await one.start(flow(tmp_path, text), listener=listen)
        assert (await run.wait()).status == "passed"
    assert [(each.run, each.seq) for each in received] == [(run.id, number + 1) for number in range(len(received))]
    sent = [json.loads(json.dumps(each.as_json())) for each in received]
    assert [each["event"] for each in sent] == ["run-started", "step-started", "step-finished", "run-ended"]


async def test_logging_records_what_happens(tmp_path: Path, gates: Gates, caplog: pytest.LogCaptureFixture) -> None:
    """The logger `runops` records passed runs as INFO, failed ones as ERROR and steps as DEBUG; each record has run and event, and no secret."""
    good, bad = flow(tmp_path), tmp_path / "bad.yaml"
    bad.write_text('version: 1\nnodes:\n  - {id: one, type: transform, expr: "{{ 1 / 0 }}"}\n')
    gates.of("a").set()
    async with runtime(tmp_path) as one:
        with caplog.at_level("INFO", "runops"):
            run = await one.start(good, {"who": "a"})
            await run.wait()
            failed = await one.start(bad)
            await failed.wait()
        logged = [(each.levelname, each.__dict__["run"], each.__dict__["event"]["event"]) for each in caplog.records]
        assert logged == [
            ("INFO", run.id, "run-started"),
            ("INFO", run.id, "run-ended"),
            ("INFO", failed.id, "run-started"),
            ("ERROR", failed.id, "run-ended"),
        ]
        assert f"run {failed.id}: failed at one: " in caplog.messages[-1]
        caplog.clear()
        with caplog.at_level("DEBUG", "runops"):
            await (await one.start(good, {"who": "a"})).wait()
        assert [each.levelname for each in caplog.records].count("DEBUG") > 3
        assert "a-secret-token" not in repr([each.__dict__ for each in caplog.records])
