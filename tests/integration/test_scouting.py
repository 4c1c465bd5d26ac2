"""Scouting observes and acts outside the workflow in a real browser. Each action is a separate run: confirmed, withheld, masked and logged by policy."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from director.builds import open as open_build
from director.conversation import reply
from director.scouting import observer, scout, shown, tools
from director.tools.build_context import BuildContext
from nodes.errors import ModelError
from nodes.values import Json
from runtime.browser import shared
from runtime.context import window
from runtime.log import entries
from runtime.messages.messages import Answer, Request
from runtime.models.client.errors import Failed
from runtime.models.turns import turn
from runtime.workspace import run_index
from tests import build_contexts, site, talks

pytestmark = pytest.mark.drawn(share=0.25, of="scouting")

SECRET = "correct-horse-battery"

PAGE = """<!doctype html><title>Stock</title><nav aria-label=Main><a href=/stock>Stock of the shop</a> <a href=/other>Other things</a> <a href=/broken>Broken</a></nav>
<h1>Stock</h1>
<label>Search <input name=q></label><label>Password <input type=password id=p></label>
<label>Size <select><option>S<option>M<option>L</select></label><label><input type=checkbox> Gift</label>
<button onclick="said.textContent='Sold: ' + document.querySelector('[name=q]').value">Sell</button>
<button onclick="said.textContent=confirm('Really?') ? 'Yes' : 'No'">Ask</button>
<button onclick="this.textContent='Gone'; fetch('/counted', {method: 'POST'})">Pay</button>
<button>{{ secrets.PASSWORD }}</button><div id=arm onclick="this.textContent='Hit'">Arm</div>
<a href=/other target=_blank>Other</a><a href="/stock?page=2">Next</a><a href=/broken>Broken</a>
<p id=said></p><p>correct-horse-battery</p>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves a small site."""
    with site.serve() as served:
        served.page("/stock", PAGE)
        served.page("/other", "<!doctype html><title>Other</title><p>Hello</p>")
        served.answer("/counted", lambda _request: site.Answer("ok"))
        served.answer("/broken", lambda _request: site.Answer("<!doctype html><h1>Oops</h1>", status=500))
        yield served


@pytest.fixture(scope="module")
async def build(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BuildContext]:
    """One build context for all tests; its policy performs every action."""
    made = build_contexts.opened(tmp_path_factory.mktemp("build"), f"{served.origin}/stock", known={"PASSWORD": SECRET})
    yield made
    await made.close()


async def call(build: BuildContext, tool: str, /, **arguments: Json) -> turn.Outcome:
    """Calls a tool; arguments not given are null, and a reason is filled in."""
    toolsets = tools.toolsets(build)
    fields = next(each.tool for each in toolsets if each.tool.name == tool).parameters["properties"]
    given = {each: "to look around" if each == "reason" else None for each in fields}
    return await build_contexts.call(build, tool, toolsets, **{**given, **arguments})


HANDS = """<!doctype html><title>Hands</title><p id=said></p>
<button oncontextmenu="said.textContent='Menu'; return false" ondblclick="said.textContent='Twice'">Card</button>
<div role=button aria-label=Item draggable=true style="width:60px">Item</div>
<div role=button aria-label=Bin style="width:60px" ondragover="event.preventDefault()" ondrop="said.textContent='Dropped'">Bin</div>
<label>Note <input oninput="said.textContent='Typed ' + value"></label>
<p onmouseup="said.textContent='Selected ' + getSelection()">Tea and milk</p>"""


async def test_a_scout_has_every_action_of_a_node(build: BuildContext, served: site.Site) -> None:
    """A right click, double click, drag, typing and selecting are done as a node does them; other fields of a node are left out, and named."""
    served.page("/hands", HANDS)
    page = (await call(build, "debug_navigate", url=f"{served.origin}/hands")).text
    card, item, bin_ = (ref(page, f'button "{each}"') for each in ("Card", "Item", "Bin"))

    async def does(action: str, **fields: Json) -> str:
        return (await call(build, "debug_action", action=action, **fields)).text

    assert "Menu" in await does("click", ref=card, options="{button: right}")
    assert "Twice" in await does("dblclick", ref=card)
    assert "Dropped" in await does("drag", ref=item, value=bin_)
    assert "Typed tea" in await does("type", ref="label: Note", value="tea", options="delay: 1")
    assert "Selected and" in await does("select_text", ref="{css: 'body > p:last-child'}", value="and")
    whole = "{button: right, rest: true, timeout: 5, effect: read, verify: [{text: '{{ inputs.note }}'}], confirm: {}, when: no}"
    unused = await does("click", ref=card, options=whole)
    assert "Menu" in unused
    assert "not used here, only in a workflow: rest, timeout, effect, verify, confirm, when" in unused
    assert "it has `{{ … }}`" in await does("click", ref=card, options="{button: '{{ inputs.note }}', verify: []}")
    assert "it has: button, modifiers, at, hold, count" in await does("click", ref=card, options="{knob: left}")


GOES = """- {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/other"}\n"""


async def test_without_a_tab_the_one_that_showed_the_ref_is_meant(served: site.Site, tmp_path: Path) -> None:
    """Without a tab a tool takes the tab that showed the ref, else the one shown last; a failure names the tab and its address, and a change of the tab is told."""
    served.page("/pair", "<!doctype html><title>Pair</title><button>One</button><p>x</p>")
    build = build_contexts.opened(tmp_path, f"{served.origin}/stock")
    try:
        scouted = (await call(build, "debug_navigate", url="/pair")).text
        one = ref(scouted, 'button "One"')
        assert "tab:" not in scouted
        second = await call(build, "debug_navigate", tab="second", url=f"{served.origin}/other")
        assert "tab: second" in second.text
        assert "Hello" in (await call(build, "inspect_tab")).text
        missing = await call(build, "try_target", target="{role: button, name: Two}")
        assert f"it finds nothing now in second ({served.origin}/other)" in missing.text
        part = await call(build, "inspect_tab", ref=one)
        assert part.text.startswith("tab: main\n")
        assert 'button "One"' in part.text
        assert (await call(build, "debug_action", action="hover", ref=one)).error is None
        more = [*open_build.toolsets(build)]
        given = {"yaml": GOES, "after": None, "dry_run": None, "reason": "r"}
        await build_contexts.call(build, "create_nodes", more, **given)
        ran = await build_contexts.call(
            build, "execute_nodes", more, nodes="all", mode=None, item=None, reason="r", **{"from": None}
        )
        assert "Hello" in ran.text
        assert "other" in (await call(build, "find", role="heading")).text
        gone = await call(build, "get_html", ref="e99")
        assert f"bench ({served.origin}/other) has no element e99 now" in gone.text
        assert "One" in (await call(build, "get_html", ref=one)).text
        acted = await call(build, "debug_action", action="press", value="Tab")
        assert "done" in acted.text
    finally:
        await build.close()


async def test_new_targets_are_tried_on_the_page_that_is_open(
    served: site.Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node for the page that the scout has open, or that comes next on the bench, is told at once to find nothing or several there; others are not."""
    monkeypatch.setattr(observer, "TRIED_SECONDS", 10.0)
    build = build_contexts.opened(tmp_path, f"{served.origin}/stock", inputs={"what": "Pay"})
    more = [*open_build.toolsets(build)]

    async def edit(tool: str, yaml: str, **given: Json) -> str:
        return (await build_contexts.call(build, tool, more, yaml=yaml, reason=f"r {yaml[:40]}", **given)).text

    try:
        await call(build, "debug_navigate", url="/stock")
        steps = (
            "- {id: search, type: browser_action, action: fill, target: {label: Search}, value: tea}\n"
            "- {id: size, type: browser_action, action: select, target: {label: Sise}, value: M}\n"
            "- {id: other, type: browser_action, action: click, target: {role: link, name: Other}}\n"
            "- {id: later, type: browser_action, action: click, target: {role: button, name: Later}}\n"
        )
        said = await edit("create_nodes", GOES.replace("/other", "/stock") + steps, after=None, dry_run=None)
        assert f"on the page now open, main ({served.origin}/stock):\n" in said
        assert '\n`size` label="Sise" matches nothing; nearest: ' in said
        assert '`other` role=link name="Other" matches 2' in said
        assert "`search`" not in said
        assert "`later`" not in said
        assert "on the page now open" not in await edit(
            "update_node",
            "- {id: size, type: browser_action, action: select, target: {label: Size}, value: L}",
            id=None,
        )
        await build_contexts.call(
            build, "execute_nodes", more, nodes="open,search", mode=None, item=None, reason="r", **{"from": None}
        )
        await build.observer.close()
        said = await edit(
            "create_nodes",
            "- {id: pay, type: browser_action, action: fill, target: {role: textbox, name: '{{ inputs.what }}'}, value: M}",
            after="search",
            dry_run=None,
        )
        assert (
            f'on the page now open, bench ({served.origin}/stock):\n`pay` role=textbox name="Pay" matches nothing'
            in said
        )
    finally:
        await build.close()


async def fresh(build: BuildContext) -> str:
    """Reloads the stock page and returns what the tool shows, once asked again where it was shown before."""
    text = (await call(build, "debug_navigate", url="/stock")).text
    return (await call(build, "inspect_tab", tab="scout")).text if shown.reminds(text) else text


def ref(output: str, line: str) -> str:
    """The ref on the line that begins with this text."""
    (found,) = [each for each in output.split("\n") if each.strip().startswith(line)]
    return found.partition("[ref=")[2].partition("]")[0]


async def act(build: BuildContext, action: str, at: str | None = None, value: str | None = None) -> turn.Outcome:
    """Performs an action on the page."""
    return await call(build, "debug_action", action=action, ref=at, value=value)


def last_run(build: BuildContext) -> Any:
    """The history of the last action's run."""
    run = list(build.writer.history.runs_of.values())[-1][-1]
    return run_index.load_history(build.here.reader, run)[0]


async def test_actions_are_runs_and_their_changes_are_shown(build: BuildContext, served: site.Site) -> None:
    """Each action is a step of a separate run, with the effect class it would have in a file. Only the change is shown, not the page."""
    seen = await fresh(build)
    assert 'button "Sell"' in seen
    for action, line, value in (("fill", 'textbox "Search"', "tea"), ("select", 'combobox "Size"', "M")):
        outcome = await act(build, action, ref(seen, line), value)
        assert outcome.error is None
        assert "button" not in outcome.text
    assert last_run(build).header.parent == build.writer.conversation.id
    sold = await act(build, "click", ref(seen, 'button "Sell"'))
    assert "Sold: tea" in sold.text
    assert [each.call.effect for each in last_run(build).all_attempts()] == ["effect"]
    gift = await act(build, "click", ref(seen, "checkbox"))
    assert [each.call.action for each in last_run(build).all_attempts()] == ["check"]
    assert "checked" in gift.text
    assert build.writer.history.open_runs == {}


async def test_an_action_has_its_own_time_however_long_the_model_has_thought(
    build: BuildContext, served: site.Site
) -> None:
    """The limit of the last look is over when the model has thought for long: a target in YAML is found all the same."""
    await fresh(build)
    session = observer_of(build).scout.session
    assert session is not None
    session.bound(-1)
    outcome = await act(build, "fill", "{label: Search}", "tea")
    assert outcome.error is None, outcome.text


SAVES = """<!doctype html><title>Draft</title><label>Title <input oninput="history.replaceState(null, '', '/draft/12/edit')"></label>"""


async def test_an_address_that_typing_changes_is_told(build: BuildContext, served: site.Site) -> None:
    """A field that changes the address when it is filled in says so, as does a page that changed it since it was shown; another field does not."""
    served.page("/draft", SAVES)
    seen = (await call(build, "debug_navigate", url="/draft")).text
    filled = (await act(build, "fill", ref(seen, 'textbox "Title"'), "Jam")).text
    assert "url: /draft -> /draft/12/edit" in filled
    assert "url" not in (await act(build, "fill", ref(seen, 'textbox "Title"'), "Jams")).text
    sight: Any = build.observer
    page = sight.page("scout", None)
    await page.page.evaluate("history.replaceState(null, '', '/draft/14/edit')")
    told = (await act(build, "hover", ref(seen, 'textbox "Title"'))).text
    assert "url, by itself since you saw it: /draft/12/edit -> /draft/14/edit" in told


async def test_a_secret_is_typed_by_its_name_and_shown_nowhere(build: BuildContext, served: site.Site) -> None:
    """A secret reference fills a field, and its value appears in no log or output. References elsewhere are refused; page text that looks like one is not read."""
    seen = await fresh(build)
    typed = await act(build, "fill", ref(seen, 'textbox "Password"'), "{{ secrets.PASSWORD }}")
    assert typed.error is None
    page = observer_of(build).page("scout").page
    assert await page.locator("#p").input_value() == SECRET
    clicked = await act(build, "click", ref(seen, 'button "{{ secrets'))
    assert clicked.error is None or "secret" not in clicked.error["code"]
    for refused in (
        await act(build, "fill", ref(seen, 'textbox "Search"'), "{{ secrets.OTHER }}"),
        await act(build, "press", None, "{{ secrets.PASSWORD }}"),
        await call(build, "debug_navigate", url="/stock?p={{ secrets.PASSWORD }}"),
    ):
        assert refused.error is not None
    everything = [seen, typed.text, clicked.text, (await call(build, "inspect_tab")).text]
    assert [each for each in everything if SECRET in each] == []
    written = [each for each in build.here.settings.home.rglob("*") if each.is_file() and "private" not in each.parts]
    assert [each for each in written if SECRET.encode() in each.read_bytes()] == []


async def test_an_element_that_became_another_is_not_touched(build: BuildContext, served: site.Site) -> None:
    """An element that was renamed, belongs to a left page, or was never shown gives `ref-gone` and is not clicked."""
    before = sum(each.path == "/counted" for each in served.requests)
    seen = await fresh(build)
    pay = ref(seen, 'button "Pay"')
    await act(build, "click", pay)
    again = await act(build, "click", pay)
    assert again.error is not None
    assert again.error["code"] == "ref-gone"
    await fresh(build)
    for other in (pay, "e999"):
        outcome = await act(build, "click", other)
        assert outcome.error is not None
        assert outcome.error["code"] == "ref-gone"
    assert sum(each.path == "/counted" for each in served.requests) == before + 1


async def test_an_element_that_a_script_changed_or_added_is_not_touched(build: BuildContext, served: site.Site) -> None:
    """An element that a script renamed, or added after the last output, gives `ref-gone` although its ref is valid."""
    arm = ref(await fresh(build), 'clickable "Arm"')
    tab = observer_of(build).page("scout")
    await tab.page.evaluate("arm.textContent = 'Delete all'")
    renamed = await act(build, "click", arm)
    await tab.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button>New</button>')")
    view = await tab.look()
    unseen = await act(build, "click", next(each for each in view.refs if view.element(each).name == "New"))
    for outcome, word in ((renamed, "Delete all"), (unseen, "New")):
        assert outcome.error is not None
        assert outcome.error["code"] == "ref-gone"
        assert word in outcome.text
    assert await tab.page.evaluate("arm.textContent") == "Delete all"


async def test_a_dialog_is_shown_and_answered(build: BuildContext, served: site.Site) -> None:
    """An open dialog blocks every other action, and the output says how to answer it."""
    seen = await fresh(build)
    asked = await act(build, "click", ref(seen, 'button "Ask"'))
    assert "Really?" in asked.text
    assert "debug_action" in asked.text
    blocked = await act(build, "fill", ref(seen, 'textbox "Search"'), "x")
    assert blocked.error is not None
    assert blocked.error["code"] == "dialog-open"
    answered = await act(build, "dialog", None, "accept")
    assert "Yes" in answered.text


async def test_tabs_open_and_close_by_name(build: BuildContext, served: site.Site) -> None:
    """A tab opened by a click gets a name; a requested one has the name given; a closed one is no longer offered."""
    seen = await fresh(build)
    opened = await act(build, "click", ref(seen, 'link "Other"'))
    assert "a tab opened, called tab2" in opened.text
    assert "Hello" in (await call(build, "inspect_tab", tab="tab2")).text
    more = await call(build, "debug_navigate", tab="third", url="/stock?page=2")
    assert 'button "Sell"' in more.text
    assert [each.name for each in observer_of(build).tabs()] == ["main", "tab2", "third"]
    assert [each.name for each in observer_of(build).tabs() if each.current] == ["third"]
    for name in ("tab2", "third"):
        closed = await call(build, "debug_action", action="close_tab", tab=name)
        assert closed.error is None
    gone = await call(build, "inspect_tab", tab="tab2")
    assert gone.error is not None
    assert "main" in str(gone.error["fix"])


async def test_a_page_is_shown_once_and_then_its_changes(served: site.Site, tmp_path: Path) -> None:
    """The second observation shows only changes, the third the whole page. Another query is another page; an instruction selects the relevant part."""
    build = build_contexts.opened(tmp_path, f"{served.origin}/stock")
    await call(build, "debug_navigate", url="/other")
    await fresh(build)
    first = await call(build, "inspect_tab")
    assert "nothing changed" in first.text
    assert 'button "Sell"' not in first.text
    whole = (await call(build, "inspect_tab")).text
    assert 'button "Sell"' in whole
    second = (await call(build, "debug_navigate", url="/stock?page=2")).text
    assert 'button "Sell"' in second
    # The site frame is shown once; its ref leads to its content.
    assert 'link "Other things"' in whole
    assert 'link "Other things"' not in second
    frame = await call(build, "inspect_tab", ref=ref(second, 'navigation "Main"'))
    other = await act(build, "click", ref(frame.text, 'link "Other things"'))
    assert "Hello" in other.text
    await call(build, "debug_navigate", url="/stock?page=2")
    assert 'button "Sell"' in (await call(build, "find", role="button", name="Sell")).text
    named = await call(build, "inspect_tab", instruction="the size")
    assert 'combobox "Size"' in named.text
    await build.close()


async def test_what_a_document_calls_an_element_is_shown_as_targets_have_it(
    build: BuildContext, served: site.Site
) -> None:
    """Director output shows unique test ids, and of unnamed fields and buttons the id or name attribute, as targets write them, also in a shadow root and a frame.

    Hidden and repeated ones are left out, and those that a program made up.
    """
    inner = "<p>Seats <b data-testid=seats>4</b></p>"
    served.page(
        "/marked",
        "<!doctype html><title>Marked</title><dl><dt>Status<dd><span data-testid=status>open</span></dl>"
        "<p>Draft <i data-testid=draft>17</i></p><div id=h></div><p hidden data-testid=hidden>x</p><p data-testid=twice>a</p><p data-testid=twice>b</p>"
        "<label>Email address</label><input id=email><input name=city><input id=mui-4917><button id=menu></button><input name=two><input name=two>"
        f'<script>h.attachShadow({{mode: "open"}}).innerHTML = "{inner}"</script><iframe src=/framed></iframe>',
    )
    served.page("/framed", "<!doctype html><p data-testid=note>Note</p>")
    output = (await call(build, "debug_navigate", url="/marked")).text
    assert 'beside "Status"' in output
    for mark in ("{test_id: status}", "{test_id: draft}", "{test_id: seats}", "{test_id: note}"):
        assert output.count(mark) == 1
    for mark in ('{css: "#email"}', '{css: "input[name=city]"}', '{css: "#menu"}'):
        assert output.count(mark) == 1
        tried = await call(build, "try_target", target=mark)
        assert tried.error is None
        assert "it finds 1 element" in tried.text
    assert "mui" not in output
    assert "name=two" not in output
    assert "hidden" not in output
    assert "twice" not in output
    assert "test_id" not in (await observer_of(build).page("scout").look()).render()


async def test_the_frame_of_a_site_is_shown_once(served: site.Site, tmp_path: Path) -> None:
    """The site frame is not repeated on a later page, in another tab, or for an unrelated instruction. A related instruction or a repeated look shows it."""
    made = build_contexts.opened(tmp_path, f"{served.origin}/stock")
    frame = 'link "Stock of the shop"'
    assert frame in await fresh(made)
    await call(made, "debug_navigate", url="/other")
    back = (await call(made, "debug_navigate", url="/stock?page=2")).text
    assert frame not in back
    assert 'navigation "Main" [ref=' in back
    opened = (await call(made, "debug_navigate", tab="second", url=f"{served.origin}/stock?page=3")).text
    assert frame not in opened
    assert frame not in (await call(made, "inspect_tab", instruction="the gift box")).text
    assert frame in (await call(made, "inspect_tab", instruction="stock of what")).text
    await call(made, "inspect_tab")
    assert frame in (await call(made, "inspect_tab")).text
    await made.close()


async def test_an_error_in_a_tab_that_opens_is_shown_first(build: BuildContext, served: site.Site) -> None:
    """When a click opens a tab with an HTTP error, the output begins with its status; the opener is shown after it."""
    served.page("/opens", "<!doctype html><title>Opens</title><a href=/broken target=_blank>Broken</a>")
    output = (await call(build, "debug_navigate", url="/opens")).text
    clicked = await act(build, "click", ref(output, 'link "Broken"'))
    assert clicked.text.startswith("the document in tab")
    first = clicked.text.split("\n")[0]
    assert first.endswith(" was answered with HTTP status 500")
    await call(build, "debug_action", action="close_tab", tab=first.split()[3])


async def test_changes_that_do_not_fit_name_the_tool_that_shows_them(build: BuildContext, served: site.Site) -> None:
    """Where more has changed than fits, the report names `inspect_tab`."""
    grow = "for (let n = 0; n < 40; n++) list.insertAdjacentHTML('beforeend', `<p>The news number ${n} of the day</p><hr>`)"
    old = "".join(f"<input aria-label='What was there before, number {number}'>" for number in range(90))
    served.page(
        "/grows", f'<!doctype html><title>Grows</title><button onclick="{grow}">More</button>{old}<div id=list></div>'
    )
    output = (await call(build, "debug_navigate", url="/grows")).text
    clicked = (await act(build, "click", ref(output, 'button "More"'))).text
    assert " more changes: inspect_tab\n" in clicked
    assert "look(" not in clicked


async def test_an_error_page_is_reported_with_its_status(build: BuildContext, served: site.Site) -> None:
    """An error document is reported with its HTTP status; an origin that is not allowed is not loaded."""
    broken = await call(build, "debug_navigate", url="/broken")
    assert broken.text.count("500") == 1, broken.text
    assert "HTTP status 500" in broken.text
    with site.serve() as other:
        elsewhere = await call(build, "debug_navigate", url=f"{other.origin}/")
        assert elsewhere.error is not None
        assert elsewhere.error["code"] == "origin-refused"
        assert other.requests == []


async def test_a_look_with_a_picture_keeps_it_among_the_files(build: BuildContext, served: site.Site) -> None:
    """A picture of the page, or of one element, comes with its text, and is a PNG among the session's files."""
    seen = await fresh(build)
    whole = await call(build, "inspect_tab", screenshot=True)
    assert await call(build, "inspect_tab") != whole
    part = await call(build, "inspect_tab", ref=ref(seen, 'button "Sell"'), screenshot=True)
    assert 'button "Sell"' in part.text
    assert whole.picture is not None
    assert part.picture is not None
    assert (whole.picture.width, whole.picture.height) == (1280, 720)
    assert part.picture.width < 100
    for each in (whole, part):
        kept = Path(re.findall(r"picture kept: (\S+) ", each.text)[0])
        assert kept.parent == build.writer.artifacts
        assert each.picture is not None
        assert kept.read_bytes() == base64.b64decode(each.picture.data)


async def test_withheld_actions_are_ready_and_not_done(served: site.Site, tmp_path: Path) -> None:
    """Under `hold` an effect is reported as withheld, without an error. Under `ask` each click is confirmed, and a refusal shows no way around it."""
    withholding = build_contexts.opened(tmp_path / "held", f"{served.origin}/stock", policy="hold")
    who = build_contexts.Answering("yes", "no", "no")
    asking = build_contexts.opened(tmp_path / "asking", f"{served.origin}/stock", policy="ask", who=who)
    try:
        before = sum(each.path == "/counted" for each in served.requests)
        seen = await fresh(withholding)
        outcome = await act(withholding, "click", ref(seen, 'button "Pay"'))
        assert outcome.error is None
        assert "held" in outcome.text
        assert sum(each.path == "/counted" for each in served.requests) == before
        link = await act(withholding, "click", ref(seen, 'link "Next"'))
        assert f"leads to {served.origin}/stock?page=2" in link.text
        seen = await fresh(asking)
        assert "done" in (await act(asking, "click", ref(seen, 'button "Pay"'))).text
        assert sum(each.path == "/counted" for each in served.requests) == before + 1
        seen = await fresh(asking)
        assert "held" in (await act(asking, "click", ref(seen, 'button "Pay"'))).text
        assert sum(each.path == "/counted" for each in served.requests) == before + 1
        refused = await act(asking, "click", ref(seen, 'link "Next"'))
        assert "the person does not want it" in refused.text
        assert "debug_navigate" not in refused.text
        assert len(who.asked) == 3
    finally:
        await withholding.close()
        await asking.close()


def talk(build: BuildContext, model: talks.Model, requests: list[Request]) -> reply.Talk:
    """A talk whose model is this function, and which may send scouts."""
    chosen, models = talks.CHOSEN, talks.Supply(model, requests)
    limits = window.Limits
    return reply.Talk(build.state, talks.About(), models, chosen, build.listener, limits, [scout.Scouting(build)])


def last_output(request: Request) -> str:
    """The output of the model's last call, or an empty string."""
    return talks.outputs(request)[-1] if talks.outputs(request) else ""


async def test_scouts_work_in_parallel_in_their_own_tabs(build: BuildContext, served: site.Site) -> None:
    """Parallel scouts act in their own tabs and return only reports. Their tabs are closed, and every action is logged in the build."""
    words = {"Sell tea.": "tea", "Sell salt.": "salt"}

    def model(request: Request) -> Answer | Exception:
        task = next((each for each in words if any(each in said for said in talks.messages(request))), None)
        output = last_output(request)
        if task is None:
            sends = [("send_scout", {"task": each, "url": "/stock", "reason": "Look."}) for each in words]
            return talks.said("Both sold.") if output else talks.asks(*sends)
        match len(talks.outputs(request)):
            case 0:
                return talks.asks(("debug_navigate", {"tab": None, "url": "/stock", "reason": "Begin."}))
            case 1:
                at = ref(output, 'textbox "Search"')
                typed = {"tab": None, "action": "fill", "ref": at, "value": words[task], "reason": "Type."}
                sold = {**typed, "action": "click", "ref": ref(output, 'button "Sell"'), "value": None}
                return talks.asks(("debug_action", typed), ("debug_action", sold))
            case 3:
                return talks.asks(
                    (
                        "inspect_tab",
                        {
                            "tab": "main",
                            "instruction": None,
                            "ref": None,
                            "dom": None,
                            "screenshot": None,
                            "reason": "Peep.",
                        },
                    )
                )
            case _:
                pass
        seen = next(each for each in talks.outputs(request) if "Sold: " in each)
        assert "page-unknown" in output
        return talks.said(f"It says {seen.partition('Sold: ')[2].split()[0]}")

    await fresh(build)
    requests: list[Request] = []
    assert await talk(build, model, requests).say("Sell both.") == "Both sold."
    reports = talks.outputs(requests[-1])
    assert [each.split("\n")[0].strip('"') for each in reports] == ["It says tea", "It says salt"]
    assert all("the scout took 4 requests" in each for each in reports)
    assert [each.name for each in observer_of(build).tabs()] == ["main"]
    calls = [each.call for each in build.writer.history.actions.values() if "send_scout/" in each.call.path]
    assert {each.thread for each in calls if each.action == "debug_action"} == {
        entries.delegate_thread(each.call.call)
        for each in build.writer.history.actions.values()
        if each.call.action == "send_scout"
    }
    assert build.writer.history.open_runs == {}


async def test_a_scout_skips_what_a_person_must_confirm(served: site.Site, tmp_path: Path) -> None:
    """A scout does not perform an action that needs confirmation: it gets `delegate-unasked` and reports, and the build continues."""
    asking = build_contexts.opened(tmp_path, f"{served.origin}/stock", policy="ask")

    def model(request: Request) -> Answer | Exception:
        output = last_output(request)
        if not any("Pay." in each for each in talks.messages(request)):
            return (
                talks.said(output)
                if output
                else talks.asks(("send_scout", {"task": "Pay.", "url": None, "reason": "x"}))
            )
        if not output:
            return talks.asks(("debug_navigate", {"tab": None, "url": "/stock", "reason": "Begin."}))
        if 'button "Pay"' not in output:
            return talks.said(f"Not done: {output}")
        click = {"tab": None, "action": "click", "ref": ref(output, 'button "Pay"'), "value": None, "reason": "Pay."}
        return talks.asks(("debug_action", click))

    try:
        before = sum(each.path == "/counted" for each in served.requests)
        assert "delegate-unasked" in await talk(asking, model, []).say("Look.")
        assert sum(each.path == "/counted" for each in served.requests) == before
    finally:
        await asking.close()


async def test_actions_of_a_scout_without_an_answer_are_reported(served: site.Site, tmp_path: Path) -> None:
    """The error of a failed or interrupted scout counts its possible actions, so that the parent does not repeat them."""
    allowing = build_contexts.opened(tmp_path, f"{served.origin}/stock", policy="allow")

    def model(request: Request) -> Answer | Exception:
        output = last_output(request)
        if not any("Pay." in each for each in talks.messages(request)):
            sends = ("send_scout", {"task": "Pay.", "url": None, "reason": "x"})
            return talks.said(output) if output else talks.asks(sends)
        if not output:
            return talks.asks(("debug_navigate", {"tab": None, "url": "/stock", "reason": "Begin."}))
        if len(talks.outputs(request)) > 1:
            return Failed(ModelError("model-refused", "it will not", fix="Ask otherwise."))
        click = {"tab": None, "action": "click", "ref": ref(output, 'button "Pay"'), "value": None, "reason": "Pay."}
        return talks.asks(("debug_action", click))

    try:
        before = sum(each.path == "/counted" for each in served.requests)
        output = await talk(allowing, model, []).say("Look.")
        assert sum(each.path == "/counted" for each in served.requests) == before + 1
        assert "it did 1 action on the site, or may have: look there first; `@state/delegate/" in output
        assert "tells what it did; Ask otherwise." in output
        (sent,) = (each.call for each in allowing.writer.history.actions.values() if each.call.action == "send_scout")
        found = scout.Scouting(allowing).outcome_of_open_call(sent)
        assert found is not None
        assert found.error is not None
        assert found.error["fix"].startswith("it did 1 action on the site, or may have: look there first; ")
    finally:
        await allowing.close()


def test_a_browser_that_ended_is_opened_again(served: site.Site, tmp_path: Path) -> None:
    """After the browser has died, a look or an action fails with `scout-ended`; the next navigation opens another browser."""

    async def scouting() -> None:
        build = build_contexts.opened(tmp_path, f"{served.origin}/stock")
        try:
            for tool, more in (("inspect_tab", {}), ("debug_action", {"action": "press", "value": "Tab"})):
                await fresh(build)
                (place,) = shared._places[asyncio.get_running_loop()].values()
                worker = place.starting.result()
                assert isinstance(worker, shared.Chromium)
                told = await worker.guard._connection.send("SystemInfo.getProcessInfo")
                browser = psutil.Process(next(each["id"] for each in told["processInfo"] if each["type"] == "browser"))
                browser.kill()
                # A killed process can still answer until it is gone.
                browser.wait(10)
                output = await call(build, tool, **more)
                assert output.error is not None
                assert output.error["code"] == "scout-ended"
                assert 'button "Sell"' in await fresh(build)
        finally:
            await build.close()

    # A separate loop gives it a browser that no other test uses.
    asyncio.run(scouting())


async def test_an_action_before_a_crash_is_reported(build: BuildContext) -> None:
    """After a crash an action is reported as done where its run's log says so, and else as possibly done."""
    await act(build, "hover", ref(await fresh(build), 'button "Sell"'))
    done = [each.call for each in build.writer.history.actions.values() if each.call.action == "debug_action"][-1]
    action = next(each for each in tools.toolsets(build) if each.tool.name == "debug_action")
    known, unknown = (action.outcome_of_open_call(each) for each in (done, done.model_copy(update={"call": "nobody"})))
    assert known is not None
    assert "done, before" in known.text
    assert unknown is not None
    assert unknown.error is not None
    assert unknown.error["code"] == "scout-interrupted"


def observer_of(build: BuildContext) -> Any:
    """The observer, untyped."""
    return build.observer
