"""Finds the browser: the configured one, else Playwright's download, else Chrome or Chromium on PATH."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from nodes.errors import SetupError

VARIABLE = "RUNOPS_BROWSER"

NAMES = ("google-chrome", "google-chrome-stable", "chrome", "chromium", "chromium-browser")
"""Names of Chrome and Chromium on PATH."""

_APPLICATIONS = (
    "Google Chrome.app/Contents/MacOS/Google Chrome",
    "Chromium.app/Contents/MacOS/Chromium",
)

_DOWNLOADED = (
    "chrome-linux*/chrome",
    "chrome-mac*/*.app/Contents/MacOS/*",
    "chrome-win*/chrome.exe",
    "chrome-headless-shell-*/chrome-headless-shell*",
    "chrome-linux*/headless_shell",
)

FIX = "runops install"


def configured(named: str | Path | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the browser that is set: by the setting ``named``, else by ``RUNOPS_BROWSER``. Raises SetupError ``browser-not-found``."""
    goal = str(named or environ.get(VARIABLE) or "")
    if not goal:
        return None
    if "firefox" in Path(goal).name:
        raise SetupError(
            "browser-not-found",
            f"{goal}, the browser that is set, is no Chromium",
            fix="write `browser: {engine: firefox}` into the file, or type `--engine firefox`",
        )
    return runnable(goal, environ, f"set {VARIABLE} to the path of Chrome or Chromium, or unset it and type: {FIX}")


def runnable(goal: str, environ: Mapping[str, str], fix: str) -> Path:
    """Return the program that is set. Raises SetupError ``browser-not-found`` with this fix if it cannot be run."""
    path = shutil.which(goal, path=environ.get("PATH"))
    if path is None:
        raise SetupError("browser-not-found", f"{goal}, the browser that is set, cannot be run", fix=fix)
    return Path(path)


def find(named: str | Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the browser's executable. Raises SetupError ``browser-not-found``."""
    if (path := configured(named, environ)) is not None:
        return path
    for path in _candidates(environ):
        return path
    raise SetupError("browser-not-found", "no browser was found: neither Chrome nor Chromium", fix=f"type: {FIX}")


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    yield from downloads(environ)
    for name in NAMES:
        if found := shutil.which(name, path=environ.get("PATH")):
            yield Path(found)
    if sys.platform == "darwin":
        for application in _APPLICATIONS:
            path = Path("/Applications") / application
            if os.access(path, os.X_OK):
                yield path


def downloads(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return Playwright's installed browsers, the full one before the headless shell, newest first. Playwright is not started."""
    folder = _download_folder(environ)
    if folder is None:
        return []
    found: list[tuple[bool, int, Path]] = []
    for each in folder.glob("chromium*-*"):
        kind, _dash, revision = each.name.rpartition("-")
        if kind not in ("chromium", "chromium_headless_shell") or not revision.isdigit():
            continue
        # An interrupted download lacks this marker.
        if not (each / "INSTALLATION_COMPLETE").exists():
            continue
        executables = (path for glob in _DOWNLOADED for path in sorted(each.glob(glob)))
        executable = next((path for path in executables if path.is_file() and os.access(path, os.X_OK)), None)
        if executable is not None:
            found.append((kind == "chromium", int(revision), executable))
    return [path for _full, _revision, path in sorted(found, reverse=True)]


def _download_folder(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if named == "0":
        spec = importlib.util.find_spec("playwright")
        origin = spec.origin if spec is not None else None
        return Path(origin).parent / "driver" / "package" / ".local-browsers" if origin else None
    if named:
        return Path(named)
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "ms-playwright"
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "ms-playwright"
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "ms-playwright"
