"""Pages after the steps before a failure, and the trace, in Chromium."""

from __future__ import annotations

import functools
import http.server
import threading
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import av
import playwright
import pytest
from playwright.async_api import Browser, async_playwright

from nodes.errors import AuthorError
from nodes.values import Json
from runtime import Runtime, Settings, events
from runtime.browser.chromium import find
from runtime.browser.page import screenshots
from runtime.engine import trace_file
from runtime.log import history
from runtime.log.store import file_store
from runtime.report import of_run, text
from runtime.workspace import run_index
from tests import browsers, site
from tests.unit.test_video import frames

pytestmark = pytest.mark.anyio

CANARY = "canary-5512"

FLOW = """
version: 1
name: Four pages
{head}
nodes:
  - {{id: red, type: browser_action, action: goto, url: "{origin}/red"}}
  - {{id: green, type: browser_action, action: goto, url: "{origin}/green"}}
  - {{id: blue, type: browser_action, action: click, target: {{role: link, name: Next}}, verify: [{{url: "**/blue"}}]}}
  - {{id: fill, type: browser_action, action: fill, target: {{label: Note}}, value: "{value}"}}
  - {{id: press, type: browser_action, action: click, target: {{role: button, name: {button}}}, timeout: 2}}
"""

PAGE = """<!doctype html><title>{colour}</title><body style="background: {colour}"><a href="/{next}">Next</a>
<label>Note <input></label> <button>Save</button><script>{script}</script>"""

SCRIPT = "console.error('the page complains'); fetch('/missing'); setTimeout(() => { throw new Error('not caught') })"


@pytest.fixture
def served() -> Generator[site.Site]:
    """Three pages of one colour each; the last one complains."""
    with site.serve() as here:
        for colour, after in (("red", "green"), ("green", "blue"), ("blue", "red")):
            script = SCRIPT if colour == "blue" else ""
            here.page(f"/{colour}", PAGE.format(colour=colour, next=after, script=script))
        yield here


async def ran(
    folder: Path,
    served: site.Site,
    *,
    flow: str = FLOW,
    button: str = "Gone",
    secret: bool = False,
    value: str = CANARY,
    **chosen: Any,
) -> events.RunEnded:
    """The end of the run, with these settings. With ``secret`` it fills one in."""
    file = folder / "flow.yaml"
    head, text = ("secrets: [TOKEN]", "{{ secrets.TOKEN }}") if secret else ("", "hello")
    file.write_text(flow.format(origin=served.origin, button=button, head=head, value=text))
    settings = Settings(home=folder / "home", browser_mode="shared", **chosen)
    async with Runtime(settings=settings, secrets={"TOKEN": value}) as runs:
        return await (await runs.start(file)).wait()


def past_of(folder: Path, ended: events.RunEnded) -> history.History:
    """The history of the run."""
    return run_index.load_history(file_store.Files(folder / "home"), ended.run)[0]


async def test_a_failure_keeps_the_pages_before_it_and_a_trace(tmp_path: Path, served: site.Site) -> None:
    """The pages after the three steps before the failed one, what its page complained of, and a trace that Playwright's viewer shows."""
    ended = await ran(tmp_path, served, trace="on")
    assert (ended.status, ended.path) == ("failed", "press")
    found = past_of(tmp_path, ended).evidence[-1]
    frames: list[dict[str, Json]] = found["frames"]
    assert [(each["path"], each["url"].rpartition("/")[2]) for each in frames] == [
        ("green", "green"),
        ("blue", "blue"),
        ("fill", "blue"),
    ]
    store = file_store.Files(tmp_path / "home")
    report = of_run.run_report(*run_index.load_history(store, ended.run), store, at="press", brief=True)
    shown = "\n".join(text.step(report, text.Style()))
    assert f"trace  playwright show-trace {found['trace']['path']}" in shown
    assert f"before  fill  {frames[-1]['screenshot']['path']}" in shown
    said = [(each["kind"], each["text"], each.get("status")) for each in found["messages"]]
    assert ("console", "the page complains", None) in said
    assert ("request", "GET 404 Not Found", 404) in said
    assert any(kind == "error" and "not caught" in each for kind, each, _status in said)
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=find.find(None))
        try:
            colours = [await colour_of(browser, Path(each["screenshot"]["path"])) for each in (*frames, found)]
            assert colours == [(0, 128, 0), (0, 0, 255), (0, 0, 255), (0, 0, 255)]
            await see_in_viewer(browser, Path(found["trace"]["path"]))
        finally:
            await browser.close()


async def colour_of(browser: Browser, picture: Path) -> tuple[int, int, int]:
    """The colour in the middle of a picture, as near as a JPEG tells it."""
    page = await browser.new_page()
    await page.goto(picture.as_uri())
    colour: list[int] = await page.evaluate(
        """() => {
          const image = document.querySelector('img'), canvas = document.createElement('canvas');
          canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
          const drawn = canvas.getContext('2d');
          drawn.drawImage(image, 0, 0);
          return Array.from(drawn.getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data).slice(0, 3);
        }"""
    )
    await page.close()
    return tuple(128 if 100 < each < 150 else 255 if each > 240 else 0 if each < 15 else each for each in colour)  # pyright: ignore[reportReturnType]


