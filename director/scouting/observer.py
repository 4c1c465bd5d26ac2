"""Looks at the pages of a build: those of the bench, where nodes are tried, and those of the scout."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import weakref
from collections.abc import AsyncGenerator, Callable, Collection
from typing import TYPE_CHECKING, cast

from playwright.async_api import Error
from typing_extensions import override

from director.scouting import browser as scouting
from director.tools.build_context import Observer
from nodes.errors import ModelError, RunOpsError, SiteError
from runtime.browser import isolated_world, origins
from runtime.browser.elements import pointed as elements_pointed
from runtime.browser.page.tab import Tab
from runtime.observation import page_frame, page_text
from runtime.observation.finding import Element
from runtime.observation.observation import Observation
from runtime.secrets import masking as secrets_masking

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext, Where
    from runtime.browser import port
    from runtime.browser.page.tabs import Tabs

WHOLE = 5_000
"""Characters of a look."""

LOOK_SECONDS = 10.0
"""How long a look may take."""

STATUS_SECONDS = 1.0
"""How long a page may take to say how its document was answered."""

BENCH = "bench"
"""What a tool calls the page of the bench; ``bench/NAME`` is another tab of it."""

SCOUT = "scout"
"""The same of the scout, whose tabs are meant by their names alone, too."""

_FOLDED = re.compile(r"^(… .*): (?:look\(|inspect_tab\b|find\().*$")

_STATUS = isolated_world.Script[int]("() => performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0", int)


@dataclasses.dataclass(slots=True)
class _Seen:
    """What is known of one tab."""

    view: Observation
    """The last look."""
    address: str
    """Where it was taken."""
    shown: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict[str, tuple[str, str]])
    """What the elements were, by their refs, when a model was last told of them."""
    everything: bool = False
    """Whether it was told of all that is in the last look."""
    whole: set[str] = dataclasses.field(default_factory=set[str])
    """Who was shown all of this document: the threads of models."""
    again: set[str] = dataclasses.field(default_factory=set[str])
    """Who is to be shown all of it again, and nothing as before."""

    def was(self, ref: str) -> tuple[str, str] | None:
        """What the element was when a model was told of it; None where it was not."""
        if ref not in self.shown and self.everything and self.view.has(ref):
            return _known(self.view, ref)
        return self.shown.get(ref)


@dataclasses.dataclass(frozen=True, slots=True)
class OpenTab:
    """A tab, as it is now."""

    where: Where
    name: str
    """Empty for one that nobody has named."""
    url: str
    title: str
    """Empty where nobody has looked at it."""
    current: bool


class PageObserver(Observer):
    """Looks at pages without touching them, and remembers what a model was shown of each. No secret stands in what it gives."""

    def __init__(self, build: BuildContext) -> None:
        """Nothing is opened yet."""
        self._build = build
        self.scout = scouting.Browser(build)
        """The browser of scouting."""
        self._seen: weakref.WeakKeyDictionary[Tab, _Seen] = weakref.WeakKeyDictionary()
        self._around: dict[str, set[str]] = {}
        """The frames of sites (banners, navigations) that each thread was told of, on whatever page."""

    # Which page.

    def place(self, tab: str | None) -> tuple[Where, str | None]:
        """Which page a tool means by ``tab``: None is that of the bench where it has one, else the scout's; ``bench``, ``bench/NAME``, or a tab of the scout."""
        if tab is None:
            return ("bench", None) if self._bench is not None else ("scout", None)
        head, _, name = tab.partition("/")
        if head == BENCH:
            return "bench", name or None
        return "scout", (name or None) if head == SCOUT else tab

    def page(self, where: Where, tab: str | None = None) -> Tab:
        """The tab, as it stands. Raises ModelError ``page-unknown``."""
        browser = self._bench if where == "bench" else self.scout.session
        if browser is None:
            begins = self._build.goal.url
            fix = (
                "run nodes there first: `execute_nodes`"
                if where == "bench"
                else f"open one: `debug_navigate`{f' {begins}' if begins else ''}"
            )
            raise ModelError("page-unknown", f"the {where} has no page yet", fix=fix)
        name = tab if tab is not None or where == "bench" else self._latest(browser)
        try:
            return cast("Tabs", browser.tabs).get(name)
        except SiteError:
            named = ", ".join(each.name for each in self.tabs() if each.where == where and each.name)
            raise ModelError(
                "page-unknown",
                f"the {where} has no tab `{(name or '')[:80]}`",
                fix=f"open there: {named or 'none'}" + ("; `debug_open_tab` opens one" if where == "scout" else ""),
            ) from None

    def _latest(self, browser: port.Browser) -> str | None:
        return self.scout.latest if self.scout.latest in cast("Tabs", browser.tabs).named else None

    @property
    def _bench(self) -> port.Browser | None:
        bench = getattr(self._build, "bench", None)
        return bench.browser if bench is not None else None

    def tabs(self) -> list[OpenTab]:
        """Every open tab of both browsers, those of the bench first."""
        found: list[OpenTab] = []
        both: list[tuple[Where, port.Browser | None]] = [("bench", self._bench), ("scout", self.scout.session)]
        for each, browser in both:
            if browser is None:
                continue
            row = cast("Tabs", browser.tabs)
            names = {page: name for name, page in row.named.items()}
            for tab in row.all():
                name = names.get(tab.page, "")
                seen = self._seen.get(tab)
                title = seen.view.title if seen is not None and seen.address == tab.url else ""
                current = tab is row.current if each == "bench" else name == self.scout.latest
                found.append(OpenTab(each, name, self.mask(tab.url), title, current))
        return found

    # What it shows.

    def masking(self) -> Callable[[str], str]:
        """Takes secrets out of texts: those that the session knew when it began, and those that the draft has named since."""
        first, then = self._build.writer.masker, secrets_masking.Masker(self._build.known())
        return lambda text: then.text(first.text(text))

    def mask(self, text: str) -> str:
        """One text without secrets."""
        return self.masking()(text)

    @override
    async def look(self, where: Where, tab: str | None = None) -> Observation:
        """The page as it is now, secrets masked, and told to a model: its refs stand for what they are now. Raises SiteError, ModelError ``page-unknown``."""
        async with self.alone(where):
            page = self.page(where, tab)
            view = await self.look_at(page)
            self._seen[page].everything = True
            return view

    async def look_at(self, page: Tab) -> Observation:
        """The same of a tab that the caller has for itself; what of it a model is told, ``shown`` says."""
        view = await self._view(page)
        seen = self._seen.get(page)
        if seen is None:
            self._seen[page] = _Seen(view, page.url)
        else:
            if page.url != seen.address or not view.continues(seen.view):
                seen.whole.clear()
                seen.again.clear()
            seen.view, seen.address, seen.everything = view, page.url, False
        return view

    @override
    def last(self, where: Where, tab: str | None = None) -> Observation | None:
        """The last look at that page; None where there was none, or it is not open."""
        try:
            return self.last_of(self.page(where, tab))
        except ModelError:
            return None

    def last_of(self, page: Tab) -> Observation | None:
        """The same of a tab."""
        seen = self._seen.get(page)
        return seen.view if seen is not None else None

    def shown(self, page: Tab, told: str, whole_to: str | None = None) -> None:
        """A model is told this text of the last look: the refs in it stand for what they are now. ``whole_to`` is its thread, where it is all of the page."""
        seen = self._seen.get(page)
        if seen is None:
            # It could not be looked at.
            return
        if whole_to is not None:
            seen.whole.add(whole_to)
        seen.shown |= {ref: _known(seen.view, ref) for ref in page_text.refs_in(told) if seen.view.has(ref)}

    def learned(self, page: Tab, text: str, thread: str) -> None:
        """The model of this thread is told this text of the last look: the frame of the site that stands in it is known from now on."""
        seen = self._seen.get(page)
        if seen is not None:
            lines = set(map(page_frame.bare, text.split("\n")))
            self._around.setdefault(thread, set()).update(
                part for part in seen.view.around if page_frame.told(part, lines)
            )

    def around(self, page: Tab, thread: str) -> Collection[str]:
        """The frames that need not be told to the model of this thread: none where it wants all of the page."""
        seen = self._seen.get(page)
        return () if seen is not None and thread in seen.again else self._around.get(thread, ())

    def told(self, page: Tab, text: str, thread: str) -> None:
        """The same of a text in which more is said; where everything stands in it that a look would show, its thread was shown all of the page."""
        seen = self._seen.get(page)
        if seen is None:
            return
        lines = set(map(_line, text.split("\n")))
        known = self.around(page, thread)
        whole = any(
            all(_line(each) in lines for each in page_text.fenced(shown).split("\n"))
            for shown in (seen.view.render(WHOLE), seen.view.render(WHOLE, known=known))
        )
        self.shown(page, text, thread if whole else None)
        self.learned(page, text, thread)

    def knows(self, page: Tab, thread: str) -> bool:
        """Whether the model of this thread was shown all of the document of the last look."""
        seen = self._seen.get(page)
        return seen is not None and thread in seen.whole

    def forget(self, page: Tab, thread: str) -> None:
        """The model of this thread is to be shown all of it again."""
        if (seen := self._seen.get(page)) is not None:
            seen.whole.discard(thread)
            seen.again.add(thread)

    async def _view(self, page: Tab) -> Observation:
        page.calm()
        self._bound(page, LOOK_SECONDS)
        seen = await page.look(marks=True)
        here, mask = origins.origin(page.url) or "", self.masking()
        return seen.masked(mask, lambda address: mask(page_text.from_here(address, here)))

    def _of_bench(self, page: Tab) -> bool:
        return self._bench is not None and page in cast("Tabs", self._bench.tabs).all()

    def _bound(self, page: Tab, seconds: float) -> None:
        for browser in (self._bench, self.scout.session):
            if browser is not None and page in cast("Tabs", browser.tabs).all():
                browser.bound(seconds)

    @contextlib.asynccontextmanager
    async def alone(self, where: Where) -> AsyncGenerator[None]:
        """Nobody else works in the scout's browser meanwhile; a build works on its bench by one call after the other."""
        if where == "bench":
            yield
            return
        async with self.scout.there():
            try:
                yield
            except SiteError as error:
                if error.code == "page-crashed":
                    await self.scout.demand_alive()
                raise

    # Single elements.

    @contextlib.asynccontextmanager
    async def pointed(
        self, where: Where, tab: str | None, ref: str
    ) -> AsyncGenerator[tuple[elements_pointed.Pointed, Element]]:
        """The element that a model was shown by this ref. Raises SiteError ``ref-gone`` where it is another one by now, and what ``look`` raises."""
        async with self.alone(where):
            page = self.page(where, tab)
            async with self.pointed_at(page, ref) as found:
                yield found

    @contextlib.asynccontextmanager
    async def pointed_at(self, page: Tab, ref: str) -> AsyncGenerator[tuple[elements_pointed.Pointed, Element]]:
        """The same in a tab that the caller has for itself."""
        element = await self.element(page, ref)
        async with page.pointed(ref) as pointed:
            yield pointed, element

    async def element(self, page: Tab, ref: str) -> Element:
        """What the element is now. ``last`` stays: what changed is told against what a model saw last."""
        view = await self._view(page)
        if not view.has(ref):
            raise gone(ref)
        element, seen = view.element(ref), self._seen.get(page)
        was = seen.was(ref) if seen is not None else None
        if was is None and self._of_bench(page):
            # What runs of the bench tell of its page is not told by these eyes; and nothing is done there by a ref.
            return element
        if was is None:
            # In another browser, or another document, refs are given anew.
            raise gone(ref, " that you were shown")
        if was != _known(view, ref):
            raise gone(ref, " that is what you were shown: it is called otherwise by now")
        return element

    async def status(self, page: Tab) -> int | None:
        """The status with which the page's document was answered; None where nobody knows."""
        if page.dialog is not None:
            return None
        with contextlib.suppress(Error, TimeoutError, RunOpsError):
            async with asyncio.timeout(STATUS_SECONDS):
                return await _STATUS.on(page.page) or None
        return None

    @override
    async def close(self) -> None:
        """End the browser of scouting."""
        await self.scout.close()


def _line(written: str) -> str:
    """A line of a page, without how what is folded in it is shown."""
    return _FOLDED.sub(r"\1", written.strip())


def _known(view: Observation, ref: str) -> tuple[str, str]:
    element = view.element(ref)
    return page_text.known_by(element.role, element.name)


def gone(ref: str, why: str = "") -> SiteError:
    """There is no such element."""
    return SiteError(
        "ref-gone",
        f"the page has no element {ref[:40]} now{why}",
        fix="take the ref that the element has now: `inspect_tab` and `find` show it",
    )
