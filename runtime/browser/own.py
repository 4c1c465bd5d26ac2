"""Mode *own*: a separate Chromium for each run. It survives the engine, and the next engine reattaches to it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pydantic
from playwright.async_api import Browser, BrowserContext, Error, Page, Playwright
from typing_extensions import TypedDict

from nodes.errors import SetupError
from runtime.browser import origins, playwright_errors
from runtime.browser.chromium import driver, find, launch
from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.devtools import origin_guard, user_agent
from runtime.browser.devtools.downloads import DownloadManager
from runtime.browser.devtools.emulation import CurrentTabLost, Emulation
from runtime.browser.elements import locators
from runtime.browser.options import BrowserOptions, Permission
from runtime.browser.port import GivenUp, LostTab
from runtime.browser.session import Session
from runtime.system import files, regular_files
from runtime.system.crash_points import CrashPoint, crash_point

STATE = launch.STATE

TELL_SECONDS = 1.0  # seconds that a tab may take to report its target id

REATTACH_SECONDS = 3.0
"""Seconds that a Chromium, and each of its tabs, may take to answer its next engine. A slower one counts as gone."""

FOUND_SECONDS = 20.0  # seconds for a whole reattach to a Chromium that answers: a machine may be slow


@dataclasses.dataclass(frozen=True, slots=True)
class KnownTabs:
    """Tabs of a browser as its engine knew them, each by its DevTools target id."""

    names: dict[str, str]  # target ids by name, for the tabs that have a name
    current: str  # target id of the current tab


class _StateFile(TypedDict):
    tabs: KnownTabs


_STATE_FILE = pydantic.TypeAdapter(_StateFile)


class Own:
    def __init__(self, chromium: launch.Chromium, driving: asyncio.Future[Playwright], private: Path) -> None:
        self._chromium = chromium
        self._driving = driving  # playwright's driver, which may still be starting
        self._state = private / STATE
        self._guard: origin_guard.Guard | None = None
        self._targets: weakref.WeakKeyDictionary[Page, str] = weakref.WeakKeyDictionary()
        self._remembering = asyncio.Lock()
        self._written: KnownTabs | None = None  # tabs as the file has them
        self._ended = False

    async def session(self, options: BrowserOptions, origins: Sequence[str], known: KnownTabs | None) -> Session:
        """Start the guard, set everything that must hold before a page loads, and return the session.

        ``known`` has the tabs of a reattached browser: its current tab is set up first, and those that are stuck are closed.
        Raises ``devtools_connection.Disconnected`` or ``Refused``, and CurrentTabLost.
        """
        alive = self._chromium.alive
        connection = await devtools_connection.Connection.open(alive.address, REATTACH_SECONDS)
        guard = self._guard = origin_guard.Guard(connection, on_lost=self._chromium.end_soon)
        emulation = Emulation(connection, options)
        await guard.start(options.headers)
        guarded = await guard.guarded(origins, credentials(options), user_agent.headers(options))
        await emulation.start(REATTACH_SECONDS / 2, None if known is None else known.current)
        # No step expects a download yet.
        connection.post("Browser.setDownloadBehavior", {"behavior": "deny"})
        if options.permissions:
            granted = [_PERMISSIONS[each] for each in options.permissions]
            await connection.send("Browser.grantPermissions", {"permissions": granted})
        lost: Sequence[LostTab] = ()
        if known is not None:
            names = {target: name for name, target in known.names.items()}
            lost = await emulation.close_stuck(known.current, names, REATTACH_SECONDS / 2)
        # By default Playwright sets colours and motion itself, in a race with us.
        browser = await connect_playwright(alive, await asyncio.shield(self._driving), no_defaults=True)

        async def playwright_ready() -> None:
            # Playwright's driver handles messages in order: after any answer it knows every new tab.
            await (await browser.new_browser_cdp_session()).detach()

        emulation.others_ready = playwright_ready
        context = browser.contexts[0]
        unseen = () if known is None else guarded.allowed
        downloads = DownloadManager(alive.address, guard, alive.downloads)
        session = Session(
            context, guarded, guard, downloads, self.end, touch=options.touch, lost_tabs=lost, unseen=unseen
        )
        if known is None:
            await session.begin_with()
        else:
            self._written = known
            await self._recognise(session, context, known)
        session.tabs.changed = lambda: self.remember(session)
        await self.remember(session)
        return session

    async def _recognise(self, session: Session, context: BrowserContext, known: KnownTabs) -> None:
        open_ones = context.pages
        pages = dict(zip(await asyncio.gather(*map(self._name_of, open_ones)), open_ones, strict=True))
        # The guard did not run while no engine was connected.
        for page in open_ones:
            for frame in page.frames:
                session.committed(frame.url)
        names = {name: pages[each] for name, each in known.names.items() if each in pages}
        if known.current not in pages:
            raise CurrentTabLost("the tab that the run was in is closed")
        if origins.is_error_page(pages[known.current].url):
            # The requested document did not load and the one before it is gone: no step would find anything there.
            raise CurrentTabLost("the tab that the run was in shows an error of the browser's, in place of a page")
        session.tabs.begin(names, pages[known.current])

    async def _name_of(self, page: Page) -> str:
        if page not in self._targets:
            self._targets[page] = await target_id(page.context, page)
        return self._targets[page]

    async def remember(self, session: Session) -> bool:
        """Save the browser's address, the names of its tabs and the current tab; return False if a tab's target id is not known yet.

        Writes nothing after the browser was released. Raises LogError ``log-write-failed``.
        """
        async with self._remembering:
            named = session.tabs.named
            for page in {*named.values(), session.page.page}:
                # A tab that is closing does not answer, and one that shows a dialog answers later.
                with contextlib.suppress(Error, TimeoutError):
                    async with asyncio.timeout(TELL_SECONDS):
                        await self._name_of(page)
            names = {name: self._targets[page] for name, page in named.items() if page in self._targets}
            current = self._targets.get(session.page.page, "")
            tabs = KnownTabs(names, current)
            if self._ended:
                return True
            known = len(names) == len(named) and bool(current)
            if tabs == self._written:
                return known
            state = {**dataclasses.asdict(self._chromium.alive), "tabs": dataclasses.asdict(tabs)}
            crash_point(CrashPoint.BROWSER_STARTED)
            try:
                await asyncio.to_thread(files.write, self._state, json.dumps(state).encode())
            except OSError as error:
                raise files.not_written("where the browser is", self._state, error) from None
            self._written = tabs
            crash_point(CrashPoint.BROWSER_KNOWN)
            return known

    async def end(self, keep: bool) -> None:
        """Disconnect from everything; end Chromium too, unless ``keep``. Never raises if the browser is gone."""
        # From here on tabs close because we disconnect. The file of a kept browser stays as it was; any other file is removed.
        self._ended = True
        if not keep:
            await self._chromium.end()
        async with self._remembering:
            if not keep:
                # A file that stayed would name a process that no longer runs.
                with contextlib.suppress(OSError):
                    self._state.unlink()
        if self._guard is not None:
            await self._guard.close()
        await driver.stop(self._driving)
        if keep:
            await self._chromium.release()


async def connect_playwright(alive: launch.Alive, playwright: Playwright, **options: Any) -> Browser:
    browser = await playwright.chromium.connect_over_cdp(
        alive.address, is_local=True, artifacts_dir=f"{alive.folders[0]}/artifacts", **options
    )
    await locators.register(playwright)
    return browser


async def open_own(
    executable: Path,
    options: BrowserOptions,
    *,
    origins: Sequence[str],
    private: Path,
    linger: float,
    headed: bool,
) -> Session:
    """Start Chromium and Playwright's driver in parallel; return a session over Chromium's default browser context."""
    starting = launch.start(
        executable,
        private,
        # Until the state file is written no engine could find it again, so it ends with us.
        linger=0.0,
        headed=headed,
        further=_switches(options),
        environment={"TZ": options.timezone} if options.timezone else {},
    )
    chromium, driving = await driver.start_with(starting)
    own = Own(chromium, driving, private)
    try:
        session = await own.session(options, origins, None)
        await chromium.linger(linger)
    except (
        devtools_connection.Disconnected,
        devtools_connection.Refused,
        Error,
        ConnectionError,
        TimeoutError,
    ) as error:
        await own.end(keep=False)
        raise lost_while_connecting(executable, error) from None
    except BaseException:
        await own.end(keep=False)
        raise
    return session


def lost_while_connecting(executable: Path, error: Exception) -> SetupError:
    return SetupError(
        "browser-not-started",
        f"{executable} ended while it was being connected to: {playwright_errors.short(str(error), 200)}",
        fix=f"try again; if it fails again, set {find.VARIABLE} to another browser",
    )


async def reattach(options: BrowserOptions, *, origins: Sequence[str], private: Path, linger: float) -> Session | None:
    """Reattach to the run's Chromium with its pages as they were; return None if it is gone or does not answer.

    Closes a stuck tab. Raises GivenUp if that is the current tab, or if the current tab shows a browser error instead of a
    page. Ends an unusable Chromium and removes its files.
    """
    found = await asyncio.to_thread(_remembered, private)
    if found is None:
        return None
    alive, known = found
    try:
        chromium = await launch.Chromium.hold(alive, linger)
    except OSError:
        # The watcher is about to end, and Chromium with it: the state file is useless.
        (private / STATE).unlink(missing_ok=True)
        return None
    own = Own(chromium, asyncio.ensure_future(driver.start()), private)
    try:
        async with asyncio.timeout(FOUND_SECONDS):
            return await own.session(options, origins, known)
    except CurrentTabLost as error:
        await own.end(keep=False)
        raise GivenUp(str(error)) from None
    except (devtools_connection.Disconnected, devtools_connection.Refused, Error, TimeoutError):
        await own.end(keep=False)
        return None
    except BaseException:
        await own.end(keep=True)
        raise


async def target_id(context: BrowserContext, page: Page) -> str:
    """Return the tab's DevTools target id; it is the same for every engine."""
    session = await context.new_cdp_session(page)
    info = cast("dict[str, Any]", await session.send("Target.getTargetInfo"))  # pyright: ignore[reportUnknownMemberType]
    await session.detach()
    return info["targetInfo"]["targetId"]


