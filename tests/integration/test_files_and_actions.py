"""The remaining actions on real pages: keys, mouse, uploads, downloads, screenshots, and signed-in states."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from nodes.errors import RunOpsError, SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.options import Mode
from runtime.browser.page import filled
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.secrets import masking
from tests import breadth, browsers, site

pytestmark = [pytest.mark.full_browser, pytest.mark.drawn(share=0.09, of="files_and_actions")]

ACTIONS = """<!doctype html><title>Actions</title>
<input aria-label=Search><ul id=log></ul>
<div id=menu style="width:100px;height:20px">Menu<ul hidden><li>Settings</ul></div>
<div id=box draggable=true style="width:60px;height:60px;background:red">Box</div>
<div id=bin style="width:90px;height:90px;background:gray">Bin</div>
<div id=list style="height:60px;overflow:auto"><p style="height:400px">Long</p><b>End</b></div>
<p style="height:3000px">Far</p><button id=far>Far button</button>
<script>
const log = (text) => { document.querySelector('#log').innerHTML += `<li>${text}</li>`; };
const search = document.querySelector('input');
search.onkeydown = (event) => log(`${event.ctrlKey ? 'Control+' : ''}${event.key}`);
menu.onmouseenter = () => { menu.querySelector('ul').hidden = false; };
box.ondragstart = (event) => event.dataTransfer.setData('text', 'box');
bin.ondragover = (event) => event.preventDefault();
bin.ondrop = (event) => { event.preventDefault(); log(`dropped ${event.dataTransfer.getData('text')}`); };
</script>"""

UPLOADS = """<!doctype html><title>Uploads</title>
<form method=post action=/uploaded enctype=multipart/form-data>
  <label>Papers <input type=file name=papers multiple></label>
  <label>Picture <input type=file name=picture></label>
  <input type=file id=hidden name=hidden multiple hidden>
  <button type=button id=choose onclick="document.querySelector('#hidden').click()">Choose…</button>
  <button type=button id=idle>Idle</button>
  <button>Send</button>
</form>"""

LINKS = """<!doctype html><title>Links</title>
<a href=/report>Report</a> <a href=/report target=_blank>Report in a tab</a> <a href=/invoice.pdf>Invoice</a>
<a href=/gone>Gone</a> <a href=/none>None</a> <a href=/empty>Empty</a> <a href=/broken download>Broken</a> <a href=/away>Away</a>
<button id=made>Made here</button> <button id=idle>Idle</button>
<script>
made.onclick = () => setTimeout(() => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(['made here']));
  link.download = 'made.txt';
  link.click();
}, 100);
</script>"""

REPORT = "number,total\n1007,12.50\n"


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site that accepts uploads and offers downloads."""
    with site.serve() as served:
        served.page("/actions", ACTIONS)
        served.page("/uploads", UPLOADS)
        served.page("/links", LINKS)
        served.page("/uploaded", "<title>Uploaded</title>")
        served.page(
            "/report", REPORT, content_type="text/csv", content_disposition='attachment; filename="re/port.csv"'
        )
        served.page("/invoice.pdf", "%PDF-1.4", content_type="application/pdf")
        served.page("/plain", "<title>A page</title>")
        served.page("/empty", "", content_disposition="attachment; filename=empty.txt")
        served.answer("/gone", lambda _request: site.Answer("no", 404, {"content-disposition": "attachment"}))
        served.answer("/none", lambda _request: site.Answer("", 204))
        served.answer("/broken", lambda _request: site.Answer("no", 500))
        served.redirect("/away", "http://127.0.0.1:9/secret.csv")
        yield served


@pytest.fixture(scope="module", params=["own", "shared"])
async def driven(
    request: pytest.FixtureRequest, served: site.Site, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Session]:
    """One session of each mode for all tests here."""
    mode: Mode = request.param
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin, mode=mode) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """The session's tab, with ten seconds for each test."""
    driven.bound(10)
    return driven.page


