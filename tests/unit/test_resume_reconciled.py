"""A verdict about an action counts for that action, in every later resume, and for no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import SiteError
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.workspace import run_index
from tests.fakes import FakePage
from tests.now import now
from tests.rig import Killed, Rig

OPEN = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"


def click(name: str, more: str = "") -> str:
    """A click that must not happen twice."""
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: '{name}'}}{more}}}"


def confirm(name: str) -> str:
    """A `confirm` for the click of this name."""
    look = f"{{id: look_{name}, type: browser_query, query: text, target: {{css: '{name}_done'}}}}"
    return f", confirm: {{settle: 0, nodes: [{look}], done: \"{{{{ look_{name} == 'yes' }}}}\"}}"


def flow(*nodes: str, output: str = "null") -> str:
    """A workflow file with these nodes."""
    return f"version: 1\nname: test\noutput: {json.dumps(output)}\nnodes:\n" + "".join(
        f"  - {each}\n" for each in nodes
    )


def decide(rig: Rig, verdict: run_index.Verdict) -> None:
    """A person's answer to the question of the paused run."""
    rig.die()
    now(run_index.decide(file_store.FileStore(rig.home), rig.id, verdict))


async def test_not_done_is_decided_once(tmp_path: Path) -> None:
    """A lost answer leaves the call open; `not-done` lets the action be done, and the same question is not asked again."""
    rig = Rig(tmp_path, flow(OPEN, click("pay")))
    lost = [1]

    async def lose(_target: str, _page: FakePage) -> None:
        if lost:
            lost.pop()
            raise SiteError("answer-lost", "nobody knows", phase="after")

    rig.site.before_click = lose
    assert (await rig.start()).status == "paused"
    decide(rig, "not-done")
    assert ((await rig.resume()).status, rig.site.actions) == ("passed", ["css=pay"])
    assert rig.calls("pay") == ["interrupted not-done", "ok"]


@pytest.mark.parametrize(
    ("verdict", "actions", "calls"),
    [
        ("done", 0, ["interrupted done"]),
        ("skip", 0, ["interrupted skipped"]),
        ("not-done", 1, ["interrupted not-done", "ok"]),
    ],
)
async def test_a_decision_counts_once_it_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: run_index.Verdict, actions: int, calls: list[str]
) -> None:
    """A person's decision counts even if the process that wrote it died before it gave the open call its result."""
    rig = Rig(tmp_path, flow(OPEN, click("pay")))

    async def lose(_target: str, _page: FakePage) -> None:
        raise SiteError("answer-lost", "unknown", phase="after")

    def die(*_given: object) -> None:
        raise Killed

    rig.site.before_click = lose
    assert ((await rig.start()).status, rig.calls("pay")) == ("paused", ["open"])
    rig.site.before_click = None
    with monkeypatch.context() as dying:
        dying.setattr(run_index, "_write_verdict", die)
        with pytest.raises(Killed):
            decide(rig, verdict)
    assert ((await rig.resume()).status, len(rig.site.actions), rig.calls("pay")) == ("passed", actions, calls)


@pytest.mark.parametrize("policy", ["skip", "ask", "retry"])
async def test_a_refused_action_is_not_unknown(tmp_path: Path, policy: str) -> None:
    """`after_crash` is for unknown outcomes: an action that the site refused is an error, even if the node has a `confirm`."""
    rig = Rig(tmp_path, flow(OPEN, click("pay", f"{confirm('pay')}, after_crash: {policy}")))

    async def refuse(_target: str, _page: FakePage) -> None:
        raise SiteError("verify-failed", "declined", phase="after")

    rig.site.before_click = refuse
    ended = await rig.start()
    assert ended.error is not None
    call = "error" if policy == "ask" else "error not-done"
    assert (ended.status, ended.error["code"], rig.calls("pay")) == ("failed", "verify-failed", [call])


async def test_an_answer_about_one_iteration_is_none_about_another(tmp_path: Path) -> None:
    """When a handle begins again and its loop has no key, each iteration's action is asked about, and one never done is done."""
    pay = click("pay", "").replace("'pay'", "'pay{{ n }}'")
    loop = f"{{id: each, type: iterate, over: [1, 2, 3], as: n, nodes: [{pay}]}}"
    sweep = click("sweep", ", effect: idempotent")
    rig = Rig(tmp_path, flow(OPEN, f"{{id: clean, type: handle, try: [{loop}], finally: [{sweep}]}}"))
    rig.missing = {"css=pay2"}
    assert (await rig.start()).status == "failed"
    rig.missing = set()
    rig.die()
    asked: list[str | None] = []
    while (ended := await rig.resume()).status == "paused":
        assert ended.question is not None
        evidence: Any = ended.question["evidence"]
        asked.append(evidence["step"])
        decide(rig, "done" if evidence["step"].endswith("pay1") else "not-done")
    assert (ended.status, rig.site.actions) == (
        "passed",
        ["css=pay1", "css=sweep", "css=pay2", "css=pay3", "css=sweep"],
    )
    assert asked == ["click css=pay1", "click css=pay2", "click css=pay3"]


FILL = "{id: name, type: browser_action, action: fill, target: {label: Name}, value: A}"
SENT = [{'label="Name"': "A"}, {}]


async def test_sent_fields_are_not_sent_again_after_a_decision(tmp_path: Path) -> None:
    """Fields filled again for an action that a person confirmed as done are cleared, and the next action sends none of them."""
    rig = Rig(tmp_path, flow(OPEN, FILL, click("send"), click("other")))

    async def die(_target: str, _page: FakePage) -> None:
        rig.site.on_click = None
        raise Killed

    rig.site.on_click = die
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    assert (await rig.resume()).status == "paused"
    decide(rig, "done")
    assert (await rig.resume()).status == "passed"
    assert rig.site.records == SENT


