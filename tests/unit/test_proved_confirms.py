"""Runs of a proof try each `confirm`: what disagrees is said to the model and in headline and notes, and nothing is done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from director.proving import checks, tools
from director.tools.build_context import BuildContext
from nodes.errors import SiteError
from runtime.models.turns import turn
from tests import build_contexts
from tests.fakes import FakePage
from tests.finishes import TEXT, Browsers, finish, installed, left, opened

pytestmark = pytest.mark.anyio

VERIFY = "verify: [{text: thanks, target: {css: p}}]"
CONFIRM = (
    "confirm: {settle: 0, nodes: [{id: look, type: browser_action, action: goto, url: '{{ inputs.base_url }}/mine'},"
    " {id: known, type: browser_query, query: text, target: {test_id: paid}}], done: \"{{ known == 'yes' }}\"}"
)
PAY = TEXT.replace("name: Pay}", f"name: Pay}}, {VERIFY}, {CONFIRM}")


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The browsers that runs open here, on a site that takes a payment."""
    found = installed(monkeypatch)

    async def pay(_target: str, page: FakePage) -> None:
        page.browser.site.texts |= {"=css=p": "thanks", 'test_id="paid"': "yes"}

    found.site.on_click = pay
    return found


def run_draft(build: BuildContext) -> Any:
    """Run the draft once."""
    return build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")


async def test_an_order_of_this_build_is_not_given_again(tmp_path: Path, browsers: Browsers) -> None:
    """What a run has done, a proof without a reset does not do again: its runs stop before it. A `confirm` that is right is said once."""
    build = opened(tmp_path, PAY)
    ran = await run_draft(build)
    assert ran.error is None
    assert f"pay: done in 1 of 1 run{checks.AGREES}" in ran.text
    again = await run_draft(build)
    assert checks.AGREES not in again.text
    assert again.error is None
    assert "stopped before pay: `confirm` says that it is done already" in again.text
    assert "pay: there already, and not done again in 1 of 1 run" in again.text
    outcome = await finish(build)
    value: Any = outcome.value
    assert outcome.error is None, outcome.text
    assert f"not done again in 2 of 3 runs{checks.AGREES}" in outcome.text
    said = "all but pay (done in 1 of 3 runs; there already, and not done again in 2 of 3 runs)"
    assert (value["proved"], [each["already"] for each in value["runs"]]) == (said, ["pay", "pay"])
    assert browsers.site.actions == ['role=button name="Pay"']
    assert "stopped before `pay`, which the site had already" in left(build)[1]


async def test_an_order_that_no_run_gave_must_be_explained(tmp_path: Path, browsers: Browsers) -> None:
    """If the site has it before the first run, or `confirm` says so of anything, `finish` is refused until the action is named."""
    browsers.site.texts |= {'test_id="paid"': "yes"}
    build = opened(tmp_path, PAY)
    refused = await finish(build)
    assert refused.error is not None
    assert "`pay`" in refused.text
    accepted: turn.Outcome = await finish(build, unproved="pay: the order is there")
    value: Any = accepted.value
    assert value["proved"].startswith("all but pay (there already, and not done again in 2 of 2 runs)")
    assert browsers.site.actions == []


async def test_a_confirm_that_disagrees_is_no_full_proof(tmp_path: Path, browsers: Browsers) -> None:
    """A `confirm` that says *not done* after `verify` held is said by the run, must be explained, and is in headline and notes."""
    build = opened(tmp_path, PAY.replace("known == 'yes'", "known == 'sent'"))
    ran = await run_draft(build)
    assert f"in doubt: pay ({checks.SAID_NOT_DONE})" in ran.text
    refused = await finish(build)
    assert refused.error is not None
    assert f"\n- `pay`: {checks.SAID_NOT_DONE}\n" in refused.text
    for shown in (ran.text, refused.text):
        assert '[page]\npay: `confirm` read known = "yes", done = false\n[end of page]' in shown
    value: Any = (await finish(build, unproved="pay: the site is slow")).value
    assert value["proved"] == f"all but pay ({checks.SAID_NOT_DONE})"
    workflow, notes = left(build)
    assert checks.SAID_NOT_DONE in workflow
    assert f"in doubt: `pay`: {checks.SAID_NOT_DONE}".replace("`confirm`", "\\`confirm\\`") in notes


