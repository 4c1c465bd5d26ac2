"""The flag of an action that changed nothing on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime import events
from runtime.report import of_run, text
from tests.rig import Rig
from tests.unit.test_resume import OPEN, flow, pay

PRESS = "{id: pay, type: browser_action, action: press, key: Enter}"
DRAG = "{id: pay, type: browser_action, action: drag, target: {css: a}, by: {x: 5, y: 5}}"
DRAW = "{id: pay, type: browser_action, action: draw, target: {css: a}, path: [{x: 1, y: 1}, {x: 2, y: 2}]}"
TAP = "{id: pay, type: browser_action, action: tap, target: {css: a}}"


@pytest.mark.parametrize(
    ("node", "action"), [(pay(), "click"), (PRESS, "press"), (DRAG, "drag"), (DRAW, "draw"), (TAP, "tap")]
)
async def test_an_action_that_changed_nothing_is_flagged(tmp_path: Path, node: str, action: str) -> None:
    """The run passes, and its output, result, log and `show` say which step changed nothing."""
    rig = Rig(tmp_path, flow(OPEN, node))
    rig.site.unmoved = True
    ended = await rig.start()
    assert ended.status == "passed"
    [flag] = ended.flags
    assert (flag["path"], flag["code"]) == ("pay", "changed-nothing")
    said = f"the {action} changed nothing on the page: look whether it reached what it should"
    assert [each.text for each in rig.told if isinstance(each, events.Said)] == [f"pay: {said}"]
    report = of_run.run_report(rig.history, rig.store.read(rig.id), rig.store, brief=True)
    assert f"flag  changed-nothing: {said}" in "\n".join(text.whole(report, text.Style()))


@pytest.mark.parametrize(
    "node",
    [
        "{id: a, type: browser_action, action: fill, target: {css: a}, value: x}",
        "{id: a, type: browser_action, action: check, target: {css: a}}",
        "{id: a, type: browser_action, action: hover, target: {css: a}}",
        "{id: a, type: browser_action, action: scroll, to: top}",
        "{id: a, type: browser_action, action: copy, target: {css: a}}",
    ],
)
async def test_an_action_that_promises_a_state_is_not_flagged(tmp_path: Path, node: str) -> None:
    """To fill what is filled already, to check what is checked, to move the mouse or the page, and to copy need change nothing."""
    rig = Rig(tmp_path, flow(OPEN, node))
    rig.site.unmoved = True
    assert (await rig.start()).flags == []
