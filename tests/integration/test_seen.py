"""What is seen counts: hidden twins make no target ambiguous, and what is never seen is found where nothing else is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = [pytest.mark.full_browser]

PAGE = """<!doctype html><title>Twins</title>
<div hidden><button class=go onclick="document.title = 'hidden'">Go</button><label>Name <input value=old></label><p class=note>Draft</p></div>
<button class=go onclick="document.title = 'shown'">Go</button> <label>Name <input></label> <p class=note>Ready</p>
<div class=card style="display:none">A <input type=checkbox checked></div><div class=card>A <input type=checkbox></div>
<p class=flat style="height:0;overflow:hidden">Paid</p><p class=flat>Open</p>
<input type=file class=file hidden>
<select><option class=choice>one<option class=choice>two</select>
<iframe name=inner srcdoc="<p class=note hidden>Framed draft</p><p class=note>Framed</p>"></iframe>
<script>
setTimeout(() => { const late = document.createElement('p'); late.className = 'late'; late.hidden = true; late.textContent = 'Help'; document.body.append(late); }, 100);
const help = document.createElement('p'); help.className = 'late'; help.textContent = 'Help'; document.body.append(help);
</script>"""

GO, NAME, NOTE = Target(css=".go"), Target(label="Name"), Target(css=".note")


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with a page on which much is there twice, once hidden."""
    with site.serve() as served:
        served.page("/twins", PAGE)
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin, mode="shared") as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session, served: site.Site) -> Tab:
    """The session's tab with the page loaded anew, and five seconds for each test."""
    driven.bound(5)
    await driven.page.goto(f"{served.origin}/twins")
    return driven.page


async def test_actions_take_the_element_that_is_seen(tab: Tab) -> None:
    """A click and a text go to the twin that a person can use."""
    await tab.click(GO)
    await tab.wait_for(Rule(title="shown"))
    await tab.fill(NAME, "Ada")
    assert await tab.value(NAME) == "Ada"
    box = Target(role="checkbox", within=Target(css=".card"))
    await tab.check(box, checked=True)
    assert (await tab.state(box))["checked"] is True


async def test_reads_and_rules_look_at_what_is_seen(tab: Tab) -> None:
    """Texts, values, states and rules are those of the visible twin, also in a frame, and where a hidden one comes later."""
    assert await tab.text(NOTE) == "Ready"
    assert await tab.text(Target(css=".note", frame="inner")) == "Framed"
    assert await tab.text(Target(css=".flat")) == "Open"
    assert await tab.text(Target(any_of=[Target(css="[hidden] .note"), NOTE])) == "Ready"
    await tab.wait_for(Rule(hidden=Target(css="[hidden] .note")))
    for rule in (
        Rule(visible=NOTE),
        Rule(text="Ready", target=NOTE),
        Rule(value="", target=NAME),
        Rule(enabled=True, target=GO),
        Rule(count=1, target=NOTE),
        Rule(visible=Target(css=".late")),
    ):
        await tab.wait_for(rule)
    await tab.page.wait_for_function("document.querySelectorAll('.late').length === 2")
    assert await tab.holds(Rule(visible=Target(css=".late")))
    assert not await tab.holds(Rule(hidden=NOTE))


async def test_what_is_never_seen_is_found_where_nothing_else_is(tab: Tab, tmp_path: Path) -> None:
    """A hidden file field and the options of a closed list are found; `count` looks at hidden elements only if it is asked to."""
    file = tmp_path / "paper.txt"
    file.write_text("paper")
    await tab.upload(Target(css=".file"), [file])
    assert await tab.attribute(Target(css=".choice", nth=1), "class") == "choice"
    assert (await tab.count(NOTE), await tab.count(NOTE, hidden=True)) == (1, 2)
    assert await tab.count(Target(css=".choice")) == 2
    assert (
        await tab.count(Target(css="[hidden] .note")),
        await tab.count(Target(css="[hidden] .note"), hidden=True),
    ) == (0, 1)


async def test_two_that_are_seen_are_ambiguous(tab: Tab) -> None:
    """Which of two visible elements is meant, only the author knows."""
    tab._deadline.bound(0.5)
    with pytest.raises(SiteError) as caught:
        await tab.text(Target(css="p"))
    assert caught.value.code == "target-ambiguous"
