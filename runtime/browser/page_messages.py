"""Messages of a run's pages while it lasts: their consoles, exceptions that no script caught, and requests that failed."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Error, Page, Request, Response, WebError

from nodes.values import sound
from runtime.browser import origins
from runtime.browser.page_errors import CLIENT_ERROR
from runtime.browser.port import Message

MOST = 200  # newest messages that are kept
LONGEST = 20_000  # characters kept of each

_ABORTED = "net::ERR_ABORTED"  # a page that is left gives its requests up


class PageMessages:
    """Listens to the tabs of a browser context, except those that ``left_out`` selects. A message is masked before it is cut."""

    def __init__(self, context: BrowserContext, left_out: Callable[[Page], bool], mask: Callable[[str], str]) -> None:
        self._left_out, self._mask = left_out, mask
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
        url = str(message.location.get("url", ""))
        self._keep(message.page, "console", message.text, url=url, level=message.type)

    def _broke(self, error: WebError) -> None:
        self._keep(error.page, "error", str(error.error), url=error.page.url if error.page is not None else "")

    def _answered(self, response: Response) -> None:
        if response.status >= CLIENT_ERROR:
            self._requested(response.request, f"{response.status} {response.status_text}".rstrip(), response.status)

    def _failed(self, request: Request) -> None:
        if request.failure != _ABORTED:
            self._requested(request, request.failure or "it failed", None)

    def _requested(self, request: Request, how: str, status: int | None) -> None:
        page = None
        with contextlib.suppress(Error):  # a service worker has no page, and a new tab none yet
            page = request.frame.page
        said = f"{request.method} {how}"
        self._keep(page, "request", said, url=request.url, status=status, method=request.method)

    def _keep(self, page: Page | None, kind: Any, text: str, *, url: str, **more: Any) -> None:
        if page is None or not self._left_out(page):
            where = origins.without_query(url) if url else None
            self.kept.append(Message(time.time(), kind, self._mask(sound(text))[:LONGEST], where, **more))
