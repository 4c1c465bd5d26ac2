"""Within a command whose pages are none: a small site stands for them, which says of every click that it was carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.browser import open as open_browser
from tests import fakes

TEXTS = {'test_id="pieces"': "1"}
"""What its elements say, by their targets."""


def install(tell: Callable[[dict[str, Any]], None]) -> None:
    """Give every browser of this process the site."""

    async def clicked(target: str, _page: fakes.FakePage) -> None:
        # The site has it, whatever becomes of whoever has clicked.
        tell({"action": target})

    async def opened(*_given: Any, **_more: Any) -> Any:
        return fakes.FakeBrowser(fakes.FakeSite(texts=dict(TEXTS), on_click=clicked, page=Page))

    async def found(*_given: Any, **_more: Any) -> None:
        return None

    open_browser.open_browser = opened
    open_browser.reattach = found


class Page(fakes.FakePage):
    """A tab whose rules hold."""

    async def holds(self, rule: Any) -> bool:
        self.calm()
        return True
