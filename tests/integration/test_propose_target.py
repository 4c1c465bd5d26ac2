"""A proposed target finds its element, also after the page is reloaded and rows are added."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest
import yaml

from director.scouting import observer
from director.targeting import tools
from director.tools.build_context import BuildContext
from nodes.browser_query.rows import FieldOf
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.browser.elements import locators
from runtime.log import entries
from runtime.observation.observation import Observation
from tests import breadth, build_contexts, site
from tests.observed import libraries

pytestmark = pytest.mark.drawn(share=0.14, of="propose_target")

ORDERS = """<!doctype html><title>Orders</title><h1>Orders</h1>
<form action=/sent method=post><button>Send</button></form><button>Pay all</button>
<table class=orders><thead><tr><th>Number<th>Customer<th>State<th></tr></thead><tbody>
<tr><td class=no>1001<td>Ada Okafor<td>open<td><button>Pay</button> <a href=/orders/1001>Open</a></tr>
<tr><td class=no>1002<td>Ben Stern<td>open<td><button>Pay</button> <a href=/orders/1002>Open</a></tr>
</tbody></table>
<section class=one><h2>Billing</h2><label>Street <input name=a1></label><button>Edit</button></section>
<section class=two><h2>Shipping</h2><label>Street <input name=a2></label><button>Edit</button></section>
<table><tr><td>Discount code<td><input></tr><tr><td>Comment<td><input></tr></table>
<p>Pieces <input type=number></p>
<dl><dt>Decision<dd>accepted<dt>By<dd>Cleo</dl>
<div class=card><p>Tea</p><p>3.20</p><button>Add</button></div>
<div class=card><p>Coffee</p><p>7.80</p><button>Add</button></div>
<ul class=menu><li><a href=/groups>Groups</a><li><a href=/users>Users</a></ul>
<form><div class=row><label for=no>Number</label><input id=no></div><div class=row><label for=day>Day</label><input id=day></div></form>
<div class=post><a href=/tea title="Read Tea">Read</a></div><div class=post><a href=/cup title="Read Cup">Read</a></div>
<div class=log><a href=/day>More</a></div><div class=log><a href=/week>More</a></div>
<h2 style="text-transform: uppercase">Notes</h2><p><a href=/n>Edit</a></p><h2>Tags</h2><p><a href=/m>Edit</a></p>
<article class=box><p>Home</p> <div data-name=size data-v-1=x>No items in it</div> <a data-name=edit href=/b/1><svg width=9 height=9></svg></a></article>
<article class=box><p>Work</p> <div data-name=size data-v-1=y>3 items in it</div> <a data-name=edit href=/b/2><svg width=9 height=9></svg></a></article>
<div id=grid><i onclick="1">x</i><i onclick="1">x</i></div>"""
ALONE = """<!doctype html><title>One</title><table><tbody>
<tr><td>1001<td>Ada Okafor<td><button>Pay</button></tr></tbody></table>"""
LATER = """<!doctype html><title>Later</title><ul id=list></ul><script>
fetch('/data').then((a) => a.json()).then((all) => { list.innerHTML = all.map((each) => `<li>${each} <button>Take</button></li>`).join(''); });
</script>"""
OPENED = """<!doctype html><title>Opened</title><button onclick="box.hidden = false">More</button><div id=box hidden><ul><li>One <button>Deep</button></li></ul></div>"""


HARD = """<!doctype html><title>Hard</title><h1>Hard</h1><table>
<tr><td>7<td>Ada<td><button><svg width=9 height=9></svg></button> <button id=i7><svg width=9 height=9></svg></button></tr>
<tr><td>8<td>Ada<td><button><svg width=9 height=9></svg></button> <button id=i8><svg width=9 height=9></svg></button></tr></table>
<p><span class=star><b>Email</b>*</span><input></p><button>Load (3)</button>
<section><h2>Part <i>A</i></h2><a href=/x>Open</a></section><section><h2>Part <i>B</i></h2><a href=/x>Open</a></section>
<iframe id=pay src=/framed></iframe><iframe src=/framed></iframe><iframe srcdoc="<button>Within</button>"></iframe>"""
TURNED = """<!doctype html><title>Turned</title><h1>Turned</h1><div class=card><p>No 1</p><p id=a></p><button>Buy</button></div>
<div class=card><p>No 2</p><p id=b></p><button>Buy</button></div><script>
const seen = sessionStorage.seen || localStorage.seen; sessionStorage.seen = localStorage.seen = 1;
a.textContent = seen ? 'Tea' : 'Coffee'; b.textContent = seen ? 'Cake' : 'Tea';</script>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves the pages."""
    with site.serve() as served:
        for path, body in {"/": ORDERS, "/alone": ALONE, "/later": LATER, "/opened": OPENED, "/sent": ORDERS}.items():
            served.page(path, body)
        served.page("/hard", HARD)
        served.page("/turned", TURNED)
        served.page("/framed", "<!doctype html><button>Press</button>")
        served.page("/data", '["Tea", "Coffee"]')
        yield served


@pytest.fixture(scope="module")
async def build(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BuildContext]:
    """A build whose scout has a page."""
    build = build_contexts.opened(
        tmp_path_factory.mktemp("build"), served.origin, policy="hold", known={"WORD": "s3cret-word"}
    )
    yield build
    await build.close()


async def show(build: BuildContext, url: str, shown: str) -> observer.PageObserver:
    """Navigates the scout to the URL and waits until the page shows the text."""
    observer = cast("observer.PageObserver", build.observer)
    async with observer.scout.used() as session:
        session.bound(20)
        await session.page.goto(url)
        await session.page.wait_for(Rule(text=shown))
    return observer


async def propose(build: BuildContext, ref: str, anchor: str | None = None) -> tuple[str, dict[str, Json]]:
    """The text and the target that `propose_target` gives for a ref."""
    toolsets = [tools.Propose(build, tools.PROPOSE)]
    outcome = await build_contexts.call(
        build, tools.NAME, toolsets, tab=None, ref=ref, anchor=anchor, reason="It is clicked."
    )
    assert outcome.value == (None if outcome.error else outcome.text)
    # The fenced part is valid YAML for a workflow file.
    inside = outcome.text.partition("[page]\n")[2].partition("\n[end of page]")[0]
    return outcome.text, {} if outcome.error else yaml.safe_load(inside)["target"]


async def look(observer: observer.PageObserver) -> Observation:
    """Observes the scout's page, and marks all of it as shown to a model."""
    page = observer.page("scout")
    view = await observer.look_at(page)
    observer.shown(page, " ".join(view.all_refs), entries.SESSION_THREAD)
    return view


