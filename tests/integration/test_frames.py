"""Elements in frames and in open shadow roots, on real pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.errors import AuthorError, SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site
from tests.integration.test_page_actions import Field

pytestmark = pytest.mark.drawn(share=0.25, of="frames")

OUTER = """<!doctype html><title>Outer</title><button>Pay</button>
<div id=card><iframe name=middle src=/middle></iframe></div><iframe id=other src=/other?x=1></iframe><div id=late></div>"""
MIDDLE = "<p>Middle</p><iframe src=INNER/inner></iframe>"
INNER = """<table><tr><td>100</td><td><button>Pay</button></td></tr><tr><td>200</td><td><button>Pay</button></td></tr></table>
<label>Card <input></label><button>Return</button>
<script>for (const each of document.querySelectorAll('td button'))
  each.onclick = () => { each.textContent = 'Paid ' + each.closest('tr').cells[0].textContent; };</script>"""
WAY = ["middle", "iframe"]

SHADOW = """<!doctype html><title>Shadow</title><x-list></x-list><x-frame></x-frame><p>Light</p><script>
const define = (name, content) => customElements.define(name, class extends HTMLElement {
  connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = content; }
});
define('x-row', '<div class=row><b class=no><slot name=no></slot></b> <x-price></x-price><i hidden>never</i> <button>Buy</button></div>');
define('x-price', '<span class=total>1,234.50</span>');
define('x-frame', '<iframe name=within src=/other></iframe>');
define('x-list', '<section><x-row><em slot=no>100</em></x-row><x-row><em slot=no>1007</em></x-row></section><label>Name <input></label>');
</script>"""


@pytest.fixture(scope="module")
def inner() -> Iterator[site.Site]:
    """The origin of the innermost frame."""
    with site.serve() as served:
        served.page("/inner", INNER)
        yield served


@pytest.fixture(scope="module")
def outer(inner: site.Site) -> Iterator[site.Site]:
    """The site with the outer pages."""
    with site.serve() as served:
        served.page("/", OUTER)
        served.page("/middle", MIDDLE.replace("INNER", inner.origin))
        served.page("/other", "<p>Other</p><button>Cancel</button>")
        served.page("/shadow", SHADOW)
        yield served


@pytest.fixture(scope="module")
async def driven(
    outer: site.Site, inner: site.Site, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Session]:
    """One session that may load both origins."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), outer.origin, inner.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session, outer: site.Site) -> Tab:
    """The session's tab, on the page with the frames."""
    driven.bound(10)
    await driven.page.goto(f"{outer.origin}/")
    return driven.page


async def test_actions_and_readings_in_a_frame_in_a_frame(tab: Tab) -> None:
    """Actions, rules and readings work in a cross-origin frame within a frame."""
    row = Target(role="row", has_text="100")
    pay = Target(role="button", name="Pay", within=row, frame=WAY)
    await tab.ready(pay, "click")
    await tab.click(pay)
    await tab.wait_for(Rule(text="Paid 100", target=Target(css="tr", nth=0, frame=WAY)))
    await tab.fill(Target(label="Card", frame=WAY), "4111", secret=False)
    assert await tab.value(Target(label="Card", frame=WAY)) == "4111"
    assert await tab.count(Target(role="button", frame=WAY)) == 3
    assert await tab.count(Target(role="button")) == 1
    assert await tab.text(Target(css="tr", nth=1, frame=WAY)) == "200 Pay"
    rows = await tab.rows(Target(css="tr", frame=WAY), [Field("td", nth=0), Field("button")], 2)
    assert rows == [["100", "Paid 100"], ["200", "Pay"]]
    chosen = await tab.locate(Target(any_of=[Target(css="#no"), Target(role="button", name="Return")], frame=WAY))
    assert chosen == Target(role="button", name="Return", frame=WAY)


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(
    "frame", ["#other", "/other", "**/other", "**/other?x=*", "iframe:not([name])", "[src*='http'], #other"]
)
async def test_a_frame_is_found(frame: str, tab: Tab) -> None:
    """A frame is found by CSS, or by a URL glob whose query counts only where the glob has one."""
    assert await tab.text(Target(css="p", frame=frame)) == "Other"


