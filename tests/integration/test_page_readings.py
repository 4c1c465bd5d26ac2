"""Readings of real pages beyond text and rows: tables, states, attributes, what stands in shadow roots."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.errors import SiteError
from nodes.targets import Target
from runtime.browser.page import Tab
from runtime.browser.session import Session
from tests import browsers, site
from tests.integration.test_page_deeds import Field

TABLES = """<!doctype html><title>Tables</title>
<table id=plain><thead><tr><th>No</th><th>Total</th><th></th></tr></thead>
<tbody><tr><td>1</td><td> 2.50
 € </td><td><button>Pay</button></td></tr><tr hidden><td>ghost</td></tr><tr><td>2</td></tr></tbody>
<tfoot><tr><td>Sum</td><td>2.50</td></tr></tfoot></table>
<table id=spans><tr><th rowspan=2>Name</th><th colspan=2>Price</th></tr><tr><th>net</th><th>gross</th></tr>
<tr><td rowspan=2>Tea</td><td>1</td><td>2</td></tr><tr><td colspan=2>free</td></tr>
<tr><th>Cup</th><td>3</td><td><table><tr><td>in</td><td>ner</td></tr></table></td></tr></table>
<table id=bare><tr><td>a</td><td>b</td></tr></table>
<table id=late><tr><th>A</th></tr></table>
<table id=none></table> <div id=div>no table</div>
<script>setTimeout(() => { late.insertRow().insertCell().textContent = 'come'; }, 200);</script>"""

SHADOWS = """<!doctype html><title>Shadows</title>
<x-row></x-row><x-row></x-row><p class=no>outside</p>
<script>
let number = 0;
customElements.define('x-cell', class extends HTMLElement {
  connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = `<b class=no>${++number}</b>`; }
});
customElements.define('x-row', class extends HTMLElement {
  connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = '<i class=kind title=t>row</i><x-cell></x-cell>'; }
});
</script>"""

STATES = """<!doctype html><title>States</title>
<input id=text value=held><input id=fixed readonly value=x><input id=off disabled><input id=box type=checkbox checked>
<div id=aria role=checkbox aria-checked=false>Aria</div><p id=plain hidden>Plain</p><div id=rich contenteditable>Rich</div>
<select id=list><option value=1>One</select><a href=/here?a=b id=link>Link</a>
<script>document.querySelector('#text').focus();</script>"""


@pytest.fixture(scope="module")
def shown() -> Iterator[site.Site]:
    """A site with things to read."""
    with site.serve() as served:
        for path, body in (("/tables", TABLES), ("/shadows", SHADOWS), ("/states", STATES)):
            served.page(path, body)
        yield served


@pytest.fixture(scope="module")
async def driven(shown: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One browser for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), shown.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """Its tab, with ten seconds for each test."""
    driven.bound(10)
    return driven.page


async def test_tables_are_read_as_a_person_sees_them(tab: Tab, driven: Session, shown: site.Site) -> None:
    """Headers, spans and short rows come out right; hidden rows, feet and tables within do not get in between; a late row is waited for."""
    await tab.goto(f"{shown.origin}/tables")
    for css, least, head, rows in (
        ("#late", 1, ["A"], [["come"]]),
        ("#plain", 1, ["No", "Total", ""], [["1", "2.50 €", "Pay"], ["2", None, None]]),
        (
            "#spans",
            1,
            ["Name", "Price net", "Price gross"],
            [["Tea", "1", "2"], ["Tea", "free", "free"], ["Cup", "3", "in ner"]],
        ),
        ("#bare", 1, ["", ""], [["a", "b"]]),
        ("#none", 0, [], []),
    ):
        grid = await tab.table(Target(css=css), least)
        assert (grid.head, grid.rows) == (head, rows), css


@pytest.mark.parametrize(
    ("css", "code", "said"),
    [
        ("#div", "not-a-table", "is a <div>"),
        ("#nowhere", "target-not-found", "no element matches"),
        ("#none", "target-not-found", "has no row"),
        ("#bare, #plain", "target-ambiguous", "2 elements"),
    ],
)
async def test_what_is_no_table(css: str, code: str, said: str, tab: Tab, driven: Session, shown: site.Site) -> None:
    """What cannot be read as a table says why."""
    await tab.goto(f"{shown.origin}/tables")
    driven.bound(2)
    with pytest.raises(SiteError) as refused:
        await tab.table(Target(css=css), 1)
    assert refused.value.code == code
    assert said in refused.value.message


async def test_rows_are_read_through_open_shadow_roots(tab: Tab, shown: site.Site) -> None:
    """A field's selector is looked for in the shadow roots of the row and below it, and not outside the row."""
    await tab.goto(f"{shown.origin}/shadows")
    fields = [Field("b.no"), Field(".kind"), Field(".kind", attribute="title")]
    assert await tab.rows(Target(css="x-row"), fields, 1) == [["1", "row", "t"], ["2", "row", "t"]]


async def test_states_and_attributes(tab: Tab, shown: site.Site) -> None:
    """What an element is like, all in one look; what it has not is null."""
    await tab.goto(f"{shown.origin}/states")
    names = ("visible", "enabled", "checked", "editable", "focused", "value")
    for css, state in (
        ("#text", (True, True, None, True, True, "held")),
        ("#fixed", (True, True, None, False, False, "x")),
        ("#off", (True, False, None, False, False, "")),
        ("#box", (True, True, True, True, False, "on")),
        ("#aria", (True, True, False, False, False, None)),
        ("#plain", (False, True, None, False, False, None)),
        ("#rich", (True, True, None, True, False, None)),
        ("#list", (True, True, None, True, False, "1")),
    ):
        assert await tab.state(Target(css=css)) == dict(zip(names, state, strict=True)), css
    assert await tab.attribute(Target(css="#link"), "href") == "/here?a=b"
    assert await tab.attribute(Target(css="#link"), "title") is None
