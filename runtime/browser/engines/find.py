"""Finds the Firefox or WebKit to start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from playwright.async_api import BrowserType, async_playwright

from nodes.errors import SetupError
from runtime.browser.chromium.find import VARIABLE, runnable
from runtime.browser.options import Engine

NAMES = ("firefox", "firefox-esr")
"""Names of Firefox on PATH. WebKit has no browser that Playwright could drive, except its own build."""


def released(named: Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the Firefox that is set, by the setting or by ``RUNOPS_BROWSER``, if that is one. Raises SetupError ``browser-not-found``."""
    goal = str(named or environ.get(VARIABLE) or "")
    if "firefox" not in Path(goal).name:
        return None
    fix = f"set {VARIABLE} to the path of Firefox, or unset it and type: runops install firefox"
    return runnable(goal, environ, fix)


def find(kind: BrowserType, named: Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the released Firefox to start; None for the build of Playwright's.

    The one that is set comes first, then Playwright's download, then Firefox on PATH. Raises SetupError ``browser-not-found``.
    """
    engine = kind.name
    if engine == "firefox" and (path := released(named, environ)) is not None:
        return path
    if os.access(kind.executable_path, os.X_OK):
        return None
    for name in NAMES if engine == "firefox" else ():
        if found := shutil.which(name, path=environ.get("PATH")):
            return Path(found)
    raise not_found(engine)


async def look(engine: Engine, named: Path | None) -> Path | None:
    """Return the browser that a run of this engine would start; None without one."""
    async with async_playwright() as playwright:
        kind: BrowserType = getattr(playwright, engine)
        try:
            return find(kind, named) or Path(kind.executable_path)
        except SetupError:
            return None


def not_found(engine: str) -> SetupError:
    return SetupError(
        "browser-not-found", f"no browser of the engine {engine} was found", fix=f"type: runops install {engine}"
    )


def preferences(dark: bool, reduced_motion: bool) -> dict[str, str | float | bool]:
    """Return the preferences of a Firefox whose connections all go through the proxy of its context."""
    return {
        # A run works on sites of this machine, too.
        "network.proxy.allow_hijacking_localhost": True,
        "network.proxy.failover_direct": False,
        # A connection that is open may not serve another origin.
        "network.http.http2.enabled": False,
        "network.http.spdy.enabled.http2": False,
        "network.http.http3.enable": False,
        "network.http.altsvc.enabled": False,
        # By default Firefox sends a request without an answer up to ten times.
        "network.http.request.max-attempts": 2,
        "network.prefetch-next": False,
        # A page that is taken from memory is not reported as loaded.
        "browser.sessionhistory.max_total_viewers": 0,
        "fission.bfcacheInParent": False,
        "layout.css.prefers-color-scheme.content-override": 0 if dark else 1,
        "ui.prefersReducedMotion": int(reduced_motion),
    }
