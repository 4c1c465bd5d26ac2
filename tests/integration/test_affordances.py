"""What has no role and no name is seen: what can be dragged, dropped on, drawn on, scrolled and pressed has a ref, and a name or a guess."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

import pytest

from runtime.browser.elements import targets
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.observation.observation import Observation
from tests import browsers, site
from tests.observed import drawn


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with the pages."""
    with site.serve() as served:
        for name, page in drawn.PAGES.items():
            served.page(f"/{name}", page)
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """The session's tab, with half a minute for each test."""
    driven.bound(30)
    return driven.page


async def lines(tab: Tab, seen: Observation) -> dict[str, str]:
    """The line of each element with a ref, by what the page states about the element; elements of which it states nothing are left out."""
    found: dict[str, str] = {}
    for line in seen.render(100_000).split("\n"):
        if "[ref=" in line:
            stated = await (await tab.by_ref(line.partition("[ref=")[2].partition("]")[0])).get_attribute("data-can")
            if stated is not None:
                assert stated not in found
                found[stated] = line.strip()
    return found


def fits(stated: str, line: str) -> bool:
    """Tells whether a line shows an element as the page states it."""
    role, _, words = stated.partition("|")
    if not line.startswith(role) if role[0] != "(" else line.count(role) != 1:
        return False
    if not words.strip():
        return '"' not in line and (" (unnamed) [ref=" in line or "(scrollable" in line)
    if words[0] == "?":
        return f' (unnamed) guessed "{words[1:]}"' in line
    return f'"{words}"' in line and "guessed" not in line


@pytest.mark.parametrize("name", drawn.PAGES)
async def test_what_a_person_can_use_is_shown(name: str, tab: Tab, served: site.Site) -> None:
    """Each element that a person can use has a line with a ref that leads to it, with what it is, and its name or a guess that is marked as such."""
    await tab.goto(f"{served.origin}/{name}")
    stated = await tab.page.locator("[data-can]").evaluate_all("all => all.map(each => each.getAttribute('data-can'))")
    found = await lines(tab, await tab.look())
    assert sorted(found) == sorted(stated)
    assert [(each, line) for each, line in found.items() if not fits(each, line)] == []


async def test_a_guess_becomes_css_and_no_name(tab: Tab, served: site.Site) -> None:
    """A target of an element that is known by a guess finds it by its icon or its tooltip in CSS, and uses neither glyphs nor the guess as a name."""
    await tab.goto(f"{served.origin}/toolbar")
    seen = await tab.look()
    found: dict[str, str] = {}
    for stated, line in (await lines(tab, seen)).items():
        if "guessed" in line:
            element = seen.element(line.partition("[ref=")[2].partition("]")[0])
            assert element.name == ""
            async with tab.pointed(element.ref) as pointed:
                target = await targets.target_of(pointed, element.role, element.name, lambda _text: True)
                assert await pointed.places(target) == (1, 0)
            found[stated.partition("?")[2]] = target.css or repr(target)
    assert found == {
        "trash": "button:has(.fa-trash-o)",
        "print": "button:has(.fa-print)",
        "pencil square": "button:has(.bi-pencil-square)",
        "menu open": 'button:has(:text-is("menu_open"))',
        "search": 'button:has(:text-is("search"))',
        "plus": "button.icon-plus",
        "zoom in": 'button:has(use[href$="#icon-zoom-in"])',
        "undo": 'button:has(img[src$="undo.svg"])',
        "Align left": 'button[data-tooltip="Align left"]',
        "Bold": 'button[data-bs-original-title="Bold"]',
        "Cut": 'button[aria-description="Cut"]',
        "Underline": 'button[aria-description="Underline"]',
        "copy": "div:has(.codicon-copy)",
        "Paste": 'div[data-title="Paste"]',
        "arrow down": 'button:has([data-icon="arrow-down"])',
        "question circle": "a:has(.bi-question-circle-fill)",
    }


HEADS = """<!doctype html><title>Heads</title><style>.lsf-handle { cursor: col-resize; display: inline-block; width: 9px; height: 9px } .wide-knob { cursor: move; width: 9px; height: 9px }</style>""" + "".join(
    f"""<div class=lsf-row><span class=lsf-head draggable=true>{head}<span class=lsf-handle draggable=true></span></span>
<span class=lsf-cell>{head} 1</span><button class=lsf-button><span class=lsf-icon><svg width=9 height=9></svg></span></button>
<button><i class=trash-icon></i></button></div>"""
    for head in ("ID", "Name", "State", "Owner")
) + "<div class=wide-knob></div>" + "<p class=lsf-text>x</p>" * 9  # fmt: skip


async def test_a_class_of_many_elements_is_no_guess(tab: Tab, served: site.Site) -> None:
    """A class that begins as those of the whole page, or that three elements have, is no guess; a handle in a heading that is dragged has no line."""
    served.page("/heads", HEADS)
    await tab.goto(f"{served.origin}/heads")
    shown = (await tab.look()).render(100_000)
    assert "lsf" not in shown
    assert shown.count("draggable") == 5
    assert shown.count('button (unnamed) guessed "trash"') == 4
    assert 'draggable (unnamed) guessed "wide knob"' in shown


async def test_what_is_out_of_view_follows_the_scrolling(tab: Tab, served: site.Site) -> None:
    """A part that scrolls says how far in each direction, its ref leads to it, and scrolling it is a change of the page."""
    await tab.goto(f"{served.origin}/scrolled")
    before = await tab.look()
    line = next(each for each in before.render(100_000).split("\n") if each.startswith('scrollable "All rooms" ('))
    (ref,) = re.findall(r"\[ref=(\w+)\]", line)
    await (await tab.by_ref(ref)).evaluate("element => element.scrollTo(0, 100)")
    after = await tab.look()
    assert re.search(r'"All rooms" \(100 px above, \d+0 px below\)', after.render(100_000))
    assert "(100 px above" in after.since(before)


async def test_a_drawing_is_no_change_and_its_size_is_told(tab: Tab, served: site.Site) -> None:
    """Canvases are told with the size that a place in them is measured by; hidden ones are not, and a second look finds nothing changed."""
    await tab.goto(f"{served.origin}/canvas")
    seen = await tab.look()
    text = seen.render()
    assert 'canvas (unnamed) beside "Ground floor" 400x300 [ref=' in text
    assert 'canvas "Sum" 200x100 [ref=' in text
    assert "90x90" not in text
    assert (await tab.look()).since(seen) == "nothing changed"
