"""The origin guard against every way in which a page can load a document."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Error

from nodes.errors import InternalError, OriginRefused, SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, firefox, open_browser, site

pytestmark = pytest.mark.full_browser


@dataclasses.dataclass(frozen=True)
class Attack:
    """A page of the allowed site that loads a document of another origin."""

    kind: str
    """The guard's name for the kind of document."""
    body: str = ""
    """The page; FOREIGN stands for the other origin."""
    script: str = ""
    """The script that starts the attack."""


WAYS = {
    "link": Attack("main frame", "<a id=go href=FOREIGN/>go</a>", "document.getElementById('go').click()"),
    "location": Attack("main frame", script="location.assign('FOREIGN/')"),
    "replace": Attack("main frame", script="location.replace('FOREIGN/')"),
    "meta refresh": Attack("main frame", "<meta http-equiv=refresh content='0;url=FOREIGN/'>"),
    "refresh header": Attack("main frame", "REFRESH"),
    "form": Attack(
        "main frame",
        "<form method=post action=FOREIGN/><input name=card value=4111></form>",
        "document.forms[0].submit()",
    ),
    "redirected form": Attack(
        "redirect",
        "<form method=post action=/sent><input name=card value=4111></form>",
        "document.forms[0].submit()",
    ),
    "redirect": Attack("redirect", script="location.assign('/away')"),
    "second redirect": Attack("redirect", script="location.assign('/twice')"),
    "popup": Attack("popup", script="void window.open('FOREIGN/')"),
    "popup without opener": Attack("popup", script="void window.open('FOREIGN/', '_blank', 'noopener')"),
    "popup by link": Attack(
        "popup", "<a id=go target=_blank href=FOREIGN/>go</a>", "document.getElementById('go').click()"
    ),
    "popup by form": Attack("popup", "<form target=_blank action=FOREIGN/></form>", "document.forms[0].submit()"),
    "redirected popup": Attack("redirect", script="void window.open('/away')"),
    "popup that is led on": Attack("popup", script="window.open('').location = 'FOREIGN/'"),
    "frame": Attack("sub frame", "<iframe src=FOREIGN/></iframe>"),
    "redirected frame": Attack("redirect", "<iframe src=/away></iframe>"),
    "frame in a frame": Attack("sub frame", "<iframe src=/framing></iframe>"),
    "frame in a written frame": Attack("sub frame", "<iframe srcdoc='<iframe src=FOREIGN/></iframe>'></iframe>"),
    "frame in a data frame": Attack("sub frame", "<iframe src='data:text/html,<iframe src=FOREIGN/>'></iframe>"),
    "frame in a blob": Attack(
        "sub frame",
        "<iframe id=f></iframe>",
        "document.getElementById('f').src = URL.createObjectURL(new Blob(['<iframe src=FOREIGN/>'], {type: 'text/html'}))",
    ),
    "frame by link": Attack(
        "sub frame",
        "<iframe name=f></iframe><a id=go target=f href=FOREIGN/>go</a>",
        "document.getElementById('go').click()",
    ),
    "frame set": Attack("sub frame", "<frameset><frame src=FOREIGN/></frameset>"),
    "object": Attack("sub frame", "<object type=text/html data=FOREIGN/></object>"),
    "embed": Attack("sub frame", "<embed type=text/html src=FOREIGN/>"),
    "form into a frame": Attack(
        "sub frame",
        "<iframe name=f></iframe><form method=post target=f action=FOREIGN/><input name=card value=4111></form>",
        "document.forms[0].submit()",
    ),
    "posted popup": Attack(
        "popup",
        "<form method=post target=_blank action=FOREIGN/><input name=card value=4111></form>",
        "document.forms[0].submit()",
    ),
    "popup by timer": Attack("popup", script="setTimeout(() => window.open('FOREIGN/'), 200)"),
    "popup by timer without opener": Attack(
        "popup", script="setTimeout(() => window.open('FOREIGN/', '_blank', 'noopener'), 200)"
    ),
    "popup by a written frame": Attack("popup", "<iframe srcdoc='<script>window.open(`FOREIGN/`)</script>'></iframe>"),
    "written popup that continues": Attack(
        "popup", script="window.open('').document.write('<script>location = `FOREIGN/`</' + 'script>')"
    ),
    "popup from a blob": Attack(
        "main frame",
        script="void window.open(URL.createObjectURL("
        "new Blob(['<script>location = `FOREIGN/`</script>'], {type: 'text/html'})))",
    ),
    "download": Attack("main frame", "<a id=go download href=FOREIGN/>go</a>", "document.getElementById('go').click()"),
    "javascript in a frame": Attack(
        "sub frame",
        "<iframe id=f></iframe>",
        "document.getElementById('f').src = 'javascript:location.replace(`FOREIGN/`)'",
    ),
    "top from a frame": Attack("main frame", "<iframe srcdoc='<script>top.location = `FOREIGN/`</script>'></iframe>"),
    "data frame that continues": Attack(
        "sub frame", "<iframe src='data:text/html,<script>location = `FOREIGN/`</script>'></iframe>"
    ),
    "opener led on by its popup": Attack("main frame", script="void window.open('/leading-opener')"),
    "service worker": Attack(
        "main frame",
        script="navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)"
        ".then((ready) => ready.active.postMessage('FOREIGN/'))",
    ),
    "history": Attack("main frame", script="history.forward()"),
}


