"""What a file dismisses reaches the browser, and what was dismissed is told with its step."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.targets import Target
from runtime import events
from runtime.browser.options import Overlay
from runtime.browser.port import Dismissal
from runtime.language import callees, reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.report import of_run, text
from tests.fakes import FakePage
from tests.rig import Rig
from tests.unit.test_resume import OPEN, VERIFY, die_and_resume, flow, pay, pay_it

HEAD = "dismiss: [{target: {role: dialog, name: '{{ inputs.what }}'}}]\ninputs: {what: {type: string, default: Newsletter}}"
WANTED = [Overlay(target=Target(role="dialog", name="Newsletter"))]


async def test_a_step_tells_what_it_dismissed(tmp_path: Path) -> None:
    """Overlays of the file are given to the browser with inputs filled in; what was closed is in the log, the events and `show`, once."""
    rig = Rig(tmp_path, flow(OPEN, pay(), more=HEAD), inputs={"what": "Newsletter"})

    async def overlays_come(target: str, page: FakePage) -> None:
        page.browser.dismissals = [Dismissal("banner"), Dismissal("banner"), Dismissal("chat", "it stays")]
        await pay_it(target, page)

    rig.site.on_click = overlays_come
    ended = await rig.start()
    assert ended.status == "passed"
    assert rig.browser is not None
    assert rig.browser.overlays == WANTED
    attempt = rig.history.attempts["pay"][-1]
    assert attempt.result is not None
    assert attempt.result.dismissed == ["banner"]
    assert [(each["code"], each["message"]) for each in ended.flags] == [
        ("not-dismissed", "chat was not dismissed: it stays")
    ]
    said = [each.text for each in rig.told if isinstance(each, events.Said)]
    assert said == ["pay: dismissed banner", "pay: chat was not dismissed: it stays"]
    report = of_run.run_report(rig.history, rig.store.read(rig.id), rig.store, brief=True)
    shown = "\n".join(text.whole(report, text.Style()))
    assert shown.count("dismissed  banner") == 1


@pytest.mark.parametrize("survives", [True, False])
async def test_a_resumed_run_dismisses_too(survives: bool, tmp_path: Path) -> None:
    """After a crash the browser, found again or rebuilt, has the overlays of the file."""
    rig = Rig(tmp_path, flow(OPEN, pay(VERIFY + ", after_crash: retry"), more=HEAD), inputs={"what": "Newsletter"})
    ended = await die_and_resume(rig, before=True, browser_survives=survives)
    assert ended.status == "passed"
    assert rig.browser is not None
    assert rig.browser.overlays == WANTED


@pytest.mark.parametrize(
    ("overlay", "code"),
    [
        ("{target: {text: Cookies, nth: 0}}", "invalid"),
        ("{target: {text: Close, within: {text: Cookies, nth: 1}}}", "invalid"),
        ("{click: {text: Close}}", "missing-field"),
        ("{target: {text: '{{ open }}'}}", "unknown-reference"),
    ],
)
def test_overlays_that_are_refused(overlay: str, code: str) -> None:
    """An overlay needs a target without `nth`, and sees inputs only: nothing else is known when a run begins."""
    with pytest.raises(WorkflowInvalid) as refused:
        reader.parse(flow(OPEN, more=f"dismiss: [{overlay}]"), "flow.yaml", callees.Texts({}))
    assert [each.code for each in refused.value.diagnostics] == [code]
