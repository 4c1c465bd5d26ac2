"""What an observation shows of a page is what a target of the same words finds, and what a table has."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime import Runtime, Settings
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = [pytest.mark.full_browser, pytest.mark.anyio, pytest.mark.drawn(share=0.3, of="one view")]

SILENT = """<!doctype html><title>Silent</title>
<div aria-hidden=true class=bar><button onclick="document.title = 'bold'">Bold</button> <button onclick="document.title = 'silent save'">Save</button>
<button hidden>Gone</button> <button aria-label=Italic><svg width=9 height=9></svg></button>
<div role=row><span role=cell>A-7</span> <button onclick="document.title = 'A-7'">Pay</button></div><div role=row><span role=cell>B-9</span> <button>Pay</button></div></div>
<button onclick="document.title = 'save'">Save</button>
<iframe name=inner srcdoc="<div aria-hidden=true><button>Framed</button></div>"></iframe>
<script>bar = document.querySelector('.bar'); setTimeout(() => { document.querySelector('[aria-label]').textContent = ''; }, 0);</script>"""

ROLES = """<!doctype html><title>Roles</title><style>[role=row] {display: flex} [role=row] > * {width: 9em}</style>
<div role=table aria-label=Orders>
<div role=rowgroup><div role=row><div role=columnheader>Number</div><div role=columnheader><button>Customer</button> <button>Sort</button></div><div role=columnheader>Total</div></div></div>
<div role=rowgroup>
<div role=row><div role=cell>1001</div><div role=cell>Ada <div role=table><div role=row><div role=cell>inner</div></div></div></div><div role=cell>12.50</div></div>
<div role=row><div role=rowheader>1002</div><div role=cell aria-colspan=2>cancelled</div></div>
<div role=row style="display: none"><div role=cell>1003</div><div role=cell>Eve</div><div role=cell>1</div></div>
<div role=row><div role=cell>1004</div><div role=cell><input value=Bea></div><div role=cell>7</div></div>
</div></div>
<div role=grid aria-label=Filtered><div>
<div role=row><div role=columnheader aria-colspan=2>Person</div><div role=columnheader>Pay</div></div>
<div role=row><div role=columnheader>Name</div><div role=columnheader>Age</div><div role=columnheader>Pay</div></div>
<div role=row><div role=gridcell><input value=A></div><div role=gridcell></div><div role=gridcell></div></div>
</div><div><div role=row><div role=gridcell>Ada</div><div role=gridcell>36</div><div role=gridcell>7</div></div></div></div>
<table aria-label=Sparse aria-colcount=5><tr aria-rowindex=1><th aria-colindex=2>B<th aria-colindex=4>D<tr aria-rowindex=2><td aria-colindex=2>b<td aria-colindex=4>d</table>"""

PINNED = """<!doctype html><title>Pinned</title>
<style>.box {height: 150px; overflow-y: auto; position: relative} .line {position: absolute; height: 30px; display: flex} .line > * {width: 100px; overflow: hidden}
.parts {display: flex; position: relative} .left, .right {width: 100px; position: relative; flex: none} .centre {width: 300px; overflow-x: auto; position: relative} .bodies {height: 1200px}</style>
<div role=treegrid aria-label=Runs aria-colcount=12 INDEXED>
<div role=rowgroup class=parts style="height: 30px"><div class=left></div><div class=centre style="overflow: hidden"><div class=wide></div></div><div class=right></div></div>
<div class=box><div role=rowgroup class="parts bodies"><div class=left></div><div class=centre style="height: 1200px"><div class=wide></div></div><div class=right></div></div></div>
</div>
<script>
const ROWS = 40, INDEXED = document.querySelector('[INDEXED]').hasAttribute('indexed');
const [headLeft, left] = document.querySelectorAll('.left'), [headCentre, centre] = document.querySelectorAll('.centre'), [headRight, right] = document.querySelectorAll('.right');
const box = document.querySelector('.box');
for (const each of document.querySelectorAll('.wide')) Object.assign(each.style, {width: '1000px', height: '30px'});
// Shuffled, as grids reuse the elements of their rows.
const shuffled = (rows) => rows.sort((a, b) => (a * 7) % 5 - (b * 7) % 5);
const fill = (place, row, columns, text, role) => {
  const line = document.createElement('div');
  line.setAttribute('role', 'row');
  line.className = 'line';
  line.style.top = `${Math.max(0, row) * 30}px`;
  if (INDEXED) line.setAttribute('aria-rowindex', row + 2);
  for (const column of columns) {
    const cell = document.createElement('div');
    cell.setAttribute('role', role);
    cell.setAttribute('aria-colindex', column);
    if (columns.length > 1 || column > 1 && column < 12) Object.assign(cell.style, {position: 'absolute', left: `${(column - 2) * 100}px`});
    cell.innerHTML = text(row, column);
    line.append(cell);
  }
  place.append(line);
};
const text = (row, column) => column === 12 ? `<button onclick="document.title = 'open ${row}'">Open</button>` : column === 1 ? `run ${row}` : `v${row}.${column}`;
const draw = () => {
  const first = Math.max(0, Math.floor(box.scrollTop / 30) - 1), from = Math.floor(centre.scrollLeft / 100) + 2;
  const rows = shuffled(Array.from({length: Math.min(ROWS, first + 8) - first}, (_each, n) => first + n));
  const columns = Array.from({length: 5}, (_each, n) => from + n).filter((n) => n < 12);
  for (const each of [left, right, centre.firstElementChild, headLeft, headRight, headCentre.firstElementChild]) each.textContent = '';
  headCentre.scrollLeft = centre.scrollLeft;
  fill(headLeft, -1, [1], () => 'Name', 'columnheader');
  fill(headCentre.firstElementChild, -1, columns, (_row, column) => `C${column}`, 'columnheader');
  fill(headRight, -1, [12], () => 'Action', 'columnheader');
  for (const row of rows) fill(right, row, [12], text, 'gridcell');
  for (const row of rows) { fill(left, row, [1], text, 'gridcell'); fill(centre.firstElementChild, row, columns, text, 'gridcell'); }
};
box.onscroll = () => setTimeout(draw, 40);
centre.onscroll = () => setTimeout(draw, 40);
draw();
</script>"""

TREE = """<!doctype html><title>Tree</title><ul role=tree aria-label=Files>
<li role=treeitem aria-expanded=true tabindex=0><span>src</span><ul><li role=treeitem aria-expanded=false tabindex=-1 onclick="document.title = 'lib'; event.stopPropagation()">lib</li>
<li role=treeitem tabindex=-1>main.py</li></ul></li>
<li role=treeitem aria-expanded=false tabindex=-1><i aria-hidden=true>&gt;</i> docs</li></ul>
<div role=tree aria-label=Flat><div role=treeitem aria-level=1 tabindex=0 aria-expanded=true>top</div><div role=treeitem aria-level=2 tabindex=-1>below</div></div>"""

CALLED = """<!doctype html><meta charset=utf-8><title>Called</title><style>.picture {font-family: "Material Icons"}</style>
<ul><li style="cursor: pointer" onclick="document.title = 'review'">In review<li style="cursor: pointer">Done<li>Column <ul><li>Milk<li>Tea</ul></ul>
<article><h3>Flat to let</h3><p>Two rooms</p></article><article aria-label=Named>Flat to let</article><p>Unpaid bill</p><div role=status>Saved</div>
<nav aria-label=Orders><a href=#a>All</a></nav><nav><a href=#b>Orders</a></nav>
<table><tr><td>1001<td>Ada<td><button>Pay</button><tr><td>1002<td>Bea<td><button>Pay</button></table>
<button onclick="document.title = 'add'">\ue145 Add \U000f0415 item</button> <button onclick="document.title = 'open'"><i class="picture material-icons">folder</i>Open</button> <button>Open all</button>
<button aria-label="Close it">Shut</button> <input type=submit value=Twice> <button>Twice</button> <select><option>Red<option>Done</select>"""

HINTS = """<!doctype html><title>Hints</title><label>Full name <input placeholder="Ada Lovelace" value=Grace></label>
<label>City <input placeholder="Your town"></label><label>Find <input type=search placeholder="Anything" value=tea></label>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with pages that are not made of plain HTML."""
    with site.serve() as served:
        served.page("/silent", SILENT)
        served.page("/roles", ROLES)
        served.page("/pinned", PINNED.replace("INDEXED>", "indexed>"))
        served.page("/placed", PINNED.replace("INDEXED>", ">").replace("'[INDEXED]'", "'[role=treegrid]'"))
        served.page("/tree", TREE)
        served.page("/hints", HINTS)
        served.page("/called", CALLED)
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin, mode="shared") as browser:
        yield browser


@pytest.fixture
def tab(driven: Session) -> Tab:
    """The session's tab, with five seconds for each test."""
    driven.bound(5)
    return driven.page


