"""``handle`` on a fake site: errors are caught, retried and cleaned up; a death at any log line repeats no action."""

from __future__ import annotations

import asyncio
import json
import textwrap
from pathlib import Path

import pytest

from nodes.errors import OriginRefused, SiteError
from runtime import events
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log.store import file_store
from runtime.log.writer import LogWriter
from runtime.workspace import run_index
from tests.fakes import FakePage
from tests.now import now
from tests.rig import Killed, Rig

OPEN = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"


def action(name: str, target: str = "", more: str = "") -> str:
    """A click that must not happen twice, with a `confirm`."""
    target = target or name
    confirm = (
        f"{{settle: 0, nodes: [{{id: look_{name}, type: browser_query, query: text, target: {{css: '{target}_done'}}}}],"
        f" done: \"{{{{ look_{name} == 'yes' }}}}\"}}"
    )
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: '{target}'}}, confirm: {confirm}{more}}}"


def click(name: str, more: str = "") -> str:
    """A click that must not happen twice, without `confirm`."""
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: '{name}'}}{more}}}"


def idempotent(name: str) -> str:
    """A click that may happen twice."""
    return click(name, ", effect: idempotent")


def made(name: str, expr: str) -> str:
    """A node that computes something."""
    return f"{{id: {name}, type: transform, expr: {json.dumps(expr)}}}"


def handle(tried: list[str], more: str = "", catch: list[str] | None = None, last: list[str] | None = None) -> str:
    """A handle called `clean`; ``last`` is its `finally`."""
    blocks = {"catch": catch, "finally": last}
    inner = "".join(f", {name}: [{', '.join(nodes)}]" for name, nodes in blocks.items() if nodes)
    return f"{{id: clean, type: handle, try: [{', '.join(tried)}]{inner}{more}}}"


def flow(*nodes: str, output: str = "null") -> str:
    """A workflow file with these nodes."""
    return f"version: 1\nname: test\noutput: {json.dumps(output)}\nnodes:\n" + "".join(
        f"  - {node}\n" for node in nodes
    )


class Site:
    """Performs actions; fails each in ``fails`` as often as it says, before or after performing it."""

    def __init__(self, rig: Rig, **fails: int) -> None:
        self.rig = rig
        self.fails = fails
        self.after = False
        self.kill: set[str] = set()
        rig.site.before_click, rig.site.on_click = self._begin, self._action

    async def _begin(self, target: str, _page: FakePage) -> None:
        name = target.removeprefix("css=")
        if name in self.kill:
            self.kill.discard(name)
            raise Killed
        if not self.after and self.fails.get(name, 0) > 0:
            self.fails[name] -= 1
            raise SiteError("target-not-found", f"there is no {name}", phase="before")

    async def _action(self, target: str, page: FakePage) -> None:
        name = target.removeprefix("css=")
        page.browser.site.texts[f"{target}_done"] = "yes"
        if self.after and self.fails.get(name, 0) > 0:
            self.fails[name] -= 1
            raise SiteError("verify-failed", f"{name} went wrong", phase="after")

    @property
    def actions(self) -> list[str]:
        """The performed actions, in order."""
        return [each.removeprefix("css=") for each in self.rig.site.actions]


def codes(text: str) -> list[str]:
    """The codes of the mistakes in a file."""
    try:
        reader.parse(text, "flow.yaml")
    except WorkflowInvalid as error:
        return [each.code for each in error.diagnostics]
    return []


# What is caught


async def test_a_try_that_passes_is_not_handled(tmp_path: Path) -> None:
    """A `try` that passes gives the node its value; `catch` does not run, `finally` does."""
    rig = Rig(
        tmp_path,
        flow(
            handle([made("a", "{{ 1 }}")], catch=[made("b", "{{ 2 }}")], last=[idempotent("f")]),
            output="{{ clean }}",
        ),
    )
    site = Site(rig)
    ended = await rig.start()
    assert (ended.status, ended.output, site.actions) == ("passed", 1, ["f"])
    assert "clean/try/a" in rig.history.order
    assert "clean/catch" not in rig.history.order


