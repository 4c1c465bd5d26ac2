"""An observation of a table of 200 rows, rendered for a model, against Playwright's bare snapshot of the same page."""

from __future__ import annotations

from pathlib import Path

from runtime.browser import open as open_browser
from tests import browsers, site
from tests.benchmarks import pairs
from tests.observed import table


async def measure(folder: Path, count: int, warm: int) -> tuple[pairs.Comparison, int]:
    """Compare the two, and return the number of characters of the observation."""
    folder.mkdir()
    with site.serve() as served:
        address = served.page("/table", table.page())
        browser = await open_browser.open_browser(
            None, origins=[served.origin], private=folder, settings=browsers.Chosen()
        )
        characters = 0

        async def look() -> None:
            nonlocal characters
            browser.bound(60)
            characters = len((await browser.page.look()).render())

        async def bare() -> None:
            await browser.page.page.aria_snapshot(mode="ai")

        try:
            browser.bound(60)
            await browser.page.goto(address)
            found = await pairs.compare(look, bare, pairs=count, warm=warm)
        finally:
            await browser.close()
    return found, characters
