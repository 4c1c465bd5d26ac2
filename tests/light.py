"""Light runs: Chromium's headless shell with a preloaded driver, unless a browser is named. A short run costs half.

Documents are displayed alike. Their surroundings differ: tabs, dialogs, downloads, profiles, switches, prerendered documents.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from runtime.browser.chromium import find
from tests import drivers

_NAMED = ("chrome-headless-shell", "headless_shell")
"""The names of Playwright's downloads."""


@contextlib.contextmanager
def runs(*, shell: bool = True, driver: bool = True) -> Generator[None]:
    """Have runs of this process and its children drive the headless shell, if there is one, by a preloaded ``driver``."""
    with pytest.MonkeyPatch.context() as patched:
        if not os.environ.get(find.VARIABLE):
            if shell and (found := _headless_shell()):
                patched.setenv(find.VARIABLE, str(found))
            if driver and drivers.served():
                patched.setenv(drivers.VARIABLE, str(_driver_server().node))
        yield


def _headless_shell() -> Path | None:
    downloaded = next((path for path in find.downloads() if path.stem in _NAMED), None)
    on_path = shutil.which("chromium-headless-shell")
    return downloaded or (Path(on_path) if on_path else None)


@functools.cache
def _driver_server() -> drivers.Drivers:
    started = drivers.Drivers()
    atexit.register(started.close)
    return started
