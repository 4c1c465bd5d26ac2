"""A `confirm` is tried around its action where a run proves something: it decides nothing there, and an ordinary run pays nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.errors import SiteError
from nodes.values import Json
from runtime import events
from runtime.engine import tried_confirms
from runtime.log import entries
from tests.fakes import FakeBrowser, FakePage
from tests.rig import Killed, Rig
from tests.unit.test_resume import CONFIRM, OPEN, VERIFY, flow, pay, pay_it

PAY = pay(f"{VERIFY}{CONFIRM}")


def proving(home: Path, *nodes: str, tries: bool = True) -> Rig:
    """A run that tries each `confirm`, on a site whose button pays."""
    rig = Rig(home, flow(*nodes), proves=tries)
    rig.site.on_click = pay_it
    return rig


def tried(rig: Rig) -> list[tuple[Json, Json, Json]]:
    """Every trial of the run's log."""
    return [(each["path"], each["when"], each["found"]) for each in rig.history.confirms_tried]


async def test_it_is_asked_before_and_after(tmp_path: Path) -> None:
    """A right `confirm` says *not done* before the action and *done* after it, in threads of its own, and the run passes."""
    rig = proving(tmp_path, OPEN, PAY)
    assert (await rig.start()).status == "passed"
    assert tried(rig) == [("pay", "before", "not-done"), ("pay", "after", "done")]
    paid = rig.history.attempts["pay"][0].call.call
    asked = [each.call.thread for each in rig.history.all_attempts() if each.call.thread.startswith(entries.CONFIRM)]
    assert asked == [f"{entries.CONFIRM}pay"] * 2 + [f"{entries.CONFIRM}{paid}"] * 2
    assert rig.site.actions == ['role=button name="Pay"']


async def test_an_ordinary_run_asks_nothing(tmp_path: Path) -> None:
    """A run that is no proof opens no page for a `confirm` and has no trial in its log."""
    rig = proving(tmp_path, OPEN, PAY, tries=False)
    assert (await rig.start()).status == "passed"
    assert tried(rig) == []
    assert not [each for each in rig.history.all_attempts() if each.call.thread.startswith(entries.CONFIRM)]


@pytest.mark.parametrize(
    ("proves", "own", "earlier"), [(True, "", True), (True, ", timeout: 40", False), (False, "", False)]
)
async def test_only_a_proof_ends_its_waiting_on_a_quiet_page(
    proves: bool, own: str, earlier: bool, tmp_path: Path
) -> None:
    """A run that proves something waits for no rule on a quiet page, except in a node with its own `timeout`; an ordinary run has all its time."""
    rig = proving(tmp_path, OPEN, pay(f"{VERIFY}{own}"), tries=proves)
    assert (await rig.start()).status == "passed"
    assert isinstance(rig.browser, FakeBrowser)
    assert (rig.browser.quiet is not None) == earlier


async def test_an_action_that_is_there_is_not_done_again(tmp_path: Path) -> None:
    """*Done* before the action pauses the run, whatever `on_error` and `retry` say, and the site sees no action."""
    rig = proving(tmp_path, OPEN, pay(f"{VERIFY}{CONFIRM}, on_error: continue, retry: {{attempts: 3}}"))
    rig.site.texts |= {'test_id="status"': "paid"}
    ended = await rig.start()
    assert ended.question is not None
    assert (ended.status, ended.question["reason"], ended.path) == ("paused", tried_confirms.DONE_ALREADY, "pay")
    assert rig.site.actions == []


async def test_what_disagrees_is_said_at_once(tmp_path: Path) -> None:
    """A `confirm` that says *not done* although `verify` held is logged and said to the person; the run continues."""
    rig = proving(
        tmp_path,
        OPEN,
        pay(f"{VERIFY}{CONFIRM}".replace("== 'paid'", "== 'sent'")),
        "{id: end, type: context, set: {a: 1}}",
    )
    assert (await rig.start()).status == "passed"
    assert tried(rig)[-1] == ("pay", "after", "not-done")
    said = [each.text for each in rig.told if isinstance(each, events.Said)]
    assert said == ["pay: the click is done, and `confirm` says that it is not"]


async def test_one_that_fails_is_no_answer(tmp_path: Path) -> None:
    """A `confirm` that ends with an error before and after the action is logged as unable to tell, and ends nothing."""
    rig = proving(tmp_path, OPEN, PAY)
    rig.missing = {'test_id="status"'}

    async def paid(_target: str, page: FakePage) -> None:
        page.browser.site.texts |= {"=css=p": "paid"}

    rig.site.on_click = paid
    assert (await rig.start()).status == "passed"
    assert tried(rig) == [("pay", "before", "unknown"), ("pay", "after", "unknown")]


async def test_two_items_of_a_loop_are_tried(tmp_path: Path) -> None:
    """Of five items the first two are tried, so that the time of a long loop stays bounded."""
    each = PAY.replace("status == 'paid'", "status == item").replace("name: Pay", "name: 'Pay {{ item }}'")
    loop = f"{{id: each, type: iterate, over: [a, b, c, d, e], as: item, nodes: [{each}]}}"
    rig = proving(tmp_path, OPEN, loop)

    async def paid(target: str, page: FakePage) -> None:
        page.browser.site.texts |= {'test_id="status"': target[-2], "=css=p": "paid"}

    rig.site.on_click = paid
    assert (await rig.start()).status == "passed"
    assert [each[0] for each in tried(rig)] == ["each[1]/pay", "each[1]/pay", "each[2]/pay", "each[2]/pay"]
    assert len(rig.site.actions) == 5


@pytest.mark.parametrize("survives", [True, False])
@pytest.mark.parametrize("look", [1, 2])
async def test_a_crash_in_a_trial_doubles_nothing(tmp_path: Path, look: int, survives: bool) -> None:
    """A run killed while its `confirm` is tried, before or after the action, resumes as an ordinary run and has paid once."""
    rig = proving(tmp_path, OPEN, PAY, "{id: end, type: context, set: {a: 1}}")
    looks: list[int] = []

    class Dying(FakePage):
        async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
            if url.endswith("/1"):
                looks.append(1)
                if len(looks) == look:
                    raise Killed
            return await super().goto(url, anew=anew, once=once)

    rig.site.page = Dying
    with pytest.raises(Killed):
        await rig.start()
    assert len(rig.site.actions) == look - 1
    rig.die(browser_survives=survives)
    assert (await rig.resume()).status == "passed"
    assert rig.site.actions == ['role=button name="Pay"']


async def test_a_tried_action_that_fails_is_not_asked_about_twice(tmp_path: Path) -> None:
    """An action that fails before it began is tried again by `retry` without a second trial before it."""
    rig = proving(tmp_path, OPEN, pay(f"{VERIFY}{CONFIRM}, retry: {{attempts: 2, delay: 0}}"))
    fails = [SiteError("target-not-found", "not there yet")]

    async def late(_target: str, _page: FakePage) -> None:
        if fails:
            raise fails.pop()

    rig.site.before_click = late
    assert (await rig.start()).status == "passed"
    assert tried(rig) == [("pay", "before", "not-done"), ("pay", "after", "done")]
