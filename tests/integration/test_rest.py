"""A page is looked at when it rests, and says so if it never does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.observation import observation
from tests import browsers, flows, site

pytestmark = [pytest.mark.full_browser, pytest.mark.anyio, pytest.mark.drawn(share=0.5, of="rest")]

LATE = """<!doctype html><title>Late</title><main id=main>Loading</main><button id=again>Again</button>
<script>
const draw = () => {
  let left = 5;
  main.textContent = 'Loading';
  const step = () => {
    main.insertAdjacentHTML('beforeend', `<button>Part ${left}</button>`);
    if (--left) setTimeout(step, 90);
    else main.insertAdjacentHTML('beforeend', '<button>Whole</button>');
  };
  setTimeout(step, 90);
};
again.onclick = draw;
draw();
</script>"""

PAYS = """<!doctype html><title>Pay</title><button id=pay>Pay</button>
<script>
pay.onclick = () => {
  navigator.sendBeacon('/paid');
  setTimeout(() => { for (const begun = performance.now(); performance.now() - begun < 4000;); }, 50);
};
</script>"""

ASKS = """<!doctype html><title>Delete</title><button onclick="document.title = confirm('Sure?') ? 'Deleted' : 'Kept'">Delete</button>"""

NEVER = """<!doctype html><title>Never</title><p id=clock></p><script>setInterval(() => { clock.textContent = performance.now(); }, 30);</script>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with a page that draws itself in parts, and one that never rests."""
    with site.serve() as served:
        served.page("/late", LATE)
        served.page("/never", NEVER)
        served.page("/pays", PAYS)
        served.page("/asks", ASKS)
        served.page("/paid", "")
        served.page(
            "/leaves",
            "<!doctype html><p>Leaving</p><script>setTimeout(() => { location.href = '/late'; }, 20);</script>",
        )
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin, mode="shared") as browser:
        yield browser


@pytest.fixture
def tab(driven: Session) -> Any:
    """The session's tab, with ten seconds for each test."""
    driven.bound(10)
    return driven.page


@pytest.mark.parametrize("path", ["/late", "/leaves"])
async def test_a_page_is_looked_at_when_it_rests(path: str, tab: Tab, served: site.Site) -> None:
    """A look waits for what is drawn in parts, and for the document to which a page leads; a page that rests is not waited for."""
    await tab.page.goto(f"{served.origin}{path}", wait_until="commit")
    if path == "/leaves":
        await tab.page.wait_for_url("**/late", wait_until="commit")
    seen = (await tab.look()).render()
    assert 'button "Whole"' in seen
    assert observation.RESTLESS not in seen
    assert await tab.rest(0)


async def test_an_action_may_wait_until_the_page_rests(tab: Tab, served: site.Site) -> None:
    """After `rest` the page has drawn what the action began."""
    await tab.goto(f"{served.origin}/late")
    assert await tab.rest()
    await tab.click(Target(css="#again"))
    assert not await tab.rest(0)
    assert await tab.rest()
    assert await tab.count(Target(role="button", name="Whole")) == 1


async def test_a_page_that_never_rests_says_so(tab: Tab, served: site.Site) -> None:
    """The wait is bounded, and the observation names the reason to doubt it."""
    await tab.goto(f"{served.origin}/never")
    assert not await tab.rest(0.3)
    seen = await tab.look(settle=0.3)
    assert observation.RESTLESS in seen.render()
    assert observation.RESTLESS in seen.masked(str).render()
    assert observation.RESTLESS not in (await tab.look(settle=0)).render()


PAY = "{id: pay, type: browser_action, action: click, target: {css: button}, rest: true, timeout: 2, retry: {attempts: 2, delay: 2}}"

DELETE = """{id: delete, type: browser_action, action: click, target: {css: button}, rest: true}
{id: sure, type: browser_action, action: dialog, answer: accept}
{id: said, type: browser_query, query: title}"""


async def test_an_action_whose_page_does_not_come_to_rest_is_not_repeated(served: site.Site, tmp_path: Path) -> None:
    """What fails while `rest` waits fails after the action: no attempt does it again."""
    served.requests.clear()
    ended = await flows.ran(tmp_path, f"{served.origin}/pays", PAY)
    assert (ended.status, ended.path) == ("paused", "pay"), ended.error
    assert len(served.arrived("/paid")) == 1


async def test_an_action_that_opens_a_dialog_does_not_rest(served: site.Site, tmp_path: Path) -> None:
    """With `rest` an action that opens a dialog passes, and the next step answers."""
    ended = await flows.ran(tmp_path, f"{served.origin}/asks", DELETE, "said")
    assert (ended.status, ended.output) == ("passed", "Deleted"), ended.error
