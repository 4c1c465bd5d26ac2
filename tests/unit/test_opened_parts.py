"""A step that misses what an earlier step had opened: the error's fix says how to repeat both, and that works."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.pointer import PLAIN, Stroke
from nodes.rules import Rule
from nodes.targets import Target
from tests.rig import Rig
from tests.unit.test_confirm_pages import PANEL, Redrawn
from tests.unit.test_resume import OPEN, flow, pay, pay_it

CLICK = "{id: panel, type: browser_action, action: click, target: {css: panel}, effect: read}"
READ = "{id: state, type: browser_query, query: text, target: {css: state}}"
REPEAT = "repeat both: `handle` with `attempts: 3`, and in its `try` `panel`, then `state` with a short `timeout`"


class Checked(Redrawn):
    """The same page. A rule holds right after the click, and once more if the panel is said to stay."""

    held = 0

    async def click(self, target: Target, how: Stroke = PLAIN) -> None:
        """Open the panel."""
        self.held = 9 if self.browser.site.texts.get("stays") else 1
        await super().click(target, how)

    async def wait_for(self, rule: Rule) -> None:
        """Hold."""
        self.held -= 1

    async def holds(self, rule: Rule) -> bool:
        """Whether the panel is still open."""
        return self.held > 0


async def fix_of(folder: Path, *nodes: str, redraws: int = 99, stays: str = "") -> str:
    """The fix of the error that ends a run on a page that closes its panel again."""
    rig = Rig(folder, flow(OPEN, *nodes))
    rig.site.page = Checked
    rig.site.texts |= {"redraws": str(redraws), "stays": stays}
    ended = await rig.start()
    assert (ended.status == "passed") == (ended.error is None)
    return "passed" if ended.error is None else str(ended.error.get("fix", ""))


async def test_the_fix_says_how_to_repeat_both(tmp_path: Path) -> None:
    """A target that is missing after a click that only opens may be in a part that the page closed again."""
    fix = await fix_of(tmp_path, CLICK, READ)
    assert fix.endswith(f"if the page closed again what `panel` opened, {REPEAT}")


@pytest.mark.parametrize(("stays", "said"), [("", True), ("yes", False)])
async def test_a_verify_tells_whether_it_is_closed(tmp_path: Path, stays: str, said: bool) -> None:
    """Rules that held after the click are checked again: if they still hold, the part is open and only the target is wrong."""
    click = CLICK.replace("effect: read", "effect: read, verify: [{visible: {css: panel}}]")
    fix = await fix_of(tmp_path, click, READ, stays=stays)
    assert (fix == f"what `panel` opened is closed again: {REPEAT}") == said
    assert ("repeat both" in fix) == said


@pytest.mark.parametrize(
    "nodes",
    [
        [CLICK.replace("read", "idempotent"), READ],
        [CLICK, OPEN.replace("id: open", "id: other"), READ],
        [f"{{id: again, type: handle, attempts: 2, try: [{CLICK}, {READ}]}}"],
    ],
    ids=["a click that does more", "another page since", "repeated already"],
)
async def test_other_errors_stay_as_they_are(tmp_path: Path, nodes: list[str]) -> None:
    """Nothing is said of a step that does not only open, of another document, and of steps that are repeated already."""
    fix = await fix_of(tmp_path, *nodes)
    assert "repeat both" not in fix


async def test_the_fix_works_in_a_workflow(tmp_path: Path) -> None:
    """Repeated as the fix says, the panel is opened again until it can be read."""
    assert (
        await fix_of(tmp_path, f"{{id: again, type: handle, attempts: 3, try: [{CLICK}, {READ}]}}", redraws=2)
        == "passed"
    )


async def test_a_tried_confirm_names_the_fix(tmp_path: Path) -> None:
    """A `confirm` that failed in a part that may be closed again leaves the fix in the log of the run that tried it."""
    nodes = PANEL.partition("{id: again")[0] + f"{CLICK}, {READ}"
    asks = f", confirm: {{settle: 0, nodes: [{nodes}], done: \"{{{{ state == 'paid' }}}}\"}}"
    rig = Rig(tmp_path, flow(OPEN, pay(asks)), proves=True)
    rig.site.page, rig.site.on_click = Redrawn, pay_it
    rig.site.texts["redraws"] = "99"
    await rig.start()
    fixes = [str(each.get("fix")) for each in rig.history.confirms_tried]
    assert [REPEAT in each for each in fixes] == [True, True]