async def test_a_try_that_fails_is_caught(tmp_path: Path) -> None:
    """`catch` runs with `error` and gives the node its value, `finally` follows, and the run passes."""
    caught = made("told", "{{ [error.code, error.step, error.who, error.phase, error.message, error.evidence] }}")
    rig = Rig(
        tmp_path,
        flow(
            OPEN,
            handle([made("a", "{{ 1 }}"), click("pay")], catch=[caught], last=[idempotent("f")]),
            output="{{ clean }}",
        ),
    )
    site = Site(rig, pay=9)
    ended = await rig.start()
    assert ended.output == ["target-not-found", "clean/try/pay", "site", "before", "there is no pay", {}]
    assert (ended.status, ended.tolerated, site.actions) == ("passed", 0, ["f"])


async def test_values_from_before_the_failure_can_be_read(tmp_path: Path) -> None:
    """Nodes of `try` that ran before the failure have their values in `catch`, in `finally` and afterwards."""
    look = "{{ [a | default('-'), b | default('-')] }}"
    rig = Rig(
        tmp_path,
        flow(OPEN, handle([made("a", "{{ 1 }}"), click("pay"), made("b", "{{ 2 }}")], catch=[made("seen", look)]), output="{{ [clean, a | default('-'), b | default('-')] }}"),
    )  # fmt: skip
    Site(rig, pay=9)
    assert (await rig.start()).output == [[1, "-"], 1, "-"]


@pytest.mark.parametrize(("on", "status"), [("[target-not-found]", "passed"), ("[timeout]", "failed")])
async def test_only_named_codes_are_caught(tmp_path: Path, on: str, status: str) -> None:
    """With `on`, other errors end the run without a retry."""
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay")], f", on: {on}, attempts: 2", catch=[made("b", "{{ 2 }}")])))
    Site(rig, pay=9)
    ended = await rig.start()
    assert (ended.status, len(rig.calls("clean/try[2]/pay"))) == (status, 1 if status == "passed" else 0)


async def test_a_foreign_origin_is_not_caught_and_cleaned_up(tmp_path: Path) -> None:
    """A refused origin fails the run whatever `catch` says, also where the run died in its `finally`, which runs."""
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay")], catch=[made("b", "{{ 2 }}")], last=[idempotent("f")])))
    kill = {"css=f"}

    async def stray(target: str, page: FakePage) -> None:
        if target == "css=pay":
            page.browser.refused = OriginRefused("origin-refused", "a document of http://evil.test was refused")
        if target in kill:
            kill.discard(target)
            raise Killed

    rig.site.on_click = stray
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=True)
    ended = await rig.resume()
    assert (ended.status, ended.error and ended.error["code"], ended.path) == (
        "failed",
        "origin-refused",
        "clean/try/pay",
    )
    assert rig.site.actions == ["css=pay", "css=f", "css=f"]


async def test_a_pause_is_not_caught(tmp_path: Path) -> None:
    """A question for a person runs neither `catch` nor `finally`, for the run will continue."""
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay")], catch=[idempotent("c")], last=[idempotent("f")])))

    async def lose(_target: str, page: FakePage) -> None:
        page.browser.lost = "POST http://shop.test/pay"

    rig.site.on_click = lose
    ended = await rig.start()
    assert (ended.status, rig.site.actions) == ("paused", ["css=pay"])


async def test_a_failed_assert_is_caught(tmp_path: Path) -> None:
    """A finding of the workflow itself can be handled too."""
    check = "{id: check, type: browser_query, query: assert, rules: [{text: never}]}"
    rig = Rig(tmp_path, flow(OPEN, handle([check], catch=[made("b", "{{ error.who }}")]), output="{{ clean }}"))
    assert (await rig.start()).output == "finding"


async def test_a_failure_in_catch_goes_through_finally(tmp_path: Path) -> None:
    """A failure in `catch` ends the run, after `finally`."""
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay")], catch=[click("undo")], last=[idempotent("f")])))
    site = Site(rig, pay=9, undo=9)
    ended = await rig.start()
    assert (ended.status, ended.path, site.actions) == ("failed", "clean/catch/undo", ["f"])


