"""What a hand can do on a real page: buttons, places, paths, the wheel, selected and copied text."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import SiteError
from nodes.pointer import Distance, Spot, Stroke, Way
from nodes.targets import Target
from runtime.browser.options import Mode
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, flows, site

pytestmark = [pytest.mark.full_browser, pytest.mark.drawn(share=0.3, of="hands")]

PAGE = """<!doctype html><title>Hands</title>
<style>
  #box { width: 50px; height: 50px; background: red; position: absolute; left: 300px; top: 300px; }
  #zone { position: absolute; left: 500px; top: 300px; width: 100px; height: 100px; background: #ccc; }
  #map { width: 100px; height: 100px; background: #eee; }
  #canvas { border: 5px solid; }
  #b { width: 100px; height: 20px; border: 0; padding: 0; }
</style>
<button id=b>Press</button> <canvas id=canvas width=200 height=100></canvas>
<p id=text>The quick <b>brown</b> fox
   jumps   over the <i style="display:none">sleeping</i> lazy dog.</p><p id=two>Second paragraph.</p>
<textarea id=area>one two three two</textarea> <div id=map>Map</div> <input id=field aria-label=Field>
<iframe srcdoc="<p id=framed>Words in a frame</p>" name=inner></iframe>
<p contenteditable id=editor>Some words to set</p><button id=strong>Strong</button><p id=set></p>
<div id=box></div><div id=zone>Drop</div>
<script>
const logged = [], log = (...words) => logged.push(words.join(' '));
const where = (event) => `${Math.round(event.offsetX)},${Math.round(event.offsetY)}`;
let down = 0;
b.onmousedown = () => { down = performance.now(); };
b.onmouseup = () => log(performance.now() - down > 400 ? 'held' : 'struck');
for (const name of ['click', 'dblclick', 'contextmenu', 'auxclick'])
  b.addEventListener(name, (event) => { event.preventDefault(); log(name, event.button, event.detail, where(event), event.shiftKey ? 'Shift' : ''); });
let points = [];
canvas.onmousedown = (event) => { points = [where(event)]; };
canvas.onmousemove = (event) => { if (event.buttons) points.push(where(event)); };
canvas.onmouseup = () => log('drew', points.length, points[0], points.at(-1));
let hold = null;
box.onmousedown = (event) => { hold = [event.clientX - box.offsetLeft, event.clientY - box.offsetTop]; };
addEventListener('mousemove', (event) => { if (hold) { box.style.left = `${event.clientX - hold[0]}px`; box.style.top = `${event.clientY - hold[1]}px`; } });
addEventListener('mouseup', () => { if (hold) log('moved to', `${box.offsetLeft},${box.offsetTop}`); hold = null; });
zone.ondragover = (event) => event.preventDefault();
zone.ondrop = (event) => { event.preventDefault(); log('files', ...[...event.dataTransfer.files].map((each) => `${each.name}:${each.size}`)); };
map.addEventListener('wheel', (event) => { event.preventDefault(); log('wheel', event.deltaX, event.deltaY, event.ctrlKey); }, {passive: false});
field.onkeydown = (event) => log('key', event.key);
field.addEventListener('paste', (event) => log('pasted', event.clipboardData.getData('text/plain')));
document.addEventListener('copy', () => log('copied'));
let picked = '';
document.addEventListener('selectionchange', () => setTimeout(() => { picked = String(getSelection()); }, 145));
strong.onmousedown = (event) => { event.preventDefault(); set.textContent = `<${picked}>`; };
two.addEventListener('copy', (event) => { event.preventDefault(); event.clipboardData.setData('text/plain', 'with a source'); });
</script>"""

BUTTON, CANVAS, BOX, ZONE, MAP = (Target(css=f"#{each}") for each in ("b", "canvas", "box", "zone", "map"))
TEXT, AREA, FIELD = Target(css="#text"), Target(css="#area"), Target(label="Field")


def found_late(_request: site.Request) -> site.Answer:
    time.sleep(0.5)
    return site.Answer("<!doctype html><title>Found</title>")


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with a page that logs what is done on it."""
    with site.serve() as served:
        served.page("/hands", PAGE)
        served.page("/search", "<!doctype html><form action=/found><input aria-label=Word></form>")
        served.answer("/found", found_late)
        yield served