async def shown(tab: Tab, served: site.Site, page: str) -> str:
    """The observation of a page that is loaded anew."""
    await tab.goto(f"{served.origin}/{page}")
    return (await tab.look()).render(20_000)


async def ran(served: site.Site, folder: Path, page: str, query: str) -> Any:
    """The end of a run that reads a page."""
    file = folder / "list.yaml"
    file.write_text(
        f"version: 1\nnodes:\n"
        f"  - {{id: open, type: browser_action, action: goto, url: {json.dumps(f'{served.origin}/{page}')}}}\n"
        f"  - {{id: rows, type: browser_query, {query}}}\noutput: '{{{{ rows }}}}'\n"
    )
    async with Runtime(settings=Settings(home=folder / "home", browser_mode="shared")) as runs:
        run = await runs.start(file)
        return await run.wait()


async def test_what_is_kept_from_assistive_programs_is_found_by_role(tab: Tab, served: site.Site) -> None:
    """Buttons of a toolbar under `aria-hidden` that a person can use are shown, found and clicked, in rows and frames too."""
    seen = await shown(tab, served, "silent")
    assert 'button "Bold" [ref=' in seen
    assert "aria-hidden" not in seen
    await tab.click(Target(role="button", name="Bold"))
    await tab.wait_for(Rule(title="bold"))
    await tab.click(Target(role="button", name="Pay", within=Target(role="row", has_text="A-7")))
    await tab.wait_for(Rule(title="A-7"))
    for target in (
        Target(role="button", name="Italic"),
        Target(role="button", name="Bold", exact=True, within=Target(css=".bar")),
        Target(role="button", name="Framed", frame="inner"),
    ):
        assert await tab.count(target) == 1, target
        await tab.wait_for(Rule(visible=target))