async def refs_of(build: BuildContext, *ways: str) -> list[str]:
    """The refs of the elements that the CSS selectors find, from one observation."""
    observer = cast("observer.PageObserver", build.observer)
    view, page = await look(observer), observer.page("scout")
    refs: dict[str, str] = {}
    for ref in view.all_refs:
        found = await page.by_ref(ref)
        script = "(element, ways) => ways.filter((css) => element === document.querySelector(css))"
        refs |= dict.fromkeys(await found.evaluate(script, ways), ref)
        if len(refs) == len(ways):
            return [refs[css] for css in ways]
    raise AssertionError(f"a look shows no {set(ways) - set(refs)}: {view.render()}")


async def ref_of(build: BuildContext, css: str) -> str:
    """The ref of the element that one CSS selector finds."""
    return (await refs_of(build, css))[0]


# An element's CSS, and its best target.
BEST = {
    "form button": '{role: button, name: Send}',
    "tbody tr:nth-child(2) button": '{role: button, name: Pay, within: {role: row, has_text: "1002"}}',
    "tbody tr:nth-child(2) .no": '{css: td.no, within: {role: row, has_text: Ben Stern}}',
    "section.two input": "{label: Street, within: {css: section.two, has_text: Shipping}}",
    "section.two button": "{role: button, name: Edit, within: {css: section.two, has_text: Shipping}}",
    "table:not(:has(thead)) tr:nth-child(2) input": "{role: textbox, within: {role: row, has_text: Comment}}",
    "p > input": '{css: "p:has-text(\\"Pieces\\") > input"}',
    "dd": '{css: "dt:text-is(\\"Decision\\") + dd"}',
    ".menu li + li a": "{role: link, name: Users}",
    ".row + .row input": "{label: Day}",
    ".post + .post a": "{title: Read Cup}",
    "h2 + p a[href='/n']": '{role: link, name: Edit, within: {css: "h2:text-is(\\"Notes\\") + p"}}',
    "article + article div": '{css: "div[data-name=\\"size\\"]", within: {role: article, has_text: Work}}',
    ".log + .log a": '{css: "a[href=\\"/week\\"]"}',
    ".card:nth-of-type(2) button": "{role: button, name: Add, within: {css: div.card, has_text: Coffee}}",
}  # fmt: skip


