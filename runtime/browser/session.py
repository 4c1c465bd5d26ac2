"""Browser of a run in either mode: its tabs, their documents, and lost answers."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

from playwright.async_api import BrowserContext, Dialog, Error, Page, Response

from nodes.errors import OriginRefused
from nodes.tabs import MAIN
from runtime.browser import origins, page_errors, playwright_errors, playwright_internals, state
from runtime.browser.deadline import Deadline
from runtime.browser.devtools import downloads as devtools_downloads
from runtime.browser.devtools import origin_guard
from runtime.browser.page import dialogs, site_answers, tabs
from runtime.browser.page.tab import Tab
from runtime.browser.port import Captured, Differs, LostTab, MissingAnswer, PageFacts

SILENT_SECONDS, MOMENT = 2.0, 0.1
"""Seconds that a tab may stay silent when its state is read; the second limit is for a tab that stayed silent last time."""


class Session:
    """Implements ``runtime.browser.port.Browser`` over a Playwright browser context."""

    def __init__(
        self,
        context: BrowserContext,
        guarded: origin_guard.GuardedTarget,
        end: Callable[[bool], Awaitable[None]],
        *,
        watch: origin_guard.Guard,
        state: devtools_downloads.DownloadManager,
        name: str | None = None,
        reattached: bool = False,
        lost_tabs: Sequence[LostTab] = (),
        unseen: Iterable[str] = (),
    ) -> None:
        """``guarded`` limits the documents of this context. ``end`` disconnects, and ends the browser unless its argument is True.

        ``name`` identifies this context in ``watch`` if the browser has several. ``unseen`` lists origins that may have
        stored data unknown to Playwright.
        """
        self.reattached = reattached
        self.lost_tabs = lost_tabs
        self.deadline = Deadline()
        self.state = state
        """Download manager: receives the files that the site sends."""
        self._context = context
        self._guarded = guarded
        self._watch = watch
        self._name = name
        self._end = end
        self.dialogs: weakref.WeakSet[dialogs.Dialogs] = weakref.WeakSet()
        self.tabs = tabs.Tabs(context, lambda page: Tab(page, self))
        self._fresh: dict[Page, Tab] = {}
        """Tabs that do not belong to the run: ``confirm`` uses them."""
        self._unseen = list(unseen)
        self._answers = site_answers.Answers(context, self.deadline, watch.network_process)
        self._errors: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        """Error statuses of documents, by Playwright's internal request object."""
        self._reading: asyncio.Task[Captured] | None = None
        """Last reading of the state; its caller may have stopped waiting for it."""
        self._closed_already = False
        for page in context.pages:
            self.tabs.add(page)
        context.on("page", self._opened)
        context.on("dialog", self._asked)
        context.on("response", self._answered)

    async def begin_with(self, page: Page | None = None) -> None:
        """Start in ``page`` as the tab ``main``. Without one, use the first tab, or open one."""
        if page is None:
            page = next(iter(self._context.pages), None) or await self._context.new_page()
        self.tabs.add(page)
        self.tabs.begin({MAIN: page}, page)

    def _opened(self, page: Page) -> None:
        tab = self.tabs.add(page)
        # Playwright reports a tab that opens by itself only after its document has loaded.
        if not origins.is_blank(page.url):
            tab.documents = 1
            self.committed(page.url)

    def _asked(self, dialog: Dialog) -> None:
        if dialog.page is not None:
            (self._fresh.get(dialog.page) or self.tabs.add(dialog.page)).dialogs.appeared(dialog)

    def _answered(self, response: Response) -> None:
        if response.status >= page_errors.CLIENT_ERROR and response.request.is_navigation_request():
            self._errors[playwright_internals.key_of(response.request)] = response.status

    def error_for(self, request: object) -> int | None:
        """Return the error status of this request for a document; None if there was no error."""
        return self._errors.get(request)

    @property
    def page(self) -> Tab:
        """Current tab."""
        return self.tabs.current

    def facts(self) -> PageFacts:
        """Return the documents and pending input as of now."""
        tabs = self.tabs.all()
        return PageFacts(
            documents=self.tabs.closed_documents + sum(tab.documents for tab in tabs),
            pending_input=any(tab.pending_input for tab in tabs),
            posted=any(tab.posted for tab in tabs),
            status=self.page.status,
        )

    def effect_finished(self) -> None:
        """Record that a side effect finished: input typed before it counts as consumed."""
        for tab in self.tabs.all():
            tab.pending_input = False

    def mark_pending(self) -> None:
        """Mark every tab as holding input. The engine calls it for a reattached browser that held some."""
        for tab in self.tabs.all():
            tab.pending_input = True

    def mark_posted(self) -> None:
        """Mark each tab as possibly showing the answer to a form. The engine calls it for a reattached browser."""
        for tab in self.tabs.all():
            tab.posted = True

    def bound(self, seconds: float) -> None:
        """Set the deadline of the page methods to this many seconds from now."""
        self.deadline.bound(seconds)

    def confine(self, origins: Sequence[str] | None, file: str) -> None:
        """Load documents only from these of the origins that the browser was opened with."""
        self._guarded.confine(origins, file)

    def allow(self, origins: Iterable[str]) -> None:
        """Load documents from these origins only. Reserved for the code that opened the browser; a run can only narrow them."""
        self._guarded.allow(origins)

    def refusal(self) -> OriginRefused | None:
        """Return the document that the guard refused since the last call."""
        return self._guarded.refusal()

    def begin(self, page: Page, *, driver_waits: bool = False) -> None:
        """Begin an action in ``page`` and forget earlier requests. Raises if documents are no longer guarded."""
        if self._watch.lost:
            raise origin_guard.lost()
        self._answers.begin(page, driver_waits=driver_waits)

    def answered(self) -> bool:
        """Return True if the site has answered a navigation since the present action began, even with a redirect only."""
        return self._answers.reached

    def awaits(self, page: Page) -> bool:
        """Return True if a navigation of ``page`` that the present action began is still unanswered."""
        return self._answers.awaits(page)

    def crashed(self, page: Page) -> None:
        """Record that a page crashed."""
        self._answers.crashed(page)

    @property
    def allowed(self) -> origins.Allowed:
        """Origins whose documents may load."""
        return self._guarded.allowed

    def admit(self, url: str) -> None:
        """Raises OriginRefused if a document from ``url`` may not load; nothing was sent then."""
        if not self._guarded.allowed.document(url):
            raise origin_guard.refused(url, self._guarded.allowed, "main frame", "before")

    def committed(self, url: str) -> None:
        """Check a document again after it loaded, in case it appeared without a request."""
        if not url.startswith("chrome-error:"):
            self._guarded.check(url, "main frame")

    async def lost_answer(self) -> MissingAnswer | None:
        """Return the request whose answer was lost since the last action began."""
        return await self._answers.missing()

    async def missing_answer(self, *, every: bool) -> MissingAnswer | None:
        """Wait for the answers to the last action's requests; return the one that is missing."""
        return await self._answers.awaited(every=every, stopped=self._stopped)

    async def at_rest(self, *, earlier: bool = False) -> bool:
        """Wait until all requests of the last side effect ended. With ``earlier``, also those of the side effects before it."""
        return await self._answers.at_rest(earlier=earlier, stopped=self._stopped)

    def _stopped(self) -> bool:
        return any(each.message for each in self.dialogs)

    @contextlib.asynccontextmanager
    async def fresh_page(self) -> AsyncGenerator[Tab]:
        """Open a separate tab, closed at the end. Raises SiteError if the browser can open no more tabs."""
        try:
            page = await self._context.new_page()
        except Error as error:
            raise playwright_errors.gone(error, "about:blank", "before") from None
        self.tabs.forget(page)
        tab = self._fresh[page] = Tab(page, self)
        try:
            yield tab
        finally:
            await tabs.shut(page)
            del self._fresh[page]

    async def capture(self) -> Captured:
        """Return the browser's state, to rebuild from. Raises SiteError ``checkpoint-failed``."""
        for tab in self.tabs.all():
            if tab.dialog is not None:
                raise state.failed("a dialog is open")
        reading = asyncio.ensure_future(self._read(self._reading))
        self._reading = reading
        # If the caller stopped waiting, nothing else retrieves the outcome.
        reading.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            async with asyncio.timeout(None) as limit:
                with contextlib.ExitStack() as meanwhile:
                    for tab in self.tabs.all():
                        meanwhile.enter_context(tab.dialogs.cutting(limit))
                    return await asyncio.shield(reading)
        except TimeoutError:
            # Playwright's driver still continues, in blank tabs that it opens and closes.
            raise state.failed("a dialog opened") from None

    async def settled(self) -> None:
        """Wait for the end of an abandoned reading of the state: until then, a tab may exist that is not the site's."""
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=self.deadline.left())

    async def _demand_answers(self) -> None:
        """Raises SiteError ``checkpoint-failed`` if a tab does not answer. A tab that was silent last time gets a moment only."""
        for tab in self.tabs.all():
            if self.awaits(tab.page):
                # It answers nothing until then, and is not busy.
                continue
            known = tab.silent == tab.documents
            if await tab.is_busy(MOMENT if known else SILENT_SECONDS):
                tab.silent = tab.documents
                raise state.failed("a tab does not answer")
            tab.silent = -1

    async def _read(self, earlier: asyncio.Task[Captured] | None) -> Captured:
        if earlier is not None:
            await asyncio.wait([earlier])
        await self._demand_answers()
        names = {page: name for name, page in self.tabs.named.items()}
        shown = {tab.page: names.get(tab.page) for tab in self.tabs.all()}
        if self._unseen:
            await self._see()
        return await state.capture(self._context, shown, self.page.page)

    async def _see(self) -> None:
        """Make Playwright aware of all origins that may have stored data. Only a checkpoint needs it, so the first one does it."""
        page = await self._context.new_page()
        tab = self.tabs.add(page)
        self.tabs.forget(page)
        # No step requested these documents, so the guard ignores them, whatever the present step allows.
        tab.overlook()
        try:
            await state.visit(page, self._unseen)
        finally:
            await tabs.shut(page)
        self._unseen.clear()

    @contextlib.asynccontextmanager
    async def opening_tabs(self) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
        """Yield a function that returns True if a tab was opened within the block and is not among ``tabs`` yet."""
        before, arrived = await self._watch.tabs(self._name), list[Page]()

        def arrive(page: Page) -> None:
            arrived.append(page)

        async def any_to_come() -> bool:
            opened = await self._watch.tabs(self._name) - before
            return len(opened) > sum(not page.is_closed() for page in arrived)

        self._context.on("page", arrive)
        try:
            yield any_to_come
        finally:
            self._context.remove_listener("page", arrive)

    async def restore(self, data: bytes) -> Differs | None:
        """Restore this fresh browser to a captured state; return the first tab that shows another page than before."""
        restored = await state.restore(self._context, self.page.page, data)
        for page in self._context.pages:
            self.tabs.add(page)
        await self.tabs.resume(restored.names, restored.current)
        return restored.differs

    async def close(self, *, keep: bool = False) -> None:
        """End the browser, or disconnect from it with ``keep``. A second call does nothing."""
        if not self._closed_already:
            self._closed_already = True
            self._answers.close()
            if self._reading is not None:
                self._reading.cancel()
            await self.state.close()
            await self._end(keep)
