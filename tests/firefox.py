"""A released Firefox for tests, where the machine has one: no test needs one to be installed."""

from __future__ import annotations

import shutil

import pytest

from runtime.browser.engines import find
from runtime.browser.options import BrowserOptions

PROGRAM = next((path for name in find.NAMES if (path := shutil.which(name))), None)
"""Path of the Firefox; None on a machine without one."""

needed = pytest.mark.skipif(PROGRAM is None, reason="this machine has no Firefox on PATH")

OPTIONS = BrowserOptions(engine="firefox")