async def test_an_accessible_match_wins(tab: Tab, served: site.Site) -> None:
    """Of two with the same words the one that assistive programs know is meant; what is hidden from all is found by no role."""
    await shown(tab, served, "silent")
    save = Target(role="button", name="Save")
    await tab.click(save)
    await tab.wait_for(Rule(title="save"))
    assert await tab.count(save) == await tab.count(save, hidden=True) == 1
    assert await tab.count(Target(role="button", name="Gone"), hidden=True) == 0
    await tab.wait_for(Rule(hidden=Target(role="button", name="Gone")))


async def test_a_table_of_roles_is_read(tab: Tab, served: site.Site) -> None:
    """Rows, headers and spans of a table without HTML's elements are those that a person sees; a row to filter by is none."""
    await shown(tab, served, "roles")
    grid = await tab.table(Target(role="table", name="Orders"), 1)
    assert grid.head == ["Number", "Customer", "Total"]
    assert [row[0] for row in grid.rows] == ["1001", "1002", "1004"]
    assert grid.rows[1:] == [["1002", "cancelled", "cancelled"], ["1004", "Bea", "7"]]
    assert grid.unrendered == 0
    grid = await tab.table(Target(role="grid", name="Filtered"), 1)
    assert grid.head == ["Person Name", "Person Age", "Pay"]
    assert grid.rows == [["Ada", "36", "7"]]


