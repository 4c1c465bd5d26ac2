"""Both modes: every option, in a tab and in popups, from the first request and the first script on."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import UsageError
from nodes.targets import Target
from runtime.browser import open as open_browser
from runtime.browser.options import BrowserOptions, Geolocation, HttpCredentials, Mode, Proxy, Viewport
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = [pytest.mark.full_browser, pytest.mark.drawn(share=0.35, of="browser_modes")]

MODES: tuple[Mode, ...] = ("own", "shared")

STATES = (*MODES, "found again")
"""A browser of either mode, and a reattached one of mode *own*."""

PLACES = ("tab", "popup", "popup without opener", "popup by name")

OPTIONS = BrowserOptions(
    viewport=Viewport(width=900, height=500),
    device_scale_factor=2,
    locale="de-DE",
    timezone="Asia/Tokyo",
    user_agent="Tester/1.0",
    color_scheme="dark",
    reduced_motion=True,
    geolocation=Geolocation(latitude=52.5, longitude=13.4),
    permissions=["geolocation"],
    headers={"X-Run": "seven"},
    http_credentials=HttpCredentials(username="ada", password="lovelace"),
    ignore_https_errors=True,
)

BASIC = "Basic " + base64.b64encode(b"ada:lovelace").decode()

# The page's first script, which records the options.
LOOK = """<!doctype html><meta charset=utf-8><title>Look</title><script>
const media = (query) => matchMedia(query).matches;
const seen = {
  viewport: [innerWidth, innerHeight],
  device_scale_factor: devicePixelRatio,
  language: navigator.language,
  number: (1234.5).toLocaleString(),
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  hour: new Date(0).getHours(),
  user_agent: navigator.userAgent,
  color_scheme: media('(prefers-color-scheme: dark)'),
  reduced_motion: media('(prefers-reduced-motion: reduce)'),
};
const asked = Promise.all([
  new Promise((told) => navigator.geolocation.getCurrentPosition(
    ({coords}) => told([coords.latitude, coords.longitude]), (error) => told(error.message))),
  fetch('/data').then((answer) => answer.text()),
  fetch(SECURE, {mode: 'no-cors'}).then(() => 'loaded', String),
]).then(([geolocation, data, secure]) => Object.assign(seen, {geolocation, data, secure}));
</script>"""

EXPECTED: dict[str, Any] = {
    "viewport": [900, 500],
    "device_scale_factor": 2,
    "language": "de-DE",
    "number": "1.234,5",
    "timezone": "Asia/Tokyo",
    "hour": 9,
    "user_agent": "Tester/1.0",
    "color_scheme": True,
    "reduced_motion": True,
    "geolocation": [52.5, 13.4],
    "data": "for ada",
    "secure": "loaded",
}

SENT: dict[str, str] = {
    "x-run": "seven",
    "user-agent": "Tester/1.0",
    "authorization": BASIC,
}


@dataclasses.dataclass
class Observation:
    """The options a page saw, and the first requests for it and its data that had the password."""

    seen: dict[str, Any]
    request: site.Request
    data: site.Request


def only_for_ada(body: str, **headers: str) -> site.Handler:
    """A page behind a password."""

    def answer(request: site.Request) -> site.Answer:
        if request.headers.get("authorization") == BASIC:
            return site.Answer(body, headers=headers)
        return site.Answer("who are you?", 401, {"www-authenticate": 'Basic realm="here"'})

    return answer


@pytest.fixture(scope="module")
def looked_at() -> Iterator[site.Site]:
    """A site that demands a password for everything, and records the options of its visitors."""
    with site.serve() as served, site.serve(secure=True) as secure:
        secure.page("/", "over TLS")
        look = LOOK.replace("SECURE", f"'{secure.origin}/'")
        for place in PLACES:
            served.answer(f"/{place.replace(' ', '-')}", only_for_ada(look))
        served.answer("/data", only_for_ada("for ada"))
        yield served


@pytest.fixture(scope="module")
async def observations(
    looked_at: site.Site, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Observation]:
    """The observation of each place in each state."""
    found: dict[tuple[str, str], Observation] = {}

    async def look(browser: Session, state: str, origin: str) -> None:
        for place in PLACES:
            looked_at.requests.clear()
            found[state, place] = await observe(browser, looked_at, origin, place)

    here = looked_at.origin
    # Chromium remembers the password of an origin, so the reattached one uses another.
    elsewhere = here.replace("127.0.0.1", "localhost")
    for mode in MODES:
        private = tmp_path_factory.mktemp(mode)
        async with browsers.opened(private, here, options=OPTIONS, mode=mode, linger=60, seconds=20) as browser:
            await look(browser, mode, here)
            if mode == "own":
                async with found_again(browser, private, here, elsewhere, options=OPTIONS) as again:
                    await look(again, "found again", elsewhere)
    return found


@contextlib.asynccontextmanager
async def found_again(
    browser: Session, private: Path, *origins: str, options: BrowserOptions
) -> AsyncGenerator[Session]:
    """The browser, released by its engine and reattached; closed with the block."""
    await browser.close(keep=True)
    again = await open_browser.reattach(options, origins=origins, private=private, settings=browsers.Chosen())
    assert again is not None
    again.bound(20)
    try:
        yield again
    finally:
        await again.close()


async def observe(browser: Session, looked_at: site.Site, origin: str, place: str) -> Observation:
    """Opens the page at a place, and records what it saw."""
    path = f"/{place.replace(' ', '-')}"
    page = browser.page.page
    if place == "tab":
        await browser.page.goto(origin + path)
    else:
        ways = {
            "popup": f"window.open('{path}')",
            "popup without opener": f"window.open('{path}', '_blank', 'noopener')",
            "popup by name": f"window.open('{path}', 'other')",
        }
        async with page.context.expect_page() as opening:
            await page.evaluate(f"void {ways[place]}")
        page = await opening.value
        await page.wait_for_url(f"**{path}")
    seen = await page.evaluate("asked")
    allowed = [each for each in looked_at.requests if "authorization" in each.headers]
    first = {each.path: each for each in reversed(allowed)}
    return Observation(seen, first[path], first["/data"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("state", STATES)
async def test_options_hold_in_pages(state: str, place: str, observations: dict[tuple[str, str], Observation]) -> None:
    """Every option holds for the first script of every page, however it was opened."""
    assert observations[state, place].seen == EXPECTED


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("state", STATES)
async def test_options_reach_requests(state: str, place: str, observations: dict[tuple[str, str], Observation]) -> None:
    """Every option holds for the request for a page, and for the page's own requests."""
    for request in (observations[state, place].request, observations[state, place].data):
        sent = {name: request.headers.get(name) for name in SENT}
        assert sent == SENT
        assert request.headers["accept-language"].startswith("de-DE")


