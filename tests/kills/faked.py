"""Within a command with faked pages: a small site that reports every click as carried out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.browser import open as open_browser
from tests import fakes

PIECES = 'test_id="pieces"'
"""The target of the number of articles in the cart."""


def install(report: Callable[[dict[str, Any]], None], record: Path) -> None:
    """Give every browser of this process the site, which is in the state that the ``record`` of what was reported tells."""
    shown: list[dict[str, str]] = []  # the texts of each browser

    def count() -> None:
        reported = (json.loads(line) for line in record.read_text().splitlines())
        pieces = sum("Add to cart" in each.get("action", "") for each in reported)
        for texts in shown:
            texts[PIECES] = str(pieces)

    async def clicked(target: str, _page: fakes.FakePage) -> None:
        # The site has it, whatever happens to the process that clicked.
        report({"action": target})
        count()

    async def opened(*_given: Any, **_more: Any) -> Any:
        shown.append({})
        count()
        return fakes.FakeBrowser(fakes.FakeSite(texts=shown[-1], on_click=clicked, page=Page))

    async def found(*_given: Any, **_more: Any) -> None:
        return None

    open_browser.open_browser = opened
    open_browser.reattach = found


class Page(fakes.FakePage):
    """A tab whose rules pass."""

    async def holds(self, rule: Any) -> bool:
        self.calm()
        return True
