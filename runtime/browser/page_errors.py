"""Errors that a browser reports while steps run: errors on a page's console, and documents answered with an error status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.async_api import BrowserContext, ConsoleMessage, Error, Page, Response, WebError

from nodes.values import sound
from runtime.browser import origins, playwright_errors

MOST = 20  # errors kept until they are taken
LONGEST = 200  # characters kept of each error

_RESOURCE = "Failed to load resource: the server responded"

CLIENT_ERROR = 400  # first HTTP status that counts as an error


def _none(_page: Page) -> bool:
    return False


class PageErrors:
    """Listens to the tabs of a browser context, except those that ``left_out`` selects. Its results are text of the page."""

    def __init__(self, context: BrowserContext, left_out: Callable[[Page], bool] = _none) -> None:
        self._context, self._left_out = context, left_out
        self._heard: dict[str, int] = {}
        self._statuses: dict[Page, int] = {}
        self._documents: dict[str, str] = {}  # errors of documents, by address
        self._resources: dict[str, str] = {}  # browser messages about resources answered with an error, by address
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "console": self._said,
            "weberror": self._broke,
            "response": self._answered,
        }
        for event, listener in self._listeners.items():
            context.on(event, listener)

    def close(self) -> None:
        for event, listener in self._listeners.items():
            self._context.remove_listener(event, listener)

    def take(self) -> list[str]:
        """Return each error since the last call once, with its count. Leaves out documents that are shown: ``status`` has those."""
        heard, self._heard = self._heard, {}
        documents, self._documents = self._documents, {}
        resources, self._resources = self._resources, {}
        shown = {_whole(page.url) for page in self._statuses if not page.is_closed() and self.status(page) is not None}
        # The browser's own message about a document adds nothing.
        found = [said for url, said in resources.items() if url not in documents]
        found += [said for url, said in documents.items() if url not in shown]
        for said in found:
            heard[said] = heard.get(said, 0) + 1
        return [f"{said} ({number} times)" if number > 1 else said for said, number in heard.items()]

    def status(self, page: Page) -> int | None:
        """Return the HTTP status of the page's document if it is an error."""
        status = self._statuses.get(page)
        return status if status is not None and status >= CLIENT_ERROR else None

    def _note(self, text: str) -> None:
        said = playwright_errors.short(" ".join(text.split()), LONGEST)
        if said in self._heard or len(self._heard) < MOST:
            self._heard[said] = self._heard.get(said, 0) + 1

    def _broke(self, error: WebError) -> None:
        if error.page is None or not self._left_out(error.page):
            self._note(f"script error: {sound(str(error.error))}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.page is not None and self._left_out(message.page):
            return
        # Browsers request the favicon by themselves.
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
            # This is the first document of a tab that opens by itself.
            return
        if self._left_out(frame.page):
            return
        if main:
            self._statuses[frame.page] = response.status
        if response.status >= CLIENT_ERROR:
            where = origins.without_query(request.url)
            said = f"{request.method} {where} was answered with {response.status} {response.status_text}".rstrip()
            if len(self._documents) < MOST:
                self._documents[_whole(request.url)] = playwright_errors.short(said, LONGEST)


def _whole(url: str) -> str:
    return url.partition("#")[0]
