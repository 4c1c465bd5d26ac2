"""A run in Firefox: what a step does there, and what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from nodes.errors import AuthorError, OriginRefused, SetupError, UsageError
from nodes.targets import Target
from runtime.browser import open as open_browser
from runtime.browser import shared
from runtime.browser.engines import guard
from runtime.browser.engines.proxy import OriginProxy
from runtime.browser.options import BrowserOptions
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, firefox, site

pytestmark = [pytest.mark.full_browser, firefox.needed, pytest.mark.drawn(share=0.05, of="firefox")]

PAGE = """<!doctype html><title>Order</title>
<label>Name <input name=name></label>
<button onclick="document.title = 'Ordered ' + document.querySelector('input').value">Order</button>
<button onclick="document.title = confirm('Sure?') ? 'Yes' : 'No'">Ask</button>
<button onclick="window.open('/second')">Open</button>
<iframe name=inner srcdoc="<p>Inside</p><button onclick='this.textContent = `Pressed`'>Inner</button>"></iframe>
<script>localStorage.setItem('seen', 'yes'); sessionStorage.setItem('tab', 'mine')</script>"""


HOSTILE = PAGE + "<script>Array.prototype.push = () => 0</script>"


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    with site.serve() as served:
        served.page("/", PAGE, set_cookie="sid=7; Path=/")
        served.page("/hostile", HOSTILE)
        served.page("/second", "<!doctype html><title>Second</title><p>Two</p>")
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """A Firefox that may load the site's documents."""
    private = tmp_path_factory.mktemp("private")
    async with browsers.opened(private, served.origin, options=firefox.OPTIONS, seconds=20) as opened:
        yield opened


@pytest.fixture
async def tab(driven: Session, served: site.Site) -> AsyncIterator[Tab]:
    driven.bound(20)
    async with driven.fresh_page() as fresh:
        await fresh.goto(f"{served.origin}/")
        yield fresh
    driven.refusal()


def button(name: str) -> Target:
    return Target(role="button", name=name)


async def test_a_page_is_filled_read_and_observed(tab: Tab, served: site.Site) -> None:
    """Fields are filled, buttons clicked, titles read and elements observed, though the page replaced a built-in."""
    await tab.goto(f"{served.origin}/hostile")
    await tab.fill(Target(label="Name"), "Ada")
    await tab.click(button("Order"))
    assert await tab.title() == "Ordered Ada"
    seen = (await tab.look()).render()
    assert 'button "Order"' in seen
    assert "Inside" in seen


async def test_a_frame_is_worked_in(tab: Tab) -> None:
    """An element of a frame is clicked."""
    await tab.click(Target(role="button", name="Inner", frame="inner"))
    assert await tab.text(Target(css="button", frame="inner")) == "Pressed"


async def test_a_dialog_waits_for_its_answer(tab: Tab) -> None:
    """A click that asks a question returns, and the page continues with the answer."""
    await tab.click(button("Ask"))
    assert tab.dialog is not None
    await tab.answer(accept=True, text=None)
    assert await tab.title() == "Yes"


async def test_history_has_ends(tab: Tab, served: site.Site) -> None:
    """A tab goes back and forward; beyond the first and the last page it fails with `no-history`, on the page where it was."""
    await tab.goto(f"{served.origin}/second")
    assert await tab.back() == f"{served.origin}/"
    with pytest.raises(AuthorError) as first:
        await tab.back()
    assert (first.value.code, tab.url) == ("no-history", f"{served.origin}/")
    assert await tab.forward() == f"{served.origin}/second"
    with pytest.raises(AuthorError) as last:
        await tab.forward()
    assert (last.value.code, tab.url) == ("no-history", f"{served.origin}/second")


async def test_a_checkpoint_restores_storage_and_tab(
    tab: Tab, served: site.Site, driven: Session, tmp_path: Path
) -> None:
    """Cookies, local and session storage and the address of a checkpoint are there in a fresh Firefox."""
    await driven.page.goto(f"{served.origin}/")
    captured = await driven.capture()
    async with browsers.opened(tmp_path, served.origin, options=firefox.OPTIONS, seconds=20) as fresh:
        served.requests.clear()
        assert await fresh.restore(captured.data) is None
        assert fresh.page.url == f"{served.origin}/"
        assert served.arrived("/")[0].headers["cookie"] == "sid=7"
        stored = "[localStorage.getItem('seen'), sessionStorage.getItem('tab')]"
        assert await fresh.page.page.evaluate(stored) == ["yes", "mine"]