async def test_a_failure_in_finally_reports_the_first(tmp_path: Path) -> None:
    """A failure in `finally` ends the run, with the error before it as evidence."""
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay")], last=[click("f")])))
    Site(rig, pay=9, f=9)
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.path, ended.error["evidence"]["first"]["step"]) == ("clean/finally/f", "clean/try/pay")


@pytest.mark.parametrize("survives", [True, False])
async def test_a_handle_may_be_tolerated(tmp_path: Path, survives: bool) -> None:
    """`on_error: continue` skips errors that the blocks could not handle, also when the run died after it."""
    nodes = [
        OPEN,
        handle([made("a", "{{ 1 }}"), click("pay")], ", on_error: continue", last=[idempotent("f")]),
        action("end"),
    ]
    rig = Rig(tmp_path, flow(*nodes, output="{{ [run.errors.clean.code | default('-'), a | default('-')] }}"))
    site = Site(rig, pay=9)
    site.kill = {"end"}
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=survives)
    ended = await rig.resume()
    assert (ended.status, ended.tolerated, ended.output, site.actions) == (
        "passed",
        1,
        ["target-not-found", 1],
        ["f", "end"],
    )


# Retries


async def test_try_runs_again(tmp_path: Path) -> None:
    """`attempts` runs `try` again after an error, each time in a separate scope without values of earlier attempts."""
    nodes = [made("first", "{{ late | default('-') }}"), click("pay"), made("late", "{{ 7 }}")]
    rig = Rig(
        tmp_path,
        flow(
            OPEN,
            handle(
                [nodes[0].replace("late | default", "inputs | length | string | default"), *nodes[1:]], ", attempts: 3"
            ),
            output="{{ late }}",
        ),
    )
    site = Site(rig, pay=2)
    ended = await rig.start()
    assert (ended.status, ended.output, site.actions) == ("passed", 7, ["pay"])
    assert [rig.calls(f"clean/try{n}/pay") for n in ("", "[2]", "[3]")] == [["error"], ["error"], ["ok"]]


async def test_after_the_last_attempt_it_is_caught(tmp_path: Path) -> None:
    """When no attempt is left, `catch` runs once, with the last error."""
    rig = Rig(
        tmp_path,
        flow(
            OPEN, handle([click("pay")], ", attempts: 2", catch=[made("b", "{{ error.step }}")]), output="{{ clean }}"
        ),
    )
    Site(rig, pay=9)
    assert (await rig.start()).output == "clean/try[2]/pay"


async def test_an_action_that_happened_is_skipped_in_the_next_try(tmp_path: Path) -> None:
    """If `confirm` says that the action happened, the next try continues after it with the value that it had."""
    rig = Rig(tmp_path, flow(OPEN, handle([action("pay"), click("ship")], ", attempts: 3"), output="{{ pay }}"))
    site = Site(rig, ship=2)
    ended = await rig.start()
    assert (ended.status, ended.output, site.actions) == ("passed", "http://shop.test/", ["pay", "ship"])
    assert [rig.calls(f"clean/try{n}/pay") for n in ("", "[2]", "[3]")] == [["ok"], ["recovered"], ["recovered"]]


async def test_an_action_that_did_not_happen_is_done_in_the_next_try(tmp_path: Path) -> None:
    """If `confirm` says that the action was undone in between, the next try performs it again."""
    rig = Rig(tmp_path, flow(OPEN, handle([action("pay"), idempotent("undo"), click("ship")], ", attempts: 2")))
    site = Site(rig, ship=1)
    begin = site._action

    async def undo(target: str, page: FakePage) -> None:
        await begin(target, page)
        if target == "css=undo":
            page.browser.site.texts["css=pay_done"] = "no"

    rig.site.on_click = undo
    assert (await rig.start()).status == "passed"
    assert site.actions == ["pay", "undo", "pay", "undo", "ship"]


