"""Reading real pages beyond text and rows: tables, states, attributes, and shadow roots."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site
from tests.integration.test_page_actions import Field

pytestmark = pytest.mark.drawn(share=0.25, of="page reads")

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
<table id=empty><thead><tr><th>A</th><th>B</th></tr></thead><tr><td colspan=9>No rows</td></tr></table>
<table id=groups><tr><th>A</th><th>B</th></tr><tr><td colspan=2>Tea</td></tr><tr><td>1</td><td>2</td></tr></table>
<div id=roles role=table><div role=row><div role=columnheader>A</div><div role=columnheader>B</div></div>
<div role=row><div role=cell aria-colspan=2>Group</div></div><div role=row><div role=cell>1</div><div role=cell>2</div></div></div>
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

HIDDEN = """<!doctype html><title>Hidden</title><style>.shut {display: none} .wide {display: contents}</style>
<table id=cart><thead><tr><th><a href="?o=1"><span>2</span></a><a href="?o=-1">Sort</a> <a href=?>Article</a></th><th>Pieces ▲<button></button></th><th>KIND</th></tr></thead>
<tr><td>Tea</td><td><input value=3></td><td><select><option>Plain</option><option selected>Gift</option></select></td></tr>
<tr class=shut><td>{{ name }}</td><td><input></td><td></td></tr>
<tr><td>Cup <input type=checkbox checked> a</td><td><textarea>4 of</textarea></td><td>none</td></tr></table>
<ul><li>one</li><li hidden>two</li><li style="visibility: hidden">three</li><li class=wide><b>four</b></li></ul>
<select id=kinds><option value=1>One</option><option value=2>Two</option></select><meta class=word content=kept><input id=word type=password value=secret>"""

STATES = """<!doctype html><title>States</title>
<input id=text value=held><input id=fixed readonly value=x><input id=off disabled><input id=box type=checkbox checked>
<div id=aria role=checkbox aria-checked=false>Aria</div><p id=plain hidden>Plain</p><div id=rich contenteditable>Rich</div>
<select id=list><option value=1>One</select><a href=/here?a=b id=link>Link</a>
<script>document.querySelector('#text').focus();</script>"""


def failing(status: int, _request: site.Request) -> site.Answer:
    """A page with an error status."""
    return site.Answer("<!doctype html><title>Broken</title><div role=alert>Something broke.</div>", status)


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves pages to read."""
    with site.serve() as served:
        for path, body in (("/tables", TABLES), ("/shadows", SHADOWS), ("/states", STATES), ("/hidden", HIDDEN)):
            served.page(path, body)
        for status in (404, 500, 503):
            served.answer(f"/{status}", functools.partial(failing, status))
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """The session's tab, with ten seconds for each test."""
    driven.bound(10)
    return driven.page


async def test_tables_are_read_as_a_person_sees_them(tab: Tab, driven: Session, served: site.Site) -> None:
    """Headers, spans and short rows are read correctly; hidden rows, footers, nested tables and lines of one cell over all columns are not mixed in; a late row is waited for."""
    await tab.goto(f"{served.origin}/tables")
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
        ("#empty", 0, ["A", "B"], []),
        ("#groups", 1, ["A", "B"], [["1", "2"]]),
        ("#roles", 1, ["A", "B"], [["1", "2"]]),
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
async def test_an_unreadable_table(
    css: str, code: str, said: str, tab: Tab, driven: Session, served: site.Site
) -> None:
    """An element that cannot be read as a table gives an error with the reason."""
    await tab.goto(f"{served.origin}/tables")
    driven.bound(2)
    with pytest.raises(SiteError) as refused:
        await tab.table(Target(css=css), 1)
    assert refused.value.code == code
    assert said in refused.value.message


async def test_rows_are_read_through_open_shadow_roots(tab: Tab, served: site.Site) -> None:
    """A field's selector finds elements in shadow roots of the row and below, and not outside the row."""
    await tab.goto(f"{served.origin}/shadows")
    fields = [Field("b.no"), Field(".kind"), Field(".kind", attribute="title")]
    assert await tab.rows(Target(css="x-row"), fields, 1) == [["1", "row", "t"], ["2", "row", "t"]]


