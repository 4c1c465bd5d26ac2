"""Death and resume on a fake site: steps that are repeated, steps that are not, and questions that are asked."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from runtime import events
from runtime.log.store import file_store
from runtime.system import crash_points
from runtime.workspace import run_index
from tests.fakes import FakePage, FakeSite
from tests.now import now
from tests.rig import Killed, Rig

PAY = 'role=button name="Pay"'


def pay(more: str = "") -> str:
    """A click that must not happen twice."""
    return f"{{id: pay, type: browser_action, action: click, target: {{role: button, name: Pay}}{more}}}"


CONFIRM = (
    ", confirm: {settle: 0, nodes: [{id: look, type: browser_action, action: goto, url: 'http://shop.test/1'},"
    " {id: status, type: browser_query, query: text, target: {test_id: status}}], done: \"{{ status == 'paid' }}\"}"
)
VERIFY = ", verify: [{text: paid, target: {css: p}}]"
OPEN = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"


def flow(*nodes: str, more: str = "") -> str:
    """A workflow file with these top-level nodes."""
    return f"version: 1\nname: test\n{more}\nnodes:\n" + "".join(f"  - {node}\n" for node in nodes)


async def kill(_target: str, _page: FakePage) -> None:
    """Let the process die at this point."""
    raise Killed


def paid(site: FakeSite) -> None:
    """Show the site as paid."""
    site.texts |= {'test_id="status"': "paid", "=css=p": "paid"}


async def kill_after_paying(_target: str, page: FakePage) -> None:
    """Let the site perform the payment, and the process die before it learns of it."""
    paid(page.browser.site)
    raise Killed


async def pay_it(_target: str, page: FakePage) -> None:
    """Let the site perform the payment."""
    paid(page.browser.site)


async def die_and_resume(rig: Rig, *, before: bool = False, browser_survives: bool = False) -> events.RunEnded:
    """Run until the process is killed at the click (``before`` or after it reached the site), then continue."""
    if before:
        rig.site.before_click = kill
    else:
        rig.site.on_click = kill_after_paying
    with pytest.raises(Killed):
        await rig.start()
    rig.site.before_click, rig.site.on_click = None, pay_it
    rig.die(browser_survives=browser_survives)
    return await rig.resume()


def typing(value: str, more: str = "") -> str:
    """A workflow that types a text, which may contain the input ``said``."""
    node = (
        f"{{id: find, type: browser_action, action: type, target: {{role: button, name: Pay}}, value: '{value}'{more}}}"
    )
    return flow(OPEN, node, more="inputs: {said: {type: string}}")


@pytest.mark.parametrize("survives", [False, True])
@pytest.mark.parametrize(
    ("value", "more", "status", "sent"),
    [
        ("{{ inputs.said }}", "", "paused", 1),
        ("{{ inputs.said }}", VERIFY, "paused", 1),
        ("{{ inputs.said }}", CONFIRM, "passed", 1),
        ("{{ inputs.said }}", ", effect: idempotent", "passed", 2),
        ("tea {{ inputs.said }}", "", "paused", 1),
    ],
)
async def test_a_line_break_that_is_typed_is_an_action(
    tmp_path: Path, value: str, more: str, status: str, survives: bool, sent: int
) -> None:
    """After a crash, typed text that submits a form like Enter is reconciled like a click, even if it comes from an input. The author's `effect` comes first."""
    rig = Rig(tmp_path, typing(value, more), inputs={"said": "tea\n"})
    ended = await die_and_resume(rig, browser_survives=survives)
    if more == VERIFY and survives:
        status = "passed"
    assert (ended.status, len(rig.site.actions)) == (status, sent)


async def test_a_text_without_a_line_break_is_typed_again(tmp_path: Path) -> None:
    """A text without a line break is no action and is typed again."""
    rig = Rig(tmp_path, typing("{{ inputs.said }}"), inputs={"said": "tea"})

    async def killed(*_given: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FakePage, "fill", killed)
        with pytest.raises(Killed):
            await rig.start()
    rig.die()
    assert (await rig.resume()).status == "passed"


