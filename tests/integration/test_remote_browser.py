"""A browser that somebody else has open (`--browser-url`): a run works in an isolated part of it, and leaves the rest alone."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import OriginRefused, SetupError, SiteError, UsageError
from nodes.targets import Target
from runtime.browser import open as open_browser
from runtime.browser import remote
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.options import BrowserOptions
from tests import browsers, site
from tests import open_browser as opened_by_others

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver, pytest.mark.drawn(share=0.3, of="remote")]

PASSWORD = "user:hunter2-hunter2"

WINDOW = """<title>Window</title><script>
document.cookie = 'who=person';
const asks = () => setTimeout(() => { document.title = confirm('Sure?') ? 'yes' : 'no'; });
</script>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """The site that runs use, and the person whose browser it is."""
    with site.serve() as served:
        served.page("/window", WINDOW)
        served.page("/plain", "<title>Plain</title>")
        served.answer(
            "/file", lambda _r: site.Answer("a,b", headers={"content-disposition": "attachment; filename=a.csv"})
        )
        served.page("/upload", "<label>File<input type=file></label>")
        yield served


@pytest.fixture(scope="module")
def others(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[opened_by_others.Opened]:
    """The browser of somebody who has a page open."""
    with opened_by_others.opened(tmp_path_factory.mktemp("profile"), served.origin + "/window") as opened:
        yield opened


class Person:
    """Somebody who looks at the pages of the browser, by a DevTools connection to it."""

    def __init__(self, connection: devtools_connection.Connection) -> None:
        self.connection = connection

    async def pages(self) -> list[dict[str, Any]]:
        """The tabs of the whole browser."""
        infos = (await self.connection.send("Target.getTargets"))["targetInfos"]
        return [each for each in infos if each["type"] == "page"]

    async def contexts(self) -> list[str]:
        """The contexts beside the usual one."""
        return (await self.connection.send("Target.getBrowserContexts"))["browserContextIds"]

    async def window(self) -> str:
        """A session with the person's tab."""
        (tab,) = [each for each in await self.pages() if each["url"].endswith("/window")]
        attached = await self.connection.send("Target.attachToTarget", {"targetId": tab["targetId"], "flatten": True})
        return attached["sessionId"]


@pytest.fixture
async def person(others: opened_by_others.Opened) -> AsyncGenerator[Person]:
    """The person whose browser it is."""
    connection = await devtools_connection.Connection.open(others.socket, 10)
    yield Person(connection)
    await connection.close()


@contextlib.asynccontextmanager
async def relay(others: opened_by_others.Opened) -> AsyncGenerator[int]:
    """A port that passes everything on to the browser, for those who know the password; the block gets its number."""
    expected = b"authorization: basic " + base64.b64encode(PASSWORD.encode()).lower()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if expected not in head.lower():
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()
            return
        from_browser, to_browser = await asyncio.open_connection("127.0.0.1", others.port)
        to_browser.write(head)
        with contextlib.suppress(OSError):
            await asyncio.gather(_pump(reader, to_browser), _pump(from_browser, writer))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_the_rest_of_the_browser_is_left_alone(
    served: site.Site, others: opened_by_others.Opened, person: Person, tmp_path: Path
) -> None:
    """A run sees nothing of the person's pages, which load what they like and keep their dialogs; after it all is as before."""
    session = await person.window()
    await person.connection.send("Page.enable", session=session)
    before = {each["targetId"] for each in await person.pages()}
    with site.serve() as elsewhere:
        elsewhere.page("/", "<title>Elsewhere</title>")
        async with browsers.opened(tmp_path, served.origin, url=others.url) as browser:
            await person.connection.send("Runtime.evaluate", {"expression": "asks()"}, session)
            await browser.page.goto(served.origin + "/plain")
            assert await browser.page.page.context.cookies() == []
            assert len(await person.contexts()) == 1
            assert {each["targetId"] for each in await person.pages()} > before
            # Nobody has answered for the person.
            await person.connection.send("Page.handleJavaScriptDialog", {"accept": True}, session)
            said = await person.connection.send("Runtime.evaluate", {"expression": "document.title"}, session)
            assert said["result"]["value"] == "yes"
            await person.connection.send("Page.navigate", {"url": elsewhere.origin + "/"}, session)
            assert browser.refusal() is None
        assert [each.path for each in elsewhere.arrived()] == ["/"]
        await person.connection.send("Page.navigate", {"url": served.origin + "/window"}, session)
    assert others.process.poll() is None
    assert await person.contexts() == []
    assert {each["targetId"] for each in await person.pages()} == before


async def test_a_tab_that_waits_for_the_person_is_named(
    others: opened_by_others.Opened, person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser with a dialog already open cannot be used: the error says so, and the dialog stays."""
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 2.0)
    session = await person.window()
    await person.connection.send("Page.enable", session=session)
    opening = asyncio.Event()
    person.connection.on("Page.javascriptDialogOpening", lambda _params, _session: opening.set())
    await person.connection.send("Runtime.evaluate", {"expression": "asks()"}, session)
    await opening.wait()
    with pytest.raises(SetupError, match="waits in a dialog"):
        async with browsers.opened(tmp_path, url=others.url):
            pass
    await person.connection.send("Page.handleJavaScriptDialog", {"accept": True}, session)


async def test_two_runs_have_a_part_each(served: site.Site, others: opened_by_others.Opened, tmp_path: Path) -> None:
    """Two runs at the same time share nothing, and the end of one does not end the other."""
    async with browsers.opened(tmp_path, served.origin, url=others.url) as second:
        async with browsers.opened(tmp_path, served.origin, url=others.socket) as first:
            await first.page.goto(served.origin + "/window")
            assert [each.get("name") for each in await first.page.page.context.cookies()] == ["who"]
        await second.page.goto(served.origin + "/plain")
        assert await second.page.page.context.cookies() == []


async def test_the_guard_holds_there(served: site.Site, others: opened_by_others.Opened, tmp_path: Path) -> None:
    """A document of an origin that is not allowed is not requested, nor by a frame or a redirect."""
    with site.serve() as foreign:
        served.redirect("/away", foreign.origin + "/")
        served.page("/framed", f"<iframe src={foreign.origin}/></iframe>")
        async with browsers.opened(tmp_path, served.origin, url=others.url) as browser:
            for path in ("/away", "/framed"):
                with contextlib.suppress(SiteError):
                    await browser.page.goto(served.origin + path)
                refused = browser.refusal()
                assert isinstance(refused, OriginRefused) or path == "/away"
        assert foreign.arrived() == []


async def test_a_lost_connection_ends_the_part(
    served: site.Site, others: opened_by_others.Opened, person: Person, tmp_path: Path
) -> None:
    """Without the guard's connection the run's part of the browser is closed; the browser stays."""
    async with browsers.opened(tmp_path, served.origin, url=others.url) as browser:
        await browser.page.goto(served.origin + "/plain")
        await browsers.connection(browser)._socket.close()

        async def gone() -> bool:
            return await person.contexts() == []

        await browsers.until_async(gone)
    assert others.process.poll() is None


async def test_files_come_and_go(served: site.Site, others: opened_by_others.Opened, tmp_path: Path) -> None:
    """A browser of this machine sends a run's files, and what it downloads reaches the run; nothing of it stays behind."""
    file = tmp_path / "sent.txt"
    file.write_text("sent")
    async with browsers.opened(tmp_path, served.origin, url=others.url) as browser:
        folder = browsers.downloads(browser)._folder
        assert folder is not None
        async with browser.page.download(None, served.origin + "/file") as delivery:
            assert (delivery.name, delivery.path.read_text()) == ("a.csv", "a,b")
        await browser.page.goto(served.origin + "/upload")
        await browser.page.upload(Target(label="File"), [file])
        read = "document.querySelector('input').files[0].text()"
        assert await browser.page.page.evaluate(read) == "sent"
    assert not folder.exists()


@pytest.mark.parametrize("way", ["http", "ws"])
async def test_a_password_in_the_address_is_sent_and_never_shown(
    way: str, served: site.Site, others: opened_by_others.Opened, tmp_path: Path
) -> None:
    """With the password the browser is reached; with another the error shows scheme, host and port only."""
    async with relay(others) as port:
        rest = f"127.0.0.1:{port}{others.path if way == 'ws' else ''}"
        async with browsers.opened(tmp_path, served.origin, url=f"{way}://{PASSWORD}@{rest}") as browser:
            await browser.page.goto(served.origin + "/plain")
            assert await browser.page.title() == "Plain"
        with pytest.raises(SetupError) as caught:
            async with browsers.opened(tmp_path, served.origin, url=f"{way}://user:wrong-password@{rest}"):
                pass
    error = caught.value
    assert error.code == "browser-not-reached"
    assert f"{way}://127.0.0.1:{port} cannot be used" in error.message
    everything = json.dumps([error.message, error.fix, error.evidence])
    assert "wrong-password" not in everything
    assert others.path not in everything


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ("", 404, "it answers 404"),
        ("<h1>Hello</h1>", 200, "not as a browser's DevTools do"),
        ('{"webSocketDebuggerUrl": "file:///etc/passwd"}', 200, "not as a browser's DevTools do"),
        ("[]", 200, "not as a browser's DevTools do"),
        ('{"webSocketDebuggerUrl": "ws://127.0.0.1:9/devtools"}', 200, "does not talk the DevTools protocol"),
        (None, 0, "nothing answers there"),
    ],
)
async def test_an_address_without_a_browser_is_refused(body: str | None, status: int, why: str, tmp_path: Path) -> None:
    """Whatever answers there, the error says what, and how to start a browser."""
    with site.serve() as there:
        there.answer("/json/version", lambda _r: site.Answer(body or "", status, drop=body is None))
        with pytest.raises(SetupError, match=why) as caught:
            async with browsers.opened(tmp_path, url=there.origin):
                pass
    assert caught.value.code == "browser-not-reached"
    assert "--remote-debugging-port" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("given", "told", "address"),
    [
        ("http://far.test:9222", "ws://127.0.0.1:1234/devtools/browser/x", "ws://far.test:9222/devtools/browser/x"),
        ("https://me:word@far.test/", "ws://localhost/devtools/x", "wss://me:word@far.test/devtools/x"),
        ("https://me:word@far.test", "wss://far.test/x?token=1", "wss://me:word@far.test/x?token=1"),
        ("https://far.test/", "wss://other.test/session/x", "wss://other.test/session/x"),
        ("ws://far.test/x", "", "ws://far.test/x"),
    ],
)
async def test_the_address_of_the_socket(given: str, told: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser behind a tunnel tells its own address on loopback: the tunnel's counts, with its password; another host keeps its own."""

    async def answer(_url: object) -> str:
        return told

    monkeypatch.setattr(remote, "_told", answer)
    assert await remote._address(given) == address


@pytest.mark.parametrize(
    ("chosen", "options", "lacking"),
    [
        (browsers.Chosen(browser_url="http://127.0.0.1:9", browser_mode="own"), BrowserOptions(), "the mode `own`"),
        (browsers.Chosen(browser_url="http://127.0.0.1:9"), BrowserOptions(switches=["--lang=de"]), "`switches`"),
    ],
)
async def test_what_only_an_own_browser_can_do_is_refused(
    chosen: browsers.Chosen, options: BrowserOptions, lacking: str, tmp_path: Path
) -> None:
    """Switches and mode own need a browser that the run starts: beside `--browser-url` they are refused at once."""
    with pytest.raises(UsageError, match=lacking) as caught:
        await open_browser.open_browser(options, origins=[], private=tmp_path, settings=chosen)
    assert caught.value.code == "browser-url-lacks"


async def test_a_page_that_the_browser_would_keep(
    others: opened_by_others.Opened, served: site.Site, tmp_path: Path
) -> None:
    """`back` and `forward` arrive at pages, and read them, though other people's browsers keep a page that is left."""
    async with browsers.opened(tmp_path, served.origin, url=others.url) as browser:
        page = browser.page
        await page.goto(f"{served.origin}/plain")
        await page.goto(f"{served.origin}/upload")
        browser.bound(8)
        assert await page.back() == f"{served.origin}/plain"
        assert await page.title() == "Plain"
        assert await page.forward() == f"{served.origin}/upload"
        assert await page.count(Target(css="label")) == 1


async def test_a_browser_elsewhere_gives_no_files(others: opened_by_others.Opened, tmp_path: Path) -> None:
    """A browser of another machine keeps what it downloads: the step says so, before anything is requested."""
    async with browsers.opened(tmp_path, url=others.url) as browser:
        browsers.downloads(browser)._folder = None
        with pytest.raises(SetupError, match="on its own machine") as caught:
            async with browser.page.download(None, "http://127.0.0.1:9/file"):
                pass
    assert (caught.value.code, caught.value.phase) == ("download-elsewhere", "before")
