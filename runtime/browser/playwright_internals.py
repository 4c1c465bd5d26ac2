"""All internals of Playwright that RunOps relies on, except error messages (``runtime.browser.playwright_errors``).

``tests/unit/test_playwright_internals.py`` checks each of them against the installed version.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Mapping
from typing import Any

from playwright.async_api import Page, Request

ARIA_REF = "_ariaRef"
"""Property in which the driver keeps an element's ref from its snapshot; ``runtime.browser.elements.selectors`` reads it."""

DRIVER = "run-driver"  # argument that identifies the command line of a driver


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A loaded document, or the error page shown instead."""

    url: str
    request: object | None  # request that it answers, as returned by `key_of`; None without one
    method: str | None
    redirected: bool  # true if the address that was asked for led on to this one


def on_document(page: Page, loaded: Callable[[Document], None]) -> Callable[[], None]:
    """Call ``loaded`` for each new document in the tab, until the returned function is called.

    The public event `framenavigated` does not distinguish a new document from a change of the fragment.
    """

    def navigated(event: dict[str, Any]) -> None:
        if event["newDocument"] is not None and not event["error"]:
            channel = event["newDocument"].get("request")
            request = channel._object if channel is not None else None
            method, before = (None, None) if request is None else (request.method, request.redirected_from)
            loaded(Document(event["url"], request, method, before is not None))

    emitter: Any = page.main_frame._impl_obj._event_emitter  # pyright: ignore[reportPrivateUsage]
    emitter.on("navigated", navigated)
    return lambda: emitter.remove_listener("navigated", navigated)


def key_of(request: Request) -> object:
    """Return a stable key of a request: Playwright creates its public object anew each time."""
    return request._impl_obj  # pyright: ignore[reportPrivateUsage]


@contextlib.contextmanager
def driver_apart(loop: Any, environment: Callable[[Mapping[str, str] | None], Mapping[str, str]]) -> Generator[None]:
    """Start a driver within the block in a separate session, with the environment that ``environment`` derives from Playwright's.

    Playwright would start it in ours and has no option against that, so this wraps the event loop's function that starts a process.
    """
    original = loop.subprocess_exec

    def apart(factory: Any, *command: Any, **options: Any) -> Any:
        if DRIVER in command:
            options["start_new_session"] = True
            options["env"] = environment(options.get("env"))
        return original(factory, *command, **options)

    loop.subprocess_exec = apart
    try:
        yield
    finally:
        loop.subprocess_exec = original