async def test_a_sign_in_is_loaded_before_a_page_has_a_database(served: site.Site, tmp_path: Path) -> None:
    """A sign-in with cookies, storage and IndexedDB is loaded into a fresh Firefox; over an IndexedDB of a page it is refused."""
    script = "new Promise((done) => { const asked = indexedDB.open('app', 1); asked.onsuccess = () => done(1);"
    script += " asked.onupgradeneeded = () => asked.result.createObjectStore('keys').put({id: 'ada'}, 'user'); })"
    (first := tmp_path / "first").mkdir()
    (second := tmp_path / "second").mkdir()
    async with browsers.opened(first, served.origin, options=firefox.OPTIONS, seconds=20) as browser:
        await browser.page.goto(f"{served.origin}/")
        await browser.page.page.evaluate(script)
        kept = await browser.page.signed_in()
        with pytest.raises(AuthorError) as refused:
            await browser.page.sign_in(kept)
        assert (refused.value.code, refused.value.message) == (
            "engine-lacks",
            "firefox has no `load_session` once a page has made an IndexedDB: it cannot put another one in its place",
        )
        assert str(refused.value.fix).startswith("load the state before the first `goto`, or run the file in Chromium")
    async with browsers.opened(second, served.origin, options=firefox.OPTIONS, seconds=20) as browser:
        await browser.page.sign_in(kept)
        await browser.page.goto(f"{served.origin}/second")
        read = "new Promise((done) => { const asked = indexedDB.open('app', 1); asked.onsuccess = () => {"
        read += " const got = asked.result.transaction('keys').objectStore('keys').get('user');"
        read += " got.onsuccess = () => done(got.result.id + localStorage.getItem('seen') + document.cookie); }; })"
        assert await browser.page.page.evaluate(read) == "adayessid=7"


async def test_what_goes_through_chromiums_protocol_is_refused(tab: Tab, tmp_path: Path) -> None:
    """A download, a drop of files and a PDF fail with `engine-lacks` before they do anything."""
    (file := tmp_path / "a.txt").write_text("a")

    async def download() -> None:
        async with tab.download(button("Order"), None):
            pass

    for step in (download(), tab.drop(button("Order"), None, [file]), tab.pdf(landscape=False)):
        with pytest.raises(AuthorError) as refused:
            await step
        assert (refused.value.code, refused.value.phase) == ("engine-lacks", "before")
        assert refused.value.message.startswith("firefox has no ")


@pytest.mark.parametrize("secrets", [True, False])
async def test_a_picture_is_taken_where_no_secret_can_be_in_it(
    secrets: bool, served: site.Site, tmp_path: Path
) -> None:
    """A run with secrets takes no picture, because Firefox does not tell every text that it draws; another run takes one."""
    browser = await open_browser.open_browser(
        firefox.OPTIONS, origins=[served.origin], private=tmp_path, settings=browsers.Chosen(), secrets=secrets
    )
    try:
        browser.bound(20)
        await browser.page.goto(f"{served.origin}/")
        picture = browser.page.screenshot(None, full_page=False, hide=lambda _text: False)
        if secrets:
            with pytest.raises(AuthorError, match="no picture in a run with secrets: it does not tell every text"):
                await picture
        else:
            assert (await picture).startswith(b"\x89PNG")
    finally:
        await browser.close()


async def test_other_origins_get_readings_only(tab: Tab, served: site.Site, driven: Session) -> None:
    """A page reads scripts and data of another origin, which arrive; a request that may change something does not."""
    with site.serve() as other:
        other.page("/data", "[1]", access_control_allow_origin="*", content_type="application/json")
        read = "(url) => fetch(url).then((answer) => answer.json())"
        assert await tab.page.evaluate(read, f"{other.origin}/data") == [1]
        sent = (
            "(url) => fetch(url, {method: 'POST', body: 'card', mode: 'no-cors'}).then(() => 'sent', () => 'refused')"
        )
        assert await tab.page.evaluate(sent, f"{other.origin}/data") == "refused"
        assert [request.method for request in other.requests] == ["GET"]
    assert driven.refusal() is None


