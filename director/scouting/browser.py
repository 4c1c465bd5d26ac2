"""The browser of the scout: opened on first use, kept from one action to the next, and no part of the workflow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from playwright.async_api import Error

from director.editing import limits
from nodes.errors import ModelError, RunOpsError
from nodes.tabs import MAIN
from runtime.browser import in_flight, page_errors
from runtime.browser import open as open_browser
from runtime.browser.options import BrowserOptions, HttpCredentials
from runtime.browser.session import Session
from runtime.engine import rendering

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

ANSWERS_SECONDS = 1.0


class Browser:
    """Holds at most one browser; sign-ins there last until the build ends."""

    def __init__(self, build: BuildContext) -> None:
        self._build = build
        self.session: Session | None = None
        self._page_errors: page_errors.PageErrors | None = None
        self._busy = asyncio.Lock()
        self._signs_in: HttpCredentials | None = None  # as the browser was opened with
        self.latest = MAIN

    @property
    def busy(self) -> bool:
        return self._busy.locked()

    @contextlib.asynccontextmanager
    async def used(self) -> AsyncGenerator[Session]:
        """Open the browser if needed, and lock it for one of several scouts. Raises SetupError, UsageError."""
        async with self._busy:
            await self._renew()
            await self._leave_unsigned()
            session = self.session or await self._open()
            session.allow(self.origins())
            yield session

    @contextlib.asynccontextmanager
    async def there(self) -> AsyncGenerator[Session]:
        """Lock the open browser. Raises ModelError ``page-unknown`` if none is open, ``scout-ended``."""
        async with self._busy:
            if self.session is None:
                raise ModelError(
                    "page-unknown",
                    "the scout has no page yet",
                    fix=f"open one: `debug_navigate` {self._build.goal.url or ''}",
                )
            try:
                yield self.session
            except ModelError as error:
                # A missing tab may be the first sign that the browser has ended.
                if error.code == "page-unknown":
                    await self.demand_alive()
                raise

    async def _renew(self) -> None:
        """Open a tab if the last one was closed. If that fails, the browser has ended, and is dropped."""
        session = self.session
        if session is None or session.tabs.all():
            return
        with contextlib.suppress(RunOpsError, TimeoutError):
            async with asyncio.timeout(ANSWERS_SECONDS):
                await session.tabs.open(MAIN)
                self.latest = MAIN
                return
        await self.close()

    async def _leave_unsigned(self) -> None:
        """Close the browser if the draft has other HTTP credentials since it was opened: a browser takes them when it opens."""
        options = self._options()
        wanted = options.http_credentials if options is not None else None
        if wanted is not None and wanted != self._signs_in:
            await self.close()

    def page_errors(self) -> list[str]:
        """Return the page errors since the last call: text of pages."""
        return self._page_errors.take() if self._page_errors is not None else []

    def origins(self) -> list[str]:
        """Return the origins whose documents may load: those that the person has named and those of the draft."""
        named = sorted(limits.granted(self._build.goal))
        made = self._build.state.draft
        # With a missing or wrong input, the origins of the draft are unknown.
        with contextlib.suppress(RunOpsError):
            if made is not None:
                named += made.loaded.origins(limits.given(made, self._build.goal))
        return list(dict.fromkeys(named))

    async def _open(self) -> Session:
        build = self._build
        private = build.here.reader.private(build.writer.conversation.id)
        settings = build.here.settings.model_copy(update={"browser_mode": "shared"})
        options = self._options()
        self.session = await open_browser.open_browser(
            options, origins=self.origins(), private=private, settings=settings
        )
        self._signs_in = options.http_credentials if options is not None else None
        self._page_errors = page_errors.PageErrors(self.session.page.page.context)
        in_flight.of(self.session.page.page.context)
        self.latest = MAIN
        return self.session

    def _options(self) -> BrowserOptions | None:
        made = self._build.state.draft
        wanted = made.loaded.workflow.browser if made is not None else None
        if made is None or wanted is None:
            return None
        # A missing value is reported by the run that needs it.
        with contextlib.suppress(RunOpsError):
            values = {"inputs": limits.given(made, self._build.goal), "secrets": dict(self._build.known())}
            return rendering.filled(wanted, made.loaded.templates, values, rendering.RecordedClock([]))
        return None

    async def demand_alive(self) -> None:
        """Drop a browser that ended by itself. Raises ModelError ``scout-ended`` if it did."""
        session = self.session
        if session is None:
            return
        with contextlib.suppress(Error, RunOpsError, TimeoutError):
            async with asyncio.timeout(ANSWERS_SECONDS), session.fresh_page() as page:
                await page.title()
                return
        await self.close()
        raise ModelError(
            "scout-ended",
            "the scout's browser has ended, with its tabs and what was signed in there",
            fix="`debug_navigate` opens it again",
        )

    async def shut(self, names: Sequence[str]) -> None:
        async with self._busy:
            for name in names:
                if self.session is not None and name in self.session.tabs.named:
                    await self.session.tabs.close(name)

    async def close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close()
