"""Messages of a run's pages while it lasts: their consoles, exceptions that no script caught, and requests that failed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, Response, WebError

from nodes.values import sound
from runtime.browser import origins
from runtime.browser.page_errors import CLIENT_ERROR
from runtime.browser.port import Message

MOST = 200  # newest messages that are kept
LONGEST = 20_000  # characters kept of each

_ABORTED = "net::ERR_ABORTED"  # a page that is left gives its requests up


class PageMessages:
    """Listens to the tabs of a browser context, except those that ``left_out`` selects."""

    def __init__(self, context: BrowserContext, left_out: Callable[[Page], bool]) -> None:
        self._left_out = left_out
        self.kept: deque[Message] = deque(maxlen=MOST)
        listeners: dict[Any, Callable[[Any], None]] = {
            "console": self._said,
            "weberror": self._broke,
            "response": self._answered,
            "requestfailed": self._failed,
        }
        for event, listener in listeners.items():
            context.on(event, listener)

    def _said(self, message: ConsoleMessage) -> None:
        if message.page is None or not self._left_out(message.page):
            url = str(message.location.get("url", ""))
            self._keep("console", message.text, url=url, level=message.type)

    def _broke(self, error: WebError) -> None:
        if error.page is None or not self._left_out(error.page):
            self._keep("error", str(error.error), url=error.page.url if error.page is not None else "")

    def _answered(self, response: Response) -> None:
        if response.status >= CLIENT_ERROR:
            self._requested(response.request, f"{response.status} {response.status_text}".rstrip(), response.status)

    def _failed(self, request: Request) -> None:
        if request.failure != _ABORTED:
            self._requested(request, request.failure or "it failed", None)

    def _requested(self, request: Request, how: str, status: int | None) -> None:
        self._keep("request", f"{request.method} {how}", url=request.url, status=status, method=request.method)

    def _keep(self, kind: Any, text: str, *, url: str, **more: Any) -> None:
        where = origins.without_query(url) if url else None
        self.kept.append(Message(time.time(), kind, sound(text)[:LONGEST], where, **more))