async def test_a_browser_that_outlived_the_last_step_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run killed after its last step closes the surviving browser when resumed, though it has nothing left to do there."""
    rig = Rig(tmp_path, flow(OPEN, pay()))

    def die(point: crash_points.CrashPoint) -> None:
        if point == crash_points.CrashPoint.COMMITTED:
            raise Killed

    monkeypatch.setattr(crash_points, "hook", die)
    with pytest.raises(Killed):
        await rig.start()
    monkeypatch.setattr(crash_points, "hook", None)
    rig.die(browser_survives=True)
    assert rig.survivor is not None
    survivor, rig.survivor.closed = rig.survivor, False
    ended = await rig.resume()
    assert (ended.status, rig.site.actions, survivor.closed) == ("passed", [PAY], True)


@pytest.mark.parametrize("browser_survives", [True, False])
@pytest.mark.parametrize("before", [True, False])
async def test_with_confirm_an_action_is_done_exactly_once(
    tmp_path: Path, before: bool, browser_survives: bool
) -> None:
    """Killed before or after the payment, with or without its browser, a run with `confirm` pays exactly once."""
    rig = Rig(tmp_path, flow(OPEN, pay(CONFIRM)))
    ended = await die_and_resume(rig, before=before, browser_survives=browser_survives)
    assert ended.status == "passed"
    assert rig.site.actions == [PAY]
    done = ["recovered"] if browser_survives else ["interrupted done"]
    assert rig.calls("pay") == (["interrupted not-done", "ok"] if before else done)
    assert rig.history.open_calls() == []


async def test_verify_on_the_surviving_page_proves_the_action(tmp_path: Path) -> None:
    """Without `confirm`, a `verify` that holds now and did not hold before the action proves the action done."""
    rig = Rig(tmp_path, flow(OPEN, pay(VERIFY)))
    ended = await die_and_resume(rig, browser_survives=True)
    assert (ended.status, rig.site.actions, rig.calls("pay")) == ("passed", [PAY], ["recovered"])


async def test_verify_that_holds_before_the_action_proves_nothing(tmp_path: Path) -> None:
    """A `verify` that already held before the action proves nothing: the run pauses."""
    rig = Rig(tmp_path, flow(OPEN, pay(VERIFY)))
    rig.site.texts["=css=p"] = "paid"
    ended = await die_and_resume(rig, before=True, browser_survives=True)
    assert (ended.status, ended.exit, rig.site.actions, rig.calls("pay")) == ("paused", 4, [], ["open"])


@pytest.mark.parametrize(
    ("verdict", "actions", "calls"),
    [
        ("done", 1, ["interrupted done"]),
        ("not-done", 2, ["interrupted not-done", "ok"]),
        ("skip", 1, ["interrupted skipped"]),
    ],
)
async def test_an_unknown_outcome_is_asked(
    tmp_path: Path, verdict: run_index.Verdict, actions: int, calls: list[str]
) -> None:
    """Without `confirm` or `verify`, the run pauses with exit 4, repeats nothing, and continues as the person decides."""
    rig = Rig(tmp_path, flow(OPEN, pay(), "{id: end, type: transform, expr: 1}"))
    ended = await die_and_resume(rig)
    assert (ended.status, ended.exit, ended.path) == ("paused", 4, "pay")
    assert ended.question is not None
    assert ended.question["reason"] == "outcome-unknown"
    rig.die()
    now(run_index.decide(file_store.FileStore(tmp_path), rig.id, verdict))
    ended = await rig.resume()
    assert ended.status == "passed"
    assert len(rig.site.actions) == actions
    assert rig.calls("pay") == calls


@pytest.mark.parametrize(
    ("policy", "actions", "calls"), [("retry", 2, ["interrupted not-done", "ok"]), ("skip", 1, ["interrupted skipped"])]
)
async def test_the_author_may_decide_beforehand(tmp_path: Path, policy: str, actions: int, calls: list[str]) -> None:
    """`after_crash: retry` and `after_crash: skip` replace the person's decision."""
    rig = Rig(tmp_path, flow(OPEN, pay(f", after_crash: {policy}")))
    ended = await die_and_resume(rig)
    assert (ended.status, len(rig.site.actions), rig.calls("pay")) == ("passed", actions, calls)


async def test_an_error_in_confirm_is_unknown(tmp_path: Path) -> None:
    """A `confirm` that fails proves nothing: the run pauses and nothing is done."""
    rig = Rig(tmp_path, flow(OPEN, pay(CONFIRM)))
    rig.missing.add('test_id="status"')
    ended = await die_and_resume(rig, before=True)
    assert (ended.status, rig.site.actions, rig.calls("pay")) == ("paused", [], ["interrupted"])


