"""Tabs, popups and dialogs on real pages, in both browser modes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import AuthorError, SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser import open as open_browser
from runtime.browser.options import Mode
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = [pytest.mark.full_browser, pytest.mark.drawn(share=0.09, of="tabs")]

GO = Target(css="#go")

OPENING = {
    "at once": "window.open('/popup')",
    "late": "setTimeout(() => window.open('/popup'), DELAY)",
    "late and without opener": "setTimeout(() => window.open('/popup', '_blank', 'noopener'), DELAY)",
    "loading late": "window.open('/slow')",
    "blank, then led on": "{ const opened = window.open(''); setTimeout(() => { opened.location = '/popup'; }, DELAY) }",
    "after a question": "fetch('/').then(() => window.open('/popup'))",
}


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with a page that opens others."""
    with site.serve() as served:
        served.page("/", "<title>Main</title>")
        served.page("/second", "<title>Second</title>")
        served.page("/popup", "<title>Popup</title><button id=go onclick='window.close()'>Close</button>")
        served.answer("/slow", _slow)
        served.page("/link", "<title>Link</title><a id=go target=_blank rel=noopener href=/popup>Open</a>")
        served.page(
            "/form", "<title>Form</title><form method=post target=_blank action=/popup><button id=go>Go</button></form>"
        )
        served.page("/send", "<title>Send</title><form method=post action=/sent><button id=go>Go</button></form>")
        served.page("/sent", "<title>Sent</title>")
        yield served


def _slow(_request: site.Request) -> site.Answer:
    time.sleep(random.uniform(0, 1))
    return site.Answer("<title>Popup</title>")


@pytest.fixture(scope="module")
async def in_each_mode(
    served: site.Site, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[Mode, Session]]:
    """A browser in each mode."""
    private = tmp_path_factory.mktemp("private")
    async with (
        browsers.opened(private, served.origin, mode="own") as own,
        browsers.opened(private, served.origin, mode="shared") as shared,
    ):
        yield {"own": own, "shared": shared}


@pytest.fixture(params=["own", "shared"])
async def driven(request: pytest.FixtureRequest, in_each_mode: dict[Mode, Session]) -> AsyncIterator[Session]:
    """The session of one mode, with a blank tab called ``main`` alone."""
    browser = in_each_mode[request.param]
    browser.bound(10)
    yield browser
    await browser.settled()
    context = browser.page.page.context
    fresh = await context.new_page()

    async def alone() -> bool:
        for page in context.pages:
            if page is not fresh:
                await page.close()
        return len(await browser._guard.tabs(browser._context_id)) == 1

    # A tab closed during a dialog continues its script, and may open another tab first.
    await browsers.until_async(alone)
    browser.tabs.begin({"main": fresh}, fresh)


def code(raised: pytest.ExceptionInfo[SiteError]) -> tuple[str, str]:
    """The code and the phase of an error."""
    return raised.value.code, raised.value.phase


def button(script: str) -> str:
    """A page with one button."""
    return f'<!doctype html><title>Page</title><button id=go onclick="{script}">Go</button>'


@pytest.mark.drawn(3)
@pytest.mark.parametrize("how", OPENING)
async def test_an_expected_tab_is_waited_for(how: str, driven: Session, served: site.Site) -> None:
    """A tab that an action opens, at once or late, with or without opener, gets its name and does not become current."""
    delay = random.uniform(0, 2000)
    main = driven.page
    await main.goto(served.page("/opening", button(OPENING[how].replace("DELAY", f"{delay:.0f}"))))
    async with main.opening("popup"):
        await main.click(GO)
    assert driven.page is main
    popup = driven.tabs.get("popup")
    await popup.wait_for(Rule(title="Popup"))
    assert await main.title() == "Page"


@pytest.mark.parametrize("path", ["/link", "/form"])
async def test_links_and_forms_open_tabs(path: str, driven: Session, served: site.Site) -> None:
    """A link without opener and a form posted to a new tab open popups, also by a double click."""
    await driven.page.goto(served.origin + path)
    async with driven.page.opening("popup"):
        await (driven.page.dblclick(GO) if path == "/form" else driven.page.click(GO))
    await driven.tabs.get("popup").wait_for(Rule(title="Popup"))