async def logged(tab: Tab) -> list[str]:
    """The lines that the page logged."""
    return [row[0] or "" for row in await tab.rows(Target(css="#log li"), [WHOLE], 0)]


class Whole:
    """A field of ``extract`` that is the row itself."""

    css = None
    attribute = None
    nth = None


WHOLE = Whole()


async def test_keys_mouse_and_scrolling(tab: Tab, served: site.Site) -> None:
    """Keys arrive one by one, hover opens a menu, drag drops its text, and scrolling reports the position."""
    await tab.goto(f"{served.origin}/actions")
    search = Target(label="Search")
    await tab.fill(search, "old")
    await tab.type(search, "ab", 5)
    assert await tab.value(search) == "ab"
    await tab.press(["Enter"], search)
    await tab.press(["Control+A"], None)
    await tab.press(["+"], None)
    assert await tab.value(search) == "+"
    assert await logged(tab) == ["Delete", "a", "b", "Enter", "Control+Control", "Control+A", "+"]
    await tab.hover(Target(css="#menu"))
    await tab.wait_for(Rule(visible=Target(text="Settings")))
    await tab.drag(Target(css="#box"), Target(css="#bin"))
    assert (await logged(tab))[-1] == "dropped box"
    inside = await tab.scroll(Target(css="#list"), "bottom", None)
    assert inside["y"] > 300
    assert inside["at_end"] is True
    assert (await tab.scroll(Target(css="#list"), "top", None))["y"] == 0
    assert (await tab.scroll(None, None, (0, 150))) == {"x": 0, "y": 150, "at_end": False}
    assert (await tab.scroll(None, "bottom", None))["at_end"] is True
    assert (await tab.scroll(Target(css="#menu"), None, None))["y"] < 200
    assert tab.pending_input