async def test_states_and_attributes(tab: Tab, served: site.Site) -> None:
    """All states are read at once; a state or an attribute that an element does not have is null."""
    await tab.goto(f"{served.origin}/states")
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


async def test_hidden_rows_are_skipped_and_fields_give_their_values(
    tab: Tab, driven: Session, served: site.Site
) -> None:
    """Hidden rows are skipped; rows with `display: contents` and never-drawn elements are read. Form fields give their value, passwords nothing."""
    await tab.goto(f"{served.origin}/hidden")
    cells = [Field("td:nth-child(1)"), Field("td:nth-child(2)"), Field("td:nth-child(3)"), Field("input")]
    assert await tab.rows(Target(css="#cart tr:has(td)"), cells, 1) == [
        ["Tea", "3", "Gift", "3"],
        ["Cup a", "4 of", "none", "true"],
    ]
    for css, texts in (
        ("li", [["one"], ["four"]]), ("#kinds option", [["One"], ["Two"]]), ("#kinds", [["One"]]), ("#word", [[""]]), ("li[hidden]", []),
    ):  # fmt: skip
        assert await tab.rows(Target(css=css), [Field(None)], 0) == texts, css
    driven.bound(0.2)
    with pytest.raises(SiteError, match="1 elements match css=li\\[hidden\\], and none of them is visible"):
        await tab.rows(Target(css="li[hidden]"), [Field(None)], 1)
    assert await tab.rows(Target(css=".word"), [Field(None, attribute="content")], 1) == [["kept"]]


async def test_a_header_is_read_without_its_sort_controls(tab: Tab, served: site.Site) -> None:
    """Sort positions and arrows are not part of a header; a cell with a form field gives its value; a missing table has no rows."""
    await tab.goto(f"{served.origin}/hidden")
    grid = await tab.table(Target(css="#cart"), 1)
    assert grid.head == ["Article", "Pieces", "KIND"]
    assert grid.rows == [["Tea", "3", "Gift"], ["Cup a", "4 of", "none"]]
    nothing = await tab.table(Target(css="#nowhere"), 0)
    assert (nothing.head, nothing.rows) == ([], [])


@pytest.mark.parametrize("status", [404, 500, 503])
async def test_a_server_error_does_not_count_as_empty(
    status: int, tab: Tab, driven: Session, served: site.Site
) -> None:
    """On a 5xx page counts, empty lists and rules of absence fail with the status; a 404 page is empty."""
    await tab.goto(f"{served.origin}/{status}")
    nowhere = Target(css=".order")
    reads = (
        lambda: tab.count(nowhere),
        lambda: tab.rows(nowhere, [Field(None)], 0),
        lambda: tab.table(nowhere, 0),
    )
    for read in reads:
        if status == 404:
            await read()
            continue
        with pytest.raises(SiteError) as raised:
            await read()
        assert raised.value.code == "error-page"
        assert raised.value.evidence["status"] == status
        assert raised.value.evidence["alert"] == "Something broke."
    assert await tab.holds(Rule(hidden=nowhere)) == (status == 404)
    assert await tab.holds(Rule(count=0, target=nowhere)) == (status == 404)
    assert await tab.count(Target(role="alert")) == 1
    driven.bound(0.2)
    with pytest.raises(SiteError) as missing:
        await tab.text(nowhere)
    assert missing.value.evidence["status"] == status
    assert f"the page is an error of the server ({status})" in (missing.value.fix or "")