WORKER = """
addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('message', (event) => event.waitUntil(event.source.navigate(event.data)));
"""
"""A service worker that navigates a page elsewhere."""

IN_BOTH_MODES = (
    "link",
    "redirect",
    "popup",
    "popup by timer without opener",
    "posted popup",
    "opener led on by its popup",
    "frame",
    "form into a frame",
    "frame in a frame",
    "redirected frame",
    "frame in a blob",
    "service worker",
    "download",
    "history",
)
"""Ways for which the modes differ in how they assign a document to a run."""

SILENT_IN_FIREFOX = ("object", "embed")
"""Documents that Firefox does not even ask for while requests are looked at, so nothing is refused."""

KIND_IN_FIREFOX = {"written popup that continues": "main frame"}
"""Firefox gives a written popup the address of the page that wrote it."""

State = Literal["own", "shared", "of others", "firefox"]

SHARED: tuple[State, ...] = ("shared", "of others")
"""A browser with several contexts: one of this process, and one that somebody else started."""

CASES = [
    *(("own", way) for way in WAYS),
    *((state, way) for state in SHARED for way in IN_BOTH_MODES),
    *(pytest.param("firefox", way, marks=firefox.needed) for way in WAYS if way != "history"),
]


@pytest.fixture(scope="module")
def ours() -> Iterator[site.Site]:
    """The site that the run may use."""
    with site.serve() as served:
        yield served