TABLE = [
    {"number": "1001", "a": "Open", "a_link": "/orders/1001"},
    {"number": "1002", "a": "Open", "a_link": "/orders/1002"},
]
EXTRACTED = {
    "table": TABLE,
    "tbody": TABLE,
    ".no": TABLE,
    "article": [
        {"p": "Home", "size": "No items in it", "edit_link": "/b/1"},
        {"p": "Work", "size": "3 items in it", "edit_link": "/b/2"},
    ],
    ".card": [{"p": "Tea", "p_2": "3.20"}, {"p": "Coffee", "p_2": "7.80"}],
}
"""The values that the proposed fields extract, by the element that was asked for."""


async def test_the_best_target_is_one_that_a_person_would_choose(build: BuildContext, served: site.Site) -> None:
    """The best target names the element by label, row, heading, caption, term or card. It is unique now, after a reload, and with more rows around it."""
    await show(build, f"{served.origin}/", "Orders")
    best: dict[str, str] = {}
    tried = breadth.some(list(BEST), 8)
    for css, ref in zip(tried, await refs_of(build, *tried), strict=True):
        said, _target = await propose(build, ref)
        line = next(each for each in said.split("\n") if each.startswith("target: "))
        best[css] = line.removeprefix("target: ")
        marks = said.split("\n")[1]
        assert "one now, one after reload" in marks, said
        assert ("one with" in marks) == any(
            each in css for each in (" tr", "card", "li", "row", "post", "log", "article")
        ), said
        assert len(said) <= 1_700
    assert best == {css: BEST[css] for css in tried}


async def test_a_name_that_more_rows_would_repeat_is_no_good_target(build: BuildContext, served: site.Site) -> None:
    """A button name that is unique with one row gets a `within` row, because more rows would repeat it."""
    await show(build, f"{served.origin}/alone", "1001")
    said, target = await propose(build, await ref_of(build, "button"))
    assert target == {"role": "button", "name": "Pay", "within": {"role": "row", "has_text": "1001"}}
    assert "{role: button, name: Pay} (one now, one after reload, SEVERAL with 2 more rows above)" in said


async def test_the_row_is_named_by_the_anchor(build: BuildContext, served: site.Site) -> None:
    """The anchor names the row or the term. An anchor that does not find the element is dropped, and the text around it is listed."""
    await show(build, f"{served.origin}/", "Orders")
    ref = await ref_of(build, "tbody tr:nth-child(2) button")
    _said, target = await propose(build, ref, "Ben Stern")
    assert target == {"role": "button", "name": "Pay", "within": {"role": "row", "has_text": "Ben Stern"}}
    said, target = await propose(build, ref, "1001")
    assert target == {"role": "button", "name": "Pay", "within": {"role": "row", "has_text": "1002"}}
    assert "`anchor` does not find it alone" in said
    assert '# around it: "1002", "Ben Stern"' in said
    said, target = await propose(build, await ref_of(build, "dd"), "Decision")
    assert target == {"css": 'dt:text-is("Decision") + dd'}
    assert "does not find it" not in said


PANELS = """<!doctype html><title>Panels</title><h3>Folders</h3><div class=panels>""" + "".join(
    f"""<div class="panel"><button class="panel-heading" onclick=""><h4><span class=state><i style="font-family: icons">\ue001</i>&nbsp;Up to Date</span> <span>{name}</span></h4></button>
<div hidden><table><tr><th>Folder ID<td>{name.lower().replace(" ", "-")}</table></div></div>"""
    for name in ("Family photos", "Family photos 2019", "Family photos (raw)")
) + "</div>"  # fmt: skip


async def test_a_button_is_found_by_the_whole_text_of_one_thing_in_it(build: BuildContext, served: site.Site) -> None:
    """Where the name of a button is a part of others', a text that is the whole of something in it finds it; texts of hidden parts are none."""
    served.page("/panels", PANELS)
    await show(build, f"{served.origin}/panels", "Family photos")
    ref = await ref_of(build, "button")
    for anchor in (None, "Family photos"):
        said, target = await propose(build, ref, anchor)
        assert target == {"css": 'button.panel-heading:has(span:text-is("Family photos"))'}, said
        assert "one now, one after reload, one with" in said
        assert "does not find it" not in said
    said, _target = await propose(build, ref, "Nowhere")
    assert '# around it: "Family photos"' in said
    assert "Folder ID" not in said