@pytest.mark.parametrize("failed_after", [False, True])
async def test_an_action_without_confirm_prevents_a_retry(tmp_path: Path, failed_after: bool) -> None:
    """Without `confirm`, `try` does not run again after an action: the failure is caught, and its error names the action and a fix."""
    nodes = [click("pay")] if failed_after else [click("pay"), click("ship")]
    catch = made("b", "{{ error.evidence.not_tried_again }}")
    rig = Rig(tmp_path, flow(OPEN, handle(nodes, ", attempts: 3", catch=[catch]), output="{{ clean }}"))
    site = Site(rig, pay=9 if failed_after else 0, ship=9)
    site.after = failed_after
    ended = await rig.start()
    assert (ended.output, site.actions) == (["clean/try/pay"], ["pay"])
    rig = Rig(tmp_path / "b", flow(OPEN, handle(nodes, ", attempts: 3")))
    site = Site(rig, pay=9 if failed_after else 0, ship=9)
    site.after = failed_after
    ended = await rig.start()
    assert ended.error is not None
    assert (ended.status, site.actions) == ("failed", ["pay"])
    assert "on_redo: redo" in ended.error["fix"]


async def test_the_author_may_let_actions_be_repeated(tmp_path: Path) -> None:
    """`on_redo: redo` on the handle lets a retry repeat its actions."""
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay"), click("ship")], ", attempts: 2, on_redo: redo")))
    site = Site(rig, ship=1)
    assert ((await rig.start()).status, site.actions) == ("passed", ["pay", "pay", "ship"])


async def test_items_without_a_key_are_all_confirmed(tmp_path: Path) -> None:
    """If the next try finds another list, an item is confirmed whatever its position, and each order is paid once."""
    orders = ["a", "b", "c"]
    rows = "{id: rows, type: browser_query, query: extract, min: 0, target: {css: rows}, fields: {n: b}}"
    loop = f"{{id: each, type: iterate, over: \"{{{{ rows | map(attribute='n') | list }}}}\", as: o, nodes: [{action('pay', 'pay{{ o }}')}]}}"
    rig = Rig(tmp_path, flow(OPEN, handle([rows, loop, click("ship")], ", attempts: 2")))
    site = Site(rig, ship=1)
    begin = site._begin

    async def listed(target: str, page: FakePage) -> None:
        if target == "css=ship":
            rig.site.texts["css=rows"] = json.dumps([["z"], ["c"], ["a"]])
        await begin(target, page)

    rig.site.before_click = listed
    rig.site.texts["css=rows"] = json.dumps([[order] for order in orders])
    assert (await rig.start()).status == "passed"
    assert site.actions == ["paya", "payb", "payc", "payz", "ship"]


# Dying and continuing


WORKFLOW = flow(
    OPEN,
    handle(
        [action("pay"), made("number", "{{ 40 + 2 }}"), click("ship", ", effect: idempotent"), made("never", "1")],
        ", attempts: 2",
        catch=[made("why", "{{ error.code ~ ' ' ~ error.step ~ ' ' ~ (number | default('-')) }}"), action("undo")],
        last=[action("sweep"), idempotent("close")],
    ),
    action("end"),
    output="{{ [why | default('-'), number | default('-'), never | default('-')] }}",
)  # fmt: skip
WHY = ["target-not-found clean/try[2]/ship 42", 42, "-"]


def kill_at(monkeypatch: pytest.MonkeyPatch, line: int) -> None:
    """Let the process die just before it writes the ``line``-th entry from now on."""
    written = 0
    append = LogWriter._append

    def counted(self: LogWriter, entry: object) -> object:
        nonlocal written
        written += 1
        if written == line:
            raise Killed
        return append(self, entry)

    monkeypatch.setattr(LogWriter, "_append", counted)


async def end_of_process(rig: Rig, *, survives: bool) -> None:
    """End the process with the checkpoints that it is still writing."""
    writing = [task for task in asyncio.all_tasks() if "Checkpoints" in getattr(task.get_coro(), "__qualname__", "")]
    for task in writing:
        task.cancel()
    await asyncio.gather(*writing, return_exceptions=True)
    rig.die(browser_survives=survives)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("fails", "survives"), [(2, True), (2, False), (1, False)])