@pytest.fixture(scope="module")
def foreign() -> Iterator[site.Site]:
    """A site that the run may not use."""
    with site.serve() as served:
        served.page("/", "<title>Foreign</title>")
        served.page("/pixel", "", content_type="image/png")
        yield served


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[open_browser.Opened]:
    """The browser that somebody else has open."""
    with open_browser.opened(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
async def in_each_mode(
    ours: site.Site, foreign: site.Site, others: open_browser.Opened, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[State, Session]]:
    """A browser in each mode that may load the allowed site's documents."""
    ours.page("/", "<title>Ours</title>")
    ours.redirect("/away", f"{foreign.origin}/")
    ours.redirect("/twice", f"{ours.origin}/away")
    ours.answer("/sent", lambda _request: site.Answer(status=307, headers={"location": f"{foreign.origin}/"}))
    ours.page("/leading-opener", f"<script>opener.location = '{foreign.origin}/'</script>")
    ours.page("/worker.js", WORKER, content_type="text/javascript")
    ours.page("/framing", f"<iframe src={foreign.origin}/></iframe>")
    private = tmp_path_factory.mktemp("private")
    async with (
        browsers.opened(private, ours.origin, mode="own") as own,
        browsers.opened(private, ours.origin, mode="shared") as shared,
        browsers.opened(private, ours.origin, url=others.url) as of_others,
        contextlib.AsyncExitStack() as maybe,
    ):
        opened: dict[State, Session] = {"own": own, "shared": shared, "of others": of_others}
        if firefox.PROGRAM is not None:
            other = browsers.opened(private, ours.origin, options=firefox.OPTIONS)
            opened["firefox"] = await maybe.enter_async_context(other)
        yield opened


@pytest.fixture(params=["own", *SHARED, pytest.param("firefox", marks=firefox.needed)])
def driven(request: pytest.FixtureRequest, in_each_mode: dict[State, Session]) -> Session:
    """The browser of one mode."""
    return in_each_mode[request.param]


@pytest.fixture
async def tab(driven: Session) -> AsyncIterator[Tab]:
    """A tab for one test; the pages that it opened are closed with it."""
    driven.bound(10)
    context = driven.page.page.context
    async with driven.fresh_page() as fresh:
        yield fresh
    for page in context.pages:
        if page is not driven.page.page:
            await page.close()
    driven.refusal()


@pytest.fixture(autouse=True)
def nothing_arrived(ours: site.Site, foreign: site.Site) -> None:
    """Clears the recorded requests before each test."""
    ours.requests.clear()
    foreign.requests.clear()


async def refusal(driven: Session) -> OriginRefused:
    """The guard's refusal, once there is one."""
    found: list[OriginRefused] = []

    def look() -> bool:
        found.extend(error for error in [driven.refusal()] if error is not None)
        return bool(found)

    await browsers.until(look)
    return found[0]


async def soon(tab: Tab, script: str) -> None:
    """Runs a script in the page later, because a navigation would lose the result of an evaluation."""
    await tab.page.evaluate("(script) => void setTimeout(() => eval(script))", script)


async def went_back(tab: Tab) -> bool:
    """True if the tab went back, False while Chromium is replacing one page by another."""
    try:
        await tab.page.go_back()
    except Error as error:
        if "Not attached to an active page" not in error.message:
            raise
        return False
    return True


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("driven", "way"), CASES, indirect=["driven"])
async def test_no_document_of_another_origin_is_requested(
    way: str, driven: Session, tab: Tab, ours: site.Site, foreign: site.Site
) -> None:
    """However a page loads a foreign document, no request arrives, and the refusal has the address, the kind and the fix."""
    attack = WAYS[way]
    body, script = (text.replace("FOREIGN", foreign.origin) for text in (attack.body, attack.script))
    headers = {"refresh": f"0;url={foreign.origin}/"} if body == "REFRESH" else {}
    await tab.goto(ours.page("/page", f"<!doctype html><title>Page</title>{body}", **headers))
    if way == "history":
        # A refused document still has its history entry; Firefox keeps none.
        await soon(tab, f"location.href = '{foreign.origin}/'")
        await refusal(driven)
        await browsers.until(lambda: tab.url.startswith("chrome-error:"))
        await browsers.until_async(lambda: went_back(tab))
    if script:
        await soon(tab, script)
    if driven.engine == "firefox" and way in SILENT_IN_FIREFOX:
        await asyncio.sleep(1)
        assert (foreign.arrived(), driven.refusal()) == ([], None)
        return
    error = await refusal(driven)
    assert foreign.arrived() == []
    assert error.code == "origin-refused"
    assert error.evidence == {
        "address": f"{foreign.origin}/",
        "origin": foreign.origin,
        "allowed": [ours.origin],
        "kind": KIND_IN_FIREFOX.get(way, attack.kind) if driven.engine == "firefox" else attack.kind,
    }
    assert error.fix == f"if it belongs to the work, add {foreign.origin} to allowed_origins"


async def test_goto_raises_the_refusal(tab: Tab, ours: site.Site, foreign: site.Site) -> None:
    """A `goto` to a foreign origin raises the refusal, before any request or after an allowed site's redirect."""
    with pytest.raises(OriginRefused) as direct:
        await tab.goto(f"{foreign.origin}/?token=hidden")
    assert (direct.value.phase, direct.value.evidence["address"]) == ("before", f"{foreign.origin}/")
    with pytest.raises(OriginRefused) as led:
        await tab.goto(f"{ours.origin}/away")
    assert (led.value.phase, led.value.evidence["kind"]) == ("after", "redirect")
    assert foreign.arrived() == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "chrome://version", "view-source:http://127.0.0.1/"])
@pytest.mark.parametrize("driven", ["own"], indirect=True)
async def test_goto_loads_sites_only(url: str, tab: Tab) -> None:
    """Local files and browser pages are refused."""
    with pytest.raises(OriginRefused):
        await tab.goto(url)