FORMS = """<!doctype html><title>Forms</title><h1>Forms</h1>
<div class=form><div class="field half"><div class=field-label>Title</div><div><div><input class=a></div></div></div><div class="field half-right"><div class=field-label>Slug</div><div><div><input></div></div></div>
<div class="field full"><div class=field-label>Body</div><div><button>Undo</button><div><textarea></textarea></div></div></div></div>
<form><label>Street</label><br><input class=b><br><label>Town</label><br><input></form>
<div><div><div><label>First</label></div></div><div><div><input class=c></div></div></div><div><div><div><label>Second</label></div></div><div><div><input></div></div></div>"""


async def test_a_field_without_a_name_is_found_by_the_anchor(build: BuildContext, served: site.Site) -> None:
    """The text beside a field or in its part, asked for as the anchor, gives a good target; a class that says where a part is put is not used."""
    served.page("/forms", FORMS)
    await show(build, f"{served.origin}/forms", "Forms")
    for css, anchor, wanted in (
        ("input.a", "Title", {"css": 'div:text-is("Title") + div input'}),
        ("textarea", "Body", {"role": "textbox", "within": {"css": "div.field", "has_text": "Body"}}),
        ("input.b", "Street", {"css": 'label:text-is("Street") + br + input'}),
        ("input.c", "First", {"role": "textbox", "within": {"css": 'div:has(> div > div > label:text-is("First"))'}}),
    ):
        said, target = await propose(build, await ref_of(build, css), anchor)
        assert target == wanted, said
        assert int(said.partition("score ")[2].partition(" ")[0]) > 55
        assert "div.half" not in said


LABELS = """<!doctype html><title>Labels</title><h1>Labels</h1><label>Email Address <input id=email name=mail></label><fieldset><legend>Topic</legend>
<label><input type=checkbox name=Return>Return<sup>[3]</sup></label><label><input type=checkbox name="No Return">No Return<sup>[4]</sup></label></fieldset>
<ul><li>Ada <button id=drop>Drop</button></ul>"""


async def test_what_a_program_calls_a_field_is_best_where_people_see_a_number_with_its_name(
    build: BuildContext, served: site.Site
) -> None:
    """A plain id, or name to be sent, is the best target for a name with a hotkey, and with an anchor, but not in a row. Equal proofs are said once."""
    served.page("/labels", LABELS)
    await show(build, f"{served.origin}/labels", "Labels")
    for css, anchor, wanted in (
        ("input[name=Return]", None, {"css": 'input[name="Return"]'}),
        ("#email", None, {"label": "Email Address"}),
        ("#email", "Email Address", {"css": "#email"}),
        ("#drop", "Ada", {"role": "button", "name": "Drop", "within": {"role": "listitem", "has_text": "Ada"}}),
    ):
        said, target = await propose(build, await ref_of(build, css), anchor)
        assert target == wanted, said
        assert said.count("one now, one after reload") == 1, said


CONTROL = """<!doctype html><title>Control</title><h1>Files</h1><p>Many</p><main><div class=activator tabindex=0><div class=control>
<input readonly aria-label=Folder style="pointer-events: none"></div></div><label>Name <input></label></main>"""


async def test_what_takes_the_clicks_of_a_field_is_proposed_too(build: BuildContext, served: site.Site) -> None:
    """Beside the target of a field that takes no clicks stands that of the part of its control that does."""
    served.page("/control", CONTROL)
    await show(build, f"{served.origin}/control", "Files")
    said, target = await propose(build, await ref_of(build, "input"))
    assert target == {"role": "textbox", "name": "Folder"}
    assert "# it takes no click itself; `click` css=div.control" in said
    said, _target = await propose(build, await ref_of(build, "label input"))
    assert "takes no click" not in said


RUNS = """<!doctype html><title>Runs</title><table><thead><tr><th>Run<th>State<th>Kind<th>Note<th></tr></thead><tbody id=rows></tbody></table><script>
setTimeout(async () => {
  const runs = await (await fetch('/runs.json')).json();
  rows.innerHTML = runs.map(([name, state]) => `<tr><td>${name}<td>${state}<td>Manual<td><p>a note</p><td><button>Open</button>`).join('');
}, 600);
</script>"""


