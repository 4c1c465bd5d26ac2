"""Every browser option in every mode: what pages and the site see of it, from the first request and the first script on.

The modes are *own*, *own* found again by the next engine, *shared*, and the browser of `--browser-url`.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import AuthorError, SiteError
from nodes.pointer import Spot
from nodes.targets import Target
from runtime.browser import devices
from runtime.browser import open as open_browser
from runtime.browser.options import BrowserOptions, Mode
from runtime.browser.session import Session
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host
from scripts import device_list
from tests import browsers, site
from tests import open_browser as opened_by_others

pytestmark = [
    pytest.mark.full_browser,
    pytest.mark.own_driver,
    pytest.mark.drawn(share=0.03, of="browser_options"),
]

MODES: tuple[Mode, ...] = ("own", "shared")

STATES = ("own", "found again", "shared", "of others")

POPUPS = {
    "popup": "window.open('PATH')",
    "popup without opener": "window.open('PATH', '_blank', 'noopener')",
    "popup by name": "window.open('PATH', 'other')",
}

FRAMES = ("frame", "foreign frame")

PLACES = ("tab", *POPUPS, *FRAMES)

BASIC = "Basic " + base64.b64encode(b"ada:lovelace").decode()

SWITCH = "--blink-settings=textAreasAreResizable=false"


@dataclasses.dataclass(frozen=True)
class Case:
    """One option: what the page's first script sees of it, and the headers of each request of the page."""

    option: str
    given: Any
    sees: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Values of JavaScript expressions."""
    sends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Beginnings of headers."""
    places: tuple[str, ...] = PLACES
    states: tuple[str, ...] = STATES


TOP = ("tab", *POPUPS)
"""Places with the size of the page area, and with its permissions."""

OF_THE_SITE = (*TOP, "frame")
"""Places where Chromium lets the screen be another one, and gives a password: a frame of another site has the screen of the machine."""

DESKTOP = (
    Case("viewport", {"width": 900, "height": 500}, {"[innerWidth, innerHeight]": [900, 500]}, places=TOP),
    Case(
        "screen", {"width": 1600, "height": 1000}, {"[screen.width, screen.height]": [1600, 1000]}, places=OF_THE_SITE
    ),
    Case("device_scale_factor", 2.0, {"devicePixelRatio": 2}, places=OF_THE_SITE),
    Case(
        "locale",
        "de-DE",
        {"navigator.language": "de-DE", "(1234.5).toLocaleString()": "1.234,5"},
        {"accept-language": "de-DE"},
    ),
    Case(
        "timezone",
        "Asia/Tokyo",
        {"Intl.DateTimeFormat().resolvedOptions().timeZone": "Asia/Tokyo", "new Date(0).getHours()": 9},
    ),
    Case(
        "user_agent",
        "Tester/1.0 (Macintosh; Intel Mac OS X 10_15_7)",
        {
            "navigator.userAgent": "Tester/1.0 (Macintosh; Intel Mac OS X 10_15_7)",
            "navigator.userAgentData.platform": "macOS",
        },
        {"user-agent": "Tester/1.0 ("},
    ),
    Case("color_scheme", "dark", {"matchMedia('(prefers-color-scheme: dark)').matches": True}),
    Case("reduced_motion", True, {"matchMedia('(prefers-reduced-motion: reduce)').matches": True}),
    Case(
        "geolocation",
        {"latitude": 52.5, "longitude": 13.4},
        {
            """new Promise((told) => navigator.geolocation.getCurrentPosition(
              ({coords}) => told([coords.latitude, coords.longitude]), (error) => told(error.message)))""": [52.5, 13.4]
        },
    ),
    Case(
        "permissions",
        ["geolocation", "notifications"],
        {"navigator.permissions.query({name: 'notifications'}).then(({state}) => state)": "granted"},
        places=TOP,
    ),
    Case("headers", {"X-Run": "seven"}, sends={"x-run": "seven"}),
    Case(
        "http_credentials",
        {"username": "ada", "password": "lovelace"},
        {"fetch('/data').then((answer) => answer.text())": "for ada"},
        {"authorization": BASIC},
        places=OF_THE_SITE,
    ),
    Case("ignore_https_errors", True, {"fetch(SECURE, {mode: 'no-cors'}).then(() => 'loaded', String)": "loaded"}),
    Case("bypass_csp", True, {"new Promise((told) => addEventListener('load', () => told(window.unsigned)))": True}),
    Case(
        "switches",
        [SWITCH],
        {"getComputedStyle(document.documentElement.appendChild(document.createElement('textarea'))).resize": "none"},
        states=("own", "found again", "shared"),
    ),
)

