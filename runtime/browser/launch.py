"""Starting Chromium: its switches, its profile, and the address at which it is driven."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

from nodes.errors import SetupError

START_SECONDS = 30.0

_DISABLED_FEATURES = (
    # As Playwright starts Chromium, so that pages behave the same.
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
    # Documents that load before anybody asked for them.
    "Prerender2",
    "SpeculationRulesPrefetchFuture",
)

_SWITCHES = (
    "--remote-debugging-port=0",
    "--remote-debugging-address=127.0.0.1",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--disable-field-trial-config",
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


def switches(profile: Path, *, headed: bool = False, sandbox: bool | None = None) -> list[str]:
    """Chromium's command line after the executable. ``sandbox`` None means: unless we are root, where Chromium refuses it."""
    if sandbox is None:
        sandbox = os.geteuid() != 0
    return [
        *_SWITCHES,
        *(() if headed else _HEADLESS),
        *(() if sandbox else ("--no-sandbox",)),
        f"--user-data-dir={profile}",
        "about:blank",
    ]


class Chromium:
    """A Chromium that we started."""

    def __init__(self, process: subprocess.Popen[bytes], profile: Path, address: str) -> None:
        self._process = process
        self.profile = profile
        self.address = address
        """Where it is driven: a WebSocket address on loopback."""

    async def end(self) -> None:
        """End it and remove its profile."""
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        await asyncio.to_thread(shutil.rmtree, self.profile, ignore_errors=True)


async def start(executable: Path, profile: Path, *, headed: bool = False) -> Chromium:
    """Start Chromium on a profile of its own and return when it can be driven. Raises SetupError ``browser-not-started``."""
    os.makedirs(profile, mode=0o700)  # noqa: PTH103 - one call on a local disk
    # Its own session: Ctrl-C in the terminal is for us to deal with.
    process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once; what takes time is awaited below
        [str(executable), *switches(profile, headed=headed)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            address = await _address(profile, process)
    except TimeoutError:
        process.kill()
        raise SetupError("browser-not-started", f"{executable} did not start within {START_SECONDS:g} s") from None
    return Chromium(process, profile, address)


async def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    written = profile / "DevToolsActivePort"
    while True:
        lines = written.read_text().splitlines() if written.exists() else []
        if len(lines) == 2:
            port, path = lines
            return f"ws://127.0.0.1:{port}{path}"
        if process.poll() is not None:
            raise SetupError("browser-not-started", f"the browser ended at once with code {process.returncode}")
        await asyncio.sleep(0.005)