async def test_filled_fields_are_filled_again(tmp_path: Path) -> None:
    """A form filled by leaves and two groups, killed before its submit with its browser gone, sends every field."""
    fill = "{{id: {0}, type: browser_action, action: fill, target: {{label: {0}}}, value: {0}}}"
    groups = [f"{{id: g{n}, type: group, nodes: [{fill.format(f'c{n}')}, {fill.format(f'd{n}')}]}}" for n in (1, 2)]
    rig = Rig(tmp_path, flow(OPEN, fill.format("a"), fill.format("b"), *groups, pay(CONFIRM)))
    ended = await die_and_resume(rig, before=True)
    assert ended.status == "passed"
    assert rig.site.records == [{f'label="{name}"': name for name in ("a", "b", "c1", "d1", "c2", "d2")}]


async def test_finished_items_are_not_done_again(tmp_path: Path) -> None:
    """A loop killed in its second item continues there: the first item's action is not repeated, though the list is the same."""
    each = (
        "{id: each, type: iterate, over: [a, b, c], as: order, key: '{{ order }}', nodes: ["
        "{id: go, type: browser_action, action: goto, url: 'http://shop.test/{{ order }}'}, "
        f"{pay(CONFIRM)}]}}"
    )
    rig = Rig(tmp_path, flow(each, more="output: '{{ each | length }}'"))
    seen: list[str] = []

    async def second_kills(_target: str, page: FakePage) -> None:
        seen.append(page.url)
        if page.url.endswith("b"):
            raise Killed

    rig.site.before_click = second_kills
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    rig.site.before_click = None
    ended = await rig.resume()
    assert (ended.status, ended.output) == ("passed", 3)
    assert len(rig.site.actions) == 3
    assert rig.calls("each[#a]/pay") == ["ok"]
    assert rig.calls("each[#b]/pay") == ["interrupted not-done", "ok"]


async def test_time_and_ids_repeat(tmp_path: Path) -> None:
    """A resumed run sees the same values of `now()` and `uuid()`, also where the step is repeated."""
    stamp = "{id: stamp, type: transform, expr: '{{ now() ~ uuid() }}'}"
    rig = Rig(tmp_path, flow(OPEN, stamp, pay(CONFIRM), more="output: '{{ stamp }}'"))
    ended = await die_and_resume(rig, before=True)
    first = rig.history.attempts["stamp"][0].result
    assert first is not None
    assert ended.output == first.value


async def test_actions_after_the_restored_state_are_asked_about(tmp_path: Path) -> None:
    """A finished action between the checkpoint and the crash is never repeated without a question; `done` skips it."""
    add = "{id: add, type: browser_action, action: click, target: {css: add}}"
    rig = Rig(tmp_path, flow(OPEN, f"{{id: unit, type: group, nodes: [{add}, {pay()}]}}"))

    async def kill_at_pay(target: str, _page: FakePage) -> None:
        if target == PAY:
            raise Killed

    rig.site.before_click = kill_at_pay
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    rig.site.before_click = None
    ended = await rig.resume()
    assert ended.question is not None
    assert (ended.exit, ended.question["reason"], ended.path) == (4, "redo-unconfirmed", "unit/add")
    rig.die()
    now(run_index.decide(file_store.FileStore(tmp_path), rig.id, "done"))
    ended = await rig.resume()
    assert ended.question is not None
    assert (ended.exit, ended.question["reason"], ended.path) == (4, "outcome-unknown", "unit/pay")
    rig.die()
    now(run_index.decide(file_store.FileStore(tmp_path), rig.id, "not-done"))
    ended = await rig.resume()
    assert ended.status == "passed"
    assert rig.site.actions == ["css=add", PAY]


@pytest.mark.parametrize(("policy", "actions"), [("redo", 2), ("confirm", 1)])
async def test_on_redo_decides_about_finished_actions(tmp_path: Path, policy: str, actions: int) -> None:
    """`on_redo: redo` repeats the action; `on_redo: confirm` asks the site and skips it."""
    wait = "{id: late, type: browser_action, action: click, target: {css: late}, effect: idempotent}"
    rig = Rig(tmp_path, flow(OPEN, f"{{id: unit, type: group, on_redo: {policy}, nodes: [{pay(CONFIRM)}, {wait}]}}"))

    async def kill_late(target: str, page: FakePage) -> None:
        if target != PAY:
            raise Killed
        paid(page.browser.site)

    rig.site.before_click = kill_late
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    rig.site.before_click = None
    ended = await rig.resume()
    assert ended.status == "passed"
    assert rig.site.actions.count(PAY) == actions


