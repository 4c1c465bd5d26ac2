"""The life of a run's browser: start, survival of a killed engine, reattachment, restore from a checkpoint, end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from nodes.errors import SetupError, SiteError
from nodes.targets import Target
from runtime.browser import open as open_browser
from runtime.browser import own, port
from runtime.browser.chromium import find, launch
from runtime.browser.options import BrowserOptions, Mode, Viewport
from runtime.browser.session import Session
from runtime.system import files, processes
from tests import browsers, site

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver, pytest.mark.drawn(share=0.12, of="browser_life")]

ROOT = Path(__file__).parents[2]

NAME = Target(label="Name")

FORM = "<title>Form</title><label>Name<input></label>"

ENGINE = """
import asyncio, os, pathlib, signal, sys
from nodes.targets import Target
from tests import browsers

async def main(private, origin, linger):
    async with browsers.opened(pathlib.Path(private), origin, linger=float(linger)) as browser:
        await browser.page.goto(origin + "/form")
        await browser.page.fill(Target(label="Name"), "typed")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""
"""An engine that fills a form and is killed."""

HANG = "void setTimeout(() => { for (;;); })"
"""A page script that never ends."""

ASKING = """<title>Asking</title><script>
const request = new XMLHttpRequest();
request.open('POST', '/asked', false);
request.send();
prompt('Your name?');
</script>"""
"""A page that opens a dialog after a request to the site."""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves a site with a form."""
    with site.serve() as served:
        served.page("/form", FORM)
        served.page("/asking", ASKING)
        served.page("/asked", "")
        yield served


def killed_engine(private: Path, served: site.Site, linger: float = 60) -> None:
    """Runs an engine until it has killed itself."""
    command = [sys.executable, "-c", ENGINE, str(private), served.origin, str(linger)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == -9, ended.stderr


async def reattached(private: Path, served: site.Site, options: BrowserOptions | None = None) -> Session | None:
    """The browser that a killed engine left, or None."""
    found = await open_browser.reattach(
        options, origins=[served.origin], private=private, settings=browsers.Chosen(linger=60)
    )
    if found is not None:
        found.bound(10)
    return found


def processes_of(private: Path) -> list[int]:
    """Every process that was started with this folder."""
    found: list[int] = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(private) in " ".join(each.cmdline()):
                found.append(each.pid)
    return found


def left_behind(private: Path) -> list[str]:
    """The names in the private folder, except Chromium's log."""
    return sorted(each.name for each in private.iterdir() if each.name != "chromium.log")


async def test_a_killed_engine_leaves_its_browser_as_it_was(served: site.Site, tmp_path: Path) -> None:
    """The next engine finds the page and the typed text, with guard and options, and ends the browser for good."""
    killed_engine(tmp_path, served)
    found = await reattached(tmp_path, served, BrowserOptions(viewport=Viewport(width=600, height=400)))
    assert found is not None
    assert found.page.url == f"{served.origin}/form"
    assert await found.page.value(NAME) == "typed"
    assert await found.page.page.evaluate("[innerWidth, innerHeight]") == [600, 400]
    assert found.facts().pending_input is False
    found.mark_pending()
    assert found.facts().pending_input is True
    await found.page.goto(f"{served.origin}/form")
    assert found.facts().pending_input is False
    with pytest.raises(SiteError, match="not allowed"):
        await found.page.goto("http://127.0.0.2/")
    await found.close()
    assert left_behind(tmp_path) == []
    await browsers.until(lambda: not processes_of(tmp_path))


async def test_a_browser_without_linger_ends_with_its_engine(served: site.Site, tmp_path: Path) -> None:
    """With ``linger`` 0 nothing of a killed engine's browser is left, and reattaching finds none."""
    killed_engine(tmp_path, served, linger=0)
    await browsers.until(lambda: not processes_of(tmp_path))
    assert await reattached(tmp_path, served) is None
    # Chromium ends first, then the watcher deletes the profile.
    await browsers.until(lambda: left_behind(tmp_path) == [])