@pytest.mark.parametrize("field", [Target(label="Papers"), Target(css="#hidden"), Target(css="#choose")], ids=str)
async def test_files_are_uploaded(field: Target, tab: Tab, served: site.Site, tmp_path: Path) -> None:
    """Several files arrive whole with their names, through a visible field, a hidden one, or a button that opens a file chooser."""
    await tab.goto(f"{served.origin}/uploads")
    served.requests.clear()
    files = [tmp_path / "one.txt", tmp_path / "zwei ü.csv"]
    for number, file in enumerate(files):
        file.write_text(f"content of {number}\n" * 1000)
    await tab.ready(field, "upload")
    await tab.upload(field, files)
    await tab.click(Target(role="button", name="Send"))
    await tab.wait_for(Rule(title="Uploaded"))
    (sent,) = served.arrived("/uploaded")
    parts = re.findall(r'filename="([^"]+)"\r\n.*?\r\n\r\n(.*?)\r\n--', sent.body, re.DOTALL)
    assert [(name, hashlib.sha256(body.encode()).hexdigest()) for name, body in parts] == [
        (file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files
    ]


async def test_uploads_that_are_not_accepted(tab: Tab, driven: Session, served: site.Site, tmp_path: Path) -> None:
    """Two files for a field of one, and a button without a file chooser, are errors."""
    await tab.goto(f"{served.origin}/uploads")
    files = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for file in files:
        file.touch()
    with pytest.raises(SiteError) as refused:
        await tab.upload(Target(label="Picture"), files)
    assert (refused.value.code, refused.value.phase) == ("target-not-actionable", "before")
    assert "takes one file" in refused.value.message
    driven.bound(2)
    with pytest.raises(SiteError) as refused:
        await tab.upload(Target(css="#idle"), files)
    assert (refused.value.code, refused.value.phase) == ("no-file-chooser", "after")


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(
    ("link", "name", "content"),
    [
        ("Report", "re_port.csv", REPORT),
        ("Report in a tab", "re_port.csv", REPORT),
        ("Invoice", "invoice.pdf", "%PDF-1.4"),
        ("Made here", "made.txt", "made here"),
        ("/report", "re_port.csv", REPORT),
        ("/invoice.pdf", "invoice.pdf", "%PDF-1.4"),
    ],
)
async def test_files_are_downloaded(link: str, name: str, content: str, tab: Tab, served: site.Site) -> None:
    """A click or a URL gives the whole file, even from a new tab, a blob, or a file the browser would display. The tab stays."""
    await tab.goto(f"{served.origin}/links")
    by_address = link.startswith("/")
    target = None if by_address else Target(css="a, button", has_text=link, exact=True)
    async with tab.download(target, f"{served.origin}{link}" if by_address else None) as file:
        assert (file.name, file.path.read_text()) == (name, content)
    assert not file.path.exists()
    assert tab.url == f"{served.origin}/links"
    assert await tab.title() == "Links"


@pytest.mark.drawn(5)
@pytest.mark.parametrize(
    ("link", "code", "said"),
    [
        ("Idle", "no-download", "nothing came"),
        ("Gone", "download-failed", "404"),
        ("None", "download-failed", "204"),
        ("Empty", "download-failed", "is empty"),
        ("Broken", "download-failed", "broke off"),
        ("Away", "origin-refused", "127.0.0.1:9"),
        ("/gone", "download-failed", "404"),
        ("/none", "download-failed", "204"),
        ("/plain", "no-download", "shown as a page"),
        ("/away", "origin-refused", "127.0.0.1:9"),
    ],
)
async def test_downloads_that_fail(
    link: str, code: str, said: str, tab: Tab, driven: Session, served: site.Site
) -> None:
    """A missing, partial or empty file, an error of the site and a foreign origin are errors with the reason; the next download works."""
    await tab.goto(f"{served.origin}/links")
    driven.bound(2 if link == "Idle" else 10)
    by_address = link.startswith("/")
    target = None if by_address else Target(css="a, button", has_text=link, exact=True)
    with pytest.raises(RunOpsError) as failed:
        async with tab.download(target, f"{served.origin}{link}" if by_address else None):
            raise AssertionError("there is no file")
    assert (failed.value.code, failed.value.fix is None) == (code, False), failed.value.message
    assert said in failed.value.message
    driven.bound(10)
    await tab.goto(f"{served.origin}/links")
    async with tab.download(Target(text="Report", exact=True), None) as file:
        assert file.path.read_text() == REPORT


async def test_unrequested_downloads_are_discarded(tab: Tab, driven: Session, served: site.Site) -> None:
    """Outside a download no file is stored, before the first and after the last one."""
    await tab.goto(f"{served.origin}/links")
    await tab.click(Target(text="Report", exact=True))
    async with tab.download(Target(text="Made here"), None) as file:
        assert file.name == "made.txt"
        beside = file.path.parent.parent
    await tab.click(Target(text="Report", exact=True))
    await tab.goto(f"{served.origin}/plain")
    assert [each for each in beside.rglob("*") if each.is_file()] == []


async def test_screenshots_and_pdf(tab: Tab, served: site.Site) -> None:
    """Screenshots show the viewport, the whole page or one element, with secrets painted over. A PDF is made, and secrets are detected."""
    served.page(
        "/key", "<!doctype html><title>Key</title><p>Your key is hunter22</p><input aria-label=Key><h1>Rest</h1>"
    )
    await tab.goto(f"{served.origin}/key")

    def hide(text: str) -> bool:
        return "hunter22" in text

    def none(_text: str) -> bool:
        return False

    plain = await tab.screenshot(Target(css="p"), full_page=False, hide=none)
    painted = await tab.screenshot(Target(css="p"), full_page=False, hide=hide)
    assert plain.startswith(b"\x89PNG")
    assert len(painted) < len(plain) / 2
    assert await tab.count(Target(css="[data-runops-hidden]")) == 0
    page = await tab.screenshot(None, full_page=False, hide=none)
    await tab.page.evaluate("document.querySelector('h1').style.marginTop = '2000px'")
    whole = await tab.screenshot(None, full_page=True, hide=none)
    assert [int.from_bytes(each[20:24]) for each in (page, whole)] == [720, pytest.approx(2150, abs=100)]
    assert (await tab.pdf(True)).startswith(b"%PDF")
    assert await tab.shows(hide)
    assert not await tab.shows(none)


NUMBERED = """<!doctype html><style>body {margin: 0; height: 3000px} button, iframe {position: absolute; width: 100px; height: 40px; border: 0}</style>
<button style="left: 200px; top: 100px">One</button><button style="left: 400px; top: 2000px">Below</button>
<button style="left: 600px; top: 300px">hunter22</button>
<iframe style="left: 800px; top: 500px; width: 200px; height: 150px" srcdoc="<body style='margin: 0'><button style='width: 80px; height: 30px'>In</button>"></iframe>"""

_LABELLED = """async ([picture, places]) => {
  const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + picture)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height), draw = canvas.getContext('2d');
  draw.drawImage(image, 0, 0);
  return places.map(([x, y, width, height]) => {
    const {data} = draw.getImageData(x, y, width, height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) count += data[at] === 0xd0 && !data[at + 1] && data[at + 2] === 0x6f;
    return count;
  });
}"""


async def test_each_element_in_view_bears_its_ref_in_a_numbered_picture(tab: Tab, served: site.Site) -> None:
    """Elements in view have a frame with a label, also in frames; the page stays as it was, and secrets stay painted over."""
    served.page("/numbered", NUMBERED)
    await tab.goto(f"{served.origin}/numbered")
    seen = await tab.look()
    before = await tab.page.content()
    picture = await tab.numbered(None, seen.refs, lambda text: "hunter22" in text)
    assert await tab.page.content() == before
    at = {"one": [200, 100, 100, 40], "secret": [600, 300, 100, 40], "in a frame": [800, 500, 80, 30]}
    beside, painted = [0, 400, 1280, 60], [610, 305, 80, 20]
    places = [*at.values(), beside, painted]
    await tab.goto("about:blank")
    counts = await tab.page.evaluate(_LABELLED, [base64.b64encode(picture).decode(), places])
    for name, count in zip(at, counts, strict=False):
        assert count > 150, name
    assert counts[3] == 0, "nothing is drawn where no element is"
    alone = await tab.numbered(None, [], lambda text: "hunter22" in text)
    assert await tab.page.evaluate(_LABELLED, [base64.b64encode(alone).decode(), [[0, 0, 1280, 720]]]) == [0]


HIDDEN = """<!doctype html><style>* {font: 20px monospace}</style>
<p>In two elements: <b>my hunt</b><i>er22</i></p>
<p>over two lines: my
  hunter22</p>
<p>in the place of a picture: <img alt="my hunter22" src="/none.png"></p>
<p>as what a field asks for: <input placeholder="my hunter22"></p>
<p>as what is chosen: <select><option value=1>my hunter22</select></p>
<h1>Rest</h1>"""


async def test_a_secret_is_painted_over_however_it_is_shown(tab: Tab, served: site.Site) -> None:
    """The screenshot is the same whatever the secret is, and other content stays visible."""
    pictures: list[bytes] = []
    for secret in ("hunter22", "HUNTER99"):
        body = HIDDEN.replace("hunt", secret[:4]).replace("er22", secret[4:])
        await tab.goto(served.page("/shows", body))
        masker = masking.Masker({"KEY": f"my {secret}"})

        def contains(text: str, masker: masking.Masker = masker) -> bool:
            return masker.holds(text)

        pictures.append(await tab.screenshot(None, full_page=False, hide=contains))
        pictures.append(await tab.screenshot(None, full_page=False, hide=lambda _text: True))
    assert pictures[0] == pictures[2]
    assert len(pictures[1]) < len(pictures[0])
    assert await tab.count(Target(css="[data-runops-hidden]")) == 0


DRAWN = {
    "closed": """<div id=host></div><script>
      document.querySelector('#host').attachShadow({mode: 'closed'}).innerHTML = '<p>SECRET</p><input value="SECRET">';
    </script>""",
    "closed in closed": """<div id=host></div><script>
      const outer = document.querySelector('#host').attachShadow({mode: 'closed'});
      outer.innerHTML = '<b>hu</b><span></span>';
      outer.querySelector('span').attachShadow({mode: 'closed'}).innerHTML = '<u>SECRET</u>';
    </script>""",
    "before": "<style>p::before {content: 'SECRET'}</style><p>text</p>",
    "after an attribute": "<style>p::after {content: attr(title)}</style><p title=SECRET>text</p>",
    "half before": "<style>p::before {content: 'SEC'}</style><p>RET</p>",
    "beside its element": "<style>p::before {content: 'SECRET'; position: absolute; left: 300px; top: 200px}</style><div style='height: 400px'><p>text</p></div>",
    "capitals": "<style>p::before {content: 'SECRET'; text-transform: uppercase}</style><p>text</p>",
    "picture": """<img width=200 height=40 src='data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"><text y="20">SECRET</text></svg>'>""",
    "background": """<div style='width: 200px; height: 40px; background: url("data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22%3E%3Ctext y=%2220%22%3ESECRET%3C/text%3E%3C/svg%3E")'></div>""",
    "frame": """<iframe srcdoc="<style>p::before {content: 'SECRET'}</style><p>text</p>"></iframe>""",
    "canvas": """<style>input {color: white; border: 0; outline: 0}</style><input aria-label=Key><canvas width=200 height=40></canvas><script>
      document.querySelector('input').oninput = (event) => {
        const context = document.querySelector('canvas').getContext('2d');
        context.font = '20px monospace';
        context.fillText(event.target.value, 0, 20);
      };
    </script>""",
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("where", DRAWN)
async def test_a_secret_is_painted_over_where_no_script_reads_it(tab: Tab, served: site.Site, where: str) -> None:
    """The screenshot is the same whatever the secret is; the secret is detected, and the page left unchanged."""
    pictures: list[bytes] = []
    for secret in ("Hunter-22", "Zebras-99"):
        body = DRAWN[where].replace("SECRET", secret).replace("SEC", secret[:4]).replace("RET", secret[4:])
        page = f"<!doctype html><style>* {{font: 20px monospace}}</style>{body}<h1>Rest</h1>"
        await tab.goto(served.page(f"/drawn/{secret}", page))
        if where == "canvas":
            await tab.fill(Target(label="Key"), secret, secret=True)
            await tab.page.evaluate("document.activeElement.blur()")
        masker = masking.Masker({"KEY": secret})
        before = await tab.page.content()
        pictures.append(await tab.screenshot(None, full_page=False, hide=masker.holds))
        # Playwright leaves an empty style where it hid a caret.
        assert (await tab.page.content()).replace(' style=""', "") == before
        assert await tab.shows(masker.holds)
        pictures.append(await tab.screenshot(None, full_page=False, hide=lambda _text: False))
    assert pictures[0] == pictures[2]
    assert pictures[0] != pictures[1]
    assert where == "canvas" or pictures[1] != pictures[3]


EVERYWHERE = [
    *(each for name, each in DRAWN.items() if name not in ("canvas", "beside its element")),
    "<p>SECRET</p>",
    "<b>SEC</b><i>RET</i>",
    "<svg width=200 height=40><text y=20>SECRET</text></svg>",
    "<img alt=SECRET src=/none.png width=200 height=40>",
    "<input placeholder=SECRET>",
    "<input value=SECRET>",
    "<input type=password value=SECRET>",
    "<textarea>SECRET</textarea>",
    "<select><option>SECRET</select>",
    "<details open><summary>SECRET</summary></details>",
    "<button>SECRET</button>",
    "<div><template shadowrootmode=open><p>SECRET</p></template></div>",
    "<iframe srcdoc='<p>SECRET</p>'></iframe>",
    "<ul><li style='list-style: \"SECRET\" inside'>item</ul>",
    "<p contenteditable>SECRET</p>",
]


def _everywhere(secret: str) -> str:
    """A page with each of these in a box of its own, whose styles are its own, and a canvas that draws what is typed."""
    boxes: list[str] = []
    for number, each in enumerate(EVERYWHERE):
        body = each.replace("SECRET", secret).replace("SEC", secret[:4]).replace("RET", secret[4:])
        body = body.replace("#host", f"#host{number}").replace("id=host", f"id=host{number}")
        # A frame has its own styles anyway.
        body = body if "<iframe" in body else body.replace("p::", f"#b{number} p::")
        place = f"left: {number % 5 * 250}px; top: {number // 5 * 110 + 130}px"
        boxes.append(
            f"<div id=b{number} style='position: absolute; width: 240px; height: 105px; overflow: hidden; {place}'>{body}</div>"
        )
    style = "<style>* {font: 20px monospace} iframe {width: 200px; height: 80px}</style>"
    return f"<!doctype html>{style}<h1>Rest</h1>{DRAWN['canvas']}{''.join(boxes)}"


async def test_a_picture_does_not_depend_on_a_secret_that_a_page_shows_everywhere(tab: Tab, served: site.Site) -> None:
    """Of a page that shows it in each form at once, typed into a field and drawn on a canvas, both values give the same pixels."""
    painted: list[bytes] = []
    plain: list[bytes] = []
    for secret in ("Hunter-22", "Zebras-99"):
        await tab.goto(served.page("/everywhere", _everywhere(secret)))
        await tab.fill(Target(label="Key"), secret, secret=True)
        await tab.page.evaluate("document.activeElement.blur()")
        painted.append(await tab.screenshot(None, full_page=False, hide=masking.Masker({"KEY": secret}).holds))
        plain.append(await tab.screenshot(None, full_page=False, hide=lambda _text: False))
    assert painted[0] == painted[1]
    assert plain[0] != plain[1]


@pytest.mark.drawn(share=1)
async def test_a_frame_of_another_site_that_shows_a_secret_is_painted_over_as_a_whole(
    served: site.Site, tmp_path: Path
) -> None:
    """A cross-site frame that shows a secret, as text or drawn, nested or not, is painted over entirely."""
    elsewhere = served.origin.replace("127.0.0.1", "localhost")
    async with browsers.opened(tmp_path, served.origin, elsewhere) as browser:
        browser.bound(60)
        for drawn, nested in breadth.some(((True, True), (True, False), (False, False), (False, True)), 2):
            pictures: list[bytes] = []
            for secret, colour in (("Hunter-22", "red"), ("Zebras-99", "lime")):
                style = f"body {{background: {colour}}} p::before {{content: '{secret if drawn else ''}'}}"
                served.page("/in", f"<!doctype html><style>{style}</style><p>{'text' if drawn else secret}</p>")
                served.page("/between", f"<!doctype html><iframe src='{served.origin}/in'></iframe>")
                inner = f"{elsewhere}/{'between' if nested else 'in'}"
                await browser.page.goto(served.page("/around", f'<!doctype html><iframe src="{inner}"></iframe>'))
                masker = masking.Masker({"KEY": secret})
                pictures.append(await browser.page.screenshot(None, full_page=False, hide=masker.holds))
                pictures.append(await browser.page.screenshot(None, full_page=False, hide=lambda _text: False))
            assert pictures[0] == pictures[2]
            assert pictures[0] != pictures[1] != pictures[3]


async def test_a_canvas_is_shown_where_no_secret_was_typed(tab: Tab, served: site.Site) -> None:
    """A canvas is visible in screenshots until a secret is typed into its document, and again in the next document."""

    async def is_seen(*, hidden: bool = False) -> bool:
        pictures: list[bytes] = []
        for colour in ("red", "lime"):
            await tab.page.evaluate(
                "(colour) => Object.assign(document.querySelector('canvas').getContext('2d'), {fillStyle: colour}).fillRect(0, 0, 200, 40)",
                colour,
            )
            pictures.append(await tab.screenshot(None, full_page=False, hide=lambda _text: False, canvases=hidden))
        return pictures[0] != pictures[1]

    address = served.page("/canvas", "<!doctype html><label>Key <input></label><canvas></canvas>")
    await tab.goto(address)
    assert await is_seen()
    await tab.fill(Target(label="Key"), "Hunter-22")
    assert await is_seen()
    await tab.fill(Target(label="Key"), "Hunter-22", secret=True)
    assert not await is_seen()
    await tab.goto(address)
    assert await is_seen()
    assert not await is_seen(hidden=True)


async def test_a_password_field_is_painted_over(tab: Tab, served: site.Site) -> None:
    """The screenshot is the same however long the password is, in a frame and a shadow root, too; other fields stay visible."""
    pictures: list[bytes] = []
    for typed in ("", "a", "a longer password"):
        field = f"<input type=password value='{typed}'>"
        inner = f'<iframe srcdoc="{field}"></iframe><div><template shadowrootmode=open>{field}</template></div>'
        served.page("/password", f"<!doctype html>{field}<input value=seen>{inner}")
        await tab.goto(f"{served.origin}/password")
        pictures.append(await tab.screenshot(None, full_page=False, hide=lambda _text: False))
    assert pictures[0] == pictures[1] == pictures[2]
    served.page("/password", "<!doctype html><input value=other>")
    await tab.goto(f"{served.origin}/password")
    assert await tab.screenshot(None, full_page=False, hide=lambda _text: False) != pictures[0]


async def test_a_secret_that_cannot_be_painted_over_fails_the_screenshot(tab: Tab, served: site.Site) -> None:
    """A secret drawn outside every element cannot be painted over, so the screenshot fails with `secret-on-page`."""
    style = "p::before {content: 'Hunter-22'; position: absolute; left: 2000px; top: 2000px}"
    await tab.goto(served.page("/bare", f"<!doctype html><style>{style}</style><p>text</p>"))
    masker = masking.Masker({"KEY": "Hunter-22"})
    with pytest.raises(RunOpsError) as failed:
        await tab.screenshot(None, full_page=True, hide=masker.holds)
    assert failed.value.code == "secret-on-page"
    assert await tab.count(Target(css="[data-runops-hidden]")) == 0


async def test_a_signed_in_state_goes_to_another_browser(
    tab: Tab, driven: Session, served: site.Site, tmp_path: Path
) -> None:
    """Cookies, local storage and IndexedDB of allowed origins are restored in another browser, and nothing of other origins."""
    await tab.goto(f"{served.origin}/plain")
    context = tab.page.context
    await context.add_cookies([{"name": "elsewhere", "value": "1", "domain": "elsewhere.test", "path": "/"}])
    await tab.page.evaluate(
        """async () => {
          document.cookie = 'who=ada; max-age=3600';
          localStorage.token = 'abc';
          await new Promise((done) => {
            const request = indexedDB.open('db', 1);
            request.onupgradeneeded = () => request.result.createObjectStore('kept').put('value', 'key');
            request.onsuccess = () => { request.result.close(); done(); };
          });
        }"""
    )
    state = await tab.signed_in()
    assert "elsewhere" not in str(state)
    async with browsers.opened(tmp_path, served.origin) as other:
        await other.page.goto(f"{served.origin}/plain")
        await other.page.sign_in(state)
        served.requests.clear()
        await other.page.goto(f"{served.origin}/plain")
        assert served.arrived("/plain")[0].headers["cookie"] == "who=ada"
        assert await other.page.page.evaluate("localStorage.token") == "abc"
        assert "db" in str(await other.page.page.evaluate("indexedDB.databases()"))
    with site.serve() as foreign:
        async with browsers.opened(tmp_path, foreign.origin) as other:
            strange = {**state["cookies"][0], "domain": "elsewhere.test"}
            with pytest.raises(SiteError, match="nothing for the origins"):
                await other.page.sign_in({"cookies": [strange], "origins": state["origins"]})
            stored = await other.page.page.context.storage_state()
            assert stored == {"cookies": [], "origins": []}
    await context.clear_cookies()


LATE = """<!doctype html><title>Late</title><form action=/sent>
<label>Name <input name=name></label> <label>Sum <input name=sum></label> <label>Short <input name=short maxlength=4></label>
<label>Gone <input name=gone></label> <button>Send</button></form>
<script>
const [name_, sum, , gone] = document.querySelectorAll('input');
name_.addEventListener('input', () => setTimeout(() => { name_.value = ''; }, 300), {once: true});
sum.oninput = () => { sum.value = Number(sum.value.replaceAll(',', '')).toLocaleString('en'); };
gone.oninput = () => setTimeout(() => { gone.value = ''; }, 10);
</script>"""


async def test_filled_fields_are_complete_when_sent(tab: Tab, driven: Session, served: site.Site) -> None:
    """A field that the page empties late is filled again before the click; a text that the page reformats is accepted."""
    served.page("/late", LATE)
    served.page("/sent", "<title>Sent</title>")
    await tab.goto(f"{served.origin}/late")
    await tab.fill(Target(label="Name"), "Ada")
    await tab.type(Target(label="Sum"), "1234", 0)
    await browsers.until_async(lambda: tab.holds(Rule(value="", target=Target(label="Name"))))
    served.requests.clear()
    await tab.click(Target(role="button", name="Send"))
    await tab.wait_for(Rule(title="Sent"))
    assert served.arrived("/sent")[0].query == {"name": "Ada", "sum": "1,234"}


async def test_a_text_that_the_page_does_not_keep(
    tab: Tab, driven: Session, served: site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field repeatedly emptied or cut fails the next click before it is done; the error shows no secret."""
    monkeypatch.setattr(filled, "PAUSES", (0.05, 0.05))
    served.page("/late", LATE)
    for label, text, secret, seen in (("Gone", "hunter22", True, None), ("Short", "12345", False, "1234")):
        await tab.goto(f"{served.origin}/late")
        await tab.fill(Target(label=label), text, secret=secret)
        if label == "Gone":
            await browsers.until_async(lambda: tab.holds(Rule(value="", target=Target(label="Gone"))))
        with pytest.raises(SiteError) as lost:
            await tab.click(Target(role="button", name="Send"))
        assert (lost.value.code, lost.value.phase) == ("value-not-kept", "before")
        assert lost.value.evidence.get("seen") == seen
        assert ("hunter22" in str(lost.value.as_json())) is False
        assert await tab.title() == "Late"


RESTLESS = """<!doctype html><title>Restless</title><div id=place></div><ul id=log></ul>
<div id=overlay style="position:fixed;inset:0;background:#0008">Please wait</div>
<script>
let drawn = 0;
const draw = () => {
  place.innerHTML = '<ul><li>A <button>Pay</button></li><li>B <button>Pay</button></li></ul>';
  for (const button of place.querySelectorAll('button'))
    button.onclick = () => { log.innerHTML += `<li>${button.parentElement.firstChild.data.trim()}</li>`; };
  drawn += 1;
  if (drawn < 12) setTimeout(draw, 40);
  else setTimeout(() => overlay.remove(), 200);
};
draw();
</script>"""


async def test_a_restless_page_takes_one_click(tab: Tab, driven: Session, served: site.Site) -> None:
    """A list that is redrawn and an overlay that disappears are waited for, and the click reaches the right row once. A permanent overlay is named."""
    served.page("/restless", RESTLESS)
    await tab.goto(f"{served.origin}/restless")
    pay = Target(role="button", name="Pay", within=Target(css="#place li", has_text="B"))
    await tab.ready(pay, "click")
    await tab.click(pay)
    assert await logged(tab) == ["B"]
    await tab.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<div id=wall style=\"position:fixed;inset:0\">Wall</div>')"
    )
    driven.bound(3)
    with pytest.raises(SiteError) as covered:
        await tab.click(pay)
    assert (covered.value.evidence["problem"], covered.value.phase) == ("covered", "before")
    assert 'id="wall"' in str(covered.value.evidence["element"])
    driven.bound(10)
    assert await logged(tab) == ["B"]
