"""A run's browser, whichever mode stands behind it: its tabs, what they have loaded, and what was lost."""

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
"""How long a tab may answer nothing when its state is to be read, and one that did not the last time."""


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
        """``guarded`` is what ``watch`` lets this context load; ``end`` lets go of the browser, and ends it unless it is to be kept.

        ``name`` is what ``watch`` calls this context, where the browser has others. In the ``unseen`` origins something may be stored of which Playwright does not know.
        """
        self.reattached = reattached
        self.lost_tabs = lost_tabs
        self.deadline = Deadline()
        self.state = state
        """Where files arrive that the site gives."""
        self._context = context
        self._guarded = guarded
        self._watch = watch
        self._name = name
        self._end = end
        self.dialogs: weakref.WeakSet[dialogs.Dialogs] = weakref.WeakSet()
        self.tabs = tabs.Tabs(context, lambda page: Tab(page, self))
        self._fresh: dict[Page, Tab] = {}
        """Tabs that are none of the run's own: ``confirm`` looks in them."""
        self._unseen = list(unseen)
        self._answers = site_answers.Answers(context, self.deadline, watch.network_process)
        self._errors: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        """With what the site answered for documents, where that was an error, by the request as Playwright has it within."""
        self._reading: asyncio.Task[Captured] | None = None
        """The last reading of the state; nobody may wait for it any more."""
        self._closed_already = False
        for page in context.pages:
            self.tabs.add(page)
        context.on("page", self._opened)
        context.on("dialog", self._asked)
        context.on("response", self._answered)

    async def begin_with(self, page: Page | None = None) -> None:
        """Begin in ``page``, the tab ``main``; without one in the first, or in a new one."""
        if page is None:
            page = next(iter(self._context.pages), None) or await self._context.new_page()
        self.tabs.add(page)
        self.tabs.begin({MAIN: page}, page)

    def _opened(self, page: Page) -> None:
        tab = self.tabs.add(page)
        # A tab that opens by itself is told of when its document is there already.
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
        """The error with which the site answered this request for a document; None where there was none."""
        return self._errors.get(request)

    @property
    def page(self) -> Tab:
        """The current tab."""
        return self.tabs.current

    def facts(self) -> PageFacts:
        """Documents and pending input as of now."""
        tabs = self.tabs.all()
        return PageFacts(
            documents=self.tabs.closed_documents + sum(tab.documents for tab in tabs),
            pending_input=any(tab.pending_input for tab in tabs),
            posted=any(tab.posted for tab in tabs),
            status=self.page.status,
        )

    def effect_finished(self) -> None:
        """A side effect finished: what was typed before it counts as taken up."""
        for tab in self.tabs.all():
            tab.pending_input = False

    def mark_pending(self) -> None:
        """Every tab holds input: what the engine says of a browser that it found again and that had some."""
        for tab in self.tabs.all():
            tab.pending_input = True

    def mark_posted(self) -> None:
        """The document of each tab may be the answer to a form: what the engine says of a browser that it found again."""
        for tab in self.tabs.all():
            tab.posted = True

    def bound(self, seconds: float) -> None:
        """How long the page methods may wait from now on."""
        self.deadline.bound(seconds)

    def confine(self, origins: Sequence[str] | None, file: str) -> None:
        """From now on documents load only from these of the origins that the browser was opened with."""
        self._guarded.confine(origins, file)

    def allow(self, origins: Iterable[str]) -> None:
        """From now on documents load from these origins, and from no others. Only who opened the browser may say so; a run can only narrow them."""
        self._guarded.allow(origins)

    def refusal(self) -> OriginRefused | None:
        """The document that the guard refused since this was last asked."""
        return self._guarded.refusal()

    def begin(self, page: Page, *, driver_waits: bool = False) -> None:
        """An action begins in ``page``: what was asked for before it is forgotten. Raises where documents are no longer guarded."""
        if self._watch.lost:
            raise origin_guard.lost()
        self._answers.begin(page, driver_waits=driver_waits)

    def answered(self) -> bool:
        """Return whether the site has answered a navigation since the present action began, if only with a redirect."""
        return self._answers.reached

    def awaits(self, page: Page) -> bool:
        """Whether the site still owes the answer to a navigation of ``page`` that the present action began."""
        return self._answers.awaits(page)

    def crashed(self, page: Page) -> None:
        """A page has crashed."""
        self._answers.crashed(page)

    @property
    def allowed(self) -> origins.Allowed:
        """The origins whose documents may load."""
        return self._guarded.allowed

    def admit(self, url: str) -> None:
        """Raises OriginRefused where a document from ``url`` may not load; nothing was sent then."""
        if not self._guarded.allowed.document(url):
            raise origin_guard.refused(url, self._guarded.allowed, "main frame", "before")

    def committed(self, url: str) -> None:
        """A second look, should a document ever come to stand in a tab without having been asked for."""
        if not url.startswith("chrome-error:"):
            self._guarded.check(url, "main frame")

    async def lost_answer(self) -> MissingAnswer | None:
        """The request whose answer was lost since the last action began."""
        return await self._answers.missing()

    async def missing_answer(self, *, every: bool) -> MissingAnswer | None:
        """Wait for the answers to what the last action asked for; the one that is missing then."""
        return await self._answers.awaited(every=every, stopped=self._stopped)

    async def at_rest(self, *, earlier: bool = False) -> bool:
        """Wait until nothing is on its way that the last side effect sent; with ``earlier`` nothing that those before it sent either."""
        return await self._answers.at_rest(earlier=earlier, stopped=self._stopped)

    def _stopped(self) -> bool:
        return any(each.message for each in self.dialogs)

    @contextlib.asynccontextmanager
    async def fresh_page(self) -> AsyncGenerator[Tab]:
        """A tab of its own, closed at the end. Raises SiteError where the browser opens none any more."""
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
        """The browser's state, to rebuild from. Raises SiteError ``checkpoint-failed``."""
        for tab in self.tabs.all():
            if tab.dialog is not None:
                raise state.failed("a dialog is open")
        reading = asyncio.ensure_future(self._read(self._reading))
        self._reading = reading
        # Where nobody waits for it any more, nobody else takes note of how it ended.
        reading.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            async with asyncio.timeout(None) as limit:
                with contextlib.ExitStack() as meanwhile:
                    for tab in self.tabs.all():
                        meanwhile.enter_context(tab.dialogs.cutting(limit))
                    return await asyncio.shield(reading)
        except TimeoutError:
            # Playwright's driver goes on with it all the same, in blank tabs that it opens and closes.
            raise state.failed("a dialog opened") from None

    async def settled(self) -> None:
        """Wait for the end of a reading of the state that was let go of: until then a tab may be there that is none of the site's."""
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=self.deadline.left())

    async def _demand_answers(self) -> None:
        """Raises SiteError ``checkpoint-failed`` where a tab does not answer; one that did not before is given a moment only."""
        for tab in self.tabs.all():
            if self.awaits(tab.page):
                # Then it answers nobody, and is not busy.
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
        """Have Playwright know of all origins in which something may be stored; only a checkpoint needs that, so the first one pays for it."""
        page = await self._context.new_page()
        tab = self.tabs.add(page)
        self.tabs.forget(page)
        # What loads here was sent by nobody, so it is nothing for the guard, whatever the step in hand allows.
        tab.overlook()
        try:
            await state.visit(page, self._unseen)
        finally:
            await tabs.shut(page)
        self._unseen.clear()

    @contextlib.asynccontextmanager
    async def opening_tabs(self) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
        """Within, what is given tells whether a tab has been opened that is not among ``tabs`` yet."""
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
        """Bring this fresh browser to a state that was captured; the first tab that shows another page than it did."""
        restored = await state.restore(self._context, self.page.page, data)
        for page in self._context.pages:
            self.tabs.add(page)
        await self.tabs.resume(restored.names, restored.current)
        return restored.differs

    async def close(self, *, keep: bool = False) -> None:
        """End the browser, or with ``keep`` let go of it; what is closed already stays as it is."""
        if not self._closed_already:
            self._closed_already = True
            self._answers.close()
            if self._reading is not None:
                self._reading.cancel()
            await self.state.close()
            await self._end(keep)