async def left_with_stuck_tabs(private: Path, served: site.Site, *, current: bool) -> None:
    """Leaves a browser with two hanging tabs, a popup in a dialog and one in an endless loop, which is ``current`` or not."""
    elsewhere = served.origin.replace("127.0.0.1", "localhost")
    async with browsers.opened(private, served.origin, elsewhere, linger=60) as browser:
        await browser.page.goto(f"{served.origin}/form")
        await browser.page.fill(NAME, "typed")
        form = browser.page.page
        await browser.tabs.open("busy")
        await browser.page.goto(f"{elsewhere}/form")
        await browser.page.page.evaluate(HANG)
        if not current:
            await browser.tabs.switch("main")
        served.requests.clear()
        # The popup shares the opener's process, which the dialog blocks.
        await form.evaluate("void window.open('/asking')")
        # The page opens its dialog right after this request.
        await browsers.until(lambda: served.arrived("/asked"))
        await browser.close(keep=True)


async def test_stuck_tabs_are_given_up_and_the_others_are_kept(served: site.Site, tmp_path: Path) -> None:
    """Hanging tabs are closed and listed as lost; the current one is unchanged, although the dialog had blocked it."""
    await left_with_stuck_tabs(tmp_path, served, current=False)
    found = await reattached(tmp_path, served)
    assert found is not None
    elsewhere = served.origin.replace("127.0.0.1", "localhost")
    assert set(found.lost_tabs) == {
        port.LostTab(None, f"{served.origin}/asking"),
        port.LostTab("busy", f"{elsewhere}/form"),
    }
    assert await found.page.value(NAME) == "typed"
    assert len(found.page.page.context.pages) == 1
    await found.close()


async def test_without_its_current_tab_a_browser_is_given_up(served: site.Site, tmp_path: Path) -> None:
    """When the current tab hangs, reattaching fails with the reason, and the browser is ended."""
    await left_with_stuck_tabs(tmp_path, served, current=True)
    with pytest.raises(port.GivenUp, match=r"localhost.*/form.*does not answer"):
        await reattached(tmp_path, served)
    await browsers.until(lambda: not processes_of(tmp_path) and not left_behind(tmp_path))


async def test_a_browser_closed_with_keep_can_be_reattached(served: site.Site, tmp_path: Path) -> None:
    """A browser closed with ``keep`` stays open until the next engine reattaches it."""
    async with browsers.opened(tmp_path, served.origin, linger=60) as first:
        await first.page.goto(f"{served.origin}/form")
        await first.close(keep=True)
        found = await reattached(tmp_path, served)
        assert found is not None
        assert found.page.url == f"{served.origin}/form"
        await found.close()
    assert left_behind(tmp_path) == []


async def test_its_state_file_and_profile_are_private(served: site.Site, tmp_path: Path) -> None:
    """Only the owner can read the state file and the profile."""
    async with browsers.opened(tmp_path, served.origin):
        assert stat.S_IMODE((tmp_path / own.STATE).stat().st_mode) == 0o600
        (profile,) = tmp_path.glob("profile-*")
        assert stat.S_IMODE(profile.stat().st_mode) == 0o700


@pytest.mark.parametrize("change", [{"chromium_started": "1"}, {"watcher_started": "1"}, {"boot": "another"}])
async def test_another_process_with_the_same_id_is_not_touched(change: dict[str, str], tmp_path: Path) -> None:
    """Process ids are reused, so a process counts only with its start time and the machine's boot id."""
    state = {
        "address": "ws://127.0.0.1:9/",
        "folders": [str(tmp_path / "profile-x")],
        "chromium": os.getpid(),
        "chromium_started": processes.started(os.getpid()),
        "watcher": os.getpid(),
        "watcher_started": processes.started(os.getpid()),
        "watcher_port": 9,
        "token": "",
        "boot": processes.boot(),
        "tabs": {"names": {}, "current": ""},
    }
    (tmp_path / "profile-x").mkdir()
    files.write(tmp_path / own.STATE, json.dumps({**state, **change}).encode())
    assert await open_browser.reattach(None, origins=[], private=tmp_path, settings=browsers.Chosen()) is None
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"tabs": 1, "address": 2}'])
async def test_an_unreadable_state_file_is_dropped(text: str, tmp_path: Path) -> None:
    """A state file that cannot be read means that there is no browser."""
    (tmp_path / own.STATE).write_text(text)
    assert await open_browser.reattach(None, origins=[], private=tmp_path, settings=browsers.Chosen()) is None
    assert left_behind(tmp_path) == []