PHONE = (
    Case(
        "mobile",
        True,
        # A page that says nothing about phones is laid out as wide as a desk, and shown smaller.
        {"new Promise((told) => addEventListener('load', () => told(document.documentElement.clientWidth)))": 980},
        places=TOP,
    ),
    Case(
        "touch",
        True,
        {
            "['ontouchstart' in window, navigator.maxTouchPoints, matchMedia('(pointer: coarse)').matches]": [
                True,
                1,
                True,
            ]
        },
    ),
)

DEVICE = (
    Case(
        "device",
        "iPhone 13",
        {
            "[screen.width, screen.height, devicePixelRatio]": [390, 844, 3],
            "navigator.maxTouchPoints": 1,
            "/iPhone OS/.test(navigator.userAgent)": True,
            "[navigator.userAgentData.mobile, navigator.userAgentData.platform]": [True, "iOS"],
            "screen.orientation.type": "portrait-primary",
        },
        {"user-agent": "Mozilla/5.0 (iPhone", "sec-ch-ua-mobile": "?1"},
        places=OF_THE_SITE,
    ),
)

GROUPS = {"desktop": DESKTOP, "phone": PHONE, "device": DEVICE}
"""Options that one browser has together."""

CASES = [
    pytest.param(name, case, state, place, id=f"{case.option}-{state}-{place}".replace(" ", "_"))
    for name, group in GROUPS.items()
    for case in group
    for state in case.states
    for place in case.places
]

LOOK = """<!doctype html><meta charset=utf-8><title>Look</title><script nonce=look>
const looks = LOOKS;
const asked = Promise.all(Object.entries(looks).map(async ([name, look]) => {
  try { return [name, await look()]; } catch (error) { return [name, String(error)]; }
})).then(Object.fromEntries);
</script><script>window.unsigned = true</script>"""
"""The first script of a page records what it sees."""

SIGNED_ONLY = {"content-security-policy": "script-src 'nonce-look'"}


@dataclasses.dataclass
class Observation:
    """What a page saw, and the first requests for it and its data that were let in."""

    seen: dict[str, Any]
    requests: list[site.Request]


def look(group: tuple[Case, ...], secure: str) -> str:
    """The page that looks for the options of a group."""
    expressions = sorted({each for case in group for each in case.sees})
    looks = ", ".join(f"{json.dumps(each)}: () => {each.replace('SECURE', repr(secure))}" for each in expressions)
    return LOOK.replace("LOOKS", f"{{{looks}}}")


def only_for_ada(body: str, headers: Mapping[str, str] = site.Answer().headers) -> site.Handler:
    """A page behind a password."""

    def answer(request: site.Request) -> site.Answer:
        if request.headers.get("authorization") == BASIC:
            return site.Answer(body, headers=dict(headers))
        return site.Answer("who are you?", 401, {"www-authenticate": 'Basic realm="here"'})

    return answer


def page_of(group: str, place: str, body: str) -> site.Handler:
    """The page of a group: the desktop's pages forbid unsigned scripts, and have a password where Chromium gives one."""
    if group != "desktop":
        return lambda _request: site.Answer(body)
    if place == "foreign frame":
        return lambda _request: site.Answer(body, headers=SIGNED_ONLY)
    return only_for_ada(body, SIGNED_ONLY)