@pytest.fixture(scope="module", params=["own", "shared"])
async def driven(
    request: pytest.FixtureRequest, served: site.Site, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Session]:
    """One session of each mode for all tests here."""
    mode: Mode = request.param
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin, mode=mode) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session, served: site.Site) -> Tab:
    """The session's tab with the page loaded anew, the mouse over none of its elements, and ten seconds for each test."""
    driven.bound(10)
    await driven.page.page.mouse.move(0, 0)
    await driven.page.goto(f"{served.origin}/hands")
    return driven.page


async def logged(tab: Tab) -> Any:
    """What the page logged since the last call."""
    return await tab.page.evaluate("logged.splice(0)")


async def test_a_click_has_a_button_a_place_keys_a_count_and_a_time(tab: Tab) -> None:
    """The page hears the button, the place in pixels or percent, the modifier, each click of a count, and a held button."""
    await tab.click(BUTTON, Stroke(at=Spot(x=5, y="50%"), button="right", modifiers=("Shift",)))
    assert await logged(tab) == ["contextmenu 2 0 5,10 Shift", "struck", "auxclick 2 1 5,10 Shift"]
    await tab.click(BUTTON, Stroke(count=3))
    assert [each.strip() for each in await logged(tab) if "struck" not in each] == [
        "click 0 1 50,10",
        "click 0 2 50,10",
        "dblclick 0 2 50,10",
        "click 0 3 50,10",
    ]
    await tab.click(BUTTON, Stroke(hold=0.5))
    assert (await logged(tab))[0] == "held"
    await tab.dblclick(BUTTON, Stroke(at=Spot(x=1, y=1)))
    assert "dblclick 0 2 1,1 " in await logged(tab)


async def test_the_mouse_and_the_keys_with_it_stay_for_a_time(tab: Tab) -> None:
    """The page sees the mouse come with the keys down, and hears of their release only when the time is over."""
    await tab.page.evaluate(
        """() => {
  let came = 0;
  b.onmouseenter = (event) => { came = performance.now(); log('came', event.shiftKey, event.altKey); };
  addEventListener('keyup', (event) => log('up', event.key, performance.now() - came > 300));
}"""
    )
    await tab.hover(BUTTON, Stroke(modifiers=("Shift", "Alt"), hold=0.4))
    assert await logged(tab) == ["came true true", "up Alt true", "up Shift true"]


async def test_the_pressed_mouse_follows_a_path(tab: Tab) -> None:
    """A line is drawn from its first place through the others, inside a border; an element is dragged by a distance, or along places."""
    await tab.move_pressed(CANVAS, Way(Spot(x=0, y=0), (Spot(x="50%", y=99), Spot(x=199, y="10%")), steps=4))
    assert await logged(tab) == ["drew 9 0,0 199,10"]
    await tab.move_pressed(BOX, Way(by=(40, -30)))
    assert await logged(tab) == ["moved to 340,270"]
    await tab.page.evaluate("box.style.transform = 'scale(0.5)'")
    await tab.move_pressed(BOX, Way(by=(-40, 30)))
    assert await logged(tab) == ["moved to 300,300"]
    await tab.page.evaluate("box.style.transform = ''")
    await tab.move_pressed(BOX, Way(by=(40, -30)))
    await logged(tab)
    await tab.move_pressed(BOX, Way(Spot(x=1, y=1), (Spot(x=100, y=1), Spot(x=101, y=31))))
    assert await logged(tab) == ["moved to 440,300"]


async def test_an_element_is_dropped_where_another_one_lies(tab: Tab) -> None:
    """A place that is covered by something else can be dropped on, at a place in it, as a person does."""
    await tab.page.evaluate(
        "zone.insertAdjacentHTML('afterend', '<div style=\"position:absolute;left:500px;top:300px;width:100px;height:100px\"></div>')"
    )
    await tab.drag(BOX, ZONE, Spot(x=10, y=10), Spot(x="50%", y=20))
    assert await logged(tab) == ["moved to 540,310"]