async def test_killed_before_any_line_it_ends_as_it_would_have(tmp_path: Path, fails: int, survives: bool) -> None:
    """Killed before any log entry, with or without its browser, a run has the same output, every action once and no `finally` left out."""
    whole = Rig(tmp_path / "whole", WORKFLOW)
    wanted = Site(whole, ship=fails * 9 if fails == 2 else fails)
    expected = await whole.start()
    lines = whole.history.last_seq
    assert expected.status == "passed"
    once = ["pay", "sweep", "end", *(["undo"] if fails == 2 else [])]
    for line in range(3, lines + 1):
        rig = Rig(tmp_path / str(line), WORKFLOW)
        site = Site(rig, ship=fails * 9 if fails == 2 else fails)
        with pytest.MonkeyPatch.context() as patched:
            kill_at(patched, line)
            try:
                await rig.start()
            except Killed:
                pass
            else:
                continue
        await end_of_process(rig, survives=survives)
        # A try that died between its failure and the note of it fails once more.
        site.fails["ship"] = max(site.fails["ship"], 9 if fails == 2 else 0)
        ended = await rig.resume()
        assert (ended.status, ended.exit) == ("passed", 0), (line, ended)
        if fails != 1:
            assert ended.output == expected.output, line
        assert [site.actions.count(name) for name in once] == [1] * len(once), (line, site.actions)
        assert wanted.actions.count("close") <= site.actions.count("close") <= 2, (line, site.actions)


async def failed_through_finally(rig: Rig, site: Site) -> None:
    """Let a run fail and clean up, and prepare its resume."""
    ended = await rig.start()
    assert ended.status == "failed"
    rig.die()
    site.fails.clear()


async def test_after_a_finally_the_handle_begins_again(tmp_path: Path) -> None:
    """A failed run that ran `finally` resumes `try` from its beginning, as the next attempt, because `finally` cleaned up."""
    rig = Rig(
        tmp_path,
        flow(
            OPEN,
            handle([idempotent("make"), click("ship", ", effect: idempotent")], last=[idempotent("sweep")]),
        ),
    )
    site = Site(rig, ship=1)
    await failed_through_finally(rig, site)
    ended = await rig.resume()
    assert (ended.status, site.actions) == ("passed", ["make", "sweep", "make", "ship", "sweep"])
    assert rig.calls("clean/try[2]/ship") == ["ok"]
    assert rig.calls("clean/finally[2]/sweep") == ["ok"]


async def test_without_finally_the_failed_step_is_tried_anew(tmp_path: Path) -> None:
    """Without a cleanup, a resumed run continues at the failed step, in `try` or in `catch`."""
    rig = Rig(tmp_path, flow(OPEN, handle([action("pay"), click("ship")], ", attempts: 2, on: [timeout]")))
    site = Site(rig, ship=1)
    await failed_through_finally(rig, site)
    assert ((await rig.resume()).status, site.actions) == ("passed", ["pay", "ship"])
    rig = Rig(tmp_path / "b", flow(OPEN, handle([click("pay")], catch=[action("undo"), click("mail")])))
    site = Site(rig, pay=9, mail=1)
    await failed_through_finally(rig, site)
    site.fails = {"pay": 9}
    assert ((await rig.resume()).status, site.actions) == ("passed", ["undo", "mail"])


async def test_killed_after_a_finally_the_failure_is_reported(tmp_path: Path) -> None:
    """A run that died between the end of `finally` and its own end resumes to its first error; only the next resume begins again."""
    text = flow(OPEN, handle([idempotent("make"), click("ship", ", effect: idempotent")], last=[idempotent("sweep")]))
    whole = Rig(tmp_path / "a", text)
    Site(whole, ship=1)
    first = await whole.start()
    end = whole.history.last_seq  # the note of how it ended
    rig = Rig(tmp_path / "b", text)
    site = Site(rig, ship=1)
    with pytest.MonkeyPatch.context() as patched:
        kill_at(patched, end)
        with pytest.raises(Killed):
            await rig.start()
    rig.die()
    site.fails.clear()
    ended = await rig.resume()
    assert first.error is not None
    assert ended.error is not None
    assert (ended.status, ended.path, ended.error["code"]) == ("failed", first.path, first.error["code"])
    assert site.actions == ["make", "sweep"]
    rig.die()
    assert ((await rig.resume()).status, site.actions) == ("passed", ["make", "sweep", "make", "ship", "sweep"])