async def test_a_row_is_the_same_after_a_reload_though_it_says_more_or_stands_elsewhere(
    build: BuildContext, served: site.Site
) -> None:
    """A row pointed at by a text in it is found after the reload, though it comes late, others were added and its own note was opened."""
    served.page("/runs", RUNS)
    served.page("/runs.json", '[["run-110", "Success"], ["run-109", "Success"]]')
    observer = await show(build, f"{served.origin}/runs", "run-110")
    await observer.page("scout").page.evaluate(
        "() => { document.querySelector('tbody p').innerText += ' and the rest'; }"
    )
    row = await ref_of(build, "tbody tr")
    served.page("/runs.json", '[["run-111", "Running"], ["run-110", "Success"], ["run-109", "Success"]]')
    for anchor in (None, "run-110"):
        said, target = await propose(build, row, anchor)
        assert target == {"role": "row", "has_text": "run-110"}
        assert "one now, one after reload, one with" in said
        assert "does not find it" not in said


async def test_another_row_with_the_same_text_is_another(build: BuildContext, served: site.Site) -> None:
    """A text that another row has after the reload does not find the row."""
    served.page("/runs", RUNS)
    served.page("/runs.json", '[["run-110", "Running"], ["run-109", "Success"]]')
    await show(build, f"{served.origin}/runs", "run-110")
    row = await ref_of(build, "tbody tr")
    served.page("/runs.json", '[["run-111", "Running"], ["run-110", "Success"], ["run-109", "Success"]]')
    said, _target = await propose(build, row, "Running")
    assert "one now, ANOTHER ONE after reload" in said


async def test_all_columns_of_a_table_are_keys(build: BuildContext, served: site.Site) -> None:
    """`query: table` is proposed with each column as a key, also one whose cell is empty; fields are what it does not read."""
    heads = [f"Column {number}" for number in range(16)]
    cells = "".join(
        f"<td><a class=link href=/x{number}><p>{'' if number == 7 else f'text {number} that is rather long'}</p></a>"
        for number in range(16)
    )
    served.page(
        "/wide",
        f"<!doctype html><title>Wide</title><table><thead><tr><th>{'<th>'.join(heads)}</tr></thead><tbody><tr>{cells}</tr><tr>{cells}</tr></tbody></table>",
    )
    await show(build, f"{served.origin}/wide", "text 1")
    said, _target = await propose(build, await ref_of(build, "tbody tr"))
    fields = yaml.safe_load(said.partition("[page]\n")[2].partition("\n[end of page]")[0])["fields"]
    assert f"# all rows: query: table, target: {{role: table}}; keys: [{', '.join(heads)}]" in said
    assert "all of its kind: `query: table`" in said
    assert next(iter(fields)) == "column_0"
    assert {each.get("attribute") for each in list(fields.values())[1:]} == {"href"}


JOBS = """<!doctype html><title>Jobs</title><h1>Jobs</h1><table><tr><td>a<td>b</table>
<table class=list aria-label="Job List"><thead><tr><th>Name<th>State</tr></thead><tbody><tr><td>one<td>done<tr><td>two<td>held</table>
<section aria-label=Printers><div role=grid><div role=row><span role=columnheader>Printer</span><span role=columnheader>Jobs</span></div>
<div role=row><span role=gridcell>Laser</span><span role=gridcell>3</span></div><div role=row><span role=gridcell>Ink</span><span role=gridcell>4</span></div></div></section>
<section aria-label=Users><table><tr><th>User<th>Pages</tr><tr><td>ada<td>7</tr></table></section>"""


async def test_a_row_under_headings_is_read_by_its_table(build: BuildContext, served: site.Site) -> None:
    """For a row of a table or grid with headings: `query: table` by its name, role or part, the keys, and no fields that say the same."""
    served.page("/jobs", JOBS)
    await show(build, f"{served.origin}/jobs", "held")
    for css, table in {
        "table.list tbody tr": "{role: table, name: Job List}; keys: [Name, State]",
        "[role=row]:nth-child(2)": "{role: grid}; keys: [Printer, Jobs]",
        "section table tr:nth-child(2)": "{role: table, within: {role: region, name: Users}}; keys: [User, Pages]",
    }.items():
        said, _target = await propose(build, await ref_of(build, css))
        assert f"\n# all rows: query: table, target: {table}\n" in said, said
        assert "fields:" not in said
    said, _target = await propose(build, await ref_of(build, "table:not([class]) tr"))
    assert "query: table, target" not in said


