"""Elements that an agent points at on real pages get proved targets, and the effects of its actions are waited for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from nodes.errors import SiteError
from nodes.targets import Target
from runtime.browser.elements import locators, targets
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.5, of="agent pages")

ROWS = "".join(
    f"<tr><td>10{number}</td><td>Ada</td><td><a href=/order>Open</a> <button>Pay</button></td></tr>"
    for number in range(3)
)
PAGE = f"""<!doctype html><title>Page</title><button>Pay now</button><button>Pay</button><table>{ROWS}</table>
<ul><li>Tea <button>Buy</button></li><li>Coffee <button>Buy</button></li></ul>
<label>Name <input></label><label>Name of the firm <input></label><input placeholder=Search><input id=quiet>
<label><input type=checkbox> Gift</label><select><option>a</select>
<div onclick="1" style="cursor: pointer">More</div><button><img alt=Cart></button>
<button>Same</button><button>Same</button>
<iframe name=inside src=/inside></iframe>"""
INSIDE = "<button>Pay</button><label>Card <input></label><iframe src=/deep></iframe>"
DEEP = "<button>Pay</button><button>Deep</button>"
GHOSTS = """<!doctype html><title>Ghosts</title><style>
td::before {content: attr(data-label) ": "; opacity: 0}
.tip::after {content: "More about it"; position: absolute; left: -9999px}
.seen::before {content: "New "}
button:after, i:before {content: 'Spinner'; font-size: 0}
p.x:before {content: "Zero"; position: absolute; width: 0; height: 0; overflow: hidden}
@media (max-width: 100px) { h1::before {content: "Small"} }
</style><h1>Title</h1><table><tr><td data-label=Name>Ada</td><td data-label=State>open <a href=/x class=tip>Help</a></td></tr></table>
<b class=seen>thing</b><button>Save</button><p class=x>Plain</p>"""
SLOW = """<!doctype html><title>Slow</title><button onclick="fetch('/answer').then((a) => a.text()).then((t) => { said.textContent = t; })">Ask</button><p id=said></p>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves the pages."""
    with site.serve() as served:
        served.page("/", PAGE)
        served.page("/inside", INSIDE)
        served.page("/deep", DEEP)
        served.page("/slow", SLOW)
        served.page("/ghosts", GHOSTS)

        def answer(_request: site.Request) -> site.Answer:
            time.sleep(0.5)  # what the page waits for
            return site.Answer("Answered")

        served.answer("/answer", answer)
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("browser"), served.origin, seconds=20) as session:
        yield session


async def target_at(tab: Tab, ref: str) -> Target:
    """The target of the element with this ref in the last observation."""
    element = (await tab.look()).element(ref)
    async with tab.pointed(ref) as pointed:
        return await targets.target_of(pointed, element.role, element.name, lambda _text: True)


async def test_each_element_has_a_unique_target(driven: Session, served: site.Site) -> None:
    """Elements in rows, lists and nested frames, named or not, each get a target that leads to exactly that element."""
    tab = driven.page
    await tab.goto(f"{served.origin}/")
    view = await tab.look()
    found: dict[str, str] = {}
    for ref in view.refs:
        target = await target_at(tab, ref)
        meant = await (await tab.by_ref(ref)).element_handle()
        (led_to,) = await locators.locator(tab.page, target).element_handles()
        assert await led_to.evaluate("(one, other) => one === other", meant), target
        found[str(target)] = ref
    assert len(found) == len(view.refs) >= 20
    wanted = [
        'role=button name="Pay now"',
        'role=button name="Pay" within role=row has_text="101"',
        'role=link name="Open" within role=row has_text="102"',
        'role=button name="Buy" within role=listitem has_text="Coffee"',
        'label="Name" exact=true',
        'label="Gift"',
        'role=button name="Deep" frame=inside > **/deep',
        'role=button name="Same" nth=1',
    ]
    assert [each for each in wanted if each not in found] == []


async def test_a_missing_ref_is_refused(driven: Session, served: site.Site) -> None:
    """An unknown ref, an invalid one, and one of a left page give `ref-gone`."""
    tab = driven.page
    await tab.goto(f"{served.origin}/")
    ref = (await tab.look()).refs[0]
    await tab.goto(f"{served.origin}/slow")
    await tab.look()
    for gone in ("e999", "a b", ref):
        with pytest.raises(SiteError) as raised:
            async with tab.pointed(gone):
                pass
        assert raised.value.code == "ref-gone"


async def test_a_page_that_changes_during_an_observation_is_observed_again(
    driven: Session, served: site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An observation shows one document, not a mixture with the next one."""
    tab = driven.page
    await tab.goto(f"{served.origin}/")
    taken, looks = tab.page.aria_snapshot, []

    async def snapshot(**options: Any) -> str:
        seen = await taken(**options)
        looks.append(seen)
        if len(looks) == 1:
            await tab.page.goto(f"{served.origin}/slow")
        return seen

    monkeypatch.setattr(tab.page, "aria_snapshot", snapshot)
    view = (await tab.look()).render()
    assert 'button "Ask" [ref=' in view
    assert "Pay now" not in view
    assert len(looks) == 2


async def test_generated_text_that_is_hidden_is_not_observed(driven: Session, served: site.Site) -> None:
    """Hidden CSS-generated text is in no name, row or text; visible generated text is."""
    await driven.page.goto(f"{served.origin}/ghosts")
    view = await driven.page.look()
    assert [line.split(" [ref")[0].strip() for line in view.render().split("\n")[1:]] == [
        'heading "Title" 1', "table", 'row "Ada | open Help"', 'link "Help"', '"New thing"', 'button "Save"', '"Plain"',
    ]  # fmt: skip
    assert not any(each in view.words for each in ("Name", "State", "More", "Spinner", "Zero", "Small"))


async def test_requests_of_an_action_are_waited_for(driven: Session, served: site.Site) -> None:
    """The request of a click is answered before the next observation; an idle page is not waited for."""
    tab = driven.page
    await tab.goto(f"{served.origin}/slow")
    async with tab.settling(5):
        await tab.click(Target(role="button", name="Ask"))
    assert "Answered" in (await tab.look()).words
    begun = time.monotonic()
    async with tab.settling(5):
        await tab.press(["Tab"], None)
    assert time.monotonic() - begun < 4


async def test_a_tab_that_an_action_opens_is_waited_for_however_late_the_driver_is(
    driven: Session, served: site.Site
) -> None:
    """A tab that Chromium has opened is reported with its action, although Playwright learns of it late."""
    stopped = threading.Event()
    served.answer("/when", lambda _request: site.Answer(str(stopped.wait(30))))
    script = "fetch('/when').then(() => { window.open('/help', '', 'noopener'); fetch('/opened'); })"
    await driven.page.goto(served.page("/opening", f"<!doctype html><script>{script}</script>"))
    async with driven.page.settling(20):
        driver = contextlib.ExitStack()
        driver.enter_context(browsers.driver_stopped())
        stopped.set()
        await browsers.until(lambda: served.arrived("/opened"))
        # Far longer than an idle page is waited for.
        asyncio.get_running_loop().call_later(1, driver.close)
    assert driven.tabs.name_new() == ["tab2"]
    await driven.tabs.close("tab2")