@pytest.mark.drawn(1)
@pytest.mark.parametrize("mode", ["own", "shared"])
async def test_a_checkpoint_brings_everything_back(mode: Mode, served: site.Site, tmp_path: Path) -> None:
    """Cookies (session and HttpOnly ones too), storage, IndexedDB, session storage and tabs are restored into a fresh browser."""
    store = """<title>Store</title><script>
      if (!document.cookie.includes('seen')) {
        document.cookie = 'seen=yes';
        localStorage.kept = 'local';
        sessionStorage.kept = 'session';
        const opening = indexedDB.open('shelf', 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore('books').put({title: 'kept'}, 1);
        opening.onsuccess = () => { document.title = 'Stored'; };
      }
      const found = sessionStorage.kept;
    </script>"""
    served.page("/store", store, set_cookie="hidden=1; HttpOnly")
    path = tmp_path / "checkpoint-1.json"
    async with browsers.opened(tmp_path, served.origin, mode=mode) as first:
        await first.page.goto(f"{served.origin}/store")
        await first.page.page.wait_for_function("document.title == 'Stored'")
        second = await first.page.page.context.new_page()
        await second.goto(f"{served.origin}/form?other")
        captured = await first.capture()
        assert captured.urls == [f"{served.origin}/store", f"{served.origin}/form?other"]
        path.write_bytes(captured.data)
    served.requests.clear()
    async with browsers.opened(tmp_path, served.origin, mode=mode) as fresh:
        await fresh.restore(path.read_bytes())
        assert fresh.page.url == f"{served.origin}/store"
        assert [page.url for page in fresh.page.page.context.pages][1:] == [f"{served.origin}/form?other"]
        # The session storage was restored before the page's own script ran.
        assert await fresh.page.page.evaluate("[document.cookie, localStorage.kept, found]") == [
            "seen=yes",
            "local",
            "session",
        ]
        book = """new Promise((told) => {
          const opening = indexedDB.open('shelf');
          opening.onsuccess = () => {
            if (!opening.result.objectStoreNames.length) told('no shelf');
            const asking = opening.result.transaction('books').objectStore('books').get(1);
            asking.onsuccess = () => told(asking.result);
          };
        })"""
        assert await fresh.page.page.evaluate(book) == {"title": "kept"}
        assert fresh.facts().documents == 2
    assert [request.path for request in served.arrived()] == ["/store", "/form"]
    assert "hidden=1" in served.arrived("/store")[0].headers["cookie"]


@pytest.mark.drawn(share=1)
async def test_a_page_that_still_arrives_gets_no_checkpoint(served: site.Site, tmp_path: Path) -> None:
    """A checkpoint of half a page is never taken: whole, after a restore, it would count as another page."""
    wait = threading.Event()
    half = "<!doctype html><title>Orders</title><h1>Orders</h1>" + "<p>One</p>" * 200
    rest = "<!-- -->" * 300 + "<table><tr><th>Number</table>"

    def orders(_request: site.Request) -> site.Answer:
        def midway() -> None:
            wait.wait(20)

        return site.Answer(half + rest, midway=midway)

    served.answer("/orders", orders)
    served.page("/start", "<!doctype html><a href=/orders>Orders</a>")
    try:
        async with browsers.opened(tmp_path, served.origin) as first:
            await first.page.goto(f"{served.origin}/start")
            await first.page.page.click("a", no_wait_after=True)
            await first.page.page.wait_for_selector("h1:has-text('Orders')")
            with pytest.raises(SiteError) as refused:
                await first.capture()
            assert refused.value.code == "checkpoint-failed"
            wait.set()
            await first.page.page.wait_for_selector("th")
            captured = await first.capture()
    finally:
        wait.set()
    async with browsers.opened(tmp_path, served.origin) as fresh:
        assert await fresh.restore(captured.data) is None


async def test_a_checkpoint_of_a_reattached_browser_has_earlier_storage(served: site.Site, tmp_path: Path) -> None:
    """A checkpoint after reattaching contains storage written before. Capturing sends no request, and no confinement refuses it."""
    served.page("/keep", "<script>localStorage.kept = 'yes'</script>")
    async with browsers.opened(tmp_path, served.origin, linger=60) as first:
        await first.page.goto(f"{served.origin}/keep")
        await first.page.goto("about:blank")
        await first.close(keep=True)
        served.requests.clear()
        found = await reattached(tmp_path, served)
        assert found is not None
        before = found.facts()
        found.confine([], "part.yaml")
        captured = await found.capture()
        assert (found.refusal(), found.facts(), len(found.page.page.context.pages)) == (None, before, 1)
        await found.close()
    assert served.arrived() == []
    (saved,) = json.loads(captured.data)["storage"]["origins"]
    assert saved["localStorage"] == [{"name": "kept", "value": "yes"}]