async def test_a_killed_resume_can_be_resumed(tmp_path: Path) -> None:
    """A resume that is killed can be resumed like a run, and the action still happens once."""
    rig = Rig(
        tmp_path, flow(OPEN, pay(CONFIRM), "{id: late, type: browser_action, action: goto, url: 'http://shop.test/2'}")
    )
    rig.site.before_click = kill
    for attempt in (rig.start, rig.resume, rig.resume):
        with pytest.raises(Killed):
            await attempt()
        rig.die()
    rig.site.before_click = None
    ended = await rig.resume()
    assert (ended.status, rig.site.actions) == ("passed", [PAY])
    assert rig.calls("pay") == ["interrupted", "interrupted", "interrupted not-done", "ok"]


async def test_a_failed_step_is_tried_anew(tmp_path: Path) -> None:
    """A resume of a failed run makes a new attempt of the failed step, and repeats nothing before it."""
    check = "{id: check, type: browser_query, query: assert, rules: [{text: paid, target: {css: p}}]}"
    rig = Rig(tmp_path, flow(OPEN, pay(), check))
    ended = await rig.start()
    assert (ended.status, rig.calls("check")) == ("failed", ["error"])
    rig.die()
    paid(rig.site)
    ended = await rig.resume()
    assert (ended.status, rig.calls("check"), rig.site.actions) == ("passed", ["error", "ok"], [PAY])


async def test_a_secret_that_was_read_is_read_again_or_named(tmp_path: Path) -> None:
    """After a crash a secret value is read again if its page is still open; else the run fails and names the step. The mask is never used."""
    read = "{id: echo, type: browser_query, query: text, target: {css: h1}}"
    use = "{id: shown, type: browser_action, action: goto, url: 'http://shop.test/{{ echo | sha256 }}'}"
    texts = {"css=h1": "correct-horse"}
    wanted = "http://shop.test/" + hashlib.sha256(b"correct-horse").hexdigest()
    away = "{id: away, type: browser_action, action: "
    for number, (move_on, expected) in enumerate(
        (
            ([], "passed"),
            ([f"{away}goto, url: 'http://shop.test/x'}}"], "failed"),
            # It changes nothing on the site, but leads to another page.
            ([f"{away}click, target: {{css: a}}, effect: read}}"], "failed"),
        )
    ):
        rig = Rig(
            tmp_path / str(number),
            flow(OPEN, read, *move_on, pay(CONFIRM), use, more="secrets: [PASSWORD]"),
            secrets={"PASSWORD": "correct-horse"},
            site=FakeSite(texts=dict(texts)),
        )
        ended = await die_and_resume(rig, before=True, browser_survives=True)
        assert ended.status == expected, ended
        if expected == "passed":
            assert rig.browser is not None
            assert rig.browser.page.url == wanted
        else:
            assert ended.error is not None
            assert ended.error["code"] == "value-masked"
            assert "`echo`" in ended.error["message"]


async def test_a_decision_without_a_question_is_refused(tmp_path: Path) -> None:
    """`decide` on a run that waits for no answer is refused, and its log stays unchanged."""
    rig = Rig(tmp_path, flow("{id: a, type: transform, expr: 1}"))
    await rig.start()
    before = rig.store.conversation_file(rig.id).read_bytes()
    with pytest.raises(run_index.UsageError):
        now(run_index.decide(file_store.FileStore(tmp_path), rig.id, "done"))
    assert rig.store.conversation_file(rig.id).read_bytes() == before


async def test_a_page_in_the_middle_of_a_group_gets_no_checkpoint(tmp_path: Path) -> None:
    """A browser reattached within a group gives no checkpoint: if it is lost too, the group runs from its beginning."""
    menu = "{id: menu, type: browser_action, action: click, target: {css: menu}, effect: idempotent}"
    entry = "{id: entry, type: browser_action, action: click, target: {css: entry}, effect: idempotent}"
    rig = Rig(
        tmp_path,
        flow(
            OPEN,
            f"{{id: g, type: group, nodes: [{menu}, {entry}]}}",
            "{id: end, type: browser_query, query: text, target: {css: p}}",
        ),
    )

    async def die_at_the_entry(target: str, _page: FakePage) -> None:
        if target == "css=entry":
            # A checkpoint that is written beside the steps is synced first.
            writing = [
                each for each in asyncio.all_tasks() if "Checkpoints" in getattr(each.get_coro(), "__qualname__", "")
            ]
            if writing:
                await asyncio.wait(writing, timeout=10)
            raise Killed

    rig.site.before_click = die_at_the_entry
    for survives in (True, False):
        with pytest.raises(Killed):
            await (rig.start() if survives else rig.resume())
        rig.die(browser_survives=survives)
    rig.site.before_click = None
    assert (await rig.resume()).status == "passed"
    assert rig.site.actions == ["css=menu", "css=menu", "css=entry"]