async def see_in_viewer(browser: Browser, trace: Path) -> None:
    """Open the trace in the viewer that Playwright ships: it shows the steps, the error, the picture, and what the page said."""
    viewer = Path(playwright.__file__).parent / "driver/package/lib/vite/traceViewer"

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            return str(trace) if path.startswith("/of-run/") else super().translate_path(path)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(viewer))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        page = await browser.new_page()
        broken: list[str] = []
        page.on("pageerror", lambda error: broken.append(str(error)))
        await page.goto(f"{origin}/index.html?trace={origin}/of-run/trace.zip")
        listed = page.get_by_test_id("actions-tree")
        await listed.get_by_text("press").click()
        for path in ("red", "green", "blue", "fill"):
            await listed.get_by_text(path, exact=False).first.wait_for()
        await page.get_by_role("tab", name="Errors").click()
        await page.get_by_text("target-not-found").first.wait_for()
        await page.get_by_role("tab", name="Console").click()
        await page.get_by_text("the page complains").first.wait_for()
        await page.get_by_role("tab", name="Network").click()
        await page.get_by_text("missing").first.wait_for()
        shown = page.locator(".aria-mode-view img, .film-strip img").first
        await shown.wait_for(state="attached")
        assert broken == []
        server.shutdown()


async def test_pages_that_show_a_secret_are_in_no_trace_and_no_video(tmp_path: Path, served: site.Site) -> None:
    """A run that passes keeps both among its files; from the step that fills a secret in until the page changes there is no picture."""
    ended = await ran(tmp_path, served, button="Save", secret=True, trace="on", video=True)
    assert ended.status == "passed"
    store = file_store.Files(tmp_path / "home")
    report = of_run.run_report(*run_index.load_history(store, ended.run), store, brief=True)
    assert f"trace  playwright show-trace {ended.files[0]['path']}" in "\n".join(text.whole(report, text.Style()))
    trace, filmed = (Path(str(each["path"])) for each in ended.files)
    shots = frames(filmed.read_bytes())
    assert [colour for _at, _width, _height, colour in shots] == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1)]
    with zipfile.ZipFile(trace) as archive:
        assert len([name for name in archive.namelist() if name.startswith("screenshots/")]) == 3
    assert not any(CANARY.encode() in each.read_bytes() for each in (tmp_path / "home").rglob("*") if each.is_file())
    failed = await ran(tmp_path, served, secret=True, trace="on-failure")
    found = past_of(tmp_path, failed).evidence[-1]
    assert found["frames"][-1]["no_screenshot"] == "secret-on-page"
    assert found["screenshot"]["size"] > 0, "the failed step has its masked picture"


MIRROR = """<!doctype html><title>Mirror</title><label>Key <input></label><p></p><canvas width=600 height=80></canvas><script>
const field = document.querySelector('input'), drawn = document.querySelector('canvas').getContext('2d');
field.oninput = () => {
  document.querySelector('p').textContent = field.value;
  drawn.font = '40px sans-serif';
  drawn.fillText(field.value, 5, 60);
};
</script>"""

MIRRORED = """
version: 1
name: Mirror
secrets: [TOKEN]
nodes:
  - {{id: red, type: browser_action, action: goto, url: "{origin}/red"}}
  - {{id: mirror, type: browser_action, action: goto, url: "{origin}/mirror"}}
  - {{id: fill, type: browser_action, action: fill, target: {{label: Key}}, value: "{{{{ secrets.TOKEN }}}}"}}
  - {{id: look, type: browser_query, query: count, target: {{label: Key}}}}
  - {{id: blue, type: browser_action, action: goto, url: "{origin}/blue"}}
"""


def pixels(file: Path) -> list[bytes]:
    """The brightness of every pixel of each frame of a video."""
    with av.open(str(file)) as opened:
        return [bytes(each.reformat(format="gray").planes[0]) for each in opened.decode(video=0)]


def alike(one: list[bytes], other: list[bytes]) -> bool:
    """True if the frames show the same, as near as the codec tells it."""
    near = 24
    return len(one) == len(other) and all(
        max(abs(a - b) for a, b in zip(*each, strict=True)) <= near for each in zip(one, other, strict=True)
    )


