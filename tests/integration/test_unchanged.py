"""Actions that changed nothing on the page are known, and only those of which that is sure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.pointer import Stroke
from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.35, of="unchanged")

PAGE = """<!doctype html><title>Page</title><style>button { margin: 4px } #tall { height: 20px }</style>
<p id=text>Some words to click</p><input id=field value=abc><input id=other><select id=choice><option>1<option>2</select>
<button id=dead>Dead</button><button id=listens>Listens</button><a id=here href="#">Here</a>
<button id=writes>Writes</button><button id=late>Late</button><button id=empties>Empties</button><button id=asks>Asks</button>
<button id=moves>Moves</button><button id=focuses>Focuses</button><div id=panel tabindex=-1>Panel</div>
<button id=beacon>Beacon</button><button id=address>Address</button><button id=alerts>Alerts</button>
<button id=opens popovertarget=pop>Opens</button><div id=pop popover>Popped</div>
<div id=box style="width: 80px; height: 20px; overflow: auto"><div style="height: 200px">Tall</div></div>
<script>
const on = (id, act) => { document.getElementById(id).onclick = act; };
on('listens', () => { window.clicks = (window.clicks || 0) + 1; });
on('writes', () => { text.textContent += '.'; });
on('late', () => setTimeout(() => { text.textContent += '!'; }, 150));
on('empties', () => { field.value = ''; });
on('moves', () => { text.animate([{transform: 'none'}, {transform: 'translateX(9px)'}], 500); });
on('focuses', () => { panel.focus(); });
on('asks', () => { fetch('/other'); });
on('beacon', () => { navigator.sendBeacon('/other', 'x'); });
on('address', () => { history.pushState({}, '', '?page=2'); });
on('alerts', () => { alert('Hi'); });
</script>"""

DEAD = "<!doctype html><title>Other</title><p>Other</p><button id=dead>Dead</button>"

UNSEEN = {
    "canvas": "<canvas></canvas>",
    "frame": "<iframe srcdoc='<p>Inside</p>'></iframe>",
    "shadow": "<div><template shadowrootmode=open><p>Inside</p></template></div>",
    "element": "<x-panel></x-panel>",
    "hover": "<style>div:hover > ul { display: block } ul { display: none }</style><div><button id=dead>Dead</button><ul><li>Menu</ul></div>",
    "focus": "<style>div:focus-within p { opacity: 1 } p { opacity: 0 }</style><div><button id=dead>Dead</button><p>Menu</p></div>",
    "hint": "<style>#dead:hover::after { content: 'Hint' }</style><button id=dead>Dead</button>",
    "clock": "<p id=now></p><script>setInterval(() => { now.textContent = performance.now(); }, 20);</script><button id=dead>Dead</button>",
    "socket": "<script>new WebSocket(location.href.replace('http', 'ws'));</script><button id=dead>Dead</button>",
}


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves the pages."""
    with site.serve() as served:
        served.page("/", PAGE)
        served.page("/other", DEAD)
        for name, body in UNSEEN.items():
            button = "" if "dead" in body else "<button id=dead>Dead</button>"
            served.page(f"/{name}", f"<!doctype html><title>{name}</title>{body}{button}")
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session, served: site.Site) -> AsyncIterator[Tab]:
    """A tab on the page."""
    driven.bound(10)
    async with driven.fresh_page() as fresh:
        await fresh.goto(f"{served.origin}/")
        yield fresh


@pytest.mark.parametrize("name", ["dead", "listens", "text"])
async def test_a_click_that_changes_nothing(tab: Tab, name: str) -> None:
    """A click on what does nothing that can be seen is known, each time anew; it is asked once."""
    for _time in range(2):
        await tab.click(Target(css=f"#{name}"))
        assert await tab.unchanged()
        assert not await tab.unchanged()


@pytest.mark.parametrize(
    "name",
    ["writes", "late", "moves", "focuses", "empties", "asks", "beacon", "address", "opens", "field", "here", "choice"],
)
async def test_a_click_that_changes_something(tab: Tab, name: str) -> None:
    """Elements, values, requests, addresses, animations, the focus of a field or by a script, and what lies over the page are changes, also a moment later."""
    await tab.click(Target(css=f"#{name}"))
    assert not await tab.unchanged()


async def test_a_dialog_is_a_change(tab: Tab) -> None:
    """A click that opens a dialog has changed something, before the dialog is answered and after."""
    await tab.click(Target(css="#alerts"))
    assert not await tab.unchanged()
    await tab.answer(accept=True, text=None)
    assert not await tab.unchanged()


async def test_keys(tab: Tab) -> None:
    """A key that nothing listens to changes nothing; what it writes, and the caret, the focus and the place that it moves, are changes."""
    await tab.press(["F7"], None)
    assert await tab.unchanged()
    for keys in (["x"], ["ArrowLeft"], ["Tab"]):
        await tab.press(keys, Target(css="#field"))
        assert not await tab.unchanged()
    await tab.click(Target(css="#text"), Stroke(count=2))
    assert not await tab.unchanged()


async def test_other_pointers(tab: Tab) -> None:
    """A drag that nothing listens to changes nothing, and one that selects text does."""
    await tab.drag(Target(css="#dead"), Target(css="#listens"))
    assert await tab.unchanged()
    await tab.drag(Target(css="#text"), Target(css="#here"))
    assert not await tab.unchanged()


@pytest.mark.parametrize("name", UNSEEN)
async def test_what_cannot_be_seen_is_not_judged(tab: Tab, served: site.Site, name: str) -> None:
    """A page with parts whose changes are not seen here, or that a style sheet shows by itself, is never said to be unchanged."""
    await tab.goto(f"{served.origin}/{name}")
    await tab.click(Target(css="#dead"))
    assert not await tab.unchanged()


async def test_another_document_is_a_change(tab: Tab, served: site.Site) -> None:
    """What was remembered of one document says nothing about the next one, and actions without a promise of a change are not judged."""
    await tab.click(Target(css="#dead"))
    await tab.goto(f"{served.origin}/other")
    assert not await tab.unchanged()
    await tab.hover(Target(css="#dead"))
    assert not await tab.unchanged()