@pytest.mark.parametrize("driven", ["own"], indirect=True)
async def test_a_click_that_leads_away_fails_at_once(
    driven: Session, tab: Tab, ours: site.Site, foreign: site.Site
) -> None:
    """A wait for the next page fails with the refusal at once, not at its timeout."""
    driven.bound(60)
    await tab.goto(ours.page("/leading", f"<a href={foreign.origin}/>Next</a>"))
    await tab.click(Target(role="link", name="Next"))
    async with asyncio.timeout(20):
        with pytest.raises(OriginRefused):
            await tab.wait_for(Rule(title="Next"))
    assert foreign.arrived() == []


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize("features", ["", "noopener"])
async def test_an_expected_tab_of_another_origin_is_refused(
    features: str, tab: Tab, ours: site.Site, foreign: site.Site
) -> None:
    """A step that expects a tab of a foreign origin fails with the refusal."""
    script = f"window.open('{foreign.origin}/', '_blank', '{features}')"
    await tab.goto(ours.page("/opening", f'<button onclick="{script}">Open</button>'))

    async def step() -> None:
        async with tab.opening("popup"):
            await tab.click(Target(role="button", name="Open"))
        # Chromium may show the tab before it requests its document.
        await tab.wait_for(Rule(title="Never"))

    with pytest.raises(OriginRefused):
        await step()
    assert foreign.arrived() == []


@pytest.mark.drawn(2)
async def test_local_frames_and_foreign_images_load(
    driven: Session, tab: Tab, ours: site.Site, foreign: site.Site
) -> None:
    """Blank, written, data and blob frames load, and so do foreign images: the guard checks documents only."""
    await tab.goto(
        ours.page(
            "/mixed",
            "<iframe></iframe><iframe srcdoc=x></iframe><iframe src='data:text/html,x'></iframe><iframe src=/></iframe>"
            f"<iframe id=b></iframe><img src={foreign.origin}/pixel>"
            "<script>document.getElementById('b').src = URL.createObjectURL(new Blob(['<p>x'], {type: 'text/html'}))</script>",
        )
    )
    assert [request.path for request in foreign.requests] == ["/pixel"]
    assert driven.refusal() is None


@pytest.mark.parametrize("driven", ["own"], indirect=True)
async def test_the_cache_stays_on(tab: Tab, ours: site.Site) -> None:
    """The guard does not disable Chromium's cache."""
    ours.page("/style.css", "p {}", content_type="text/css", cache_control="max-age=600")
    ours.page("/styled", "<link rel=stylesheet href=/style.css>")
    for _ in range(2):
        await tab.goto(ours.origin + "/styled")
    assert len(ours.arrived("/style.css")) == 1


# The browser of others has their switches.
@pytest.mark.parametrize("driven", ["own", "shared"], indirect=True)
@pytest.mark.parametrize("how", ["prefetch", "prerender"])
async def test_nothing_is_loaded_ahead_of_time(
    how: str, driven: Session, tab: Tab, ours: site.Site, foreign: site.Site
) -> None:
    """Speculation rules load no foreign page, also not when the page then navigates there."""
    rules = json.dumps({how: [{"urls": [f"{foreign.origin}/"], "eagerness": "immediate"}]})
    await tab.goto(ours.page("/guessing", f"<script type=speculationrules>{rules}</script>"))
    await soon(tab, f"location.assign('{foreign.origin}/')")
    await refusal(driven)
    assert foreign.arrived() == []


async def test_without_the_guard_the_browser_is_ended(ours: site.Site, tmp_path: Path) -> None:
    """When the guard's connection is lost the browser is ended, and the next step fails with `guard-lost`."""
    ours.page("/", "<title>Ours</title>")
    async with browsers.opened(tmp_path, ours.origin) as opened:
        await opened.page.goto(ours.origin + "/")
        await browsers.connection(opened)._socket.close()
        await browsers.until(lambda: opened._guard.lost)
        with pytest.raises(InternalError) as lost:
            await opened.page.goto(ours.origin + "/")
        assert lost.value.code == "guard-lost"
        await browsers.until(opened.page.page.is_closed)
        with pytest.raises(SiteError) as gone:
            await opened.page.title()
        assert gone.value.code == "page-crashed"
        assert len(ours.arrived("/")) == 1
