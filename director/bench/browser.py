"""The browser of the bench: opened for the first node that needs it, kept from call to call, and lent to each run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from director.bench.records import BROKEN, Lineage
from director.scouting import observer
from director.scouting.shown import Shown
from nodes.errors import SetupError
from runtime.browser import in_flight, port
from runtime.browser import open as open_browser
from runtime.browser.options import BrowserOptions
from runtime.browser.page.tab import Tab
from runtime.browser.page_errors import PageErrors
from runtime.browser.session import Session
from runtime.engine import rendering
from runtime.language import prepare
from runtime.log import entries
from runtime.observation.observation import Observation
from runtime.system import regular_files

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

RESTORE_SECONDS = 30.0  # time that the pages of a state may take to load


class Browser:
    def __init__(self, build: BuildContext, private: Path) -> None:
        self._build, self._private = build, private
        self.now: port.Browser | None = None  # as the last nodes left it; None before any ran
        self.lineage: Lineage = ()  # the nodes that changed its page
        self.page_errors: PageErrors | None = None
        self.why_none = (
            "nothing was executed yet, or the session was interrupted since"  # why there is no page, if ``now`` is None
        )
        self.left: tuple[str, str] | None = None
        """The key of the last node that was over on its page, and the address then."""
        self._made_as: BrowserOptions | None = None  # if the draft needs other options, a new browser is opened
        self._told = Shown()
        self._shown: tuple[object, Observation] | None = None  # the last page shown to the model, and its observation

    def live(self, prepared: prepare.Prepared) -> Lineage | str:
        """Return the lineage of the current page, or why there is none that the draft can continue on."""
        if self.now is None:
            return self.why_none
        return self.lineage if _options(prepared) == self._made_as else "the draft asks for another browser now"

    async def close(self) -> None:
        browser, self.now, self.page_errors, self.lineage, self.left = self.now, None, None, (), None
        if browser is not None:
            await browser.close()

    async def open(self, prepared: prepare.Prepared) -> port.Browser:
        """Return the browser for a run: the existing or a new one. Raises SetupError."""
        origins = prepared.loaded.origins(prepared.inputs)
        if self.now is not None:
            if isinstance(self.now, Session):
                self.now.allow(origins)
            return self.now
        self._made_as = _options(prepared)
        self.now = await self.make(self._made_as, origins)
        if isinstance(self.now, Session):
            self.page_errors = PageErrors(self.now.page.page.context, self.now.tabs.is_separate)
            in_flight.of(self.now.page.page.context)
        return self.now

    async def restore(self, prepared: prepare.Prepared, state: Path) -> port.Differs | None:
        """Restore a kept state in a new browser. Return the first tab that shows another page than it did. Raises SetupError, SiteError."""
        await self.close()
        browser = await self.open(prepared)
        # Until it is known to be as it was, the page belongs to no node.
        self.lineage = (BROKEN,)
        browser.bound(RESTORE_SECONDS)
        return await browser.restore(await asyncio.to_thread(_content, state))

    async def make(self, options: BrowserOptions | None, origins: Sequence[str]) -> port.Browser:
        self._private.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A context in an existing browser costs a tenth of a new browser.
        only = {"browser_mode": "shared", "keep_browser": False, "linger": 0.0}
        settings = self._build.here.settings.model_copy(update=only)
        return await open_browser.open_browser(options, origins=origins, private=self._private, settings=settings)

    # The page in it.

    def _tab(self) -> tuple[observer.PageObserver, Tab] | None:
        page, seeing = self.now.page if self.now is not None else None, self._build.observer
        return (seeing, page) if isinstance(page, Tab) and isinstance(seeing, observer.PageObserver) else None

    def status(self) -> int | None:
        tab = self._tab()
        return self.page_errors.status(tab[1].page) if self.page_errors is not None and tab is not None else None

    def sign_in_fix(self) -> str | None:
        tab = self._tab()
        return tab[1].diagnosis.sign_in_fix if tab is not None else None

    async def look(self, browser: port.Browser) -> Observation:
        """Observe the page through the build's observer, so that the model can use the refs. Raises SiteError."""
        if (tab := self._tab()) is not None:
            return await tab[0].look_at(tab[1])
        return (await cast("Tab", browser.page).look()).masked(self._build.writer.masker.text)

    def shown(self) -> tuple[object, Observation] | None:
        """Return the page last shown to the build's model, and its observation; None before any."""
        if (tab := self._tab()) is not None:
            seeing, page = tab
            view = seeing.last_of(page) if seeing.knows(page, entries.SESSION_THREAD) else None
            if view is not None:
                return page, view
        return self._shown

    def told(self) -> Shown:
        """Return what the build's model was shown of any page, and need not be shown again."""
        seeing = self._build.observer
        return seeing.shown_to(entries.SESSION_THREAD) if isinstance(seeing, observer.PageObserver) else self._told

    def note_shown(self, view: Observation, text: str, budget: int) -> None:
        """Record that the build's model was shown ``text`` of the page, with all of it that fits into ``budget``; 0 for changes."""
        self._shown = (self.now.page if self.now is not None else None, view)
        if (tab := self._tab()) is not None:
            seeing, page = tab
            seeing.shown(page, text, entries.SESSION_THREAD, budget)
        else:
            self._told.note(view, text, budget)


def _content(state: Path) -> bytes:
    try:
        return regular_files.read(state)
    except OSError as error:
        message = f"the state {state.name} cannot be read: {error.strerror or error}"
        raise SetupError("checkpoint-unreadable", message, fix="begin anew") from None


def _options(prepared: prepare.Prepared) -> BrowserOptions | None:
    wanted = prepared.loaded.workflow.browser
    if wanted is None:
        return None
    values = {"inputs": prepared.inputs, "secrets": prepared.secrets}
    return rendering.filled(wanted, prepared.loaded.templates, values, rendering.RecordedClock([]))