def _remembered(private: Path) -> tuple[launch.Alive, KnownTabs] | None:
    file = private / STATE
    try:
        text = regular_files.read_text(file)
        known, alive = _STATE_FILE.validate_json(text, strict=True)["tabs"], launch.parse(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        file.unlink(missing_ok=True)
        return None
    if alive.lives():
        return alive, known
    # The watcher removes the profile, unless it was killed.
    alive.remove_folders()
    file.unlink(missing_ok=True)
    return None


def _switches(options: BrowserOptions) -> list[str]:
    switches = [f"--window-size={options.viewport.width},{options.viewport.height}"]
    if options.locale is not None:
        switches += [f"--lang={options.locale}", f"--accept-lang={options.locale}"]
    if options.user_agent is not None:
        switches.append(f"--user-agent={options.user_agent}")
    if options.device_scale_factor is not None:
        switches.append(f"--force-device-scale-factor={options.device_scale_factor:g}")
    dark = options.color_scheme == "dark"
    switches.append(f"--blink-settings=preferredColorScheme={0 if dark else 1}")
    if options.reduced_motion:
        switches.append("--force-prefers-reduced-motion")
    if options.ignore_https_errors:
        switches.append("--ignore-certificate-errors")
    if options.proxy is not None:
        # By default Chromium bypasses the proxy for loopback.
        bypass = ["<-loopback>", *options.proxy.bypass]
        switches += [f"--proxy-server={options.proxy.server}", f"--proxy-bypass-list={';'.join(bypass)}"]
    return [*switches, *options.switches]


def credentials(options: BrowserOptions) -> list[origin_guard.Credentials]:
    known: list[origin_guard.Credentials] = []
    if options.http_credentials is not None:
        known.append(origin_guard.Credentials(options.http_credentials.username, options.http_credentials.password))
    if options.proxy is not None and options.proxy.username is not None:
        known.append(origin_guard.Credentials(options.proxy.username, options.proxy.password or "", of_proxy=True))
    return known


_PERMISSIONS: dict[Permission, str] = {
    "camera": "videoCapture",
    "clipboard-read": "clipboardReadWrite",
    "clipboard-write": "clipboardSanitizedWrite",
    "geolocation": "geolocation",
    "local-fonts": "localFonts",
    "microphone": "audioCapture",
    "midi": "midi",
    "notifications": "notifications",
    "storage-access": "storageAccess",
}
"""DevTools names of the permissions."""