@pytest.mark.parametrize(
    ("verdict", "actions"),
    [("done", ["pay", "sweep", "ship", "sweep"]), ("not-done", ["pay", "sweep", "pay", "ship", "sweep"])],
)
async def test_a_new_round_asks_about_actions_without_confirm(
    tmp_path: Path, verdict: run_index.Verdict, actions: list[str]
) -> None:
    """An action of the first round without `confirm` pauses the second round, which then follows the person's decision."""
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay"), click("ship")], last=[idempotent("sweep")])))
    site = Site(rig, ship=1)
    await failed_through_finally(rig, site)
    ended = await rig.resume()
    assert ended.question is not None
    assert (ended.exit, ended.question["reason"], ended.path) == (4, "redo-unconfirmed", "clean/try[2]/pay")
    rig.die()
    now(run_index.decide(file_store.FileStore(tmp_path), rig.id, verdict))
    ended = await rig.resume()
    assert (ended.status, site.actions) == ("passed", actions)


async def test_a_new_round_reconciles_actions_with_confirm(tmp_path: Path) -> None:
    """An action with `confirm` is reconciled when the second round reaches it, also one in `finally`."""
    rig = Rig(tmp_path, flow(OPEN, handle([action("pay"), click("ship")], last=[action("sweep")])))
    site = Site(rig, ship=1)
    await failed_through_finally(rig, site)
    assert ((await rig.resume()).status, site.actions) == ("passed", ["pay", "sweep", "ship"])
    assert rig.calls("clean/try[2]/pay") == ["recovered"]
    assert rig.calls("clean/finally[2]/sweep") == ["recovered"]


async def test_a_try_inside_a_try(tmp_path: Path) -> None:
    """The outer second try knows an action of the inner second try, though it begins with an inner first try."""
    inner = f"{{id: inner, type: handle, attempts: 2, try: [{idempotent('a')}, {click('b', ', effect: idempotent')}, {action('pay')}]}}"
    rig = Rig(tmp_path, flow(OPEN, handle([inner, click("ship")], ", attempts: 2")))
    site = Site(rig, b=1, ship=1)
    assert (await rig.start()).status == "passed"
    assert site.actions.count("pay") == 1
    assert rig.calls("clean/try[2]/inner/try/pay") == ["recovered"]


async def test_a_resume_in_catch_does_not_report_try_again(tmp_path: Path) -> None:
    """A resumed run that continues in `catch` has the same `error`, and does not go through `try` again."""
    rig = Rig(
        tmp_path,
        flow(
            OPEN,
            handle(
                [made("a", "{{ 1 }}"), click("pay")],
                catch=[action("undo"), made("b", "{{ [error.message, a | default(0)] }}")],
            ),
            output="{{ clean }}",
        ),
    )
    site = Site(rig, pay=9)
    site.kill = {"undo"}
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    site.fails.clear()
    ended = await rig.resume()
    assert (ended.output, site.actions) == (["there is no pay", 1], ["undo"])
    assert rig.calls("clean/try/pay") == ["error"]
    assert not [event for event in rig.told if isinstance(event, events.StepStarted) and "/try" in event.path]


async def test_catch_begins_on_the_page_of_the_failure(tmp_path: Path) -> None:
    """A run that lost its browser continues in `catch` on the page on which `try` failed."""
    go = "{id: go, type: browser_action, action: goto, url: 'http://shop.test/cart'}"
    where = "{id: where, type: browser_query, query: url}"
    rig = Rig(tmp_path, flow(OPEN, handle([go, click("pay")], catch=[action("undo"), where]), output="{{ clean }}"))
    site = Site(rig, pay=9)
    site.kill = {"undo"}
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    assert (await rig.resume()).output == "http://shop.test/cart"