async def test_no_tab_opens(driven: Session, served: site.Site) -> None:
    """An expected tab that does not open is an error after the action; an unexpected one disturbs nothing."""
    await driven.page.goto(served.page("/quiet", button("document.title = 'Clicked'")))
    driven.bound(3)
    with pytest.raises(SiteError) as raised:
        async with driven.page.opening("popup"):
            await driven.page.click(GO)
    assert code(raised) == ("no-tab-opened", "after")
    assert await driven.page.title() == "Clicked"
    driven.bound(10)
    await driven.page.goto(served.page("/noisy", button("window.open('/popup')")))
    await driven.page.click(GO)
    await browsers.until(lambda: len(driven.tabs.all()) == 2)
    await driven.page.goto(f"{served.origin}/second")
    assert await driven.page.title() == "Second"


async def test_tabs_are_opened_chosen_and_closed(driven: Session, served: site.Site) -> None:
    """A name opens one tab. After closing, its opener or else ``main`` is current; closing the last tab leaves a blank one."""
    main = driven.page
    await main.goto(served.page("/opening", button("window.open('/popup')")))
    await driven.tabs.open("second")
    second = driven.page
    await driven.tabs.switch("main")
    await driven.tabs.open("second")
    assert driven.page is second
    assert second is not main
    await second.goto(f"{served.origin}/opening")
    async with second.opening("popup"):
        await second.click(GO)
    await driven.tabs.switch("popup")
    await driven.tabs.close(None)
    assert driven.page is second
    await driven.tabs.close("second")
    assert driven.page is main
    assert second.closed
    with pytest.raises(SiteError) as raised:
        driven.tabs.get("popup")
    assert code(raised) == ("tab-closed", "before")
    assert raised.value.evidence == {"open": [{"name": "main", "url": f"{served.origin}/opening"}]}
    await driven.tabs.close("second")
    await driven.tabs.close("main")
    assert driven.page is driven.tabs.get("main")
    assert driven.page.url == "about:blank"


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(
    "script", ["window.close()", "setTimeout(() => window.close(), 30)", "fetch('/').then(() => window.close())"]
)
async def test_a_click_may_close_its_own_tab(script: str, driven: Session, served: site.Site) -> None:
    """A click that closes its popup succeeds, and the opener becomes current. Later actions in the closed tab give `tab-closed`."""
    main = driven.page
    served.page("/closing", button(script))
    await main.goto(served.page("/opening", button("window.open('/closing')")))
    async with main.opening("popup"):
        await main.click(GO)
    await driven.tabs.switch("popup")
    popup = driven.page
    await popup.click(GO)
    await browsers.until(lambda: popup.closed)
    await browsers.until(lambda: driven.page is main)
    looks = (popup.wait_for(Rule(title="Page")), popup.wait_for(Rule(url="**/opening")))
    for action in (popup.click(GO), *looks, popup.goto(f"{served.origin}/")):
        with pytest.raises(SiteError) as raised:
            await action
        assert raised.value.code == "tab-closed"


async def test_back_forward_reload(driven: Session, served: site.Site) -> None:
    """Back and forward stop at the ends of the history; reloading the answer to a form needs `resend`."""
    page = driven.page
    with pytest.raises(AuthorError) as raised:
        await page.back()
    assert raised.value.code == "no-history"
    await page.goto(f"{served.origin}/")
    with pytest.raises(AuthorError):
        await page.back()
    await page.goto(f"{served.origin}/second")
    assert await page.back() == f"{served.origin}/"
    assert await page.title() == "Main"
    assert await page.forward() == f"{served.origin}/second"
    with pytest.raises(AuthorError):
        await page.forward()
    served.requests.clear()
    assert await page.reload(resend=False) == f"{served.origin}/second"
    assert len(served.arrived("/second")) == 1
    await page.goto(f"{served.origin}/send")
    await page.click(GO)
    await page.wait_for(Rule(title="Sent"))
    with pytest.raises(AuthorError) as raised:
        await page.reload(resend=False)
    assert raised.value.code == "reload-resends"
    await page.reload(resend=True)
    assert [each.method for each in served.arrived("/sent")] == ["POST", "POST"]