async def test_columns_have_the_place_that_the_page_says(served: site.Site, tmp_path: Path) -> None:
    """Cells go to the column of their `aria-colindex`; the step says how many columns the page has left out."""
    ended = await ran(
        served, tmp_path, "roles", "query: table, target: {role: table, name: Sparse}, columns: {d: 4, b: B}"
    )
    assert ended.output == [{"d": "d", "b": "b"}]
    assert not ended.flags
    ended = await ran(served, tmp_path, "roles", "query: table, target: {role: table, name: Sparse}")
    assert ended.output == [{"B": "b", "D": "d"}]
    (flag,) = ended.flags
    assert flag["code"] == "columns-unrendered"
    ended = await ran(served, tmp_path, "roles", "query: table, target: {role: table, name: Sparse}, columns: {e: E}")
    assert ended.error is not None
    assert ended.error["code"] == "column-not-found"
    assert "3 more" in ended.error["message"]


@pytest.mark.parametrize("page", ["pinned", "placed"])
async def test_a_row_of_several_parts_is_one(page: str, tab: Tab, served: site.Site) -> None:
    """The parts of a row are one line of an observation, one row of a table and of `extract`, and one row to look in."""
    seen = await shown(tab, served, page)
    assert 'treegrid "Runs" (7 of 12 columns rendered)' in seen
    lines = [line.strip() for line in seen.split("\n")]
    assert 'row "Name | C2 | C3 | C4 | C5 | C6 | Action"' in lines
    rows = [line for line in lines if line.startswith('row "run ')]
    assert rows[0].startswith('row "run 0 | v0.2 | v0.3 | v0.4 | v0.5 | v0.6 | Open" [ref=')
    assert [row.split(" ")[2] for row in rows] == [str(n) for n in range(len(rows))]
    assert seen.count('button "Open" [ref=') == len(rows)
    grid = await tab.table(Target(role="treegrid"), 1)
    assert (grid.head, grid.unrendered) == (["Name", "C2", "C3", "C4", "C5", "C6", "Action"], 5)
    assert grid.rows[3] == ["run 3", "v3.2", "v3.3", "v3.4", "v3.5", "v3.6", "Open"]
    await tab.click(Target(role="button", name="Open", within=Target(role="row", has_text="run 2")))
    await tab.wait_for(Rule(title="open 2"))


async def test_fields_of_a_row_are_sought_in_all_its_parts(served: site.Site, tmp_path: Path) -> None:
    """`extract` gives each row of a split grid once, with fields of any part."""
    query = "query: extract, target: {css: '.box [role=row]'}, fields: {name: '[aria-colindex=\"1\"]', third: '[aria-colindex=\"3\"]', action: button}"
    ended = await ran(served, tmp_path, "pinned", query)
    assert ended.error is None
    assert ended.output[1] == {"name": "run 1", "third": "v1.3", "action": "Open"}
    assert len(ended.output) == 8


@pytest.mark.parametrize("page", ["pinned", "placed"])
async def test_columns_that_are_not_rendered_are_scrolled_to(page: str, served: site.Site, tmp_path: Path) -> None:
    """A grid of which rows and columns are rendered only where they are seen is read whole."""
    query = "query: table, target: {role: treegrid}, scroll: until_end, key: Name, timeout: 120"
    ended = await ran(served, tmp_path, page, query)
    assert ended.error is None
    wanted = [
        {"Name": f"run {row}", **{f"C{n}": f"v{row}.{n}" for n in range(2, 12)}, "Action": "Open"} for row in range(40)
    ]
    assert ended.output == wanted
    assert not ended.flags


async def test_items_of_a_tree_have_level_and_state(tab: Tab, served: site.Site) -> None:
    """An item is shown with its own name, its level and whether it is open, and a target of that name finds it alone."""
    seen = await shown(tab, served, "tree")
    for line in (
        'treeitem "src" level 1 (expanded)',
        'treeitem "lib" level 2 (collapsed)',
        'treeitem "main.py" level 2 [ref=',
        'treeitem "docs" level 1 (collapsed)',
        'treeitem "below" level 2 [ref=',
    ):
        assert line in seen
    for name in ("src", "lib", "main.py", "docs", "top", "below"):
        assert await tab.count(Target(role="treeitem", name=name, exact=True)) == 1, name
        assert await tab.count(Target(role="treeitem", name=name.upper())) == 1, name
    await tab.click(Target(role="treeitem", name="lib"))
    await tab.wait_for(Rule(title="lib"))