VIRTUAL = """<!doctype html><title>Tasks</title><h1>Tasks</h1><div class=list style="position: relative; height: 400px">""" + "".join(
    f"""<div class=line-wrapper style="position: absolute; top: {70 * place}px"><div class="task-row" data-testid="task-row" style="cursor: pointer" onclick="">
<span class=cell><input type=checkbox aria-label="Select Task {19 + place}"></span><div class=cell><div>{19 + place}</div></div>
<div class=cell><div>Nov 27 2026, 23:22:{33 + place}</div></div><div class=cell><div>{place}</div></div><div class=cell><div>NO</div></div>
<div class=cell><div>{text} {48213 + place} arrived with a broken handle and what do I do now?</div></div></div></div>"""
    for place, text in enumerate(("Hello, the kettle from order", "Good morning, the lamp of order", "My parcel for order"))
) + "</div>"  # fmt: skip


async def test_a_row_of_divs_is_known_by_its_words(build: BuildContext, served: site.Site) -> None:
    """A row of a list of divs is found by the anchor or its words, not by a time or a count; fields are found by labels and test ids."""
    served.page("/tasks", VIRTUAL)
    await show(build, f"{served.origin}/tasks", "Tasks")
    ref = await ref_of(build, ".line-wrapper:nth-child(2) .task-row")
    for anchor, words in (
        (None, "Good morning, the lamp of order 48214 arrived with a broken"),
        ("the lamp", "the lamp"),
    ):
        said, target = await propose(build, ref, anchor)
        assert target == {"css": '[data-testid="task-row"]', "has_text": words}, said
        assert ("nth-child" in said, "Nov" in said.partition("fields:")[0]) == (False, False)
    assert 'input[aria-label^=\\"Select Task \\"]' in said


async def test_a_position_is_proposed_only_as_a_last_resort(build: BuildContext, served: site.Site) -> None:
    """Elements that are alike and unnamed get `nth`, and the output says that only the position distinguishes them."""
    await show(build, f"{served.origin}/", "Orders")
    said, target = await propose(build, await ref_of(build, "#grid :nth-child(2)"))
    assert target == {"text": "x", "nth": 1}
    assert "only its position distinguishes it" in said


async def test_an_element_that_is_hard_to_find_is_found_by_its_context(build: BuildContext, served: site.Site) -> None:
    """Context finds an unnamed icon in its row, a field and a link by a caption or heading with markup, and elements of similar frames."""
    observer = await show(build, f"{served.origin}/hard", "Hard")
    hard = {
        "#i8": '{role: button, within: {role: row, has_text: "8"}, nth: 1}',
        "p input": '{css: "span:has-text(\\"Email*\\") + input"}',
        "p + button": "{role: button, name: Load}",
        "section + section a": "{role: link, name: Open, within: {css: section, has_text: Part B}}",
    }
    for css, best in hard.items():
        said, target = await propose(build, await ref_of(build, css))
        assert target == yaml.safe_load(best), said
        assert "one now, one after reload" in said
    view = await look(observer)
    framed = [
        (await propose(build, ref))[1]["frame"] for ref in view.refs if view.element(ref).name in ("Press", "Within")
    ]
    assert framed == ["#pay", "iframe:nth-of-type(2)", "iframe[srcdoc]"]


async def test_another_card_is_not_the_same_though_its_button_is(build: BuildContext, served: site.Site) -> None:
    """A target that finds the same button in another card after a reload is marked as finding another element."""
    await show(build, f"{served.origin}/turned", "Turned")
    said, _target = await propose(build, await ref_of(build, ".card:nth-of-type(2) button"))
    assert ", one after reload" not in said, said
    assert "ANOTHER ONE after reload" in said or "NONE after reload" in said