DIALOGS = {
    "alert": ("alert('Are you there?')", True, None, "undefined"),
    "confirmed": ("document.title = confirm('Are you there?')", True, None, "true"),
    "not confirmed": ("document.title = confirm('Are you there?')", False, None, "false"),
    "prompted": ("document.title = prompt('Are you there?')", True, "Ada", "Ada"),
    "not prompted": ("document.title = prompt('Are you there?')", False, None, "null"),
    "late": ("setTimeout(() => { document.title = confirm('Are you there?'); }, DELAY)", True, None, "true"),
    "two": ("document.title = confirm('Nobody?') + confirm('Are you there?')", True, None, "2"),
    "before the first tick": ("this.outerHTML = ''; document.title = confirm('Are you there?')", True, None, "true"),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("kind", DIALOGS)
async def test_a_dialog_is_answered(kind: str, driven: Session, served: site.Site) -> None:
    """An action that opens a dialog returns. Everything else in the tab gives `dialog-open` until the dialog is answered; then the page continues."""
    script, accept, typed, title = DIALOGS[kind]
    page = driven.page
    await page.goto(served.page("/asking", button(script.replace("DELAY", f"{random.uniform(0, 2000):.0f}"))))
    await page.click(GO)
    if kind == "two":
        assert await page.asked("Nobody?") == "Nobody?"
        await page.answer(accept=True, text=None)
    assert await page.asked("you there") == "Are you there?"
    with pytest.raises(SiteError) as raised:
        await page.asked("you the")
    assert code(raised) == ("dialog-differs", "before")
    for action in (
        page.click(GO),
        page.title(),
        page.ready(GO, "click"),
        page.text(GO),
        page.goto(served.origin),
        page.reload(resend=False),
    ):
        with pytest.raises(SiteError) as raised:
            await action
        assert code(raised) == ("dialog-open", "before")
        assert raised.value.evidence["message"] == "Are you there?"
    with pytest.raises(SiteError) as raised:
        await page.wait_for(Rule(text="Go"))
    assert raised.value.code == "dialog-open"
    await page.wait_for(Rule(url="**/asking"))
    with pytest.raises(SiteError, match="a dialog is open"):
        await driven.capture()
    await page.answer(accept=accept, text=typed)
    assert page.dialog is None
    if title != "undefined":
        await page.wait_for(Rule(title=title))
    await driven.capture()


async def test_a_dialog_that_does_not_open(driven: Session, served: site.Site) -> None:
    """Waiting for a dialog that does not open times out with `no-dialog`."""
    await driven.page.goto(f"{served.origin}/")
    driven.bound(1)
    with pytest.raises(SiteError) as raised:
        await driven.page.asked(None)
    assert code(raised) == ("no-dialog", "before")


async def test_a_dialog_cuts_waiting_short(driven: Session, served: site.Site) -> None:
    """A dialog that opens during a wait is reported at once, not at the timeout."""
    driven.bound(60)
    await driven.page.goto(served.page("/asking", button("setTimeout(() => alert('Late'), 100)")))
    await driven.page.click(GO)
    async with asyncio.timeout(20):
        with pytest.raises(SiteError) as raised:
            await driven.page.wait_for(Rule(title="Never"))
    assert raised.value.code == "dialog-open"
    await driven.page.answer(accept=True, text=None)


async def test_a_dialog_that_comes_first_loses_no_action(driven: Session, served: site.Site) -> None:
    """An action that a dialog delays is done once the dialog is answered; if it cannot be done then, the answer fails."""
    page = driven.page
    appear = "const made = document.createElement('button'); made.id = 'go'; made.textContent = 'Go';"
    appear += "made.onclick = () => { document.title = '9'; }; document.body.append(made);"
    for after, title in ((appear, "9"), ("", None)):
        body = f"<title>Page</title><p>Nothing</p><script>setTimeout(() => {{ alert(1); {after} }}, 200)</script>"
        await page.goto(served.page("/held", body))
        driven.bound(2)
        await page.click(GO)
        if title is not None:
            await page.answer(accept=True, text=None)
            await page.wait_for(Rule(title=title))
        else:
            driven.bound(5)
            with pytest.raises(SiteError) as raised:
                await page.answer(accept=True, text=None)
            assert code(raised) == ("target-not-found", "after")


async def test_a_document_may_ask_while_it_loads(driven: Session, served: site.Site) -> None:
    """Navigation ends when the document opens a dialog, in the tab or a popup; the answer lets it load."""
    served.page("/greeting", "<title>Greeting</title><script>alert('Hello')</script><p>Here")
    served.answer("/dropped", lambda _request: site.Answer(drop=True))
    page = driven.page
    for failed_before in (False, True):
        if failed_before:
            # Chromium may still be showing its error page.
            with pytest.raises(SiteError, match="ERR_"):
                await page.goto(f"{served.origin}/dropped")
        driven.bound(10)
        await page.goto(f"{served.origin}/greeting")
        assert await page.asked("Hello") == "Hello"
        await page.answer(accept=True, text=None)
        await page.wait_for(Rule(text="Here"))
    await page.goto(served.page("/opening", button("window.open('/greeting')")))
    async with page.opening("popup"):
        await page.click(GO)
    popup = driven.tabs.get("popup")
    await popup.asked("Hello")
    with pytest.raises(SiteError) as raised:
        # The opener shares the popup's process, so it is blocked too.
        await page.title()
    assert code(raised) == ("dialog-open", "before")
    with pytest.raises(SiteError) as raised:
        await page.click(GO)
    assert code(raised) == ("dialog-open", "before")
    await popup.answer(accept=False, text=None)
    await popup.wait_for(Rule(text="Here"))


async def test_a_dialog_of_a_popup_is_noticed_however_late_the_driver_is(driven: Session, served: site.Site) -> None:
    """A popup is paused until Playwright listens to it, so that no dialog opens unnoticed before."""
    stopped = threading.Event()
    served.page("/greeting", "<title>Greeting</title><script>fetch('/greeted'); alert('Hello')</script><p>Here")
    served.answer("/when", lambda _request: site.Answer(str(stopped.wait(30))))
    before = Counter(each.path for each in served.arrived())

    def arrived(path: str) -> bool:
        return len(served.arrived(path)) > before[path]

    page = driven.page
    script = "fetch('/when').then(() => { fetch('/opened'); window.open('/greeting'); })"
    await page.goto(served.page("/opening", f"<!doctype html><script>{script}</script>"))
    async with page.opening("popup"):
        with browsers.driver_stopped():
            stopped.set()
            await browsers.until(lambda: arrived("/opened"))
            # The absence of a request cannot be observed; without the pause it would arrive much earlier.
            with contextlib.suppress(TimeoutError):
                await browsers.until(lambda: arrived("/greeted"), 1)
    popup = driven.tabs.get("popup")
    assert await popup.asked("Hello") == "Hello"
    await popup.answer(accept=True, text=None)
    await popup.wait_for(Rule(text="Here"))


LEAVING = "<!doctype html><title>Typing</title><input id=go><script>onbeforeunload = (event) => event.preventDefault()</script>"


async def test_leaving_is_not_asked_back(driven: Session, served: site.Site) -> None:
    """Navigation and closing by the workflow skip `beforeunload`; a click that leaves the page opens its dialog."""
    page = driven.page
    for leave in (lambda: page.goto(f"{served.origin}/second"), lambda: page.reload(resend=False), page.back):
        await page.goto(f"{served.origin}/")
        await page.goto(served.page("/leaving", LEAVING))
        await page.click(GO)
        await leave()
        assert page.dialog is None
    await page.goto(served.page("/leaving", LEAVING + "<a href=/second>Away</a>"))
    await page.click(GO)
    await page.click(Target(text="Away"))
    await page.asked(None)
    await page.answer(accept=False, text=None)
    assert await page.title() == "Typing"
    await page.click(Target(text="Away"))
    await page.asked(None)
    await page.answer(accept=True, text=None)
    await page.wait_for(Rule(title="Second"))


async def test_a_tab_with_a_dialog_can_be_closed(driven: Session, served: site.Site) -> None:
    """A dialog blocks neither closing its tab nor a fresh page; a popup that it prevents gives `dialog-open`."""
    page = driven.page
    await driven.tabs.open("asking")
    await driven.page.goto(served.page("/asking", button("alert(1); window.open('/popup')")))
    with pytest.raises(SiteError) as raised:
        async with driven.page.opening("popup"):
            await driven.page.click(GO)
    assert code(raised) == ("dialog-open", "after")
    await driven.tabs.close("asking")
    assert driven.page is page
    async with driven.fresh_page() as fresh:
        await fresh.goto(f"{served.origin}/asking")
        await fresh.click(GO)
        assert fresh.dialog == "1"


async def test_a_dialog_that_opens_while_the_state_is_read(driven: Session, served: site.Site) -> None:
    """When a dialog opens during a capture, the capture succeeds or fails without waiting, and later states have no extra tab."""
    for delay in range(0, 60, 4):
        await driven.page.goto(served.page("/soon", f"<script>setTimeout(() => confirm('Now?'), {delay})</script>"))
        async with asyncio.timeout(10):
            with contextlib.suppress(SiteError):
                await driven.capture()
        driven.bound(10)
        assert await driven.page.asked(None) == "Now?"
        await driven.page.answer(accept=True, text=None)
        assert len((await driven.capture()).urls) == 1


@pytest.mark.parametrize("mode", ["own", "shared"])
async def test_a_browser_with_a_dialog_closes(mode: Mode, served: site.Site, tmp_path: Path) -> None:
    """An open dialog does not prevent the browser from closing."""
    async with asyncio.timeout(30):
        async with browsers.opened(tmp_path, served.origin, mode=mode) as browser:
            await browser.page.goto(served.page("/leaving", LEAVING + "<button onclick='alert(1)'>Ask</button>"))
            await browser.page.click(GO)
            await browser.page.click(Target(role="button", name="Ask"))
            assert browser.page.dialog == "1"


async def test_names_survive_the_engine(served: site.Site, tmp_path: Path) -> None:
    """A reattached browser and one restored from a checkpoint have the same named tabs and the same current tab."""
    async with browsers.opened(tmp_path, served.origin, mode="own", linger=30) as first:
        await first.page.goto(served.page("/opening", button("window.open('/popup', '_blank', 'noopener')")))
        async with first.page.opening("popup"):
            await first.page.click(GO)
        await first.tabs.open("second")
        await first.page.goto(f"{served.origin}/second")
        await first.tabs.open("gone")
        await first.page.page.close()
        await browsers.until(lambda: first.page.url.endswith("/opening"))
        await first.tabs.switch("second")
        file = tmp_path / "checkpoint.json"
        file.write_bytes((await first.capture()).data)
        await first.close(keep=True)
    again = await open_browser.reattach(None, origins=[served.origin], private=tmp_path, settings=browsers.Chosen())
    assert again is not None
    async with browsers.opened(tmp_path / "new", served.origin, mode="shared") as restored:
        await restored.restore(file.read_bytes())
        try:
            for browser in (again, restored):
                browser.bound(10)
                assert browser.tabs.named.keys() == {"main", "popup", "second"}
                assert browser.page is browser.tabs.get("second")
                assert await browser.page.title() == "Second"
                assert await browser.tabs.get("popup").title() == "Popup"
                assert await browser.tabs.get("main").title() == "Page"
        finally:
            await again.close()
    assert json.loads(file.read_bytes())["current"] == 2


VIEWS = """<!doctype html><title>App</title><form method=post action=/views#sent><input name=q><button>Send</button></form>
<dialog>Saved</dialog><textarea>blank</textarea>
<script>
const told = [];
for (const name of ['hashchange', 'popstate']) addEventListener(name, () => told.push(name));
for (const name of ['pushState', 'replaceState']) history[name] = () => { throw new Error('not yours'); };
</script>"""


async def state_of(page: Tab) -> Any:
    """The state that earlier actions left on the page of views."""
    return await page.page.evaluate("[document.querySelector('dialog').open, document.querySelector('textarea').value]")


async def test_a_goto_that_changes_only_the_fragment(driven: Session, served: site.Site) -> None:
    """A fragment change keeps dialog and input. With `anew` the document is reloaded, even if scripts have replaced the history functions."""
    app, page = served.page("/views", VIEWS), driven.page
    await page.goto(f"{served.origin}/")
    await page.goto(f"{app}#one")
    open_it = "() => { document.querySelector('dialog').show(); document.querySelector('textarea').value = 'typed'; }"
    await page.page.evaluate(open_it)
    assert await page.goto(f"{app}#two") == f"{app}#two"
    assert await state_of(page) == [True, "typed"]
    for view in ("three", "three", "fo ur"):
        await page.page.evaluate(open_it)
        documents = page.documents
        assert await page.goto(f"{app}#{view}", anew=True) == f"{app}#{view}".replace(" ", "%20")
        assert (page.documents, await state_of(page)) == (documents + 1, [False, "blank"])
    # The history has every address; going back within a document loads nothing.
    assert [await page.back() for _ in range(3)] == [f"{app}#three", f"{app}#two", f"{app}#one"]
    assert await page.back() == f"{served.origin}/"


async def test_goto_anew_does_not_send_a_form_again(driven: Session, served: site.Site) -> None:
    """With `anew` the answer to a form is loaded by GET, at the same fragment and at another."""
    app, page = served.page("/views", VIEWS), driven.page
    for view in ("sent", "other"):
        await page.goto(app)
        await page.click(Target(role="button", name="Send"))
        await page.page.wait_for_url("**/views#sent")
        assert page.posted
        sent = len([each for each in served.arrived("/views") if each.method == "POST"])
        await page.goto(f"{app}#{view}", anew=True)
        assert not page.posted
        assert len([each for each in served.arrived("/views") if each.method == "POST"]) == sent