async def test_an_unreadable_checkpoint_is_refused(served: site.Site, tmp_path: Path) -> None:
    """A checkpoint that has another format or cannot be read is refused with that reason."""
    async with browsers.opened(tmp_path, served.origin) as browser:
        for data, words in ((b'{"format": 99}', "has format 99"), (b"", "cannot be read"), (b"[]", "cannot be read")):
            with pytest.raises(SetupError, match=words):
                await browser.restore(data)


@pytest.mark.drawn(share=1)
async def test_a_failed_start_shows_the_browsers_log(tmp_path: Path) -> None:
    """The error of a failed start has the end of the browser's log, and the private folder is left empty."""
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'the sky is falling' >&2\nexit 1\n")
    broken.chmod(0o755)
    private = tmp_path / "private"
    private.mkdir()
    with pytest.raises(SetupError) as failed:
        await open_browser.open_browser(None, origins=[], private=private, settings=browsers.Chosen(browser=broken))
    assert failed.value.exit == 3
    assert "the sky is falling" in failed.value.evidence["log"]
    await browsers.until(lambda: left_behind(private) == [])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("mode", ["own", "shared"])
async def test_a_machine_that_forbids_the_sandbox(
    mode: Mode, served: site.Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When Chromium reports that its sandbox cannot be used, it is started without one."""
    picky = tmp_path / "picky"
    picky.write_text(
        f"""#!/bin/sh
case "$*" in *--no-sandbox*) exec {find.find()} "$@";; esac
echo "[FATAL:zygote_host] No usable sandbox!" >&2
exit 1
"""
    )
    picky.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    chosen = browsers.Chosen(browser=picky, browser_mode=mode)
    browser = await open_browser.open_browser(None, origins=[served.origin], private=tmp_path, settings=chosen)
    browser.bound(10)
    await browser.page.goto(f"{served.origin}/form")
    await browser.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only as root is the sandbox never tried")
@pytest.mark.parametrize("mode", ["own", "shared"])
async def test_an_interrupted_start_leaves_nothing(mode: Mode, served: site.Site, tmp_path: Path) -> None:
    """A start interrupted at any moment leaves no process and no profile."""
    chosen = browsers.Chosen(browser_mode=mode, linger=600)
    for seconds in (0, 0.02, 0.15, 0.35):
        opening = asyncio.ensure_future(
            open_browser.open_browser(None, origins=[served.origin], private=tmp_path, settings=chosen)
        )
        await asyncio.sleep(seconds)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await opening).close()
        await browsers.until(lambda: not processes_of(tmp_path))
        await browsers.until(lambda: left_behind(tmp_path) == [])


async def test_a_start_interrupted_during_hold_leaves_nothing(
    served: site.Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium that already runs with its linger time is ended when the start is cancelled."""
    taken, hold = asyncio.Event(), launch.Chromium.hold

    async def slowly(alive: launch.Alive, linger: float) -> launch.Chromium:
        chromium = await hold(alive, linger)
        taken.set()
        await asyncio.sleep(0.05)
        return chromium

    monkeypatch.setattr(launch.Chromium, "hold", slowly)
    opening = asyncio.ensure_future(
        open_browser.open_browser(
            None, origins=[served.origin], private=tmp_path, settings=browsers.Chosen(browser_mode="own", linger=600)
        )
    )
    await taken.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await browsers.until(lambda: not processes_of(tmp_path))
    await browsers.until(lambda: left_behind(tmp_path) == [])


async def test_an_interrupt_in_the_terminal_reaches_neither_browser_nor_driver(
    served: site.Site, tmp_path: Path
) -> None:
    """Ctrl-C reaches the engine alone, because Chromium and Playwright's driver have separate process sessions."""
    async with browsers.opened(tmp_path, served.origin):
        state = json.loads((tmp_path / own.STATE).read_text())
        assert os.getsid(state["chromium"]) != os.getsid(0)
        children = [
            each.pid
            for each in psutil.Process().children()
            if each.status() != psutil.STATUS_ZOMBIE and "run-driver" in each.cmdline()
        ]
        assert children
        assert os.getsid(0) not in [os.getsid(child) for child in children]


def test_finding_a_browser_on_this_machine() -> None:
    """A browser is installed for these tests."""
    assert find.find().exists()
