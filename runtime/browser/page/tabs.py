"""Tabs of a run: their names, the current one, and their openers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from playwright.async_api import BrowserContext, Error, Page

from nodes.errors import LogError, SiteError
from nodes.tabs import MAIN
from nodes.values import Json
from runtime.browser import playwright_errors

if TYPE_CHECKING:
    from runtime.browser.page.tab import Tab

LOOK_SECONDS = 0.02
"""Seconds between two checks for an opening tab."""

CLOSE_SECONDS = 5.0
"""Seconds that a tab may take to close."""


class Tabs:
    """All tabs of a run, with or without a name. Implements ``nodes.pages.Tabs``."""

    def __init__(self, context: BrowserContext, make: Callable[[Page], Tab]) -> None:
        """``make`` creates the tab of a page."""
        self.changed: Callable[[], Awaitable[bool]] | None = None
        """Awaited when a name or the current tab changes; returns False if some tab could not be recorded."""
        self._told = True
        self.untold: LogError | None = None
        """Error that prevented a change from being saved outside a step."""
        self.closed_documents = 0
        """Documents loaded into tabs that are closed by now."""
        self._context = context
        self._make = make
        self._tabs: dict[Page, Tab] = {}
        self._names: dict[str, Page] = {}
        self._openers: dict[Page, Page] = {}
        self._arrivals: list[list[Page]] = []
        self._current: Tab | None = None
        self._telling: set[asyncio.Future[None]] = set()

    # Events of tabs.

    def add(self, page: Page) -> Tab:
        """Add a tab."""
        tab = self._tabs.get(page)
        if tab is None:
            tab = self._tabs[page] = self._make(page)
            page.once("close", self._closed)
            page.on("popup", lambda popup: self._openers.update({popup: page}))
            for arrived in self._arrivals:
                arrived.append(page)
        return tab

    def forget(self, page: Page) -> None:
        """Remove a tab that is not the run's: ``confirm`` uses it alone."""
        self._tabs.pop(page, None)

    def _closed(self, page: Page) -> None:
        tab = self._tabs.pop(page, None)
        if tab is None:
            return
        self.closed_documents += tab.documents
        tab.dialogs.drop()
        opener = self._openers.pop(page, None)
        named = [name for name, each in self._names.items() if each is page]
        for name in named:
            del self._names[name]
        was_current = tab is self._current
        if was_current:
            heir = next((each for each in (opener, self._names.get(MAIN), *self._tabs) if each in self._tabs), None)
            self._current = self._tabs[heir] if heir is not None else tab
        if (named or was_current) and self.changed is not None:
            telling = asyncio.ensure_future(self._tell_beside())
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    # Interface for the run.

    @property
    def current(self) -> Tab:
        """Current tab."""
        assert self._current is not None, "a session begins with a tab"
        return self._current

    @property
    def named(self) -> Mapping[str, Page]:
        """Open tabs that have a name."""
        return self._names

    def all(self) -> list[Tab]:
        """Return every open tab, the oldest first."""
        return list(self._tabs.values())

    def of(self, page: Page) -> Tab | None:
        """Return the tab of a page."""
        return self._tabs.get(page)

    def get(self, name: str | None) -> Tab:
        """Return the tab of that name, by default the current one. Raises SiteError ``tab-closed``."""
        if name is None:
            return self.current
        if name not in self._names:
            raise self.lacking(f"the tab `{name}` is not open")
        return self._tabs[self._names[name]]

    def lacking(self, message: str) -> SiteError:
        """Return the error for a missing tab."""
        names = {page: name for name, page in self._names.items()}
        shown: list[Json] = [{"name": names.get(page), "url": page.url} for page in self._tabs]
        return SiteError(
            "tab-closed",
            message,
            fix="look at which step closed it, or never opened it; `open_tab` opens one",
            evidence={"open": shown},
        )

    async def resume(self, names: Mapping[str, Page], current: Page) -> None:
        """Set names and current tab after the tabs were opened again."""
        self.begin(names, current)
        await self._tell()

    def begin(self, names: Mapping[str, Page], current: Page) -> None:
        """Set names and current tab."""
        self._names = dict(names)
        self._current = self._tabs[current]

    async def open(self, name: str) -> None:
        """Make the tab of that name the current one; open it if necessary."""
        if name not in self._names:
            try:
                page = await self._context.new_page()
            except Error as error:
                raise playwright_errors.gone(error, self.current.url, "after") from None
            self.add(page)
            self._names[name] = page
        self._current = self._tabs[self._names[name]]
        await self._tell()

    def name_new(self) -> list[str]:
        """Name each open tab that has no name ``tab2``, ``tab3`` …; return the new names, the oldest tab first."""
        given: list[str] = []
        taken = set(self._names)
        for page in self._tabs:
            if page not in self._names.values():
                name = next(each for number in itertools.count(2) if (each := f"tab{number}") not in taken)
                self._names[name] = page
                taken.add(name)
                given.append(name)
        return given

    async def switch(self, name: str) -> None:
        """Make the tab of that name the current one."""
        self._current = self.get(name)
        await self._tell()

    async def close(self, name: str | None) -> None:
        """Close a tab, by default the current one. After the current tab, its opener becomes current, else ``main``."""
        if name is not None and name not in self._names:
            return
        tab = self.get(name)
        if len(self._tabs) == 1:
            # A browser without a tab would end.
            blank = await self._context.new_page()
            self.add(blank)
            self._names[MAIN] = blank
        await shut(tab.page)
        self._closed(tab.page)
        await self._tell()

    async def replace(self, tab: Tab) -> Page:
        """Open a page for ``tab`` that replaces its own, which is closed; name, opener and counts stay."""
        old = tab.page
        new = await self._context.new_page()
        self.add(new).overlook()
        self.forget(new)
        self._tabs = {new if page is old else page: each for page, each in self._tabs.items()}
        self._names = {name: new if page is old else page for name, page in self._names.items()}
        self._openers = {
            new if page is old else page: new if opener is old else opener for page, opener in self._openers.items()
        }
        closing = asyncio.ensure_future(shut(old))
        self._telling.add(closing)
        closing.add_done_callback(self._telling.discard)
        await self._tell()
        return new

    @contextlib.asynccontextmanager
    async def opening(self, name: str, opener: Tab) -> AsyncGenerator[None]:
        """Wait for the tab that the action in the block opens, at once or later, and name it. Raises SiteError ``no-tab-opened``."""
        arrived: list[Page] = []
        self._arrivals.append(arrived)
        try:
            yield
            while (page := self._first(arrived, opener.page)) is None:
                await opener.wait_on(LOOK_SECONDS, lambda: self._unopened(name, opener))
        finally:
            self._arrivals.remove(arrived)
        self._names.pop(name, None)
        if page in self._tabs:
            self._names[name] = page
        await self._tell()

    def _first(self, arrived: list[Page], opener: Page) -> Page | None:
        """Return the tab that the action opened. A tab whose opener is already closed may also be the one."""
        return next((page for page in arrived if self._openers.get(page, opener) is opener), None)

    def _unopened(self, name: str, opener: Tab) -> SiteError:
        waited = opener.waited()
        return SiteError(
            "no-tab-opened",
            f"no tab opened that could be called `{name}` (waited {waited:g} s)",
            fix="look whether the step opens a tab at all; if it does so late, give it a larger `timeout`",
            phase="after",
            evidence={"page": opener.url, "waited": waited},
        )

    async def _tell(self) -> None:
        if self.changed is not None:
            self._told = await self.changed()
            self.untold = None

    async def _tell_beside(self) -> None:
        """Record a change outside a step; if it cannot be saved, the next step on a page reports it."""
        try:
            await self._tell()
        except LogError as error:
            self.untold = error

    async def tell_again(self) -> None:
        """Record changes that could not be recorded before."""
        if not self._told:
            await self._tell()


async def shut(page: Page) -> None:
    """Close a page. A page that does not answer cannot be closed; it ends with the browser."""
    with contextlib.suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await page.close()
