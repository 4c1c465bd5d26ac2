"""The effect of `resume` by the state of the run: the table's rows that need no own process, with crashes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nodes.errors import SiteError
from runtime.log.store import file_store
from runtime.log.writer import LogWriter
from runtime.runs import answers
from runtime.settings import settings
from runtime.system import crash_points
from runtime.workspace import host, run_index
from tests.fakes import FakePage
from tests.now import now
from tests.rig import Killed, Rig

OPEN = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"
PAY = "{id: pay, type: browser_action, action: click, target: {css: pay}%s}"
FILL = "{id: name, type: browser_action, action: fill, target: {css: name}, value: Ada}"
ASK = "{id: who, type: context, ask: {approver: Who?}}"


def flow(*nodes: str, output: str = "'-'") -> str:
    """A workflow file with these nodes."""
    return "version: 1\nname: test\nnodes:\n" + "".join(f"  - {each}\n" for each in nodes) + f"output: {output}\n"


async def refuse(_target: str, _page: FakePage) -> None:
    """Let the site perform the action and show an error all the same."""
    raise SiteError("verify-failed", "something went wrong", phase="after")


@pytest.mark.parametrize(
    ("more", "status", "actions"),
    [("", "paused", 1), (", after_crash: skip", "passed", 1), (", after_crash: retry", "passed", 2)],
)
async def test_a_failed_action_that_may_have_happened_is_reconciled(
    tmp_path: Path, more: str, status: str, actions: int
) -> None:
    """A run that failed after its action asks a person or follows `after_crash` when resumed, and never simply repeats the action."""
    rig = Rig(tmp_path, flow(OPEN, PAY % more))
    rig.site.on_click = refuse
    assert (await rig.start()).status == "failed"
    rig.die()
    rig.site.on_click = None
    assert ((await rig.resume()).status, len(rig.site.actions)) == (status, actions)


async def kill_at(rig: Rig, line: int) -> bool:
    """Resume the run and kill it before its ``line``-th entry; returns if it was killed."""
    written = 0
    append = LogWriter._append

    def counted(self: LogWriter, entry: object) -> object:
        nonlocal written
        written += 1
        if written == line:
            raise Killed
        return append(self, entry)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LogWriter, "_append", counted)
        try:
            await rig.resume()
        except Killed:
            return True
        finally:
            rig.die()
    return False


@pytest.mark.parametrize("asked", ["decision", "question"])
async def test_an_answer_of_a_person_outlives_any_crash(tmp_path: Path, asked: str) -> None:
    """After an answer or decision, a resume killed before any of its lines asks no question again, and the action is done once."""

    async def die(_target: str, _page: FakePage) -> None:
        raise Killed

    for line in range(1, 40):
        rig = Rig(tmp_path / str(line), flow(OPEN, ASK if asked == "question" else PAY % "", "{id: end, type: transform, expr: 1}"))  # fmt: skip
        if asked == "question":
            assert (await rig.start()).status == "paused"
        else:
            rig.site.on_click = die
            with pytest.raises(Killed):
                await rig.start()
            rig.site.on_click = None
            rig.die()
            assert (await rig.resume()).status == "paused"
        rig.die()
        chosen = settings.Settings(home=rig.home)
        if asked == "question":
            now(answers.write(host.of_command(chosen), rig.id, {"approver": "Ada"}))
        else:
            now(run_index.decide(file_store.FileStore(chosen.home), rig.id, "done"))
        killed = await kill_at(rig, line)
        ended = await rig.resume() if killed else None
        assert ended is None or ended.status == "passed", line
        assert rig.site.actions == ([] if asked == "question" else ["css=pay"])
        rig.die()
        if not killed:
            assert line > 5
            return
    raise AssertionError("the run never came to its end")


@pytest.mark.parametrize("verdict", ["done", "not-done", "skip"])
async def test_a_written_decision_counts_wherever_decide_died(
    tmp_path: Path, verdict: run_index.Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If `decide` is killed after any of its lines, a written decision counts and no question is asked again."""

    async def die(_target: str, _page: FakePage) -> None:
        raise Killed

    for line in range(1, 10):
        rig = Rig(tmp_path / str(line), flow(OPEN, PAY % "", "{id: end, type: transform, expr: 1}"))
        rig.site.before_click = die
        with pytest.raises(Killed):
            await rig.start()
        rig.site.before_click = None
        rig.die()
        assert (await rig.resume()).status == "paused"
        rig.die()
        passed: list[crash_points.CrashPoint] = []

        def hook(
            point: crash_points.CrashPoint, passed: list[crash_points.CrashPoint] = passed, line: int = line
        ) -> None:
            passed.append(point)
            if len(passed) == line:
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(crash_points, "hook", hook)
            try:
                now(run_index.decide(file_store.FileStore(rig.home), rig.id, verdict))
            except Killed:
                pass
            else:
                assert line > 3
                return
        ended = await rig.resume()
        if crash_points.CrashPoint.DECIDED not in passed:
            assert (line, ended.status) == (1, "paused")
            continue
        assert (line, ended.status, rig.site.actions) == (line, "passed", ["css=pay"] if verdict == "not-done" else [])
    raise AssertionError("`decide` never came to its end")


