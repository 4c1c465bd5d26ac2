"""Within a command that makes many runs: a browser of mode *shared* that stays from its first run to its last.

Each run has its isolated context there, as every run of that mode. But browser and Playwright's driver end after the last run, not after each:
starting them is most of the cost of a short run.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Coroutine
from typing import Any

from runtime.browser import open as open_browser
from runtime.browser import shared
from runtime.browser.chromium import find
from runtime.browser.options import BrowserOptions

VARIABLE = "RUNOPS_TEST_ONE_BROWSER"
"""The environment variable that makes a forked command keep its browser."""


def install_from(environment: dict[str, str]) -> None:
    """Keep the browser where this variable is set, and remove it from the environment."""
    if environment.pop(VARIABLE, None) is not None:
        install()


def install() -> None:
    """Have all runs of this process use one event loop, and with it one browser: the first run starts it."""
    runner = asyncio.Runner()
    kept: list[open_browser.Session] = []

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        if not kept:
            opening = shared.open_shared(find.find(), BrowserOptions(), origins=(), headed=False)
            kept.append(runner.run(opening))
        return runner.run(main)

    def end() -> None:
        with runner:
            for each in kept:
                runner.run(each.close())

    asyncio.run = run
    atexit.register(end)
