"""The browser of the bench: opened for the first node that needs it, kept from call to call, and lent to each run."""

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


@dataclasses.dataclass(frozen=True, slots=True)
class _Chosen:
    """The browser settings of the bench."""

    browser: Path | None
    browser_mode: Mode | None
    headed: bool
    keep_browser: bool = False
    linger: float = 0.0


class Browser:
    """Keeps the browser, with the history of its page."""

    def __init__(self, build: BuildContext, private: Path) -> None:
        """Nothing is opened yet; ``private`` is the bench's own folder."""
        self._build, self._private = build, private
        self.now: port.Browser | None = None
        """As the last nodes left it; None before any ran."""
        self.lineage: Lineage = ()
        """The nodes that changed its page."""
        self.ears: page_errors.PageErrors | None = None
        self._made_as: Json = None
        """The options it was opened with. If the draft needs others, a new browser is opened."""
        self._shown: tuple[object, Observation] | None = None
        """The last page shown to the model, and its observation."""

    def fits(self, prepared: prepare.Prepared) -> bool:
        """Return whether the draft still needs the same browser options."""
        return _said(_options(prepared)) == self._made_as

    async def close(self) -> None:
        """Close it."""
        browser, self.now, self.ears, self.lineage = self.now, None, None, ()
        if browser is not None:
            await browser.close()

    async def open(self, prepared: prepare.Prepared) -> port.Browser:
        """Return the browser for a run: the existing or a new one. Raises SetupError."""
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
        """Open a new browser. Raises SetupError."""
        chosen = self._build.here.settings
        self._private.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A context in an existing browser costs a tenth of a new browser; options that it does not support need a new one.
        mode: Mode = "shared" if options is None or options.unfit("shared") is None else "own"
        own = options.model_copy(update={"mode": mode}) if options is not None else None
        settled = _Chosen(chosen.browser, mode, chosen.headed)
        return await open_browser.open_browser(own, origins=origins, private=self._private, chosen=settled)

    def lender(self, prepared: prepare.Prepared) -> run.Browsers:
        """Return the port that lends it to a run."""
        return _Lender(self, prepared)

    # The page in it.

    def status(self) -> int | None:
        """The site's error status for the current document, if any."""
        if self.ears is None or not isinstance(self.now, Session):
            return None
        return self.ears.status(self.now.page.page)

    async def look(self, browser: port.Browser) -> Observation:
        """Observe the page for the build's observer: the model may point at what it is shown. Raises SiteError."""
        page, seeing = browser.page, self._build.observer
        if isinstance(page, Tab) and isinstance(seeing, observer.PageObserver):
            return await seeing.look_at(page)
        return (await cast("Tab", page).look()).masked(self._build.writer.masker.text)

    def shown(self) -> tuple[object, Observation] | None:
        """Return the page last shown to the build's model, and its observation; None before any."""
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
        """Return the site frames already shown to the build's model, which need not be repeated."""
        page, seeing = self.now.page if self.now is not None else None, self._build.observer
        if isinstance(page, Tab) and isinstance(seeing, observer.PageObserver):
            return seeing.around(page, entries.SESSION_THREAD)
        return self._shown[1].around if self._shown is not None else ()

    def is_shown(self, page: object) -> bool:
        """Return whether this is the current page."""
        return self.now is not None and self.now.page is page

    def told(self, view: Observation, text: str, *, whole: bool) -> None:
        """Note what the build's model was shown of the page after the last nodes; the ``whole`` of it is not shown again."""
        page, seeing = self.now.page if self.now is not None else None, self._build.observer
        self._shown = (page, view)
        if isinstance(page, Tab) and isinstance(seeing, observer.PageObserver):
            seeing.shown(page, text, entries.SESSION_THREAD if whole else None)
            seeing.learned(page, text, entries.SESSION_THREAD)


class _Lender(run.Browsers):
    """Lends the bench's browser to a run."""

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
