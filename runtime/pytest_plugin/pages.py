"""Pages of pytest-playwright for workflows."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import weakref
from collections.abc import Generator
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from playwright.sync_api import Error

from nodes.errors import SetupError, UsageError
from runtime.browser import origins, playwright_internals, shared
from runtime.browser.elements import locators
from runtime.browser.options import BrowserOptions

if TYPE_CHECKING:
    from collections.abc import Coroutine

Answer = TypeVar("Answer")

_prepared: weakref.WeakSet[Any] = weakref.WeakSet()


def prepare(playwright: Any) -> None:
    """Register our selector engines, before a page loads a document: a loaded one would not know them."""
    face = playwright_internals.async_playwright(playwright)
    playwright_internals.work_in_loop_of(playwright, locators.register(face))
    _prepared.add(face)


def demand_prepared(page: Any) -> None:
    """Raise UsageError ``page-too-early`` if the page has a document that does not know our selector engines."""
    face = playwright_internals.playwright_of(playwright_internals.async_page(page))
    if face in _prepared:
        return
    if not origins.is_blank(page.url):
        raise UsageError(
            "page-too-early",
            "the page loaded a document before pytest knew that a workflow would work on it",
            fix="name `run_workflow` among the arguments of the test",
        )
    playwright_internals.work_in_loop_of(page, locators.register(face))
    _prepared.add(face)


def page_of(request: pytest.FixtureRequest, options: BrowserOptions | None) -> Any:
    """Return the page of the test, or one of its own if it uses none. Raises SetupError ``extra-missing``."""
    if not request.config.pluginmanager.hasplugin("playwright"):
        raise SetupError(
            "extra-missing",
            "the workflow works on a page, and pages of tests come from pytest-playwright, which pytest has not loaded",
            fix="type: pip install pytest-playwright",
        )
    return request.getfixturevalue("page") if _has_page(request) else _own(request, options)


def _has_page(request: pytest.FixtureRequest) -> bool:
    """Return whether the test works in a context of its own, where a run then has to work too."""
    return any(name in request.fixturenames for name in ("page", "context"))


def _own(request: pytest.FixtureRequest, options: BrowserOptions | None) -> Any:
    """Open a page in a new context, which has the file's options beside those of the command line and the fixtures."""
    given = {**request.getfixturevalue("browser_context_args")}
    for mark in request.node.iter_markers("browser_context_args"):
        given |= mark.kwargs
    usual = shared.for_playwright(BrowserOptions())
    wanted = shared.for_playwright((options or BrowserOptions()).resolved())
    more = {name: value for name, value in wanted.items() if value != usual.get(name) and name not in given}
    return request.getfixturevalue("new_context")(**more).new_page()


@contextlib.contextmanager
def untraced(request: pytest.FixtureRequest, page: Any) -> Generator[None]:
    """Keep what happens in the block out of the trace that pytest-playwright records: a trace shows what is typed and sent.

    A chunk would have the requests of the pause, so the trace ends, and another begins.
    """
    if request.config.getoption("--tracing") == "off":
        yield
        return
    recorder = request.getfixturevalue("_artifacts_recorder")
    before = Path(recorder._pw_artifacts_folder.name) / secrets.token_hex(16)
    try:
        page.context.tracing.stop(path=before)
    except Error:
        # The test made the context itself, and it is not traced.
        yield
        return
    # The recorder moves the files of this list to the output folder, or removes them.
    recorder._traces.append(str(before))
    try:
        yield
    finally:
        with contextlib.suppress(Error):  # the browser died, and the run says so
            page.context.tracing.start(title=request.node.nodeid, screenshots=True, snapshots=True, sources=True)


def work_apart(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Do ``work`` in an event loop of its own, in another thread: this one may have a loop. If the wait is interrupted, cancel it and await its end."""
    begun: futures.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = futures.Future()

    async def main() -> Answer:
        task = asyncio.ensure_future(work)
        begun.set_result((asyncio.get_running_loop(), task))
        return await task

    with futures.ThreadPoolExecutor(1) as thread:
        done = thread.submit(asyncio.run, main())
        try:
            return done.result()
        except BaseException:
            if not done.done():
                loop, task = begun.result()
                loop.call_soon_threadsafe(task.cancel)
            raise
