"""Starts Chromium: its switches, its profile, and its DevTools address."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pydantic

from nodes.errors import SetupError
from runtime.browser.chromium import find, watcher
from runtime.system import files, processes, regular_files

START_SECONDS = 30.0  # seconds that Chromium may take to start: a cold disk is slow
STATE = "browser.json"  # file in a run's private folder about its Chromium: an `Alive` and the names of its tabs
PROFILE, TEMPORARY = "profile-", "runops-"  # prefixes of the folders that are made for a Chromium
WATCHER_SECONDS = 10.0  # seconds that the watcher may take to end Chromium and to answer

_DISABLED_FEATURES = (
    # Playwright disables these too, so pages behave the same.
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
    # Loads documents before they are requested.
    "Prerender2",
    # Creates a new frame for each document: up to a third of the cost of a navigation.
    "RenderDocument",
    # Extra pages for the address bar: two thirds of the cost of a start.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
)

_SWITCHES = (
    "--remote-debugging-port=0",
    "--remote-debugging-address=127.0.0.1",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--disable-field-trial-config",
    # Chromium would request an unanswered document again a second later.
    "--disable-auto-reload",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-back-forward-cache",
    "--disable-breakpad",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-infobars",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-quic",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--disable-stack-profiler",
    "--disable-sync",
    "--allow-pre-commit-input",
    "--enable-unsafe-swiftshader",
    "--force-color-profile=srgb",
    "--metrics-recording-only",
    "--password-store=basic",
    "--unsafely-disable-devtools-self-xss-warnings",
    "--use-mock-keychain",
    "--disable-features=" + ",".join(_DISABLED_FEATURES),
    "--enable-features=CDPScreenshotNewSurface,SkipListAccountsWithoutGaiaCookies",
)

_HEADLESS = (
    "--headless",
    "--hide-scrollbars",
    "--mute-audio",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
)


# A prefetched document would load from memory, unseen by the guard.
_PREFERENCES = '{"net": {"network_prediction_options": 2}}'


def switches(profile: Path, *, headed: bool, sandbox: bool, further: Sequence[str] = ()) -> list[str]:
    return [
        *_SWITCHES,
        *(() if headed else _HEADLESS),
        *(() if sandbox else ("--no-sandbox",)),
        *_merged(further),
        f"--user-data-dir={profile}",
        "about:blank",
    ]


def _merged(further: Sequence[str]) -> list[str]:
    """Return ``further`` merged with our values for switches where Chromium uses only the last of a name."""
    merged: dict[str, str] = {}
    for each in further:
        name, _equals, value = each.partition("=")
        if name in ("--disable-features", "--enable-features", "--blink-settings"):
            ours = next(known for known in (*_SWITCHES, *_HEADLESS) if known.startswith(name))
            value = f"{merged.get(name) or ours.partition('=')[2]},{value}"
        merged[name] = value
    return [f"{name}={value}" if value else name for name, value in merged.items()]


@dataclasses.dataclass(frozen=True, slots=True)
class Alive:
    """A Chromium that we started, described so that a later process can check it."""

    address: str  # its DevTools address: a WebSocket on loopback
    folders: list[str]
    """Folders to remove after its end: its profile, or the folder with it, and its temporary folder."""
    chromium: int
    chromium_started: str
    watcher: int
    watcher_started: str
    watcher_port: int
    token: str  # token that the watcher accepts
    boot: str

    @property
    def downloads(self) -> Path:
        """Folder for downloads, which is removed with the others."""
        return Path(self.folders[0]) / "downloads"

    def remove_folders(self) -> None:
        """Remove its folders. Folders without our prefixes stay: the description may come from a damaged file."""
        for folder in map(Path, self.folders):
            if folder.is_absolute() and folder.name.startswith((PROFILE, TEMPORARY)):
                shutil.rmtree(folder, ignore_errors=True)

    def lives(self) -> bool:
        """Return True if both processes are still the ones that were started."""
        return (
            self.boot == processes.boot()
            and processes.started(self.chromium) == self.chromium_started
            and processes.started(self.watcher) == self.watcher_started
        )


_ALIVE = pydantic.TypeAdapter(Alive)


def parse(state: str) -> Alive:
    """Read an ``Alive`` from the text of its file. Raises ValueError for a damaged one."""
    return _ALIVE.validate_json(state, strict=True)


class Chromium:
    """A Chromium that we hold through its watcher: if we are killed, the watcher's ``linger`` time begins."""

    def __init__(self, alive: Alive, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.alive = alive
        self._reader = reader
        self._writer = writer

    @classmethod
    async def hold(cls, alive: Alive, linger: float) -> Chromium:
        """Hold a Chromium. Raises OSError if its watcher does not answer."""
        async with asyncio.timeout(WATCHER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", alive.watcher_port)
            chromium = cls(alive, reader, writer)
            try:
                await chromium._say({"token": alive.token})
                await chromium._say({"linger": linger})
            except BaseException:
                await chromium.release()
                raise
        return chromium

    async def _say(self, message: dict[str, Any]) -> dict[str, Any]:
        self._writer.write(json.dumps(message).encode() + b"\n")
        line = await self._reader.readline()
        if not line:
            raise ConnectionResetError("the browser's watcher is gone")
        return json.loads(line)

    async def linger(self, seconds: float) -> None:
        """Let it run for this many seconds after we are gone. Raises OSError if its watcher does not answer."""
        async with asyncio.timeout(WATCHER_SECONDS):
            await self._say({"linger": seconds})

    @property
    def gone(self) -> bool:
        return self._reader.at_eof()

    def end_soon(self) -> None:
        if not self._writer.is_closing():
            self._writer.write(b'{"end": true}\n')

    async def end(self) -> None:
        """End it and remove its profile. One that has already ended is no error."""
        with contextlib.suppress(OSError):
            async with asyncio.timeout(WATCHER_SECONDS):
                await self._say({"end": True})
        await self.release()
        if processes.started(self.alive.chromium) == self.alive.chromium_started:
            # The watcher did not answer. It is Chromium's parent: while it exists, the process id cannot be reused.
            with contextlib.suppress(OSError):
                os.killpg(self.alive.chromium, signal.SIGKILL)

    async def release(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def start(
    executable: Path,
    private: Path | None,
    *,
    linger: float,
    headed: bool = False,
    further: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Chromium:
    """Start Chromium on a new profile, in ``private`` or else among the temporary files, and return when it answers.

    It runs in its sandbox if the machine allows that. Raises SetupError ``browser-not-started``, LogError
    ``log-write-failed``.
    """
    sandboxes = (True, False) if os.geteuid() != 0 else (False,)
    for sandbox in sandboxes:
        profile, temporary, log = _folders(private)
        # Read the log through this file: the watcher may have removed its name by then.
        with log:
            spec: dict[str, Any] = {
                "command": [str(executable), *switches(profile, headed=headed, sandbox=sandbox, further=further)],
                "environment": {**os.environ, **(environment or {}), "TMPDIR": str(temporary)},
                "log": str(log.name),
                "remove": [str(profile), str(temporary)],
                "token": secrets.token_hex(16),
                "linger": linger,
            }
            try:
                return await _start(spec, profile)
            except _NotStarted as error:
                output = "\n".join(log.read().decode(errors="replace").splitlines()[-10:])
                # Containers and some distributions forbid the sandbox to users other than root.
                if sandbox and "sandbox" in output:
                    continue
                raise SetupError(
                    "browser-not-started",
                    f"{executable} could not be started: {error}",
                    fix=f"read its output above, set {find.VARIABLE} to another browser, or type: {find.FIX}",
                    evidence={"log": output},
                ) from None
    raise AssertionError("the last way of starting is final")


class _NotStarted(Exception):
    """Chromium did not start."""


async def _start(spec: dict[str, Any], profile: Path) -> Chromium:
    starting = asyncio.create_task(_run_watcher(spec))
    interrupted: asyncio.CancelledError | None = None
    try:
        report = await asyncio.shield(starting)
    except asyncio.CancelledError as cancelled:
        # A started browser must be held, if only to end it.
        interrupted, report = cancelled, await starting
    if "error" in report:
        raise _NotStarted(report["error"])
    # The address is unknown until Chromium runs, but the watcher must be held at once.
    alive = Alive(
        address="",
        folders=spec["remove"],
        chromium=report["chromium"],
        chromium_started=processes.started(report["chromium"]) or "",
        watcher=report["watcher"],
        watcher_started=processes.started(report["watcher"]) or "",
        watcher_port=report["port"],
        token=spec["token"],
        boot=processes.boot(),
    )
    chromium: Chromium | None = None
    try:
        holding = asyncio.create_task(Chromium.hold(alive, spec["linger"]))
        try:
            await asyncio.shield(holding)
        except asyncio.CancelledError as cancelled:
            # Holding must finish, so that the browser can be ended: otherwise it would wait for another engine.
            interrupted = cancelled
        chromium = await holding
        if interrupted is not None:
            raise interrupted
        async with asyncio.timeout(START_SECONDS):
            address = await _address(profile, chromium)
    except BaseException as error:
        if chromium is not None:
            await chromium.end()
        if not isinstance(error, OSError):
            raise
        slow = isinstance(error, TimeoutError)
        said = f"it did not answer within {START_SECONDS:g} s" if slow else "it ended at once"
        raise _NotStarted(said) from None
    chromium.alive = dataclasses.replace(alive, address=address)
    return chromium


def _folders(private: Path | None) -> tuple[Path, Path, BinaryIO]:
    """Create a profile, a folder for temporary files, and a log. Raises LogError ``log-write-failed``, and leaves nothing then."""
    made: list[Path] = []
    try:
        # Chromium's lock is a socket, whose path must be short.
        made.append(temporary := Path(tempfile.mkdtemp(prefix=TEMPORARY)))
        made.append(profile := Path(tempfile.mkdtemp(prefix=PROFILE, dir=private or temporary)))
        (profile / "Default").mkdir(mode=0o700)
        regular_files.write(profile / "Default" / "Preferences", _PREFERENCES.encode())
        log = (private or temporary) / "chromium.log"
        regular_files.write(log, b"")
        return profile, temporary, regular_files.opened(log)
    except OSError as error:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise files.not_written("the browser's profile", private or Path(tempfile.gettempdir()), error) from None


async def _run_watcher(spec: dict[str, Any]) -> dict[str, Any]:
    try:
        starter = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(watcher.__file__)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        said, _nothing = await starter.communicate(json.dumps(spec).encode())
        return json.loads(said)
    except (OSError, ValueError):
        for folder in spec["remove"]:
            shutil.rmtree(folder, ignore_errors=True)
        raise _NotStarted("its watcher did not start") from None


async def _address(profile: Path, chromium: Chromium) -> str:
    written = profile / "DevToolsActivePort"
    while True:
        try:
            lines = regular_files.read_text(written).splitlines()
        except FileNotFoundError:
            lines = []
        if len(lines) == 2:
            port, path = lines
            return f"ws://127.0.0.1:{port}{path}"
        if chromium.gone:
            raise ConnectionResetError("the browser ended")
        await asyncio.sleep(0.005)