async def test_nothing_is_sent_for_a_proof_but_the_address_itself(build: BuildContext, served: site.Site) -> None:
    """A proof repeats only the page's GET and its fetches, never a form. The observed page stays unchanged."""
    observer = await show(build, f"{served.origin}/later", "Coffee")
    page = observer.page("scout")
    await page.page.evaluate("list.dataset.mine = 'typed'")
    before = len(served.requests)
    said, target = await propose(build, await ref_of(build, "li + li button"))
    assert target == {"role": "button", "name": "Take", "within": {"role": "listitem", "has_text": "Coffee"}}
    assert "one after reload, one with 2 more rows above" in said
    assert [(each.method, each.path) for each in served.requests[before:] if each.path != "/favicon.ico"] == [
        ("GET", "/later"),
        ("GET", "/data"),
    ]
    assert await page.page.evaluate("[list.dataset.mine, list.children.length]") == ["typed", 2]
    await show(build, f"{served.origin}/", "Orders")
    await page.page.click("form button")
    before = len(served.requests)
    said, target = await propose(build, await ref_of(build, "tbody tr button"))
    assert "not reloaded: the page is the answer to a form, which would be sent again" in said
    assert target == {"role": "button", "name": "Pay", "within": {"role": "row", "has_text": "1001"}}
    # Rows are then added to a copy.
    assert "one now, one with 2 more rows above" in said
    assert served.requests[before:] == []


async def test_a_hidden_element_after_a_reload_is_not_another_element(build: BuildContext, served: site.Site) -> None:
    """An element that is hidden after a reload, until a click shows it, is no evidence against its target."""
    served.page(
        "/folded",
        "<!doctype html><title>Folded</title><button onclick='box.hidden = false'>New</button>"
        "<section class=scene id=box hidden><h2>Make one</h2><p hidden>It went wrong</p><input id=made></section><section class=scene><p>All of them</section>",
    )
    observer = await show(build, f"{served.origin}/folded", "New")
    await observer.page("scout").page.click("button")
    said, target = await propose(build, await ref_of(build, "#made"))
    assert target == {"css": "#made"}
    assert "ANOTHER" not in said
    assert "this proof failed" not in said


async def test_an_element_that_must_be_opened_first_is_reported(build: BuildContext, served: site.Site) -> None:
    """An element missing after a reload is proposed unproved, and the output says that an action must show it first."""
    observer = await show(build, f"{served.origin}/opened", "More")
    await observer.page("scout").page.click("button")
    said, target = await propose(build, await ref_of(build, "#box button"))
    assert target == {"role": "button", "name": "Deep", "within": {"role": "listitem", "has_text": "One"}}
    assert "{role: button, name: Deep} (one now, SEVERAL with 2 more rows above)" in said
    assert "not reloaded: the element is not there at once: something must be done first to show it" in said


async def test_fields_of_all_rows_are_proposed_for_reading(build: BuildContext, served: site.Site) -> None:
    """A table, a row and a card get the target of all such rows and fields that `extract` accepts and reads correctly."""
    observer = await show(build, f"{served.origin}/", "Orders")
    page = observer.page("scout")
    parts = ("table", "tbody tr:nth-child(2)", ".no", "article + article", ".card p")
    for css, ref in zip(parts, await refs_of(build, *parts), strict=True):
        said, _target = await propose(build, ref)
        inside = said.partition("[page]\n")[2].partition("\n[end of page]")[0]
        fields = yaml.safe_load(inside)["fields"]
        line = next(each for each in inside.split("\n") if each.startswith("# all 2 of its kind: target: "))
        target = Target.model_validate(yaml.safe_load(line.partition("target: ")[2]))
        ways = [{"css": each} if isinstance(each, str) else each for each in fields.values()]
        read = await page.rows(target, [FieldOf.model_validate(each) for each in ways], 1)
        assert [dict(zip(fields, each, strict=True)) for each in read] == EXTRACTED[css.split()[0].partition(":")[0]], (
            said
        )


CONTROLS = "a, button, input, [role=switch]"
READ = "td:first-child, output, .MuiTypography-root + p, .ant-statistic-content-value, td > span, div > span + span"