async def test_a_frame_that_comes_late_and_one_that_is_replaced(tab: Tab, driven: Session) -> None:
    """A late frame is waited for; one that the page replaces repeatedly is found again."""
    await tab.page.evaluate(
        "setTimeout(() => { document.getElementById('late').innerHTML = '<iframe name=late src=/other></iframe>'; }, 300)"
    )
    assert await tab.count(Target(css="p", frame="late")) == 0
    assert await tab.text(Target(css="p", frame="late")) == "Other"
    await tab.page.evaluate(
        "window.left = 40; window.again = setInterval(() => { if (--left < 0) return clearInterval(again);"
        " document.getElementById('late').innerHTML = '<iframe name=late src=/other></iframe>'; }, 25)"
    )
    for _ in range(5):
        await tab.wait_for(Rule(text="Other", target=Target(css="p", frame="late")))
        await tab.click(Target(role="button", name="Cancel", frame="late"))
        assert await tab.text(Target(css="p", frame="late")) == "Other"
        assert await tab.rows(Target(css="p", frame="late"), [Field()], 1) == [["Other"]]


async def test_errors_in_frames(tab: Tab, driven: Session) -> None:
    """A missing frame is named with the existing ones; in an existing frame its nearest elements are listed."""
    driven.bound(2)
    wanted = [
        (["nowhere"], "no frame matches nowhere", ['name="middle" src="', 'id="other" src="']),
        (["middle", "nowhere"], "no frame matches nowhere in frame middle", ['src="']),
    ]
    for way, message, known in wanted:
        with pytest.raises(SiteError, match=message) as raised:
            await tab.click(Target(role="button", name="Pay", frame=way))
        assert (raised.value.code, raised.value.phase) == ("target-not-found", "before")
        for line, begins in zip(raised.value.evidence["frames"], known, strict=True):
            assert begins in line
        driven.bound(2)
    with pytest.raises(SiteError) as raised:
        await tab.text(Target(css="p", frame="iframe"))
    assert (raised.value.code, raised.value.message[:24]) == ("target-ambiguous", "2 frames match iframe  (")
    driven.bound(2)
    with pytest.raises(SiteError) as raised:
        await tab.click(Target(role="button", name="Retrun", frame=WAY))
    assert raised.value.evidence["nearest"] == ['role=button name="Return"']
    driven.bound(2)
    with pytest.raises(AuthorError) as bad:
        await tab.click(Target(css="p", frame="iframe["))
    assert bad.value.code == "bad-target"


async def test_the_nearest_in_the_row_come_first(tab: Tab, driven: Session, outer: site.Site) -> None:
    """Among similar elements, those in the wanted row come first."""
    rows = "".join(f"<tr><td>{each}</td><td><button>Pay {each} now</button></td></tr>" for each in ("one", "two"))
    await tab.goto(outer.page("/rows", f"<table>{rows}</table><button>Pay on</button>"))
    driven.bound(2)
    with pytest.raises(SiteError) as raised:
        await tab.click(Target(role="button", name="Pay one", within=Target(role="row", has_text="two")))
    nearest = raised.value.evidence["nearest"]
    assert nearest[0] == 'role=button name="Pay two now"'
    assert "two" not in nearest[-1]


async def test_open_shadow_roots_are_no_border(tab: Tab, outer: site.Site) -> None:
    """Role, label, text and CSS find elements in open shadow roots; texts, rows and frames in them are read too."""
    await tab.goto(f"{outer.origin}/shadow")
    await tab.fill(Target(label="Name"), "Ada", secret=False)
    assert await tab.value(Target(css="section ~ label input")) == "Ada"
    assert await tab.count(Target(css="x-row")) == 2
    assert await tab.text(Target(css="x-row", nth=0)) == "100 1,234.50 Buy"
    assert await tab.count(Target(css="x-row", has_text="100")) == 1
    await tab.click(Target(role="button", name="Buy", within=Target(css="x-row", has_text="1007")))
    await tab.wait_for(Rule(text="100 1,234.50", target=Target(css="x-list section x-row", nth=0)))
    await tab.wait_for(Rule(text="1007"))
    assert not await tab.holds(Rule(text="never"))
    rows = await tab.rows(Target(css="x-row"), [Field(".total"), Field("em")], 2)
    assert rows == [["1,234.50", "100"], ["1,234.50", "1007"]]
    assert await tab.text(Target(css=".no", nth=0)) == "100"
    assert await tab.text(Target(css="p", frame="within")) == "Other"
    assert await tab.text(Target(text="Light")) == "Light"
