"""``runops install``: finds a browser, or installs one."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

from nodes.errors import SetupError
from runtime.browser.chromium import find
from runtime.browser.engines import find as engines
from runtime.cli import console, flags
from runtime.settings import settings
from runtime.system.engines import Engine

FIREFOX = ("apt-get", "install", "-y", "firefox-esr")
APT = ("apt-get", "install", "-y", "chromium")  # the command that installs Debian's own Chromium
START_SECONDS = 30.0  # time limit for a browser to print its version


EngineArgument = Annotated[Engine, flags.argument("ENGINE", "Kind of browser: chromium, firefox or webkit.")]


def install(engine: EngineArgument = "chromium") -> None:
    """Find a browser for RunOps to drive, or install one: Playwright's own download, or else the system's Chromium or Firefox.

    If both fail, it prints the command to type, and ends with exit code 3.
    """
    if engine != "chromium":
        _install_other(engine)
        return
    named = settings.load().browser
    find.configured(named)  # one that is set and cannot be run stays in the way of any other
    if (found := usable(named)) is not None:
        console.result(str(found))
        return
    for way in (playwright_download, system_package):
        if way() and (found := usable(named)) is not None:
            console.say(f"the browser is {found}")
            console.result(str(found))
            return
    raise SetupError(
        "browser-not-installed",
        "no browser could be installed: Playwright's download and the system's package both failed",
        fix=_by_hand(),
    )


def _install_other(engine: Literal["firefox", "webkit"]) -> None:
    named = settings.load().browser
    ways = [lambda: _run(sys.executable, "-m", "playwright", "install", engine)]
    if engine == "firefox":
        engines.released(named)
        ways.append(lambda: _package(FIREFOX))
    found = asyncio.run(engines.look(engine, named))
    for way in ways:
        if found is not None:
            break
        found = asyncio.run(engines.look(engine, named)) if way() else None
    if found is None:
        raise SetupError(
            "browser-not-installed",
            f"{engine} could not be installed: Playwright's download failed"
            + (", and the system's package too" if engine == "firefox" else ""),
            fix=f"type: playwright install {engine}",
        )
    console.result(str(found))


def usable(named: Path | None) -> Path | None:
    """Return the browser that a run would drive, if there is one and it starts."""
    try:
        path = find.find(named)
        done = subprocess.run([path, "--version"], capture_output=True, timeout=START_SECONDS, check=False)
    except (SetupError, OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None


def playwright_download() -> bool:
    """Let Playwright's installer download its Chromium; as root, also install libraries that it lacks."""
    console.say("trying Playwright's own download of Chromium …")
    if not _run(sys.executable, "-m", "playwright", "install", "chromium"):
        return False
    if usable(None) is None and os.geteuid() == 0:
        console.say("installing the libraries that it needs …")
        _run(sys.executable, "-m", "playwright", "install-deps", "chromium")
    return True


def system_package() -> bool:
    return _package(APT)


def _package(command: tuple[str, ...]) -> bool:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    console.say(f"trying the system's package {command[-1]} …")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return _run("apt-get", "update", "-q", environment=environment) and _run(*command, "-q", environment=environment)


def _run(*command: str, environment: dict[str, str] | None = None) -> bool:
    try:
        return subprocess.run(command, stdout=sys.stderr, env=environment, check=False).returncode == 0
    except OSError as error:
        console.say(f"{command[0]}: {error.strerror}")
        return False


def _by_hand() -> str:
    if shutil.which("apt-get") is None:
        return f"install Chrome or Chromium with your system's package manager, or set {find.VARIABLE} to its path"
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"type: {sudo}{' '.join(APT)}"
