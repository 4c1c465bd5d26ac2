"""A target is tried, a page is waited for, and HTML is shown, in a real browser, without an action; actions take a target as well as a ref."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest

from director.scouting import tools
from director.tools.build_context import BuildContext
from nodes.values import Json
from runtime.models.turns import turn
from tests import build_contexts, site

pytestmark = pytest.mark.drawn(share=0.35, of="eyes")

SECRET = "correct-horse-battery"

PAGE = """<!doctype html><title>Bills</title><style>.x{}</style><script>var secretive = 1</script>
<h1 class="big head" data-kind=title>Bills</h1>
<table><tr><td>A-7<td><button class=pay onclick="said.textContent='Paid A-7'">Pay</button>
<tr><td>B-9<td><button class=pay disabled>Pay</button></table>
<div id=none hidden>Nothing</div><p id=said></p><p title="correct-horse-battery">Hint</p>
<label>Password <input type=password value=hunter2hunter2 id=p></label><label>Search <input name=q value=tea></label>
<iframe name=inner srcdoc="<button onclick='this.textContent=1'>Inner</button>"></iframe>
<button onclick="setTimeout(() => { said.textContent = 'Late' }, 300)">Later</button>
<label><input type=checkbox id=box> Gift</label>
<div id="tools.main" class="palette w-1/2" aria-label=Tools style="overflow: auto; height: 30px"><ul class=items data-kind='a "quoted" kind'>
  <li class="item node" data-type=inject data-secret=correct-horse-battery>inject<i class="fa fa-bolt"></i><li class=item data-note="ab
ab" data-state='{"user":"uuuuuuuuuuuuuuuuuuuuuuuuuuuuuu","token":"correct-horse-battery"}'>long</ul></div>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves a page with bills."""
    with site.serve() as served:
        served.page("/bills", PAGE)
        yield served


@pytest.fixture(scope="module")
async def build(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BuildContext]:
    """One build context for all tests; its policy performs every action."""
    made = build_contexts.opened(tmp_path_factory.mktemp("build"), f"{served.origin}/bills", known={"PASSWORD": SECRET})
    yield made
    await made.close()


async def call(build: BuildContext, tool: str, /, **arguments: Json) -> turn.Outcome:
    """Calls a tool; arguments not given are null, and a reason is filled in."""
    toolsets = tools.toolsets(build)
    fields = next(each.tool for each in toolsets if each.tool.name == tool).parameters["properties"]
    given = {each: "to look around" if each == "reason" else None for each in fields}
    return await build_contexts.call(build, tool, toolsets, **{**given, **arguments})


async def fresh(build: BuildContext) -> str:
    """Loads the page and returns what is shown."""
    return (await call(build, "debug_navigate", url="/bills")).text


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (
            "{role: button, name: Pay, within: {role: row, has_text: A-7}}",
            ["1 element", 'button "Pay" [ref=', "enabled"],
        ),
        ("{role: row, has_text: A-7}", ["1 element", 'row "A-7']),
        ("css: .pay", ["2 elements", "visible, disabled", "candidates:"]),
        ("{css: '#none'}", ["1 element", "<div>", "hidden"]),
        ("{role: button, name: Inner, frame: inner}", ["1 element", 'button "Inner" [ref=f']),
        ("{role: button, name: Paay}", ["nothing", "nearest:", 'name="Pay"']),
        ("{any_of: [{css: .no}, {css: h1}]}", ["1 element", 'heading "Bills"']),
        ("{text: Nowhere, frame: other}", ["nothing", "frames:", "inner"]),
    ],
)
async def test_001_20_a_target_is_tried_and_nothing_is_done(build: BuildContext, target: str, shown: list[str]) -> None:
    """Any target of the language tells how many elements it finds, which, their state, and what is near if none; no run is made."""
    await fresh(build)
    before = len(build.writer.history.runs_of)
    outcome = await call(build, "try_target", target=target)
    assert outcome.error is None, outcome.text
    assert [each for each in shown if each not in outcome.text] == [], outcome.text
    assert len(build.writer.history.runs_of) == before


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("role=button", "tool-arguments"),
        ("{role: butt}", "tool-arguments"),
        ("{css: 'a['}", "bad-target"),
        ("{text: correct-horse-battery}", "secret-refused"),
        ("{text: '{{ inputs.x }}'}", "tool-arguments"),
    ],
)
async def test_001_20_a_wrong_target_is_refused(build: BuildContext, target: str, code: str) -> None:
    """What is no target, or would try whether the page shows a secret, gets an error with the way out."""
    await fresh(build)
    outcome = await call(build, "try_target", target=target)
    assert outcome.error is not None
    assert outcome.error["code"] == code
    assert outcome.error["fix"]