@pytest.mark.parametrize(
    ("glob", "fix"),
    [
        ("**/status", "the query (no `?` in the glob) did not count"),
        ("**/status?b=1", "without `?`, `=` and `&` in it the query does not count"),
        ("**b=1", "the whole address with its query"),
        ("**/states#there", "the query (no `?` in the glob) did not count"),
    ],
)
async def test_the_fix_of_an_address_says_which_parts_count(
    glob: str, fix: str, tab: Tab, driven: Session, served: site.Site
) -> None:
    """The fix of a failed URL rule says whether the query counts."""
    await tab.goto(f"{served.origin}/states?a=1")
    driven.bound(0.2)
    with pytest.raises(SiteError) as raised:
        await tab.wait_for(Rule(url=glob))
    assert raised.value.code == "rule-failed"
    assert fix in (raised.value.fix or "")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ('<div class="alert alert-danger">Too many sign-ins.</div>', "Too many sign-ins."),
        ('<ul class=errorlist><li>Too many sign-ins.</li></ul>', "Too many sign-ins."),
        ('<div class=MuiAlert-root><div class=MuiAlert-message role=alert>Too many sign-ins.</div></div>', "Too many sign-ins."),
        ('<form class=has-error><label>Name <input></label> Sign in</form>', None),
        ('<p class=terrors>On holidays</p>', None),
    ],
)  # fmt: skip
async def test_what_the_page_says_stands_in_the_error_of_a_rule(
    message: str, said: str | None, tab: Tab, driven: Session, served: site.Site
) -> None:
    """The error of a rule that does not hold has the message of the page, also where it is only styled as one, and then no guess at a fix."""
    served.page("/styled", f"<!doctype html><title>Sign in</title>{message}")
    await tab.goto(f"{served.origin}/styled")
    driven.bound(0.2)
    with pytest.raises(SiteError) as raised:
        await tab.wait_for(Rule(url="**/inside"))
    assert raised.value.evidence.get("alert") == said
    assert (f"the page says {said!r}" in raised.value.message) == (said is not None)
    assert (raised.value.fix is None) == (said is not None)


QUIET = "<!doctype html><title>Quiet</title><p class=two>Saved</p><p class=two>Saved</p><ol></ol>"
AT_WORK = {
    "draws": "<script>setInterval(() => { document.querySelector('ol').append('.'); }, 50);</script>",
    "asks": "<script>setInterval(() => fetch('/text'), 50);</script>",
    "turns": "<style>@keyframes turn {to {rotate: 1turn}} ol {animation: turn 1s infinite}</style>",
    "says so": "<div aria-busy=true>Wait</div>",
    "frame": "<iframe srcdoc=\"<b></b><script>setInterval(() => { document.body.append('.'); }, 50);</script>\"></iframe>",
}


@pytest.mark.drawn(1)
async def test_a_rule_is_given_up_on_a_quiet_page_alone(tab: Tab, driven: Session, served: site.Site) -> None:
    """With ``quiet``, a rule fails once the page rests and says how to wait longer, or how to narrow it; a page at work has all its time."""
    rules = {"rule-failed": Rule(text="paid"), "target-ambiguous": Rule(visible=Target(css=".two"))}
    served.page("/quiet", QUIET)
    await tab.goto(f"{served.origin}/quiet")
    for code, rule in rules.items():
        driven.bound(30, quiet=0.3)
        with pytest.raises(SiteError) as raised:
            await tab.wait_for(rule)
        assert raised.value.code == code
        assert not driven.deadline.over()
        assert ("give the node a `timeout`" in raised.value.message) == (code == "rule-failed")
        assert ("`within`" in (raised.value.fix or "")) == (code == "target-ambiguous")
    for name, work in AT_WORK.items():
        served.page("/works", QUIET + work)
        driven.bound(30)
        await tab.goto(f"{served.origin}/works")
        driven.bound(0.8, quiet=0.2)
        with pytest.raises(SiteError):
            await tab.wait_for(rules["rule-failed"])
        assert driven.deadline.over(), name


async def test_a_page_that_is_slow_at_the_end_is_not_called_silent(
    tab: Tab, driven: Session, served: site.Site
) -> None:
    """Where a page has answered until shortly before the time is up, the error says what is missing, and not that the page does not answer."""
    await tab.goto(served.page("/slow", "<!doctype html><title>Slow</title><p>none"))
    driven.bound(2)
    await tab.page.evaluate(
        "setTimeout(() => { const from = Date.now(); while (Date.now() - from < 3000); }, 1400) && 0"
    )
    with pytest.raises(SiteError) as raised:
        await tab.rows(Target(css="tr"), [Field(None)], 1)
    assert raised.value.code == "target-not-found"
