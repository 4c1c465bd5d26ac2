"""All internals of Playwright that RunOps relies on, except error messages (``runtime.browser.playwright_errors``).

``tests/unit/test_playwright_internals.py`` checks each of them against the installed version.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import types
import weakref
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any, TypeVar, cast

from playwright.async_api import BrowserContext, Page, Playwright, Request

Answer = TypeVar("Answer")

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


# Playwright's sync and async objects are two faces of the same inner objects, which live in one event loop. So a run can work on the
# page of a test that uses the sync API: in the test's own loop, while the test waits.

_FACE = "_runops_async_face_"  # attribute of an inner object with its async face: Playwright keeps one face only
_ours: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
"""Listeners that were given to async faces."""


def _prepare_faces() -> Any:
    """Let the async API keep its faces beside those of the sync API, and remember its listeners. Return its mapping."""
    from playwright._impl import _async_base, _impl_to_api_mapping

    faces: Any = _async_base.mapping
    kind: Any = _impl_to_api_mapping.ImplToApiMapping
    if "from_maybe_impl" in vars(faces):
        return faces
    original = kind.from_maybe_impl
    usual = _impl_to_api_mapping.API_ATTR
    names = {**vars(_impl_to_api_mapping), "API_ATTR": _FACE}
    apart = types.FunctionType(original.__code__, names, original.__name__, original.__defaults__)

    def from_maybe_impl(inner: Any, visited: Any = None) -> Any:
        # An object of the async API that was there before keeps its face.
        face = getattr(inner, usual, None)
        return face if isinstance(face, _async_base.AsyncBase) else apart(faces, inner, visited)

    faces.from_maybe_impl = from_maybe_impl

    def wrap_handler(handler: Callable[..., Any]) -> Callable[..., None]:
        wrapped = kind.wrap_handler(faces, handler)
        _ours.add(wrapped)
        return wrapped

    faces.wrap_handler = wrap_handler
    return faces


def async_page(page: Any) -> Page:
    """Return the async face of a page of the sync API."""
    return cast("Page", _prepare_faces().from_impl(page._impl_obj))


def async_playwright(playwright: Any) -> Playwright:
    """Return the async face of what the sync API began with."""
    return cast("Playwright", _prepare_faces().from_impl(playwright._impl_obj))


def playwright_of(page: Page) -> Playwright:
    """Return what the browser of a page belongs to."""
    context: Any = page.context._impl_obj  # pyright: ignore[reportPrivateUsage]
    return cast("Playwright", _prepare_faces().from_impl(context._browser._browser_type._playwright))


def leave(context: BrowserContext) -> None:
    """Remove every listener that async faces have on the context and its pages, and forget these faces."""
    inner: Any = context._impl_obj  # pyright: ignore[reportPrivateUsage]
    each: Any
    for each in (inner, *inner.pages):
        for event in each.event_names():
            for listener in each.listeners(event):
                if listener in _ours:
                    each.remove_listener(event, listener)
        with contextlib.suppress(AttributeError):
            delattr(each, _FACE)


def work_in_loop_of(page: Any, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Do ``work`` in the event loop of a page of the sync API, while the caller waits. If the wait is interrupted, cancel it and await its end."""
    task = page._loop.create_task(work)
    try:
        page._sync(asyncio.wait([task]))
    except BaseException:
        task.cancel()
        page._sync(asyncio.wait([task]))
        raise
    return task.result()


def context_options(context: BrowserContext) -> Mapping[str, Any]:
    """Return the options that the context was made with, by their names in the protocol."""
    return context._impl_obj._options  # pyright: ignore[reportPrivateUsage]