async def test_the_words_of_a_line_find_its_element(tab: Tab, served: site.Site) -> None:
    """What an observation prints in quotes is a `name` that finds the element, also where it is its text or has pictures in it; a real name wins."""
    seen = await shown(tab, served, "called")
    for line, role, name in (
        ('listitem "In review"', "listitem", "In review"),
        ('article "Named"', "article", "Named"),
        ('status "Saved"', "status", "Saved"),
        ('row "1001 | Ada | Pay"', "row", "1001 | Ada | Pay"),
        ('button "Add item"', "button", "Add item"),
        ('button "Open"', "button", "Open"),
        ('"Unpaid bill"', "paragraph", "Unpaid bill"),
        ('"Column Milk Tea"', "listitem", "Column | Milk | Tea"),
    ):
        assert line in seen
        assert await tab.count(Target.model_validate({"role": role, "name": name, "exact": True})) == 1, name
    for title, target in (
        ("review", Target(role="listitem", name="in REVIEW")),
        ("add", Target(role="button", name="add item")),
        ("open", Target(role="button", name="Open", exact=True)),
    ):
        await tab.click(target)
        await tab.wait_for(Rule(title=title))
    assert await tab.count(Target(role="listitem", name="milk")) == 1
    assert await tab.text(Target(role="navigation", name="Orders")) == "All"
    assert "Two rooms" in str(await tab.text(Target(role="article", name="Flat to let")))
    assert await tab.count(Target(role="button", name="Shut")) == 0
    assert await tab.count(Target(role="button", name="Twice", exact=True)) == 2
    assert await tab.count(Target(role="combobox", name="Red")) == 0


async def test_a_field_has_label_placeholder_and_value(tab: Tab, served: site.Site) -> None:
    """A field is shown with label and value, while it is empty with its placeholder, and found by each."""
    seen = await shown(tab, served, "hints")
    assert 'textbox "Full name" [ref=' in seen
    assert '= "Grace"' in seen
    assert 'placeholder "Your town"' in seen
    assert 'searchbox "Find" [ref=' in seen
    view = await tab.look()
    for label, placeholder in (("Full name", "Ada Lovelace"), ("City", "Your town")):
        assert await tab.value(Target(label=label)) == await tab.value(Target(placeholder=placeholder))
        assert label in view.find(name=placeholder)
        assert label in view.find(name=label)


async def test_what_is_no_table_is_told(tab: Tab, served: site.Site) -> None:
    """A box without the role of a table is none, however it looks."""
    await shown(tab, served, "pinned")
    with pytest.raises(SiteError) as caught:
        await tab.table(Target(css=".box"), 1)
    assert caught.value.code == "not-a-table"


LATE = """<!doctype html><title>Tasks</title><ul><li>collect <i></i><li>report <i></i></ul><script>
setTimeout(() => fetch('/values.json').then((answer) => answer.json()).then((values) =>
  document.querySelectorAll('i').forEach((each, at) => { each.className = 'value'; each.textContent = values[at]; })), 50);
</script>"""


@pytest.mark.parametrize(("field", "found"), [(".value", [{"n": "463"}, {"n": "12"}]), (".other", None)])
async def test_rows_are_read_once_their_fields_are_drawn(
    field: str, found: object, served: site.Site, tmp_path: Path
) -> None:
    """A field that comes after its row, with an answer of the site, is read; one that a drawn page lacks fails the step."""
    served.page("/tasks", LATE)

    def values(_request: site.Request) -> site.Answer:
        time.sleep(1.0)
        return site.Answer("[463, 12]", headers={"Content-Type": "application/json"})

    served.answer("/values.json", values)
    ended = await ran(served, tmp_path, "tasks", f"query: extract, target: {{css: li}}, fields: {{n: {field}}}")
    assert ended.output == found
    assert (ended.error or {}).get("code") == (None if found else "field-not-found")