async def test_nothing_is_asked_about_a_try_that_is_over(tmp_path: Path) -> None:
    """An action of a failed `try`, after the restored state, is not repeated, so no question is asked."""
    fill = "{id: name, type: browser_action, action: fill, target: {label: Name}, value: A}"
    rig = Rig(tmp_path, flow(OPEN, handle([click("pay"), fill, click("ship")], catch=[action("undo")]), action("end")))
    site = Site(rig, ship=9)
    site.kill = {"undo"}
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    assert ((await rig.resume()).status, site.actions) == ("passed", ["pay", "undo", "end"])


async def test_fields_of_a_skipped_action_are_not_sent_with_the_next(tmp_path: Path) -> None:
    """The next try fills fields up to an action that had happened; skipping it clears the form, so the following action sends none of them."""
    fill = "{id: name, type: browser_action, action: fill, target: {label: Name}, value: A}"
    rig = Rig(tmp_path, flow(OPEN, handle([fill, action("send"), action("other")], ", attempts: 2")))
    site = Site(rig, other=1)
    assert ((await rig.start()).status, site.actions) == ("passed", ["send", "other"])
    assert rig.site.records[-1] == {}


# The file


ONE = "- id: {0}\n  type: transform\n  expr: 1\n"


@pytest.mark.parametrize(
    ("more", "after", "found"),
    [
        ("", "1", ["invalid"]),
        ("attempts: 2", "{{ a }}", []),
        ("attempts: 21", "1", ["out-of-bounds"]),
        ("finally: [{id: f, type: transform, expr: '{{ a }}'}]", "1", ["unguarded-reference"]),
        ("finally: [{id: f, type: transform, expr: '{{ a | default(0) }}'}]", "{{ a + b + f }}", []),
        ("catch: [{id: c, type: transform, expr: '{{ error.code }}'}]", "{{ a }}", ["unguarded-reference"]),
        ("catch: [{id: c, type: transform, expr: '{{ error.cod }}'}]", "1", ["unknown-reference"]),
        ("catch: [{id: c, type: transform, expr: 1}]", "{{ error.code }}", ["unknown-reference"]),
        ("catch: [{id: c, type: transform, expr: 1}]", "{{ c }}", ["unguarded-reference"]),
        ("catch: [{id: c, type: transform, expr: '{{ a if b is defined else 0 }}'}]", "1", []),
        ("catch: [{id: c, type: transform, expr: '{{ b if a is defined else 0 }}'}]", "1", ["unguarded-reference"]),
        ("catch: [{id: a, type: transform, expr: 1}]", "1", ["duplicate-id"]),
        ("catch: [{id: c, type: transform, expr: '{{ c }}'}]", "1", ["later-reference"]),
        ("on: []\n  attempts: 2", "1", ["out-of-bounds"]),
        ("on_redo: redo\n  attempts: 2\n  value: '{{ a }}'", "{{ h }}", []),
    ],
)  # fmt: skip
def test_the_fields_of_a_handle(more: str, after: str, found: list[str]) -> None:
    """A handle has `catch`, `finally` or `attempts`; `error` is known in `catch` only; references to nodes that may not have run need a guard."""
    tried = "[{id: a, type: transform, expr: 1}, {id: b, type: transform, expr: 2}]"
    nodes = (
        f"- id: h\n  type: handle\n  try: {tried}\n  {more}\n- id: z\n  type: transform\n  expr: {json.dumps(after)}\n"
    )
    assert codes(f"version: 1\nnodes:\n{textwrap.indent(nodes, '  ')}") == found


def test_variables_of_a_try_take_a_guard_too() -> None:
    """A variable set in `try` may have no value in `catch` and after it; without `catch` it has one."""
    tried = "[{id: a, type: context, set: {n: 1}}]"
    for more, found in (("catch: [{id: c, type: transform, expr: 1}]", ["unguarded-reference"]), ("attempts: 2", [])):
        nodes = (
            f"- {{id: h, type: handle, try: {tried}, {more}}}\n- {{id: z, type: transform, expr: '{{{{ vars.n }}}}'}}\n"
        )
        assert codes(f"version: 1\nnodes:\n{textwrap.indent(nodes, '  ')}") == found
