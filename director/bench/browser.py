"""The browser of the bench: opened when the first node needs it, gone on with from call to call, and lent to each run."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from director.bench.records import Lineage
from director.scouting import observer
from nodes.values import Json
from runtime.browser import borrowed, page_errors, port
from runtime.browser import open as open_browser
from runtime.browser.options import BrowserOptions, Mode
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.engine import rendering
from runtime.language import prepare
from runtime.log import entries
from runtime.observation.observation import Observation
from runtime.runs import run

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext
    from runtime.agents import ports


@dataclasses.dataclass(frozen=True, slots=True)
class _Chosen:
    """What the settings say about browsers, for one that is the bench's."""

    browser: Path | None
    browser_mode: Mode | None
    headed: bool
    keep_browser: bool = False
    linger: float = 0.0


class Browser:
    """Keeps it, with what was done to its page."""

    def __init__(self, build: BuildContext, private: Path) -> None:
        """Nothing is opened yet; ``private`` is the bench's own folder."""
        self._build, self._private = build, private
        self.now: port.Browser | None = None
        """As the last nodes left it; None before any ran."""
        self.lineage: Lineage = ()
        """What was done to its page."""
        self.ears: page_errors.PageErrors | None = None
        self._made_as: Json = None
        """How it was asked for: another one is needed where the draft asks for it otherwise."""
        self._shown: tuple[object, Observation] | None = None
        """The last page that a call told of, with what it showed."""

    def fits(self, prepared: prepare.Prepared) -> bool:
        """Whether the draft asks for such a browser still."""
        return _said(_options(prepared)) == self._made_as

    async def close(self) -> None:
        """End it."""
        browser, self.now, self.ears, self.lineage = self.now, None, None, ()
        if browser is not None:
            await browser.close()

    async def open(self, prepared: prepare.Prepared) -> port.Browser:
        """The browser in which a run works: the one that is there, or a new one. Raises SetupError."""
        origins = prepared.loaded.origins(prepared.inputs)
        if self.now is not None:
            if isinstance(self.now, Session):
                self.now.allow(origins)
            return self.now
        options = _options(prepared)
        self.now = await self.make(options, origins)
        self._made_as = _said(options)
        if isinstance(self.now, Session):
            self.ears = page_errors.PageErrors(self.now.page.page.context)
        return self.now

    async def make(self, options: BrowserOptions | None, origins: Sequence[str]) -> port.Browser:
        """A new browser. Raises SetupError."""
        chosen = self._build.here.settings
        self._private.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A part of a browser that is there already costs a tenth of a new one; what it cannot do needs its own.
        mode: Mode = "shared" if options is None or options.unfit("shared") is None else "own"
        own = options.model_copy(update={"mode": mode}) if options is not None else None
        settled = _Chosen(chosen.browser, mode, chosen.headed)
        return await open_browser.open_browser(own, origins=origins, private=self._private, chosen=settled)

    def lender(self, prepared: prepare.Prepared) -> run.Browsers:
        """Lends it to a run."""
        return _Lender(self, prepared)

    # What it shows.

    def status(self) -> int | None:
        """The error with which the site answered for the document that is shown, if with any."""
        if self.ears is None or not isinstance(self.now, Session):
            return None
        return self.ears.status(self.now.page.page)

    async def look(self, browser: port.Browser) -> Observation:
        """A look that the eyes of the build remember: what a model is told of it, it may point at. Raises SiteError."""
        page, seeing = browser.page, self._build.observer
        if isinstance(page, Tab) and isinstance(seeing, observer.PageObserver):
            return await seeing.look_at(page)
        return (await cast("ports.Page", page).look()).masked(self._build.writer.masker.text)

    def shown(self) -> tuple[object, Observation] | None:
        """What the model of the build was last shown: the page, and how it was; None before it was shown any."""
        page, seeing = self.now.page if self.now is not None else None, self._build.observer
        if (
            isinstance(page, Tab)
            and isinstance(seeing, observer.PageObserver)
            and seeing.knows(page, entries.SESSION_THREAD)
        ):
            view = seeing.last_of(page)
            return (page, view) if view is not None else self._shown
        return self._shown

    def around(self) -> Collection[str]:
        """The frames of sites that the model of the build was told, and need not be told again."""
        page, seeing = self.now.page if self.now is not None else None, self._build.observer
        if isinstance(page, Tab) and isinstance(seeing, observer.PageObserver):
            return seeing.around(page, entries.SESSION_THREAD)
        return self._shown[1].around if self._shown is not None else ()

    def is_shown(self, page: object) -> bool:
        """Whether this is the page that stands there."""
        return self.now is not None and self.now.page is page

    def told(self, view: Observation, text: str, *, whole: bool) -> None:
        """The model of the build is told this of the page as the last nodes left it; where it is the ``whole`` of it, it is not shown it again."""
        page, seeing = self.now.page if self.now is not None else None, self._build.observer
        self._shown = (page, view)
        if isinstance(page, Tab) and isinstance(seeing, observer.PageObserver):
            seeing.shown(page, text, entries.SESSION_THREAD if whole else None)
            seeing.learned(page, text, entries.SESSION_THREAD)


class _Lender(run.Browsers):
    """Lends a run the browser of the bench."""

    def __init__(self, browser: Browser, prepared: prepare.Prepared) -> None:
        self._browser, self._prepared = browser, prepared

    @override
    async def open(self) -> port.Browser:
        return borrowed.Lent(await self._browser.open(self._prepared))

    @override
    async def reattach(self) -> port.Browser | None:
        return None


def _options(prepared: prepare.Prepared) -> BrowserOptions | None:
    wanted = prepared.loaded.workflow.browser
    if wanted is None:
        return None
    values = {"inputs": prepared.inputs, "secrets": prepared.secrets}
    return rendering.filled(wanted, prepared.loaded.templates, values, rendering.RecordedClock([]))


def _said(options: BrowserOptions | None) -> Json:
    return options.model_dump(mode="json") if options is not None else None