async def test_a_rescued_verify_is_in_the_headline(tmp_path: Path, browsers: Browsers) -> None:
    """A `verify` that failed while `confirm` found the action done is named: an ordinary run would ask the site each time."""
    build = opened(tmp_path, PAY, runs=1)
    click = browsers.site.on_click

    async def declined(target: str, page: FakePage) -> None:
        assert click is not None
        await click(target, page)
        raise SiteError("verify-failed", "`text` does not hold", phase="after")

    browsers.site.on_click = declined
    value: Any = (await finish(build, unproved="pay: the page is slow")).value
    assert value["proved"] == f"all but pay ({checks.RESCUED})"


async def test_a_confirm_that_fails_before_is_a_hint(tmp_path: Path, browsers: Browsers) -> None:
    """A `confirm` that can only fail before its action is told as a hint, and the proof stays full."""
    build = opened(tmp_path, PAY, runs=1)

    class Lacking(FakePage):
        async def text(self, target: Any) -> str:
            if "paid" in str(target) and 'test_id="paid"' not in self.browser.site.texts:
                raise SiteError("target-not-found", "no element matches")
            return await super().text(target)

    browsers.site.page = Lacking
    ran = await run_draft(build)
    assert ran.error is None
    assert "hint: `confirm` failed before the action of pay" in ran.text
    assert "in doubt" not in ran.text
    assert checks.AGREES not in ran.text
    for shown in (ran.text, (await finish(build)).text):
        assert "[page]\npay: before it, `confirm` failed: no element matches\n[end of page]" in shown


async def test_the_error_of_a_confirm_that_cannot_tell_is_shown(tmp_path: Path, browsers: Browsers) -> None:
    """A `confirm` that ends with an error after its action shows that error, cut, in `run_draft` and in `finish`."""
    build = opened(tmp_path, PAY, runs=1)

    class Lacking(FakePage):
        async def text(self, target: Any) -> str:
            if "paid" in str(target):
                raise SiteError("target-ambiguous", f"5 elements match{' rows' * 50}")
            return await super().text(target)

    browsers.site.page = Lacking
    for shown in ((await run_draft(build)).text, (await finish(build)).text):
        assert checks.COULD_NOT_TELL in shown
        assert "[page]\npay: `confirm` failed: 5 elements match rows" in shown
        assert " rows" * 40 not in shown


async def test_what_a_denying_confirm_read_is_short_and_without_secrets(tmp_path: Path, browsers: Browsers) -> None:
    """Each value is shortened, the last ones are kept, the whole has at most 300 characters, and a secret stays masked."""
    long = "".join(f", {{id: n{each}, type: transform, expr: \"{{{{ '{each}' * 200 }}}}\"}}" for each in range(3))
    text = PAY.replace(
        "target: {test_id: paid}}",
        f"target: {{test_id: paid}}}}{long}, {{id: last, type: transform, expr: \"{{{{ known ~ ' sesame' ~ '-5678' }}}}\"}}",
    )
    text = text.replace("known == 'yes'", "last == 'sent'").replace("allowed_", "secrets: [WORD]\nallowed_")
    build = opened(tmp_path, text, known={"WORD": "sesame-5678"})
    read = next(each for each in (await run_draft(build)).text.split("\n") if each.startswith("pay: `confirm` read"))
    assert len(read) <= 300 + len("pay: ")
    assert read.endswith(", done = false")
    assert f"n2 = {'2' * 140}… (200 characters), last = " in read
    assert "n0" not in read
    assert "sesame" not in read


async def test_the_checks_of_a_held_action_are_not_looked_at(tmp_path: Path, browsers: Browsers) -> None:
    """Under `hold` no run looks at the `verify` of the action: the run, `finish` and the notes say so."""
    build = opened(tmp_path, PAY, runs=1, policy="hold")
    said = "not looked at yet: pay (verify and confirm)"
    assert said in (await run_draft(build)).text
    assert said in (await finish(build)).text
    assert "not looked at in any run: `pay (verify and confirm)`" in left(build)[1]