async def test_a_confined_run_follows_no_redirect_on_an_open_connection(
    tab: Tab, served: site.Site, driven: Session
) -> None:
    """A run confined to one of its origins is not led to another by a redirect, though it was there before."""
    with site.serve() as other:
        other.page("/", "<title>Other</title>")
        served.redirect("/away", f"{other.origin}/")
        driven.allow([served.origin, other.origin])
        await tab.goto(f"{other.origin}/")
        driven.confine([served.origin], "part.yaml")
        other.requests.clear()
        with pytest.raises(OriginRefused) as refused:
            await tab.goto(f"{served.origin}/away")
        assert refused.value.evidence["kind"] == "redirect"
        assert other.arrived() == []
        driven.confine(None, "part.yaml")
        driven.allow([served.origin])


async def test_a_browser_that_connects_past_the_proxy_is_refused(driven: Session, tmp_path: Path) -> None:
    """A browser whose connections do not all come to the proxy is not used: `browser-unguarded`, with the reason."""
    browser = driven.page.page.context.browser
    assert browser is not None
    proxy = OriginProxy(lambda _origin: False)
    await proxy.start()
    context = await browser.new_context()
    try:
        with pytest.raises(SetupError) as refused:
            await guard.probe(await context.new_page(), proxy, "firefox")
    finally:
        await context.close()
        await proxy.close()
    assert refused.value.code == "browser-unguarded"


@pytest.mark.parametrize(
    ("chosen", "lacking"),
    [
        (browsers.Chosen(browser_mode="own"), "mode `own`"),
        (browsers.Chosen(keep_browser=True), "`--keep-browser`"),
        (browsers.Chosen(browser_url="http://127.0.0.1:9"), "`--browser-url`"),
    ],
)
async def test_settings_of_chromium_are_refused(chosen: browsers.Chosen, lacking: str, tmp_path: Path) -> None:
    """A mode or an address that only Chromium can have is refused before a browser starts."""
    with pytest.raises(UsageError) as refused:
        await open_browser.open_browser(firefox.OPTIONS, origins=[], private=tmp_path, settings=chosen)
    assert refused.value.code == "engine-lacks"
    assert refused.value.message == f"firefox has no {lacking}: only Chromium has it"


async def test_colours_and_language_are_those_of_the_file(served: site.Site, tmp_path: Path) -> None:
    """Options hold in Firefox: colours, motion, language, time zone, size and headers."""
    options = BrowserOptions(
        engine="firefox",
        color_scheme="dark",
        reduced_motion=True,
        locale="de-DE",
        timezone="Asia/Tokyo",
        headers={"X-Tenant": "seven"},
    )
    async with browsers.opened(tmp_path, served.origin, options=options, seconds=20) as opened:
        served.requests.clear()
        await opened.page.goto(f"{served.origin}/")
        seen = await opened.page.page.evaluate(
            "[matchMedia('(prefers-color-scheme: dark)').matches, matchMedia('(prefers-reduced-motion)').matches,"
            " navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone, innerWidth, innerHeight]"
        )
    assert seen == [True, True, "de-DE", "Asia/Tokyo", 1280, 720]
    assert served.arrived("/")[0].headers["x-tenant"] == "seven"


async def test_runs_of_one_process_share_a_firefox(driven: Session, served: site.Site, tmp_path: Path) -> None:
    """A second session has its own cookies in the same Firefox, which stays when the session ends."""
    await driven.page.goto(f"{served.origin}/")
    async with browsers.opened(tmp_path, served.origin, options=firefox.OPTIONS, seconds=20) as second:
        assert second.page.page.context.browser is driven.page.page.context.browser
        assert await second.page.page.context.cookies() == []
    assert await driven.page.title() == "Order"
    with contextlib.suppress(KeyError):
        assert len(shared._places[asyncio.get_running_loop()]) == 1
