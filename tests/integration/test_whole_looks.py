"""A look that begins while the page changes is of one document, whole."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.observation.observation import RESTLESS
from tests import breadth, browsers, site

pytestmark = [pytest.mark.full_browser, pytest.mark.anyio, pytest.mark.drawn(share=0.4, of="whole looks")]

LOOKS = breadth.of(5, 50)
STEP = 0.15 / LOOKS  # seconds between the moments at which two looks begin
PARTS = 50

HEAD = "<!doctype html><title>KIND</title><script src=/slow.js></script><h1>KIND</h1><main></main>"
"""A document that waits for a script, and then has only a heading."""

BUILT = """<script>
// It draws itself, then again what it has fetched, and at last replaces all of it, as an application does that is started anew.
const draw = (kind, count) => {
  document.querySelector('main').innerHTML = Array.from({length: count}, (_each, n) => `<p><button data-kind=${kind}>KIND part ${n}</button> <label>KIND field ${n} <input value=${n}></label></p>`).join('');
};
draw('first', 3);
// Its sign of waiting keeps the page from resting, however slow the machine is.
const waits = setInterval(() => { document.querySelector('main').dataset.waits = performance.now(); }, 20);
fetch('/slow.json').then((answer) => answer.json()).then((parts) => { draw('second', parts); setTimeout(() => { clearInterval(waits); draw('last', parts); }, 40); });
</script>"""

CHURN = """<!doctype html><title>Churn</title><main></main><script>
let count = 0;
const draw = () => { count += 1; document.querySelector('main').innerHTML = Array.from({length: 300}, (_each, n) => `<button>${count} of ${n}</button>`).join(''); };
draw();
globalThis.later = () => { let left = 12; const step = () => { draw(); if (--left) setTimeout(step, 12); }; setTimeout(step, 0); };
</script>"""


def late(body: str, kind: str, seconds: float) -> site.Handler:
    """An answer that takes a while."""

    def answer(_request: site.Request) -> site.Answer:
        time.sleep(seconds)
        return site.Answer(body, headers={"content-type": kind})

    return answer


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site of two pages that take their time to draw themselves, and one that draws itself anew all the time."""
    with site.serve() as served:
        served.answer("/slow.js", late("globalThis.loaded = true;", "text/javascript", 0.05))
        served.answer("/slow.json", late(str(PARTS), "application/json", 0.05))
        for kind in ("Alpha", "Beta"):
            served.answer(f"/{kind}", late((HEAD + BUILT).replace("KIND", kind), "text/html; charset=utf-8", 0.04))
        served.page("/churn", CHURN)
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin, mode="shared") as browser:
        yield browser


@pytest.fixture
def tab(driven: Session) -> Any:
    """The session's tab."""
    driven.bound(120)
    return driven.page


async def test_a_look_begun_during_a_navigation_is_whole(tab: Tab, served: site.Site) -> None:
    """Of all looks, each begun at another moment of a navigation, all are of one document, with title, address, names and refs of all its parts."""
    await tab.goto(f"{served.origin}/Alpha")
    await tab.look()
    kinds = ["Alpha", "Beta"]
    wrong: list[str] = []
    for number in range(LOOKS):
        kinds.reverse()
        await tab.page.evaluate("(address) => { setTimeout(() => { location.href = address; }, 5); }", f"/{kinds[0]}")
        await asyncio.sleep(number * STEP)
        view = await tab.look()
        seen = view.render(50_000)
        kind = "Alpha" if "Alpha" in view.title else "Beta"
        buttons = set(re.findall(r'button "(\w+ part \d+)" \[ref=\w+\]', seen))
        fields = set(re.findall(r'textbox "(\w+ field \d+)" \[ref=\w+\] = "\d+"', seen))
        whole = (
            buttons == {f"{kind} part {n}" for n in range(PARTS)}
            and fields == {f"{kind} field {n}" for n in range(PARTS)}
            and seen.count("[ref=") == 2 * PARTS
            and f'heading "{kind}" 1' in seen
            and view.url == f"{served.origin}/{kind}"
            and RESTLESS not in seen
        )
        if not whole:
            wrong.append(f"look {number} of {kinds[0]}: {seen}")
        await tab.page.wait_for_url(f"**/{kinds[0]}")
        await tab.page.wait_for_selector("[data-kind=last]")
    assert wrong == []


async def test_a_look_is_taken_again_when_elements_vanish_meanwhile(
    tab: Tab, served: site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the page draws itself anew between the snapshot and the facts, each ref of the look still finds the element of that name."""
    await tab.goto(f"{served.origin}/churn")
    await tab.look()
    bare, changes = tab.page.aria_snapshot, 2

    async def changed(**options: Any) -> str:
        nonlocal changes
        snapshot = await bare(**options)
        if changes:
            changes -= 1
            await tab.page.evaluate("draw()")
        return snapshot

    monkeypatch.setattr(tab.page, "aria_snapshot", changed)
    view = await tab.look()
    assert changes == 0
    assert RESTLESS not in view.render()
    buttons = [each for each in map(view.element, view.refs) if each.role == "button"]
    assert len(buttons) == len(view.refs) == 300
    for each in (buttons[0], buttons[150], buttons[-1]):
        assert await (await tab.by_ref(each.ref)).text_content() == each.name


async def test_a_page_that_draws_itself_anew_all_the_time_is_looked_at(tab: Tab, served: site.Site) -> None:
    """A page that never rests is shown as it is after the wait, with the doubt, and not looked at without end."""
    await tab.goto(f"{served.origin}/churn")
    await tab.page.evaluate("setInterval(draw, 15)")
    began = time.monotonic()
    view = await tab.look(settle=0.4)
    assert time.monotonic() - began < 10
    assert RESTLESS in view.render()
    assert re.search(r'button "\d+ of 0" \[ref=', view.render(50_000))