async def test_the_place_of_an_element_is_read(tab: Tab) -> None:
    """`box` gives the inside of an element in the window, so that places in one element are counted from another one."""
    x, y, width, height = await tab.box(CANVAS)
    assert (width, height) == (200, 100)
    assert await tab.box(ZONE) == (500, 300, 100, 100)
    await tab.click(Target(css="html"), Stroke(at=Spot(x=x + 7, y=y + 9)))
    await tab.move_pressed(Target(css="html"), Way(Spot(x=x + 3, y=y + 4), (Spot(x=x + 13, y=y + 14),)))
    assert (await logged(tab))[-1].endswith("3,4 13,14")


async def test_files_are_dropped_on_an_element(tab: Tab, tmp_path: Path) -> None:
    """Files from the disk arrive with their names and sizes, as from another window."""
    files = [tmp_path / "one.txt", tmp_path / "zwei ü.csv"]
    for number, file in enumerate(files, 1):
        file.write_text("x" * number)
    await tab.drop(ZONE, None, files)
    assert await logged(tab) == ["files one.txt:1 zwei ü.csv:2"]


async def test_the_wheel_turns_over_an_element(tab: Tab) -> None:
    """A page that listens to the wheel hears its distance and the keys held meanwhile; without an element the page scrolls."""
    await tab.wheel(MAP, (0, -120), Stroke(modifiers=("Control",)))
    assert await logged(tab) == ["wheel 0 -120 true"]


async def test_keys_are_pressed_one_after_the_other(tab: Tab) -> None:
    """Each key of a list is pressed in order, where the focus then is."""
    await tab.fill(FIELD, "abc")
    await tab.press(["Home", "Delete"] * 2, FIELD)
    assert await tab.value(FIELD) == "c"
    assert await logged(tab) == ["key Home", "key Delete", "key Home", "key Delete"]


SEARCH = """{id: word, type: browser_action, action: press, key: [a, Enter], target: {label: Word}}
{id: address, type: browser_query, query: url}"""


async def test_the_document_that_a_later_key_requests_is_waited_for(served: site.Site, tmp_path: Path) -> None:
    """After several keys in a field the next step is on the page to which the last one led."""
    ended = await flows.ran(tmp_path, f"{served.origin}/search", SEARCH, "address")
    assert ended.output == f"{served.origin}/found?"


async def test_a_drag_that_breaks_off_was_begun(tab: Tab) -> None:
    """Once the mouse is down, what goes wrong goes wrong after the action, and names the element on which was to be dropped."""
    await tab.page.evaluate("box.addEventListener('mousedown', () => zone.after(zone.cloneNode(true)))")
    with pytest.raises(SiteError) as failed:
        await tab.drag(BOX, ZONE)
    assert (failed.value.code, failed.value.phase) == ("target-ambiguous", "after")
    assert "#zone" in failed.value.message


@pytest.mark.parametrize(
    ("target", "wanted", "selected"),
    [
        (TEXT, ("brown fox jumps", None, None), "brown fox jumps"),
        (TEXT, (None, "over", None), "over the lazy dog."),
        (TEXT, (None, None, None), "The quick brown fox jumps over the lazy dog."),
        (Target(css="body"), (None, "lazy", "Second"), "lazy dog.\n\nSecond"),
        (AREA, (None, "two", "three"), "two three"),
        (AREA, (None, "two", "two"), "two three two"),
        (Target(css="#framed", frame="inner"), ("in a", None, None), "in a"),
    ],
    ids=str,
)
async def test_text_is_selected_and_copied(
    target: Target, wanted: tuple[str | None, str | None, str | None], selected: str, tab: Tab
) -> None:
    """Text is found as a person reads it, over elements and lines, in fields and frames; `copy` gives what is selected."""
    assert await tab.select_text(target, *wanted) == selected
    assert await tab.copy(None) == selected


async def test_an_editor_has_seen_the_selection(tab: Tab) -> None:
    """After a selection in an editor its buttons work on what is selected, though the editor looks at that a moment later."""
    for text in ("words", "to set"):
        assert await tab.select_text(Target(css="#editor"), text, None, None) == text
        assert await tab.page.evaluate("picked") == text
        await tab.click(Target(css="#strong"))
        assert await tab.text(Target(css="#set")) == f"<{text}>"