@pytest.mark.parametrize("mode", MODES)
async def test_a_password_is_for_allowed_sites_only(
    mode: Mode, looked_at: site.Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A foreign image that demands a password gets none; a wrong password is sent once, not repeatedly."""
    options = BrowserOptions(http_credentials=HttpCredentials(username="eve", password="guesses"))
    private = tmp_path_factory.mktemp("private")
    with site.serve() as foreign:
        foreign.answer("/pixel", only_for_ada(""))
        looked_at.page("/tempting", f"<img src={foreign.origin}/pixel>")
        looked_at.requests.clear()
        async with browsers.opened(private, looked_at.origin, options=options, mode=mode) as browser:
            await browser.page.goto(looked_at.origin + "/tempting")
            assert [each.headers.get("authorization") for each in foreign.arrived("/pixel")] == [None]
            await browser.page.goto(looked_at.origin + "/tab")
            assert await browser.page.text(Target(css="body")) == "who are you?"
    assert len(looked_at.arrived("/tab")) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_no_dialog_asks_for_a_password(
    mode: Mode, looked_at: site.Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without a configured password the site's own answer is shown, and no dialog opens."""
    private = tmp_path_factory.mktemp("private")
    async with browsers.opened(private, looked_at.origin, mode=mode) as browser:
        await browser.page.goto(looked_at.origin + "/tab")
        assert await browser.page.text(Target(css="body")) == "who are you?"


@pytest.mark.parametrize("mode", MODES)
async def test_a_proxy_and_no_scripts(mode: Mode, tmp_path_factory: pytest.TempPathFactory) -> None:
    """All requests use the proxy with its password, loopback too, and no page runs scripts. A reattached browser keeps both."""
    private = tmp_path_factory.mktemp("private")
    asking = {"proxy-authenticate": 'Basic realm="proxy"'}
    with site.serve() as proxy:

        def answer(request: site.Request) -> site.Answer:
            if request.headers.get("proxy-authorization") != BASIC:
                return site.Answer("", 407, asking)
            return site.Answer(
                "<title>Written</title><script>document.title = 'Run'</script><a target=_blank href=/popup>More</a>"
            )

        proxy.answer("/", answer)
        proxy.answer("/popup", answer)
        proxy.answer("/again", answer)
        options = BrowserOptions(
            java_script=False, proxy=Proxy(server=proxy.origin, username="ada", password="lovelace")
        )
        elsewhere = "http://127.0.0.1:8123"
        async with browsers.opened(private, elsewhere, options=options, mode=mode, linger=60) as browser:
            await browser.page.goto(f"{elsewhere}/")
            assert await browser.page.page.title() == "Written"
            async with browser.page.page.context.expect_page() as opening:
                await browser.page.click(Target(role="link", name="More"))
            popup = await opening.value
            await popup.wait_for_url("**/popup")
            assert await popup.title() == "Written"
            if mode == "own":
                await popup.close()
                async with found_again(browser, private, elsewhere, options=options) as again:
                    await again.page.goto(f"{elsewhere}/again")
                    assert await again.page.page.title() == "Written"
        again_too = ["/again"] if mode == "own" else []
        arrived = [each.path for each in proxy.arrived() if "proxy-authorization" in each.headers]
        assert arrived == ["/", "/popup", *again_too]


async def test_options_of_the_shared_mode(looked_at: site.Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Touch, phone layout and an ignored content security policy work in mode shared."""
    private = tmp_path_factory.mktemp("private")
    looked_at.page(
        "/strict",
        "<script>window.run = true</script>",
        content_security_policy="script-src 'none'",
    )
    options = BrowserOptions(mode="shared", touch=True, mobile=True, bypass_csp=True)
    async with browsers.opened(private, looked_at.origin, options=options) as browser:
        await browser.page.goto(looked_at.origin + "/strict")
        seen = await browser.page.page.evaluate("[navigator.maxTouchPoints > 0, 'ontouchstart' in window, window.run]")
        assert seen == [True, True, True]


async def test_options_of_the_own_mode(looked_at: site.Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Custom switches reach a separate Chromium, beside those that RunOps sets."""
    private = tmp_path_factory.mktemp("private")
    options = BrowserOptions(mode="own", color_scheme="dark", switches=["--blink-settings=textAreasAreResizable=false"])
    looked_at.page("/plain", "<textarea></textarea>")
    async with browsers.opened(private, looked_at.origin, options=options) as browser:
        await browser.page.goto(looked_at.origin + "/plain")
        seen = await browser.page.page.evaluate(
            "[getComputedStyle(document.querySelector('textarea')).resize, matchMedia('(prefers-color-scheme: dark)').matches]"
        )
        assert seen == ["none", True]


async def test_a_mode_setting_without_a_required_option_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A mode setting that conflicts with the workflow's options is refused, and the other mode is named."""
    private = tmp_path_factory.mktemp("private")
    options = BrowserOptions(switches=["--lang=de"])
    chosen = browsers.Chosen(browser_mode="shared")
    with pytest.raises(UsageError, match="mode `shared` has no `switches`: take mode `own`"):
        await open_browser.open_browser(options, origins=[], private=private, settings=chosen)