@dataclasses.dataclass
class Looked:
    """A site that records the options of its visitors; the desktop's pages are behind a password."""

    served: site.Site
    secure: str

    def path(self, group: str, place: str) -> str:
        """The page of a group at a place."""
        return f"/{group}/{place.replace(' ', '-')}"

    @property
    def here(self) -> str:
        """Its origin."""
        return self.served.origin

    @property
    def elsewhere(self) -> str:
        """Its origin by another host, which makes another site of it."""
        return self.served.origin.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def looked() -> Iterator[Looked]:
    """The site, with a page for each group and place."""
    with site.serve() as served, site.serve(secure=True) as secure:
        secure.page("/", "over TLS")
        both = Looked(served, secure.origin)
        for name, group in GROUPS.items():
            for place in PLACES:
                served.answer(both.path(name, place), page_of(name, place, look(group, secure.origin)))
        for foreign, place in enumerate(FRAMES):
            for name in GROUPS:
                source = f"{both.elsewhere if foreign else ''}{both.path(name, place)}"
                frame = (
                    f"<title>Around</title><iframe src='{source}' allow='geolocation *' width=300 height=200></iframe>"
                )
                served.page(f"{both.path(name, place)}-around", frame)
        served.answer("/data", only_for_ada("for ada"))
        yield both


