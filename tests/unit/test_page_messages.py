"""What the pages of a run say, as it is kept in memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from playwright.async_api import Error

from runtime.browser.page_messages import LONGEST, PageMessages
from runtime.secrets.masking import MASK, Masker

OURS, SEPARATE = SimpleNamespace(url="http://shop.test/"), SimpleNamespace(url="http://shop.test/separate")


class Context:
    """A browser context that is told what its pages say."""

    def __init__(self) -> None:
        self.tell: dict[str, Callable[[Any], None]] = {}
        self.messages = PageMessages(self, lambda page: page.url == SEPARATE.url, Masker({"KEY": "correct-horse"}).text)  # pyright: ignore[reportArgumentType]

    def on(self, event: str, listener: Callable[[Any], None]) -> None:
        self.tell[event] = listener

    @property
    def kept(self) -> list[str]:
        return [each.text for each in self.messages.kept]


class Request(SimpleNamespace):
    """A request that failed; that of a service worker has no page."""

    method, url, failure = "GET", "http://shop.test/api", "refused"

    @property
    def frame(self) -> Any:
        if self.page is None:
            raise Error("service workers have no frame")
        return SimpleNamespace(page=self.page)


def test_tabs_that_are_left_out_say_nothing() -> None:
    """Their consoles, exceptions and requests are not kept; those of other tabs, and of service workers, are."""
    context = Context()
    for page in (OURS, SEPARATE, None):
        where = page.url.rpartition("/")[2] if page is not None else "none"
        context.tell["console"](SimpleNamespace(page=page, text=f"console {where}", type="error", location={}))
        context.tell["weberror"](SimpleNamespace(page=page, error=f"error {where}"))
        context.tell["requestfailed"](Request(page=page))
        context.tell["response"](SimpleNamespace(status=500, status_text=where, request=Request(page=page)))
    wanted = ["console ", "error ", "GET refused", "GET 500"]
    assert context.kept == [*wanted, "console none", "error none", "GET refused", "GET 500 none"]


def test_a_message_that_is_cut_shows_no_part_of_a_secret() -> None:
    """It is masked first, so the cut falls on a mask."""
    context = Context()
    said = "x" * (LONGEST - 10) + "correct-horse"
    context.tell["console"](SimpleNamespace(page=OURS, text=said, type="log", location={}))
    [text] = context.kept
    assert text == ("x" * (LONGEST - 10) + MASK)[:LONGEST]
