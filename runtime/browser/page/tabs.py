"""The tabs of a run: what they are called, which of them is the current one, and who opened whom."""

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
"""How often a tab that is to open is looked for."""

CLOSE_SECONDS = 5.0
"""How long a tab may take to be closed."""


class Tabs:
    """All tabs of a run, those that nobody has named too. Implements ``nodes.pages.Tabs``."""

    def __init__(self, context: BrowserContext, make: Callable[[Page], Tab]) -> None:
        """``make`` makes the tab of a page."""
        self.changed: Callable[[], Awaitable[bool]] | None = None
        """Awaited when a name or the current tab has changed; false where that could not be told of every tab."""
        self._told = True
        self.untold: LogError | None = None
        """What kept a change from being written down beside a step."""
        self.closed_documents = 0
        """Documents that were loaded into tabs which are closed by now."""
        self._context = context
        self._make = make
        self._tabs: dict[Page, Tab] = {}
        self._names: dict[str, Page] = {}
        self._openers: dict[Page, Page] = {}
        self._arrivals: list[list[Page]] = []
        self._current: Tab | None = None
        self._telling: set[asyncio.Future[None]] = set()

    # What happens to tabs.

    def add(self, page: Page) -> Tab:
        """A tab is there."""
        tab = self._tabs.get(page)
        if tab is None:
            tab = self._tabs[page] = self._make(page)
            page.once("close", self._closed)
            page.on("popup", lambda popup: self._openers.update({popup: page}))
            for arrived in self._arrivals:
                arrived.append(page)
        return tab

    def forget(self, page: Page) -> None:
        """A tab is not the run's: ``confirm`` has it for itself."""
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

    # What the run asks.

    @property
    def current(self) -> Tab:
        """The current tab."""
        assert self._current is not None, "a session begins with a tab"
        return self._current

    @property
    def named(self) -> Mapping[str, Page]:
        """The open tabs that have a name."""
        return self._names

    def all(self) -> list[Tab]:
        """Every open tab, the oldest first."""
        return list(self._tabs.values())

    def of(self, page: Page) -> Tab | None:
        """The tab of a page."""
        return self._tabs.get(page)

    def get(self, name: str | None) -> Tab:
        """The tab of that name, the current one where none is given. Raises SiteError ``tab-closed``."""
        if name is None:
            return self.current
        if name not in self._names:
            raise self.lacking(f"the tab `{name}` is not open")
        return self._tabs[self._names[name]]

    def lacking(self, message: str) -> SiteError:
        """A tab that is wanted is not there."""
        names = {page: name for name, page in self._names.items()}
        shown: list[Json] = [{"name": names.get(page), "url": page.url} for page in self._tabs]
        return SiteError(
            "tab-closed",
            message,
            fix="look at which step closed it, or never opened it; `open_tab` opens one",
            evidence={"open": shown},
        )

    async def resume(self, names: Mapping[str, Page], current: Page) -> None:
        """What the tabs are called once they have been opened again."""
        self.begin(names, current)
        await self._tell()

    def begin(self, names: Mapping[str, Page], current: Page) -> None:
        """What the tabs are called from now on."""
        self._names = dict(names)
        self._current = self._tabs[current]

    async def open(self, name: str) -> None:
        """Make the tab of that name the current one; a new one where none is open."""
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
        """Give each open tab without a name one, ``tab2``, ``tab3``; the names given, the oldest tab first."""
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
        """Close a tab, the current one where none is named; where it was the current one its opener is next, else ``main``."""
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
        """Open a page for ``tab`` in the place of its own, which is closed: name, opener and what is counted stay."""
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
        """The action within opens a tab, at once or later: wait for it and give it the name. Raises SiteError ``no-tab-opened``."""
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
        """The tab that the action has opened. One whose opener is closed already may be it as well."""
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
        """Tell beside the step in hand; where that cannot be written down, the next step that works on a page says so."""
        try:
            await self._tell()
        except LogError as error:
            self.untold = error

    async def tell_again(self) -> None:
        """Tell what could not be told before."""
        if not self._told:
            await self._tell()


async def shut(page: Page) -> None:
    """Close a page. One that does not answer cannot be closed; it goes with the browser."""
    with contextlib.suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await page.close()