@pytest.mark.drawn(0)
async def test_a_video_is_the_same_whatever_the_secret_is(
    tmp_path: Path, served: site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that shows it as text, in a field and in a canvas is in no frame; without the look for secrets the frames differ."""
    served.page("/mirror", MIRROR)

    async def filmed(folder: str, secret: str) -> list[bytes]:
        (tmp_path / folder).mkdir()
        ended = await ran(tmp_path / folder, served, flow=MIRRORED, value=secret, video=True)
        assert ended.status == "passed"
        return pixels(Path(str(ended.files[0]["path"])))

    first, second = await filmed("one", CANARY), await filmed("other", "another value 77")
    assert len(first) == 3, "red, blue, and blue as long as it stays"
    assert alike(first, second)

    async def none(*_args: object) -> None:
        """See no secret."""

    monkeypatch.setattr(screenshots.Pictures, "_demand_no_secret", none)
    assert not alike(await filmed("open", CANARY), first), "it shows the page, with the secret"


SHOWING = {
    "text": f"<p>Key {CANARY}</p>",
    "two texts": f"<p>Key <b>{CANARY[:6]}</b><i>{CANARY[6:]}</i></p>",
    "field": f"<input value={CANARY}>",
    "password": "<input type=password value=anything>",
    "style": f"<style>p::after {{content: '{CANARY}'}}</style><p></p>",
    "frame": f'<iframe srcdoc="<p>{CANARY}</p>"></iframe>',
    "canvas": "<canvas width=200 height=40></canvas>",
}


async def test_a_frame_is_taken_of_a_page_without_secrets_only(
    tmp_path: Path, served: site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that shows one in any way, or a canvas, or a filled password field, has none; it is left as it was.

    A secret that comes while the picture is taken counts, too.
    """
    plain = served.page("/plain", "<!doctype html><p>Key</p><input type=password>")
    async with browsers.opened(tmp_path, served.origin) as browser:
        await browser.page.goto(plain)
        assert trace_file.size(await browser.page.frame(lambda text: CANARY in text)) == (1280, 720)
        for way, body in SHOWING.items():
            await browser.page.goto(served.page("/shown", f"<!doctype html>{body}"))
            before = await browser.page.page.content()
            with pytest.raises(AuthorError) as refused:
                await browser.page.frame(lambda text: CANARY in text)
            assert (refused.value.code, await browser.page.page.content()) == ("secret-on-page", before), way
        assert trace_file.size(await browser.page.frame(None)) == (1280, 720), "without secrets a canvas is a picture"
        await browser.page.goto(plain)
        page, camera = browser.page.page, browser.page._camera
        assert camera is not None
        taken = camera.still

        async def late() -> str:
            await page.evaluate("text => document.body.append(text)", CANARY)
            return await taken()

        monkeypatch.setattr(camera, "still", late)
        with pytest.raises(AuthorError, match="shows a secret"):
            await browser.page.frame(lambda text: CANARY in text)


COLOURS = ((0, 128, 0), (0, 0, 255), (255, 0, 0), (128, 0, 128), (255, 255, 0))

CHANGING = """<!doctype html><script>
let heard = [];
for (const name of ['visibilitychange', 'resize', 'focus', 'blur']) addEventListener(name, () => heard.push(name));
</script><p>Text</p><iframe srcdoc="<p>Framed</p>"></iframe>"""


async def test_a_small_frame_shows_the_page_as_it_is_and_tells_it_nothing(tmp_path: Path, served: site.Site) -> None:
    """Each is a picture of its own moment, also where pictures of the moment before arrive late; the page hears of none."""
    async with browsers.opened(tmp_path, served.origin) as browser:
        tab = browser.page
        await tab.goto(served.page("/changing", CHANGING))
        async with async_playwright() as driver:
            viewer = await driver.chromium.launch(executable_path=find.find(None))
            for number, colour in enumerate(COLOURS):
                await tab.page.evaluate(
                    """async (colour) => {
                      document.body.style.background = `rgb(${colour})`;
                      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
                    }""",
                    list(colour),
                )
                taken = await tab.frame(None, small=True)
                assert trace_file.size(taken) == (640, 360)
                file = tmp_path / f"{number}.jpeg"
                file.write_bytes(taken)
                assert await colour_of(viewer, file) == colour
            await viewer.close()
        assert await tab.page.evaluate("heard") == []


QUICK = """<!doctype html><title>Quick</title><h1>0</h1><button>Count</button>
<script>document.querySelector('button').onclick = () => document.querySelector('h1').textContent++</script>"""

CLICKS = """
version: 1
name: Quick clicks
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{origin}/quick"}}
  - {{id: one, type: browser_action, action: click, target: {{role: button, name: Count}}}}
  - {{id: two, type: browser_action, action: click, target: {{role: button, name: Count}}}}
  - {{id: three, type: browser_action, action: click, target: {{role: button, name: Count}}}}
  - {{id: press, type: browser_action, action: click, target: {{role: button, name: Gone}}, timeout: 1}}
"""


@pytest.mark.parametrize("secrets", ["", "secrets: [TOKEN]"], ids=["beside", "before"])
async def test_steps_that_follow_at_once_have_their_pictures(tmp_path: Path, served: site.Site, secrets: str) -> None:
    """After a failure each of the three steps before it has one; what it shows of a later step, it says."""
    served.page("/quick", QUICK)
    ended = await ran(tmp_path, served, flow=CLICKS + secrets, trace="on-failure")
    assert ended.path == "press"
    found = past_of(tmp_path, ended).evidence[-1]
    steps = ["one", "two", "three"]
    assert [each["path"] for each in found["frames"]] == steps
    assert all("screenshot" in each for each in found["frames"])
    assert all(
        each["along"] in [*steps, "press"][number + 1 :]
        for number, each in enumerate(found["frames"])
        if "along" in each
    )
