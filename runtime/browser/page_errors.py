"""What a browser complains of while steps run: errors on the console of a page, and documents that the site answered with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Error, Page, Response

from nodes.values import sound
from runtime.browser import origins, playwright_errors

MOST = 20
"""Complaints that are kept until they are taken."""

LONGEST = 200
"""Characters of one."""

_RESOURCE = "Failed to load resource: the server responded"

CLIENT_ERROR = 400
"""The first status that says that a document is none."""


class PageErrors:
    """Listens to one browser context, all its tabs together. What it gives is text of the page."""

    def __init__(self, context: BrowserContext) -> None:
        """Listens from now on."""
        self._context = context
        self._heard: dict[str, int] = {}
        self._statuses: dict[Page, int] = {}
        self._documents: dict[str, str] = {}
        """What there is to say of documents that were answered with an error, by their addresses."""
        self._resources: dict[str, str] = {}
        """What the browser says of whatever was answered with an error, by its address."""
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "console": self._said,
            "weberror": lambda error: self._note(f"script error: {sound(str(error.error))}"),
            "response": self._answered,
        }
        for event, listener in self._listeners.items():
            context.on(event, listener)

    def close(self) -> None:
        """Listen no more."""
        for event, listener in self._listeners.items():
            self._context.remove_listener(event, listener)

    def take(self) -> list[str]:
        """What was complained of since this was last asked, each once, with how often; nothing of a document that is shown: ``status`` tells that."""
        heard, self._heard = self._heard, {}
        documents, self._documents = self._documents, {}
        resources, self._resources = self._resources, {}
        shown = {_whole(page.url) for page in self._statuses if not page.is_closed() and self.status(page) is not None}
        # What the browser itself says of a document tells nothing more.
        told = [said for url, said in resources.items() if url not in documents]
        told += [said for url, said in documents.items() if url not in shown]
        for said in told:
            heard[said] = heard.get(said, 0) + 1
        return [f"{said} ({number} times)" if number > 1 else said for said, number in heard.items()]

    def status(self, page: Page) -> int | None:
        """The status with which the site answered for the page's document, where that is an error."""
        status = self._statuses.get(page)
        return status if status is not None and status >= CLIENT_ERROR else None

    def _note(self, text: str) -> None:
        said = playwright_errors.short(" ".join(text.split()), LONGEST)
        if said in self._heard or len(self._heard) < MOST:
            self._heard[said] = self._heard.get(said, 0) + 1

    def _said(self, message: ConsoleMessage) -> None:
        # Every browser asks for it unasked.
        if message.type == "error" and not message.location.get("url", "").endswith("/favicon.ico"):
            said = f"console: {sound(message.text)}"
            url = _whole(str(message.location.get("url", "")))
            if not message.text.startswith(_RESOURCE):
                self._note(said)
            elif len(self._resources) < MOST:
                self._resources[url] = playwright_errors.short(f"{said} {origins.without_query(url)}", LONGEST)

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
            said = f"{request.method} {where} was answered with {response.status} {response.status_text}".rstrip()
            if len(self._documents) < MOST:
                self._documents[_whole(request.url)] = playwright_errors.short(said, LONGEST)


def _whole(url: str) -> str:
    """The address of a document, wherever in it one is."""
    return url.partition("#")[0]