@pytest.mark.parametrize("keep", [True, False])
async def test_a_pause_keeps_the_browser_or_closes_it(tmp_path: Path, keep: bool) -> None:
    """In a kept browser the answered run continues and fills nothing again; after a closed one it restores a new browser and fills again."""
    rig = Rig(tmp_path, flow(OPEN, FILL, ASK, PAY % ""), keep_browser=keep)
    assert (await rig.start()).status == "paused"
    assert rig.browser is not None
    assert rig.browser.closed is not keep
    rig.die(browser_survives=not rig.browser.closed)
    now(answers.write(host.of_command(settings.Settings(home=rig.home)), rig.id, {"approver": "Ada"}))
    assert (await rig.resume()).status == "passed"
    assert rig.site.records == [{"css=name": "Ada"}]
    assert rig.calls("name") == (["ok"] if keep else ["ok", "ok"])


@pytest.mark.parametrize("effect", ["effect", "idempotent"])
async def test_a_list_in_another_order_is_resumed_by_key(tmp_path: Path, effect: str) -> None:
    """If the list is reversed since the last checkpoint, a confirmed payment keeps the old order. If nothing depends on the list, the rest follows the new order."""
    rows = "{id: rows, type: browser_query, query: extract, target: {css: rows}, fields: {n: b}}"
    look = "{id: look, type: browser_query, query: text, target: {css: 'paid{{ o.n }}'}}"
    pay = f"{{id: pay, type: browser_action, action: click, target: {{css: 'pay{{{{ o.n }}}}'}}, effect: {effect}, confirm: {{settle: 0, nodes: [{look}], done: \"{{{{ look == 'yes' }}}}\"}}}}"
    loop = f"{{id: each, type: iterate, over: '{{{{ rows }}}}', as: o, key: '{{{{ o.n }}}}', collect: '{{{{ o.n }}}}', nodes: [{pay}, {FILL.replace('id: name', 'id: note')}]}}"
    group = f"{{id: all, type: group, nodes: [{FILL}, {rows}, {loop}]}}"
    rig = Rig(tmp_path, flow(OPEN, group, output="'{{ all }}'"))
    listed, listed_anew = ["A", "B", "C", "D"], list[str]()
    rig.site.texts["css=rows"] = json.dumps([[each] for each in listed])

    async def pay_one(target: str, page: FakePage) -> None:
        page.browser.site.texts[target.replace("pay", "paid")] = "yes"
        if writing := [
            each for each in asyncio.all_tasks() if "Checkpoints" in getattr(each.get_coro(), "__qualname__", "")
        ]:
            await asyncio.wait(writing)
        if target == "css=payB" and not listed_anew:
            listed_anew.append(target)
            rig.site.texts["css=rows"] = json.dumps([[each] for each in reversed(listed)])
            raise Killed

    rig.site.on_click = pay_one
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    ended = await rig.resume()
    assert ended.status == "passed"
    again = ["css=payC", "css=payD"] if effect == "effect" else ["css=payA", "css=payB", "css=payD", "css=payC"]
    assert rig.site.actions == ["css=payA", "css=payB", *again]
    assert sorted(str(each) for each in ended.output) == listed
