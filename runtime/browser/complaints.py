"""What a browser complains of while steps run: errors on the console of a page, and documents that the site answered with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Error, Page, Response

from runtime.browser import failures, origins

MOST = 20
"""Complaints that are kept until they are taken."""

LONGEST = 200
"""Characters of one."""

CLIENT_ERROR = 400
"""The first status that says that a document is none."""


class Complaints:
    """Listens to one browser context, all its tabs together. What it gives is text of the page."""

    def __init__(self, context: BrowserContext) -> None:
        """Listens from now on."""
        self._context = context
        self._heard: dict[str, int] = {}
        self._statuses: dict[Page, int] = {}
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "console": self._said,
            "weberror": lambda error: self._note(f"script error: {error.error}"),
            "response": self._answered,
        }
        for event, listener in self._listeners.items():
            context.on(event, listener)

    def close(self) -> None:
        """Listen no more."""
        for event, listener in self._listeners.items():
            self._context.remove_listener(event, listener)

    def take(self) -> list[str]:
        """What was complained of since this was last asked, each once, with how often."""
        heard, self._heard = self._heard, {}
        return [f"{said} ({number} times)" if number > 1 else said for said, number in heard.items()]

    def status(self, page: Page) -> int | None:
        """The status with which the site answered for the page's document, where that is an error."""
        status = self._statuses.get(page)
        return status if status is not None and status >= CLIENT_ERROR else None

    def _note(self, text: str) -> None:
        said = failures.short(" ".join(text.split()), LONGEST)
        if said in self._heard or len(self._heard) < MOST:
            self._heard[said] = self._heard.get(said, 0) + 1

    def _said(self, message: ConsoleMessage) -> None:
        # Every browser asks for it unasked.
        if message.type == "error" and not message.location.get("url", "").endswith("/favicon.ico"):
            self._note(f"console: {message.text}")

    def _answered(self, response: Response) -> None:
        request = response.request
        if not request.is_navigation_request():
            return
        try:
            frame = request.frame
            main = frame.parent_frame is None
        except Error:
            # The first document of a tab that opens by itself.
            return
        if main:
            self._statuses[frame.page] = response.status
        if response.status >= CLIENT_ERROR:
            where = origins.without_query(request.url)
            self._note(f"{request.method} {where} was answered with {response.status} {response.status_text}".rstrip())
