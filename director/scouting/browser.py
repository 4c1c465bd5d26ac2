"""The browser of scouting: opened where it is first needed, kept from one action to the next, and no part of the workflow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from playwright.async_api import Error

from director.editing import limits
from nodes.errors import ModelError, RunOpsError
from nodes.tabs import MAIN
from runtime.browser import open as open_browser
from runtime.browser import page_errors
from runtime.browser.options import BrowserOptions
from runtime.browser.session import Session
from runtime.engine import rendering

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

ANSWERS_SECONDS = 1.0
"""How long a tab may take to say that it is there."""


class Browser:
    """At most one at a time; what is signed in there stays so until the session ends."""

    def __init__(self, build: BuildContext) -> None:
        """Nothing is opened yet."""
        self._build = build
        self._session: Session | None = None
        self._page_errors: page_errors.PageErrors | None = None
        self._busy = asyncio.Lock()
        self.latest = MAIN
        """The tab that was last worked in: the one that is meant where none is named."""

    @property
    def session(self) -> Session | None:
        """As it stands; None where none is open."""
        return self._session

    @contextlib.asynccontextmanager
    async def used(self) -> AsyncGenerator[Session]:
        """The browser, opened where there is none, for one user alone: several scouts share it. Raises SetupError, UsageError."""
        async with self._busy:
            await self._renew()
            session = self._session or await self._open()
            session.allow(self.origins())
            yield session

    @contextlib.asynccontextmanager
    async def there(self) -> AsyncGenerator[Session]:
        """The browser as it stands, for one user alone. Raises ModelError ``page-unknown`` where none is open."""
        async with self._busy:
            if self._session is None:
                raise ModelError(
                    "page-unknown",
                    "the scout has no page yet",
                    fix=f"open one: `debug_navigate` {self._build.goal.url or ''}",
                )
            yield self._session

    async def _renew(self) -> None:
        """Where the last tab has closed, open one; where that cannot be, the browser has ended, and is let go of."""
        session = self._session
        if session is None or session.tabs.all():
            return
        with contextlib.suppress(RunOpsError, TimeoutError):
            async with asyncio.timeout(ANSWERS_SECONDS):
                await session.tabs.open(MAIN)
                self.latest = MAIN
                return
        await self.close()

    def page_errors(self) -> list[str]:
        """What its pages complained of since this was last asked. It is text of the pages."""
        return self._page_errors.take() if self._page_errors is not None else []

    def origins(self) -> list[str]:
        """The origins whose documents may load: those that the person has named, and those of the draft as it is now."""
        named = sorted(limits.granted(self._build.goal))
        made = self._build.state.draft
        # Where an input is lacking, or is none of its kind, nobody knows what the draft allows.
        with contextlib.suppress(RunOpsError):
            if made is not None:
                named += made.loaded.origins(limits.given(made, self._build.goal))
        return list(dict.fromkeys(named))

    async def _open(self) -> Session:
        build = self._build
        private = build.here.kept.private(build.writer.conversation.id)
        chosen = build.here.settings.model_copy(update={"browser_mode": "shared"})
        self._session = await open_browser.open_browser(
            self._options(), origins=self.origins(), private=private, chosen=chosen
        )
        self._page_errors = page_errors.PageErrors(self._session.page.page.context)
        self.latest = MAIN
        return self._session

    def _options(self) -> BrowserOptions | None:
        """What the draft says of the browser, as far as a browser for several can be made so: a page looks as the workflow will see it."""
        made = self._build.state.draft
        wanted = made.loaded.workflow.browser if made is not None else None
        if made is None or wanted is None:
            return None
        # What lacks a value is told by the run that needs it.
        with contextlib.suppress(RunOpsError):
            values = {"inputs": limits.given(made, self._build.goal), "secrets": dict(self._build.known())}
            filled = rendering.filled(wanted, made.loaded.templates, values, rendering.RecordedClock([]))
            return filled.model_copy(update={"mode": "shared", "switches": []})
        return None

    async def demand_alive(self) -> None:
        """Let go of a browser that ended by itself. Raises ModelError ``scout-ended`` where it did."""
        session = self._session
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
            fix="`debug_navigate` opens it anew",
        )

    async def shut(self, names: Sequence[str]) -> None:
        """Close those of these tabs that are open."""
        async with self._busy:
            for name in names:
                if self._session is not None and name in self._session.tabs.named:
                    await self._session.tabs.close(name)

    async def close(self) -> None:
        """End it."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
