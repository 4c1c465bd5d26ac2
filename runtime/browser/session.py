"""Browser of a run in either mode: its tabs, its state, and the answers of the site."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence

from playwright.async_api import BrowserContext, Page
from typing_extensions import override

from nodes.tabs import MAIN
from runtime.browser import page_messages, state
from runtime.browser.devtools import origin_guard
from runtime.browser.options import Engine
from runtime.browser.page.tab import Tab, Tabs, shut
from runtime.browser.port import Captured, Differs, LostTab, Message, MissingAnswer, PageFacts
from runtime.browser.run_pages import DocumentGuard, IncomingFiles, RunPages

SILENT_SECONDS, MOMENT = 2.0, 0.1
"""Seconds that a tab may stay silent when its state is read; the second limit is for a tab that stayed silent last time."""


class Session(RunPages):
    """Implements ``runtime.browser.port.Browser`` over a Playwright browser context."""

    def __init__(
        self,
        context: BrowserContext,
        allowed: origin_guard.GuardedTarget,
        guard: DocumentGuard,
        downloads: IncomingFiles,
        end: Callable[[bool], Awaitable[None]],
        *,
        context_id: str | None = None,
        touch: bool = False,
        engine: Engine = "chromium",
        pictures: bool = True,
        lost_tabs: Sequence[LostTab] = (),
        unseen: Iterable[str] = (),
    ) -> None:
        """``end`` disconnects, and ends the browser unless its argument is True. ``touch``: it has a touch screen.

        ``unseen`` lists origins that may have stored data unknown to Playwright.
        """
        super().__init__(context, allowed, guard, downloads, context_id, touch, engine, pictures)
        self.lost_tabs = lost_tabs
        self.tabs = Tabs(context, self)
        self._end = end
        self._unseen = list(unseen)
        self._closed_already = False
        self._heard: page_messages.PageMessages | None = None

    async def begin_with(self, page: Page | None = None) -> None:
        if page is None:
            page = next(iter(self._context.pages), None) or await self._context.new_page()
        self.tabs.add(page)
        self.tabs.begin({MAIN: page}, page)

    @property
    def page(self) -> Tab:
        return self.tabs.current

    def facts(self) -> PageFacts:
        tabs = self.tabs.all()
        return PageFacts(
            documents=self.tabs.closed_documents + sum(tab.documents for tab in tabs),
            pending_input=any(tab.pending_input for tab in tabs),
            posted=any(tab.posted for tab in tabs),
            status=self.page.status,
        )

    def effect_finished(self) -> None:
        for tab in self.tabs.all():
            tab.pending_input = False

    def mark_pending(self) -> None:
        for tab in self.tabs.all():
            tab.pending_input = True

    def mark_posted(self) -> None:
        for tab in self.tabs.all():
            tab.posted = True

    def hear(self, mask: Callable[[str], str]) -> None:
        if self._heard is None:
            self._heard = page_messages.PageMessages(self._context, self.tabs.is_separate, mask)

    @property
    def messages(self) -> Sequence[Message]:
        return [*self._heard.kept] if self._heard is not None else []

    def fresh_page(self) -> contextlib.AbstractAsyncContextManager[Tab]:
        return self.tabs.fresh_page()

    async def lost_answer(self) -> MissingAnswer | None:
        return await self.answers.missing()

    async def missing_answer(self, *, every: bool) -> MissingAnswer | None:
        return await self.answers.awaited(every=every, stopped=self._stopped)

    async def at_rest(self, *, earlier: bool = False) -> bool:
        return await self.answers.at_rest(earlier=earlier, stopped=self._stopped)

    def _stopped(self) -> bool:
        return any(each.message for each in self.dialogs)

    async def capture(self) -> Captured:
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
            # The reading still continues, in blank tabs that Playwright's driver opens and closes.
            raise state.failed("a dialog opened") from None

    async def _demand_answers(self) -> None:
        """Raise SiteError ``checkpoint-failed`` if a tab does not answer. A tab that was silent last time gets a moment only."""
        for tab in self.tabs.all():
            if self.answers.awaits(tab.page):
                # A tab that waits for its document answers nothing, but is not busy.
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
        await self.know_origins()
        return await state.capture(self._context, shown, self.page.page)

    @override
    async def know_origins(self) -> None:
        if not self._unseen:
            return
        page = await self._context.new_page()
        # No step requested these documents, so the guard ignores them, whatever the present step allows.
        self.tabs.add(page).overlook()
        self.tabs.forget(page)
        try:
            await state.visit(page, self._unseen)
        finally:
            await shut(page)
        self._unseen.clear()

    async def restore(self, data: bytes) -> Differs | None:
        names, current, differs = await state.restore(self._context, self.page.page, data)
        for page in self._context.pages:
            self.tabs.add(page)
        await self.tabs.resume(names, current)
        return differs

    async def close(self, *, keep: bool = False) -> None:
        if not self._closed_already:
            self._closed_already = True
            self.answers.close()
            if self._reading is not None:
                self._reading.cancel()
            await self.downloads.close()
            await self._end(keep)
