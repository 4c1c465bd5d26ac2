"""Within a command with faked pages: a small site that reports every click as carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.browser import open as open_browser
from tests import fakes

TEXTS = {'test_id="pieces"': "1"}
"""The texts of its elements, by their targets."""


def install(report: Callable[[dict[str, Any]], None]) -> None:
    """Give every browser of this process the site."""

    async def clicked(target: str, _page: fakes.FakePage) -> None:
        # The site has it, whatever happens to the process that clicked.
        report({"action": target})

    async def opened(*_given: Any, **_more: Any) -> Any:
        return fakes.FakeBrowser(fakes.FakeSite(texts=dict(TEXTS), on_click=clicked, page=Page))

    async def found(*_given: Any, **_more: Any) -> None:
        return None

    open_browser.open_browser = opened
    open_browser.reattach = found


class Page(fakes.FakePage):
    """A tab whose rules pass."""

    async def holds(self, rule: Any) -> bool:
        self.calm()
        return True
