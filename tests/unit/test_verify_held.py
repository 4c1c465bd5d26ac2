"""A `verify` that passed already before a side effect proves nothing, and the run flags it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime import events
from runtime.report import of_run, text
from tests.fakes import FakePage
from tests.rig import Rig
from tests.unit.test_handle import action, handle
from tests.unit.test_resume import CONFIRM, OPEN, VERIFY, die_and_resume, flow, pay, pay_it

FILL = "{id: fill, type: browser_action, action: fill, target: {label: Name}, value: A, verify: [{text: paid, target: {css: p}}]}"


async def test_a_verify_that_passed_before_the_action_is_flagged(tmp_path: Path) -> None:
    """The run passes, and its output, result, log and `show` name the step and the rules that prove nothing."""
    rig = Rig(tmp_path, flow(OPEN, pay(VERIFY)))
    rig.site.texts["=css=p"] = "paid"
    ended = await rig.start()
    assert ended.status == "passed"
    (flag,) = ended.flags
    assert (flag["path"], flag["code"]) == ("pay", "verify-held-before")
    assert flag["evidence"] == {"rules": ['text "paid" in css=p']}
    said = "pay: `verify` held already before the click, so it does not show that the click did anything"
    assert [each.text for each in rig.told if isinstance(each, events.Said)] == [said]
    report = of_run.run_report(rig.history, rig.store.read(rig.id), rig.store, brief=True)
    assert "flag  verify-held-before: `verify` held already before the click" in "\n".join(
        text.whole(report, text.Style())
    )


@pytest.mark.parametrize("node", [FILL, pay(VERIFY + ", effect: idempotent"), pay(VERIFY + ", effect: read"), pay()])
async def test_an_action_that_may_be_repeated_is_not_flagged(tmp_path: Path, node: str) -> None:
    """Rules of a field, or of a read or idempotent click, describe the page and are not flagged."""
    rig = Rig(tmp_path, flow(OPEN, node))
    rig.site.texts["=css=p"] = "paid"
    assert (await rig.start()).flags == []


async def test_a_verify_that_failed_before_the_action_is_not_flagged(tmp_path: Path) -> None:
    """A rule that passes only after the action shows that it worked."""
    rig = Rig(tmp_path, flow(OPEN, pay(VERIFY)))
    rig.site.on_click = pay_it
    ended = await rig.start()
    assert (ended.status, ended.flags) == ("passed", [])


async def test_a_step_that_was_found_done_is_not_flagged(tmp_path: Path) -> None:
    """After a crash, a step that `confirm` finds done is not flagged."""
    rig = Rig(tmp_path, flow(OPEN, pay(VERIFY + CONFIRM)))
    rig.site.texts["=css=p"] = "paid"
    ended = await die_and_resume(rig)
    assert (ended.status, ended.flags, rig.site.actions) == ("passed", [], ['role=button name="Pay"'])


async def test_a_step_that_a_retry_skips_is_not_flagged_again(tmp_path: Path) -> None:
    """An action that a block retry skips as recovered is not flagged."""
    rules = ", verify: [{text: there, target: {css: q}}]"
    failing = "{id: fails, type: browser_query, query: text, target: {css: gone}}"
    rig = Rig(
        tmp_path, flow(OPEN, handle([action("send", more=rules), failing], ", attempts: 2")), missing={"css=gone"}
    )

    async def there(_target: str, page: FakePage) -> None:
        page.browser.site.texts |= {"css=send_done": "yes", "=css=q": "there"}

    rig.site.on_click = there
    ended = await rig.start()
    assert (rig.calls("clean/try[2]/send"), ended.flags) == (["recovered"], [])