@pytest.mark.drawn(0)
@pytest.mark.parametrize("library", libraries.LIBRARIES)
async def test_what_component_libraries_draw_is_found_without_counting(
    build: BuildContext, served: site.Site, library: str
) -> None:
    """Each control and value of a component library has a target without `nth`: the same element now, after a reload, and with one more row and card."""
    served.page(f"/{library}", libraries.page(library))
    served.page(f"/{library}/more", libraries.page(library, more=True))
    observer = await show(build, f"{served.origin}/{library}", "42")
    view, page = await look(observer), observer.page("scout")
    async with page.beside(30) as grown:
        await grown.goto(f"{served.origin}/{library}/more")
        failed: list[str] = []
        tried = 0
        for ref in view.all_refs:
            found = await page.by_ref(ref)
            if not await found.evaluate("(element, css) => element.matches(css)", f"{CONTROLS}, {READ}"):
                continue
            said, target = await propose(build, ref)
            tried += 1
            there = locators.locator(grown.page, Target.model_validate(target))
            held = await there.count() == 1 and await there.evaluate(IDENTITY) == await found.evaluate(IDENTITY)
            marks = said.split("\n")[1]
            if "nth" in str(target) or not held or "one now, one after reload" not in marks:
                failed.append(f"{view.element(ref)}: {said}")
            assert not re.search(r"css-|sc-|bdVaJa|_tog|dKm|kXy|_a1b", str(target)), said
    assert tried >= 11
    assert not failed, "\n".join(failed)


IDENTITY = """(element) => {
  const card = element.closest('tr, .MuiCard-root, .ant-card, .sc-fzXfMv');
  return [card && card.textContent, element.outerHTML, Array.from((card || document).querySelectorAll('*')).indexOf(element) * (card ? 1 : 0)].join();
}"""
"""JavaScript: what an element is, also on a page with more rows and cards."""


async def test_a_card_alone_is_the_place_of_what_is_in_it(build: BuildContext, served: site.Site) -> None:
    """A switch without a name is found in the one card that says the anchor, in the banner; a long name by how it begins; a value by its label."""
    served.page("/card", libraries.ALONE)
    await show(build, f"{served.origin}/card", "printers")
    ways = ".work-pool-card label", "header label", "input[type=radio]", "input[name=amount]", ".p-tag"
    refs = await refs_of(build, *ways)
    best = [
        {"role": "switch", "within": {"css": "div.work-pool-card", "has_text": "printers"}},
        {"role": "switch", "within": {"role": "banner"}},
        {"role": "radio", "name": "Process Execute flow runs as"},
        {"css": 'input[name="amount"]'},
        {"css": "span.p-tag", "within": {"css": "div.p-key-value", "has_text": "Status"}},
    ]
    for ref, anchor, wanted in zip(refs, ("printers", None, None, None, None), best, strict=True):
        said, target = await propose(build, ref, anchor)
        assert target == wanted, said
        assert "one now, one after reload" in said
        assert ("with 2 more rows" in said) == (anchor is not None or ref == refs[-1]), said


async def test_a_row_that_is_pointed_at_is_a_place_for_others(build: BuildContext, served: site.Site) -> None:
    """Rows and cards are shown with refs; a target of one is what `within` takes, and it comes with the fields."""
    served.page("/mui", libraries.page("mui"))
    observer = await show(build, f"{served.origin}/mui", "42")
    shown = (await look(observer)).render()
    for line, wanted in {
        'row "1002': {"role": "row", "has_text": "1002"},
        'card "scanners': {"css": "div.MuiCard-root", "has_text": "scanners"},
    }.items():
        ref = re.search(rf"{line}.* \[ref=(\w+)\]", shown)
        assert ref is not None, shown
        said, target = await propose(build, ref[1])
        assert target == wanted, said
        assert "`within` of what is in it" in said
        assert "with " in said.split("\n")[1]
        assert "\nfields:\n" in said


ANEW = """<!doctype html><title>Anew</title><ul id=list></ul><script>
const draw = () => { list.innerHTML = '<li><button>Pay 1001</button></li><li><button>Drop</button></li><li><button>Drop</button></li>'; };
draw();
setTimeout(draw, 1500);
</script>"""


async def test_a_target_is_proposed_for_an_element_that_was_drawn_anew(build: BuildContext, served: site.Site) -> None:
    """Where a page has drawn its list again, the only element of the role and name that a model saw is meant; of several, none is."""
    served.page("/anew", ANEW)
    seeing = await show(build, f"{served.origin}/anew", "Pay 1001")
    pay, drop = await ref_of(build, "li button"), await ref_of(build, "li:nth-child(2) button")
    await seeing.page("scout").page.wait_for_function("() => performance.now() > 1800")
    said, target = await propose(build, pay)
    assert target["name"] == "Pay 1001", said
    said, target = await propose(build, drop)
    assert not target
    assert "ref-gone" in said