@pytest.fixture(scope="module")
def of_others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[opened_by_others.Opened]:
    """The browser that somebody else has open."""
    with opened_by_others.opened(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@dataclasses.dataclass
class Opener:
    """Opens browsers of every state."""

    tmp_path_factory: pytest.TempPathFactory
    others: opened_by_others.Opened

    @contextlib.asynccontextmanager
    async def __call__(self, state: str, options: BrowserOptions, *origins: str) -> AsyncGenerator[Session]:
        """A browser in this state; closed with the block."""
        private = self.tmp_path_factory.mktemp("private")
        url = self.others.url if state == "of others" else None
        mode: Mode | None = {"own": "own", "found again": "own", "shared": "shared"}.get(state)  # type: ignore[assignment]
        chosen = browsers.Chosen(browser_mode=mode, browser_url=url, linger=60)
        browser = await open_browser.open_browser(options, origins=origins, private=private, settings=chosen)
        if state == "found again":
            await browser.close(keep=True)
            again = await open_browser.reattach(options, origins=origins, private=private, settings=chosen)
            assert again is not None
            browser = again
        browser.bound(20)
        try:
            yield browser
        finally:
            await browser.close()


@pytest.fixture(scope="module")
def opener(tmp_path_factory: pytest.TempPathFactory, of_others: opened_by_others.Opened) -> Opener:
    """Opens browsers of every state."""
    return Opener(tmp_path_factory, of_others)


def options_of(group: str, state: str) -> BrowserOptions:
    """The options of a group, as a file has them."""
    given = {case.option: case.given for case in GROUPS[group] if state in case.states}
    more = {"viewport": {"width": 400, "height": 700}} if group == "phone" else {}
    return BrowserOptions.model_validate({**given, **more})


@pytest.fixture(scope="module")
def observations(looked: Looked, opener: Opener) -> Callable[[str, str], Any]:
    """The observations of a group in a state, by place; made when the first test asks for them."""
    made: dict[tuple[str, str], dict[str, Observation]] = {}

    async def observed(group: str, state: str) -> dict[str, Observation]:
        if (group, state) not in made:
            options = options_of(group, state)
            async with opener(state, options, looked.here, looked.elsewhere) as browser:
                made[group, state] = {place: await observe(browser, looked, group, place) for place in PLACES}
        return made[group, state]

    return observed


async def observe(browser: Session, looked: Looked, group: str, place: str) -> Observation:
    """Opens the page at a place, and records what it saw."""
    looked.served.requests.clear()
    path = looked.path(group, place)
    page = browser.page.page
    if place in FRAMES:
        await browser.page.goto(f"{looked.here}{path}-around")
        seen = await page.frames[1].evaluate("asked")
    elif place == "tab":
        await browser.page.goto(looked.here + path)
        seen = await page.evaluate("asked")
    else:
        async with page.context.expect_page() as opening:
            await page.evaluate(f"void {POPUPS[place].replace('PATH', path)}")
        popup = await opening.value
        await popup.wait_for_url(f"**{path}")
        seen = await popup.evaluate("asked")
        await popup.close()
    asked = [each for each in looked.served.requests if each.path in (path, "/data")]
    has_password = group == "desktop" and place != "foreign frame"
    return Observation(seen, [each for each in asked if "authorization" in each.headers or not has_password])


@pytest.mark.parametrize(("group", "case", "state", "place"), CASES)
async def test_an_option_holds(
    group: str, case: Case, state: str, place: str, observations: Callable[[str, str], Any]
) -> None:
    """The option holds for the first script of the page and for all its requests, however it was opened, in every mode."""
    found: Observation = (await observations(group, state))[place]
    assert {each: found.seen[each] for each in case.sees} == case.sees
    assert found.requests
    for request in found.requests:
        sent = {name: request.headers.get(name, "")[: len(value)] for name, value in case.sends.items()}
        assert sent == case.sends


@pytest.mark.parametrize("state", STATES)
async def test_what_the_file_says_wins_over_the_device(state: str, opener: Opener, looked: Looked) -> None:
    """An option beside ``device`` replaces the device's, in every mode; the others stay the device's."""
    options = BrowserOptions.model_validate(
        {"device": "iPhone 13", "viewport": {"width": 500, "height": 400}, "touch": False}
    )
    looked.served.page("/plain", "<meta name=viewport content='width=device-width'><title>Plain</title>")
    async with opener(state, options, looked.here) as browser:
        await browser.page.goto(looked.here + "/plain")
        seen = await browser.page.page.evaluate("[innerWidth, innerHeight, devicePixelRatio, navigator.maxTouchPoints]")
    assert seen == [500, 400, 3, 0]


TAPPED = """<!doctype html><title>Tapped</title><style>body { font: 20px sans-serif }</style>
<div style="width: 60px"><a href="#">two long lines</a></div><div style="height: 1500px"></div>
<button style="width: 200px; height: 80px; border: 5px solid">Tap</button><p id=said></p>
<script>
for (const kind of ['touchstart', 'touchend', 'click'])
  document.addEventListener(kind, (event) => {
    const {left, top} = event.target.getBoundingClientRect(), touch = event.changedTouches?.[0];
    const at = touch ? ` ${Math.round(touch.clientX - left)},${Math.round(touch.clientY - top)}` : '';
    if (event.target.matches('a, button')) said.textContent += `${event.target.tagName} ${kind}${at}; `;
  });
</script>"""


@pytest.mark.parametrize("mobile", [False, True])
@pytest.mark.parametrize("state", STATES)
async def test_a_finger_taps(*, state: str, mobile: bool, opener: Opener, looked: Looked) -> None:
    """A tap arrives as a touch and then a click, in the middle or at its place, also below the fold and in a frame, in every mode."""
    looked.served.page("/tapped", TAPPED)
    looked.served.page(
        "/around", "<p style='height: 300px'>Above</p><iframe src=/tapped width=400 height=300></iframe>"
    )
    options = BrowserOptions.model_validate({"touch": True, "mobile": mobile})
    async with opener(state, options, looked.here) as browser:
        for path, within in (("/tapped", None), ("/around", "iframe")):
            await browser.page.goto(looked.here + path)
            link, button = (
                Target.model_validate({"role": "link", "name": "two long lines", "frame": within}),
                Target.model_validate({"role": "button", "name": "Tap", "frame": within}),
            )
            await browser.page.tap(link)
            await browser.page.tap(button)
            await browser.page.tap(button, Spot(x=10, y=20))
            said = await browser.page.page.frames[-1].evaluate("said.textContent.split('; ')")
            assert [each.partition(" ")[2].partition(" ")[0] for each in said[:3]] == [
                "touchstart",
                "touchend",
                "click",
            ]
            assert said[0].startswith("A touchstart")
            assert said[3:] == [
                *("BUTTON touchstart 100,40", "BUTTON touchend 100,40", "BUTTON click"),
                *("BUTTON touchstart 15,25", "BUTTON touchend 15,25", "BUTTON click", ""),
            ]


@pytest.mark.parametrize("mode", MODES)
async def test_a_browser_without_touch_is_not_tapped(mode: Mode, opener: Opener, looked: Looked) -> None:
    """A tap without a touch screen is refused, and the error says what to write."""
    looked.served.page("/tapped", TAPPED)
    async with opener(mode, BrowserOptions(), looked.here) as browser:
        await browser.page.goto(looked.here + "/tapped")
        with pytest.raises(AuthorError, match="no touch screen") as caught:
            await browser.page.tap(Target(role="button", name="Tap"))
    assert caught.value.fix == "write `browser: {touch: true}` at the head of the file"


@pytest.mark.parametrize("state", STATES)
async def test_offline(state: str, opener: Opener, looked: Looked) -> None:
    """Without a network no request leaves, neither of the tab nor of a popup or a worker, in every mode."""
    looked.served.requests.clear()
    async with opener(state, BrowserOptions(offline=True), looked.here) as browser:
        page = browser.page.page
        async with page.context.expect_page() as opening:
            await page.evaluate(f"void window.open('{looked.here}/data')")
        popup = await opening.value
        await popup.wait_for_url("chrome-error:**")
        work = f"fetch('{looked.here}/data', {{mode: 'no-cors'}}).then(() => postMessage('sent'), () => postMessage('failed'))"
        asked = "(work) => new Promise((told) => { new Worker(URL.createObjectURL(new Blob([work]))).onmessage = ({data}) => told(data) })"
        assert await page.evaluate(asked, work) == "failed"
        with pytest.raises(SiteError, match="INTERNET_DISCONNECTED"):
            await browser.page.goto(looked.here + "/data")
    assert looked.served.arrived() == []


@pytest.mark.parametrize("state", STATES)
async def test_a_proxy_and_no_scripts(state: str, opener: Opener) -> None:
    """All requests use the proxy with its password, loopback too, and no page runs scripts, in every mode."""
    asking = {"proxy-authenticate": 'Basic realm="proxy"'}
    with site.serve() as proxy:

        def answer(request: site.Request) -> site.Answer:
            if request.headers.get("proxy-authorization") != BASIC:
                return site.Answer("", 407, asking)
            return site.Answer(
                "<title>Written</title><script>document.title = 'Run'</script><a target=_blank href=/popup>More</a>"
                f"{'' if request.path == '/frame' else '<iframe src=/frame></iframe>'}"
            )

        for path in ("/", "/popup", "/frame"):
            proxy.answer(path, answer)
        given = {"java_script": False, "proxy": {"server": proxy.origin, "username": "ada", "password": "lovelace"}}
        elsewhere = "http://127.0.0.1:8123"
        async with opener(state, BrowserOptions.model_validate(given), elsewhere) as browser:
            page = browser.page.page
            await browser.page.goto(f"{elsewhere}/")
            async with page.context.expect_page() as opening:
                await browser.page.click(Target(role="link", name="More"))
            popup = await opening.value
            await popup.wait_for_url("**/popup")
            await popup.wait_for_load_state()
            titles = [await each.title() for each in (page, page.frames[1], popup, popup.frames[1])]
        assert titles == ["Written"] * 4
        arrived = [each.path for each in proxy.arrived() if "proxy-authorization" in each.headers]
        assert arrived == ["/", "/frame", "/popup", "/frame"]


@pytest.mark.parametrize("mode", MODES)
async def test_the_file_chooses_the_mode(mode: Mode, tmp_path: Path) -> None:
    """A browser of mode own can be found again by the next engine, one of mode shared cannot."""
    options, chosen = BrowserOptions(mode=mode), browsers.Chosen(linger=60)
    browser = await open_browser.open_browser(options, origins=[], private=tmp_path, settings=chosen)
    await browser.close(keep=True)
    again = await open_browser.reattach(options, origins=[], private=tmp_path, settings=chosen)
    assert (again is not None) == (mode == "own")
    if again is not None:
        await again.close()


SEPARATE = {
    "mode": test_the_file_chooses_the_mode,
    "offline": test_offline,
    "proxy": test_a_proxy_and_no_scripts,
    "java_script": test_a_proxy_and_no_scripts,
}
"""Options that need a browser, or a site, of their own."""

ELSEWHERE = {"engine"}
"""Options whose tests are in other files: test_firefox.py, test_guard.py."""


@pytest.mark.drawn(1)
def test_every_option_has_a_case() -> None:
    """No option is without a case in every mode."""
    cased = {case.option for group in GROUPS.values() for case in group}
    assert cased | SEPARATE.keys() | ELSEWHERE == BrowserOptions.model_fields.keys()


@pytest.mark.drawn(1)
async def test_the_devices_are_those_of_playwright() -> None:
    """The list of devices is that of the installed Playwright; `scripts/device_list.py` writes it."""
    assert devices.FILE.read_text() == device_list.text(await device_list.described())


@pytest.mark.parametrize("state", STATES)
async def test_a_password_is_for_allowed_sites_only(state: str, opener: Opener, looked: Looked) -> None:
    """A foreign image that demands a password gets none; a wrong password is sent once, not repeatedly."""
    given = {"http_credentials": {"username": "eve", "password": "guesses"}}
    with site.serve() as foreign:
        foreign.answer("/pixel", only_for_ada(""))
        looked.served.page("/tempting", f"<img src={foreign.origin}/pixel>")
        looked.served.requests.clear()
        async with opener(state, BrowserOptions.model_validate(given), looked.here) as browser:
            await browser.page.goto(looked.here + "/tempting")
            assert [each.headers.get("authorization") for each in foreign.arrived("/pixel")] == [None]
            await browser.page.goto(looked.here + "/data")
            assert await browser.page.text(Target(css="body")) == "who are you?"
    assert len(looked.served.arrived("/data")) == 2


@pytest.mark.parametrize("state", STATES)
async def test_no_dialog_asks_for_a_password(state: str, opener: Opener, looked: Looked) -> None:
    """Without a configured password the site's own answer is shown, and no dialog opens."""
    async with opener(state, BrowserOptions(), looked.here) as browser:
        await browser.page.goto(looked.here + "/data")
        assert await browser.page.text(Target(css="body")) == "who are you?"


async def test_a_browser_is_shared_only_by_runs_with_its_switches(opener: Opener, looked: Looked) -> None:
    """Two runs of mode shared with other switches have two browsers, each with its own."""
    looked.served.page("/plain", "<textarea></textarea>")
    plain, switched = BrowserOptions(), BrowserOptions(switches=[SWITCH])
    async with opener("shared", plain, looked.here) as first, opener("shared", switched, looked.here) as second:
        seen: list[str] = []
        for browser in (first, second):
            await browser.page.goto(looked.here + "/plain")
            seen.append(await browser.page.page.evaluate("getComputedStyle(document.querySelector('textarea')).resize"))
    assert seen == ["both", "none"]


FLOW = """
version: 1
name: Headers
inputs: {base_url: {type: string}, who: {type: string}}
secrets: [TOKEN]
browser:
  mode: MODE
  headers: {X-Who: "{{ inputs.who }}", X-Token: "{{ secrets.TOKEN }}"}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/"}
"""


@pytest.mark.parametrize("mode", MODES)
async def test_options_take_inputs_and_secrets(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers from an input and a secret are sent with their values in both modes; the log does not contain the secret."""
    monkeypatch.setenv("TOKEN", "s3cret-token")
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW.replace("MODE", mode))
    with site.serve() as served:
        ended = await start.start(
            file, {"base_url": served.origin, "who": "me"}, host.of_command(settings.load(home=tmp_path / "home"))
        )
        assert ended.status == "passed", ended
        (request,) = served.arrived("/")
        assert (request.headers["x-who"], request.headers["x-token"]) == ("me", "s3cret-token")
    log = next((tmp_path / "home" / "conversations").iterdir()).read_text()
    assert "s3cret-token" not in log