CARDS = """<p id=card onclick="log('clicked')">Order <a href="#gone">4711</a> of <b onmousedown="this.replaceWith('her')">Ada</b></p>
<details><summary id=more>More of it</summary>Much</details><label id=gift>Gift <input type=checkbox></label>
<button id=key onclick="log('key clicked')">Key</button>"""


async def test_selected_text_is_not_clicked(tab: Tab) -> None:
    """A card, a link, a summary and a label are not clicked by the mouse that selects their text; a later click or key is heard, once."""
    await tab.page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", CARDS)
    for target, text in (
        ("#card", "Order"),
        ("#card", "4711"),
        ("#card", "4711 of"),
        ("#more", "of"),
        ("#gift", "Gift"),
    ):
        assert await tab.select_text(Target(css=target), text, None, None) == text
    assert await logged(tab) == []
    assert await tab.page.evaluate("[document.querySelector(':checked, [open]'), location.hash]") == [None, ""]
    await tab.select_text(Target(css="#card"), "Ada", None, None)  # what is pressed is gone when the mouse is released
    for _again in range(2):
        await tab.click(Target(css="#card"), Stroke(at=Spot(x=2, y=2)))
    await tab.select_text(Target(css="#card"), "her", None, None)
    await tab.press(["Enter"], Target(css="#key"))
    assert await logged(tab) == ["clicked", "clicked", "key clicked"]


FIELDS = """<label for=mail>Mail</label><input id=mail type=email value="ada@x.test"><label id=alone>Alone here</label>
<input id=box2 type=checkbox><input id=day type=date value=2026-01-02><input id=years type=number value=36>"""


async def test_a_field_that_has_no_parts_is_selected_as_a_whole(tab: Tab) -> None:
    """An e-mail field is selected and copied whole, a part of it is refused with the fix; a label without a field is a text."""
    await tab.page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", FIELDS)
    for css, text in (
        ("#mail", "ada@x.test"),
        ("label[for=mail]", "ada@x.test"),
        ("#years", "36"),
        ("#alone", "Alone here"),
    ):
        assert await tab.select_text(Target(css=css), None, None, None) == text
        assert await tab.copy(None) == text
        assert await tab.copy(Target(css=css)) == text
    assert await tab.select_text(Target(css="#alone"), "here", None, None) == "here"
    for css, part, fix in (
        ("#mail", "ada", "leave `text` and `from` out"),
        ("#box2", None, "shows text"),
        ("#day", None, "`query: value`"),
    ):
        with pytest.raises(SiteError) as caught:
            await tab.select_text(Target(css=css), part, None, None)
        assert caught.value.code == "text-not-found"
        assert fix in str(caught.value.fix)


async def test_a_text_that_is_not_there_is_not_selected(tab: Tab) -> None:
    """The error has what the element says; nothing selected is nothing to copy."""
    with pytest.raises(SiteError) as caught:
        await tab.select_text(TEXT, "sleeping", None, None)
    assert caught.value.code == "text-not-found"
    assert "lazy dog" in str(caught.value.evidence)
    with pytest.raises(SiteError) as caught:
        await tab.copy(None)
    assert caught.value.code == "nothing-selected"


async def test_a_text_is_pasted_and_the_page_hears_of_it(tab: Tab) -> None:
    """What is pasted stands in place of what was selected; a page's own copy is taken; a secret is put in without a word to the page."""
    assert await tab.copy(Target(css="#two")) == "with a source"
    await tab.fill(FIELD, "old text")
    await tab.select_text(FIELD, "old", None, None)
    await logged(tab)
    await tab.paste(None, "new")
    assert await tab.value(FIELD) == "new text"
    assert await logged(tab) == ["pasted new"]
    await tab.paste(AREA, "hunter22", secret=True)
    assert "hunter22" in await tab.value(AREA)
    assert await tab.select_text(AREA, "one", None, None) == "one"


def test_a_place_is_told_in_pixels_or_percent() -> None:
    """Percentages are of the element's size; anything else is refused."""
    assert Spot(x="50%", y=3).within(200, 100) == (100, 3)
    assert Distance(y=-2).y == -2
    assert Spot(x="12.5", y="-3").within(200, 100) == (12.5, -3)
    with pytest.raises(ValueError, match="a percentage"):
        Spot(x="half", y=0)