async def test_001_20_an_action_takes_a_target(build: BuildContext) -> None:
    """An action finds its element by a target as by a ref; a target that finds none or several does nothing and says what is there."""
    await fresh(build)
    pay = await call(
        build, "debug_action", action="click", ref="{role: button, name: Pay, within: {role: row, has_text: A-7}}"
    )
    assert "Paid A-7" in pay.text
    boxed = await call(build, "debug_action", action="click", ref="{css: '#box'}")
    assert "checked" in boxed.text
    typed = await call(build, "debug_action", action="fill", ref="label: Search", value="milk")
    assert typed.error is None
    before = len(build.writer.history.runs_of)
    for target, code, shown in (
        ("css: .pay", "target-ambiguous", "candidates:"),
        ("{role: button, name: Paay}", "target-not-found", 'name="Pay"'),
    ):
        refused = await call(build, "debug_action", action="click", ref=target)
        assert refused.error is not None
        assert refused.error["code"] == code
        assert shown in refused.text
    assert sum(map(len, build.writer.history.runs_of.values())) == before


async def test_001_20_a_page_is_waited_for(build: BuildContext) -> None:
    """A wait ends when its rule holds, and says what changed; one whose time is up says what is there instead. `quiet` waits for requests."""
    await fresh(build)
    await call(build, "debug_action", action="click", ref="{role: button, name: Later}")
    came = await call(build, "wait_for", rule="text: Late", seconds=5)
    assert came.error is None
    assert "it came after" in came.text
    for rule in ("hidden: {css: '#none'}", "url: '**/bills'", "{visible: {css: h1}}", "quiet"):
        assert (await call(build, "wait_for", rule=rule)).error is None, rule
    late = await call(build, "wait_for", rule="{visible: {role: button, name: Paay}}", seconds=1)
    assert late.error is not None
    assert late.error["code"] == "rule-failed"
    assert "within 1 s" in late.text
    assert 'name="Pay"' in late.text


async def test_001_18_html_is_shown_with_attributes_and_without_secrets(build: BuildContext) -> None:
    """HTML has tags, classes and data attributes, of the page, a ref or a target, to a depth; no script, style, password or secret."""
    seen = await fresh(build)
    html = (await call(build, "get_html")).text
    for wanted in ('<h1 class="big head" data-kind="title">Bills</h1>', '<button class="pay" disabled="">', "[page]"):
        assert wanted in html
    for never in ("secretive", ".x{}", "hunter2", SECRET):
        assert never not in html
    assert 'value="[hidden]"' in html
    row = (await call(build, "get_html", ref="{css: table}", depth=1)).text
    assert "elements in it" in row
    assert "<h1" not in row
    await call(build, "debug_action", action="fill", ref="label: Search", value="milk")
    field = (await call(build, "get_html", ref="{label: Search}")).text
    assert 'value="tea" now="milk"' in field
    ref = seen.partition('button "Later" [ref=')[2].partition("]")[0]
    assert ">Later</button>" in (await call(build, "get_html", ref=ref)).text


async def test_001_20_the_names_of_elements_in_css_are_told(build: BuildContext) -> None:
    """With `dom`, a part is told with tag, id, classes and `data-` attributes, and so is what is in it; each line is CSS that finds it.

    Of a long value only the name is told: its beginning may end within a secret.
    """
    seen = await fresh(build)
    ref = seen.partition('scrollable "Tools"')[2].partition("[ref=")[2].partition("]")[0]
    told = (await call(build, "inspect_tab", ref=ref, dom=True)).text
    _, _, page = told.partition("\n")
    lines = [line.strip() for line in page.split("\n")[:-1]]
    assert lines[0] == rf"div#tools\.main.palette.w-1\/2 [ref={ref}]"
    assert lines[1].startswith('ul.items[data-kind="a \\"quoted\\" kind"] [ref=')
    assert lines[2].startswith('li.item.node[data-type="inject"][data-secret="[hidden]"] "inject" [ref=')
    assert lines[3] == "… 1 more"
    assert lines[4].startswith('li.item[data-note][data-state] "long"')
    assert SECRET[:6] not in told
    for line in (lines[0], lines[1], lines[4]):
        css = line.partition(" [ref=")[0].partition(' "long"')[0]
        assert "it finds 1 element" in (await call(build, "try_target", target=f"css: {json.dumps(css)}")).text, css
    without = await call(build, "inspect_tab", dom=True)
    assert without.error is not None
    assert without.error["code"] == "tool-arguments"
    gone = await call(build, "inspect_tab", ref="e99999", dom=True)
    assert gone.error is not None
    assert gone.error["code"] == "ref-gone"
