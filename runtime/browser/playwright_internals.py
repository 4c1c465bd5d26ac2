"""Everything of Playwright's that RunOps uses and Playwright does not promise to keep, but for its wording (``runtime.browser.playwright_errors``).

``tests/unit/test_playwright_internals.py`` holds the installed version to each of these.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Mapping
from typing import Any

from playwright.async_api import Page, Request

ARIA_REF = "_ariaRef"
"""The property in which the driver keeps the ref of an element that its snapshot told; ``runtime.browser.elements.selectors`` reads it."""

DRIVER = "run-driver"
"""The argument by which the command line of a driver is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A document that was loaded, or an error page that was shown in its place."""

    url: str
    request: object | None
    """The request that it answers, as ``key_of`` tells it; None where there was none."""
    method: str | None
    """The method of that request."""


def on_document(page: Page, loaded: Callable[[Document], None]) -> Callable[[], None]:
    """Have ``loaded`` told of each new document in the tab; call what is returned to end that.

    The public event `framenavigated` does not tell a new document from a change of the fragment.
    """

    def navigated(event: dict[str, Any]) -> None:
        if event["newDocument"] is not None and not event["error"]:
            channel = event["newDocument"].get("request")
            request = channel._object if channel is not None else None
            loaded(Document(event["url"], request, None if request is None else request.method))

    emitter: Any = page.main_frame._impl_obj._event_emitter  # pyright: ignore[reportPrivateUsage]
    emitter.on("navigated", navigated)
    return lambda: emitter.remove_listener("navigated", navigated)


def key_of(request: Request) -> object:
    """What is the same in every report of a request: the public object is made anew each time."""
    return request._impl_obj  # pyright: ignore[reportPrivateUsage]


@contextlib.contextmanager
def driver_apart(loop: Any, environment: Callable[[Mapping[str, str] | None], Mapping[str, str]]) -> Generator[None]:
    """Give a driver that is started meanwhile a session of its own, and the environment that ``environment`` makes of Playwright's.

    Playwright starts it in our process group, and has no option for that; so it is done where the event loop starts a process.
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
