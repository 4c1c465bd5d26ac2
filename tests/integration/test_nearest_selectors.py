"""Selectors that find nothing: the part that fails, and the selectors that are meant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.errors import SiteError
from nodes.targets import Target
from runtime.browser.elements import locators
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.4, of="nearest")

PAGE = """<!doctype html><title>Orders</title>
<ul id=list class="rows wide">
  <li class=row><span><a class="edit link" data-kind=order href="#a">Edit</a></span></li>
  <li class=row><span><a class="delete link" data-kind=order href="#b">Delete</a></span></li>
</ul>
<form><input name=query><button id=save class="primary">Save all</button></form>
<a-panel><template shadowrootmode=open><b id=inner>In</b></template></a-panel>
<div style="width: 20px; height: 20px; cursor: pointer" title="nora@example.org"></div>
<img style="width: 20px; height: 20px" alt="Ole Berg"><i title=twice>1</i><i title=twice>2</i>
<b>Beta</b><div role=tooltip><p>Beta</p></div><div data-testid=chart-tooltip><p>Beta</p><p>Only</p></div>
<iframe name=inside srcdoc="<p id=note>Note</p>"></iframe>"""


@pytest.fixture(scope="module")
def orders() -> Iterator[site.Site]:
    """Serves a site with one page."""
    with site.serve() as served:
        served.page("/", PAGE)
        yield served


@pytest.fixture(scope="module")
async def driven(orders: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), orders.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session, orders: site.Site) -> AsyncIterator[Tab]:
    """A tab on the page, with a short deadline."""
    driven.bound(10)
    async with driven.fresh_page() as fresh:
        await fresh.goto(f"{orders.origin}/")
        driven.bound(0.2)
        yield fresh


async def missing(tab: Tab, target: Target) -> SiteError:
    """The error of a click on a target that finds nothing."""
    with pytest.raises(SiteError) as raised:
        await tab.click(target)
    assert raised.value.code == "target-not-found"
    return raised.value


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        (Target(css="#sve"), ["css=#save"]),
        (Target(css="button#sve"), ["css=button#save"]),
        (Target(css="button.primry"), ["css=button.primary"]),
        (Target(css="buton.primary"), ["css=button.primary"]),
        (Target(css="input[name=qery]"), ['css=input[name="query"]']),
        (Target(css="input[nam=query]"), ["css=input[name=query]"]),
        (Target(css="button:text-is('Save al')"), ['css=button:text-is("Save all")']),
        (Target(css="#list .rwo a.edit"), ["css=#list .row a.edit"]),
        (Target(css="#list > li > a.edit"), ["css=#list > li a.edit"]),
        (Target(css="#lst a.edti"), ["css=#list a.edit"]),
        (Target(css="button.primry#sve"), ["css=.primary", "css=#save"]),
        (Target(css="#nothing-like-it, #sve"), ["css=#save"]),
        (Target(css="#iner"), ["css=#inner"]),
        (Target(css="#not", frame="inside"), ["css=#note"]),
        (Target(css="a.edti", within=Target(css="li", nth=0)), ["css=a.edit"]),
        (Target(css="a", within=Target(css="ul.rosw")), ["css=ul.rows"]),
        (Target(xpath="//ul[@id='lst']//a[text()='Edit']"), ["""xpath=//ul[@id="list"]//a[text()='Edit']"""]),
        (Target(xpath="//a[contains(@class, 'delte')]"), ['xpath=//a[contains(@class, "delete")]']),
        (Target(xpath="//a[text()='Edti']"), ['xpath=//a[text()="Edit"]']),
        (Target(css="#nothing-like-it"), []),
        (Target(css="li:nth-child(9)"), []),
    ],
    ids=str,
)
async def test_what_is_meant(tab: Tab, target: Target, nearest: list[str]) -> None:
    """An id, class, attribute, tag or text that is one letter off gives the selector that finds something, ready to write."""
    error = await missing(tab, target)
    assert error.evidence["nearest"] == nearest
    for each in nearest:
        way, _, text = each.partition("=")
        part = target if target.css != "a" else target.within
        assert part is not None
        assert await tab.count(part.model_copy(update={way: text})) >= 1


@pytest.mark.parametrize(
    ("text", "field"), [("nora@example.org", "title"), ("Ole Berg", "alt"), ("twice", None), ("Nora", None)]
)
async def test_a_text_that_only_names_an_element_gives_its_target(tab: Tab, text: str, field: str | None) -> None:
    """Where a text is no text of the page and one element is called that, its target is the first of the nearest."""
    nearest = (await missing(tab, Target(text=text))).evidence["nearest"]
    wanted = str(Target.model_validate({field: text, "exact": True})) if field is not None else None
    assert (nearest[:1] == [wanted]) == (field is not None)
    assert not any("twice" in each for each in nearest)
    if field is not None:
        assert await tab.count(Target.model_validate({field: text, "exact": True})) == 1


@pytest.mark.parametrize(("text", "tag"), [("Beta", "B"), ("Only", "P")])
async def test_a_whole_text_is_found_before_its_tooltip(tab: Tab, text: str, tag: str) -> None:
    """Of elements with the same text, the one outside of tooltips is meant; a text that only a tooltip has is found there."""
    found = locators.locator(tab.page, Target(text=text, exact=True))
    assert await found.evaluate("(each) => each.tagName") == tag


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (Target(css="#list > li > a.edit"), ": 2 elements match `#list > li`, and `> a.edit` is not there  ("),
        (Target(css="#list .rwo a"), ": one element matches `#list`, and `.rwo` is not there  ("),
        (Target(xpath="//li//a[@id='x']"), ": 2 elements match `//li`, and `//a[@id='x']` is not there  ("),
        (Target(css="li.row", has_text="Archive"), ": 2 elements match without `has_text`  ("),
        (Target(role="link", nth=5), ": 2 elements match without `nth`  ("),
        (
            Target(css="a", within=Target(css="#list p i")),
            "css=#list p i: one element matches `#list`, and `p` is not there",
        ),
        (Target(css="#lst a"), "no element matches css=#lst a  ("),
        (Target(css="#list i, #list b"), "no element matches css=#list i, #list b  ("),
    ],
    ids=str,
)
async def test_which_part_finds_nothing(tab: Tab, target: Target, why: str) -> None:
    """The error says how far a selector does find elements, and with which part it stops."""
    assert why in (await missing(tab, target)).message
