"""Elements by the refs of the last look: what is known of one, which targets match it, what it says; and waiting for what an action sets off."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import AsyncGenerator
from typing import TypeVar

from playwright.async_api import Error, Locator, Request

from runtime.browser.elements import pointed as elements_pointed
from runtime.browser.page.access import ElementAccess
from runtime.browser.page.dialogs import Dialogs

Answer = TypeVar("Answer")

QUIET_SECONDS = 0.1
"""How long nothing must be under way before what an action set off counts as over."""


class Refs(ElementAccess):
    """A tab whose elements have refs."""

    dialogs: Dialogs

    @abstractmethod
    async def by_ref(self, ref: str) -> Locator:
        """The element that the last look called ``ref``. Raises SiteError ``ref-gone``."""

    @contextlib.asynccontextmanager
    async def pointed(self, ref: str) -> AsyncGenerator[elements_pointed.Pointed]:
        """The element that the last look called ``ref``. Raises SiteError ``ref-gone`` where there is none any more."""
        try:
            located = await self.by_ref(ref)
            async with self._answering():
                handle = await located.element_handle(timeout=self._deadline.milliseconds())
                one = await elements_pointed.of(self.page, handle)
        except Error as error:
            raise await self._diagnosis.failed(error, None, "before") from None
        try:
            yield one
        finally:
            with contextlib.suppress(Error):
                await handle.dispose()

    @contextlib.asynccontextmanager
    async def settling(self, seconds: float) -> AsyncGenerator[None]:
        """What the action within sets off is waited for: its documents loaded, the requests that the page sends answered, the tabs there that it opens.

        It is waited for ``seconds`` at most, and not where a dialog opens.
        """
        under_way: set[Request] = set()
        changed = asyncio.Event()

        def began(request: Request) -> None:
            under_way.add(request)
            changed.set()

        def ended(request: Request) -> None:
            under_way.discard(request)
            changed.set()

        page, context = self.page, self.page.context
        # A tab that opens is there once its first request is answered.
        context.on("request", began)
        context.on("requestfinished", ended)
        context.on("requestfailed", ended)
        try:
            async with self._run.opening_tabs() as any_to_come:
                yield
                with contextlib.suppress(TimeoutError, Error):
                    async with asyncio.timeout(seconds):
                        while self.dialogs.message is None:
                            changed.clear()
                            waiting = under_way and not page.is_closed()
                            try:
                                await asyncio.wait_for(changed.wait(), None if waiting else QUIET_SECONDS)
                            except TimeoutError:
                                if not await any_to_come():
                                    break
                        if not page.is_closed() and self.dialogs.message is None:
                            await page.wait_for_load_state("domcontentloaded")
        finally:
            context.remove_listener("request", began)
            context.remove_listener("requestfinished", ended)
            context.remove_listener("requestfailed", ended)