async def test_fields_of_an_iteration_are_not_sent_with_the_next(tmp_path: Path) -> None:
    """An iteration failed after its action, and the run continues from before it: its refilled fields are cleared before the next iteration."""
    bad = '{id: bad, type: transform, expr: "{{ 1 / (n - 1) }}"}'
    loop = f"{{id: each, type: iterate, over: [1, 2], as: n, each_error: continue, nodes: [{click('send')}, {bad}]}}"
    rig = Rig(tmp_path, flow(OPEN, FILL, loop, output="{{ each }}"))

    async def die(_target: str, _page: FakePage) -> None:
        if rig.site.actions:
            rig.site.before_click = None
            raise Killed

    rig.site.before_click = die
    with pytest.raises(Killed):
        await rig.start()
    for file in rig.store.private(rig.id).glob("checkpoint-*.json"):
        file.unlink()
    rig.die()
    assert (await rig.resume()).status == "paused"
    decide(rig, "not-done")
    ended = await rig.resume()
    assert (ended.status, ended.output, rig.site.records) == ("passed", [1.0], SENT)


async def test_an_action_that_failed_and_is_found_done_has_its_value(tmp_path: Path) -> None:
    """A failed action whose `verify` holds when the run resumes yields the address, like any action found done."""
    rule = ", verify: [{text: paid, target: {css: status}}]"
    rig = Rig(tmp_path, flow(OPEN, click("pay", rule), output="{{ pay }}"), keep_browser=True)
    assert (await rig.start()).status == "failed"
    rig.site.texts["=css=status"] = "paid"
    rig.survivor = rig.browser
    ended = await rig.resume()
    assert (ended.status, ended.output, rig.calls("pay")) == ("passed", "http://shop.test/", ["error done"])
    assert rig.site.actions == ["css=pay"]


@pytest.mark.parametrize(("page", "touched"), [(entries.PageState(documents=1, pending=True), True), (None, False)])
def test_a_step_of_a_package_may_have_changed_the_page(page: entries.PageState | None, touched: bool) -> None:
    """Page changes of a package's node type count like built-in ones; while its call is open, the page counts as changed."""
    past = history.History(
        [entries.Call(seq=1, call="c1", path="a", node="acme.swipe", attempt=1, effect="idempotent", fingerprint="f")]
    )
    assert past.page_changed_since(0)
    past.add(entries.Result(seq=2, call="c1", status="ok", page=page))
    assert past.page_changed_since(0) == touched


@pytest.mark.parametrize(("more", "ends"), [(confirm("pay"), "passed"), ("", "paused")])
async def test_an_attempt_that_may_have_done_it_is_not_forgotten(tmp_path: Path, more: str, ends: str) -> None:
    """If a first attempt acted and timed out and a second found no button, a resume reconciles the first and does not click again."""
    again = ", retry: {attempts: 2, delay: 0, on: [timeout]}"
    rig = Rig(tmp_path, flow(OPEN, click("pay", more + again)))

    async def no_button_any_more(target: str, _page: FakePage) -> None:
        if rig.site.actions:
            raise SiteError("target-not-found", f"there is no {target}")

    async def too_slow(target: str, _page: FakePage) -> None:
        rig.site.texts[f"{target}_done"] = "yes"
        raise SiteError("timeout", "no answer in time", phase="after")

    rig.site.before_click, rig.site.on_click = no_button_any_more, too_slow
    error = (await rig.start()).error or {}
    assert (error["code"], error["evidence"]["earlier"]) == ("target-not-found", "attempt 1 may have acted (timeout)")
    rig.die()
    rig.site.before_click = rig.site.on_click = None
    for _ in range(2):
        assert (await rig.resume()).status == ends
        assert rig.site.actions == ["css=pay"]
        rig.die()


@pytest.mark.parametrize("policy", ["retry", "skip"])
@pytest.mark.parametrize("browser_survives", [True, False])
@pytest.mark.parametrize("done", [True, False])
async def test_confirm_is_asked_before_after_crash_applies(
    tmp_path: Path, policy: str, browser_survives: bool, done: bool
) -> None:
    """With a `confirm`, `after_crash` applies only if the site cannot tell: a done action is not repeated, an undone one not skipped."""
    rig = Rig(tmp_path, flow(OPEN, click("pay", f"{confirm('pay')}, after_crash: {policy}")))

    async def die(target: str, _page: FakePage) -> None:
        rig.site.texts[f"{target}_done"] = "yes"
        raise Killed

    if done:
        rig.site.on_click = die
    else:
        rig.site.before_click = die_before
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=browser_survives)
    rig.site.on_click = rig.site.before_click = None
    assert (await rig.resume()).status == "passed"
    assert rig.site.actions == ["css=pay"]


async def die_before(_target: str, _page: FakePage) -> None:
    """Let the process die before the site receives anything."""
    raise Killed


@pytest.mark.parametrize("policy", ["retry", "skip"])
async def test_after_crash_does_not_cover_finished_actions(tmp_path: Path, policy: str) -> None:
    """A finished action after the checkpoint that `confirm` cannot see any more pauses the run: `after_crash` covers only lost answers."""
    one = click("one", f"{confirm('one')}, after_crash: {policy}")
    rig = Rig(tmp_path, flow(f"{{id: unit, type: group, nodes: [{OPEN}, {one}, {click('two', confirm('two'))}]}}"))

    async def die(target: str, _page: FakePage) -> None:
        if target == "css=two":
            raise Killed

    rig.site.before_click = die
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    rig.site.before_click = None
    rig.missing = {"css=one_done"}
    ended = await rig.resume()
    assert (ended.status, rig.site.actions) == ("paused", ["css=one"])
