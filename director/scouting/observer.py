"""Observes the pages of a build: those of the bench, where nodes run, and those of the scout."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from typing import TYPE_CHECKING, cast

from playwright.async_api import Error
from typing_extensions import override

from director.scouting import browser as scouting
from director.scouting.shown import Shown, reminds
from director.tools.build_context import Observer, OpenTab
from nodes.errors import ModelError, RunOpsError, SiteError
from nodes.tabs import MAIN
from nodes.targets import Target
from nodes.values import Json
from runtime.agents import actions
from runtime.browser import in_flight, isolated_world, origins
from runtime.browser.diagnosis import nearest
from runtime.browser.elements import locators
from runtime.browser.elements import pointed as elements_pointed
from runtime.browser.page.access import SETTLE_SECONDS
from runtime.browser.page.tab import Tab
from runtime.display.text import cut
from runtime.observation import page_text
from runtime.observation.finding import Element
from runtime.observation.observation import LOADING, Observation
from runtime.observation.wanted import wanted

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext, Where
    from runtime.browser import port
    from runtime.browser.page.tab import Tabs

WHOLE = 5_000
LOOK_SECONDS = 10.0
ARRIVES_SECONDS = 5.0  # seconds that a page may take to draw what it has asked for
STATUS_SECONDS = 1.0
TRIED_SECONDS = 0.3  # seconds that new targets of an edit may take to be tried
NEAREST = 3  # most alternatives to a target that matches nothing
ADDRESS = 120  # limit of an address in a message, in characters
BENCH = "bench"  # name of the bench's page in tool calls; ``bench/NAME`` is another tab of it

SCOUT = "scout"  # the same for the scout, whose tabs are also known by their names alone

DELEGATE = "delegate"  # the names of delegates' tabs begin with it

_STATUS = isolated_world.Script[int]("() => performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0", int)


@dataclasses.dataclass(slots=True)
class _Seen:
    view: Observation
    address: str
    shown: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict[str, tuple[str, str]])
    """Role and name of each element, by ref, as a model was last shown them."""
    whole: set[str] = dataclasses.field(default_factory=set[str])
    """Threads of models that were shown all of this document."""
    again: set[str] = dataclasses.field(default_factory=set[str])
    """Threads to which it is to be shown again in full."""


class PageObserver(Observer):
    """Observes pages without changing them, and remembers what a model was shown of each. Observations contain no secret."""

    def __init__(self, build: BuildContext) -> None:
        self._build = build
        self.scout = scouting.Browser(build)
        self._seen: weakref.WeakKeyDictionary[Tab, _Seen] = weakref.WeakKeyDictionary()
        self._last: dict[str, weakref.ref[Tab]] = {}  # the tab that each thread was shown last
        self._refs: dict[tuple[str, str], weakref.ref[Tab]] = {}  # the tab that showed a ref to a thread last
        self._shown: dict[str, Shown] = {}  # what each thread was shown, on any page

    # Selection of the page.

    def place(
        self, tab: str | None, thread: str, ref: Json = None, only: Where | None = None
    ) -> tuple[Where, str | None]:
        """Return browser and tab for ``tab``: ``bench``, ``bench/NAME`` or a scout tab.

        None is the tab that showed ``ref`` to the model of the thread, else the one that it was shown last (in the browser ``only``), else
        the bench's page or the scout's.
        """
        if tab is None:
            showed = self._where(self._refs.get((thread, str(ref)))) if ref is not None else None
            last = self._where(self._last.get(thread))
            if showed is not None or (last is not None and only in (None, last[0])):
                return showed or last or ("scout", None)
            return ("bench", None) if self._bench is not None and only != "scout" else ("scout", None)
        head, _, name = tab.partition("/")
        if head == BENCH:
            return "bench", name or None
        return "scout", (name or None) if head == SCOUT else tab

    def _where(self, page: weakref.ref[Tab] | None) -> tuple[Where, str | None] | None:
        """Return browser and name of an open tab; None if it is closed."""
        tab = page() if page is not None else None
        if tab is None or tab.closed:
            return None
        where: Where = "bench" if self._of_bench(tab) else "scout"
        browser = self._bench if where == "bench" else self.scout.session
        if browser is None or tab not in cast("Tabs", browser.tabs).all():
            return None
        named = cast("Tabs", browser.tabs).named
        return where, next((name for name, each in named.items() if each is tab.page), None)

    def called(self, page: Tab) -> str:
        """Return the name of a tab as a tool takes it."""
        where, name = self._where(weakref.ref(page)) or ("scout", None)
        if where == "scout":
            return name or SCOUT
        return f"{BENCH}/{name}" if name not in (None, MAIN) else BENCH

    def searched(self, page: Tab) -> str:
        """Return tab and address of a page, for a failure."""
        return f"{self.called(page)} ({cut(self.mask(page.url), ADDRESS)})"

    def introduced(self, page: Tab, thread: str) -> str:
        """Return the line that names the tab of a page: empty if the model of the thread was shown it last, or there is no other."""
        last = self._last.get(thread)
        other = last is not None and last() is not page and len(self.tabs()) > 1
        return f"tab: {self.called(page)}" if other else ""

    def page(self, where: Where, tab: str | None = None) -> Tab:
        """Return the current tab. Raises ModelError ``page-unknown``."""
        browser = self._bench if where == "bench" else self.scout.session
        if browser is None:
            begins = self._build.goal.url
            fix = (
                "run nodes there first: `execute_nodes`"
                if where == "bench"
                else f"open one: `debug_navigate`{f' {begins}' if begins else ''}"
            )
            bench = getattr(self._build, "bench", None) if where == "bench" else None
            why = f": {bench.why_no_page}" if bench is not None else " yet"
            raise ModelError("page-unknown", f"the {where} has no page{why}", fix=fix)
        name = tab if tab is not None or where == "bench" else self._latest(browser)
        try:
            return cast("Tabs", browser.tabs).get(name)
        except SiteError:
            named = ", ".join(each.name for each in self.tabs() if each.where == where and each.name)
            raise ModelError(
                "page-unknown",
                f"the {where} has no tab `{(name or '')[:80]}`",
                fix=f"open there: {named or 'none'}" + ("; `debug_navigate` opens one" if where == "scout" else ""),
            ) from None

    def _latest(self, browser: port.Browser) -> str | None:
        return self.scout.latest if self.scout.latest in cast("Tabs", browser.tabs).named else None

    @property
    def _bench(self) -> port.Browser | None:
        bench = getattr(self._build, "bench", None)
        return bench.browser if bench is not None else None

    def tabs(self) -> list[OpenTab]:
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

    # Observation.

    def masking(self) -> Callable[[str], str]:
        """Return a function that masks the session's secrets and those that the draft has named since."""
        return self._build.masker.text

    def mask(self, text: str) -> str:
        return self.masking()(text)

    async def look_at(self, page: Tab) -> Observation:
        """Return the page as it is now, secrets masked. The caller has locked it, and calls ``shown`` with what a model sees. Raises SiteError."""
        view = await self._view(page)
        seen = self._seen.get(page)
        if seen is None:
            self._seen[page] = _Seen(view, page.url)
        else:
            if page.url != seen.address or not view.continues(seen.view):
                seen.whole.clear()
                seen.again.clear()
            seen.view, seen.address = view, page.url
        return view

    def last_of(self, page: Tab) -> Observation | None:
        seen = self._seen.get(page)
        return seen.view if seen is not None else None

    def address_of(self, page: Tab) -> str | None:
        """Return the whole address that the page had when it was last observed; None if it never was."""
        seen = self._seen.get(page)
        return seen.address if seen is not None else None

    def shown(self, page: Tab, text: str, thread: str, budget: int = 0) -> None:
        """Record that the model of this thread was shown a text of the last observation, with all of it that fits into ``budget``; 0 for a part."""
        seen = self._seen.get(page)
        if seen is None:
            # The page could not be observed.
            return
        refs = page_text.refs_in(text)
        if reminds(text):
            # The model knows the page. If it looks again all the same, it sees it.
            seen.again.add(thread)
            refs = seen.view.refs
        elif budget and seen.view.render(budget) == seen.view.render(WHOLE):
            seen.whole.add(thread)
        refs = [ref for ref in refs if seen.view.has(ref)]
        seen.shown |= {ref: _known(seen.view, ref) for ref in refs}
        self._last[thread] = weakref.ref(page)
        self._refs |= {(thread, ref): weakref.ref(page) for ref in refs}
        self.shown_to(thread).note(seen.view, text, budget)

    def shown_to(self, thread: str) -> Shown:
        shown, goal = self._shown.setdefault(thread, Shown()), self._build.goal
        shown.goal = wanted(" ".join([goal.goal, *map(str, goal.inputs.values())]))
        return shown

    def known(self, page: Tab, thread: str) -> Collection[str]:
        """Return the site frames that need not be shown to the model of this thread; none if it asked for the whole page."""
        seen = self._seen.get(page)
        return () if seen is not None and thread in seen.again else self.shown_to(thread).around

    def whole(self, page: Tab, view: Observation, thread: str, budget: int) -> str:
        """Return the page for the model of this thread, without what it was shown already, unless it asked for all of it."""
        seen = self._seen.get(page)
        asked = seen is not None and thread in seen.again
        return view.render(budget) if asked else self.shown_to(thread).page(view, budget)

    def knows(self, page: Tab, thread: str) -> bool:
        """Return whether the model of this thread was shown all of the last observed document."""
        seen = self._seen.get(page)
        return seen is not None and thread in seen.whole

    def forget(self, page: Tab, thread: str) -> None:
        if (seen := self._seen.get(page)) is not None:
            seen.whole.discard(thread)
            seen.again.add(thread)

    async def _view(self, page: Tab) -> Observation:
        page.calm()
        self.bound(page, LOOK_SECONDS + ARRIVES_SECONDS)
        arrived = await self._arrives(page)
        seen = await page.look(marks=True)
        seen = seen if arrived else seen.doubted(LOADING)
        here, mask = origins.origin(page.url) or "", self.masking()
        return seen.masked(mask, lambda address: mask(page_text.from_here(address, here)))

    async def _arrives(self, page: Tab) -> bool:
        """Wait until the page has drawn what it asked for; return False if it still waits for some of it."""
        asked = in_flight.of(page.page.context)
        until = time.monotonic() + ARRIVES_SECONDS
        while (left := until - time.monotonic()) > 0:
            await page.rest(min(left, SETTLE_SECONDS))
            if asked.rests(page.page) or page.dialog is not None:
                break
            await asked.rest(page.page, left, lambda: page.dialog is not None)
        return not asked.waits(page.page)

    def bound(self, page: Tab, seconds: float) -> None:
        """Limit what the page's browser does next to ``seconds`` from now on."""
        for browser in (self._bench, self.scout.session):
            if browser is not None and page in cast("Tabs", browser.tabs).all():
                browser.bound(seconds)

    def _of_bench(self, page: Tab) -> bool:
        return self._bench is not None and page in cast("Tabs", self._bench.tabs).all()

    @contextlib.asynccontextmanager
    async def alone(self, where: Where) -> AsyncGenerator[None]:
        """Lock the scout's browser. The bench needs no lock: its calls run one after the other."""
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
    async def pointed_at(
        self, page: Tab, ref: str, *, anew: bool = False
    ) -> AsyncGenerator[tuple[elements_pointed.Pointed, Element]]:
        """Yield the element that a model was shown with this ref. Raises SiteError ``ref-gone`` if it has changed, and like ``look``.

        ``anew``: of one that is gone, the only one of its role and name. It is only looked at.
        """
        element = await self.element(page, ref, anew=anew)
        async with page.pointed(element.ref) as pointed:
            yield pointed, element

    async def element(self, page: Tab, ref: str, *, anew: bool = False) -> Element:
        """Return the element as it is now. The last observation stays: changes are reported relative to what a model saw last."""
        view, seen = await self._view(page), self._seen.get(page)
        was = seen.shown.get(ref) if seen is not None else None
        if not view.has(ref):
            others = [each for each in view.refs if anew and was is not None and was[1] and _known(view, each) == was]
            if len(others) != 1:
                raise self.gone(page, ref)
            return view.element(others[0])
        element = view.element(ref)
        if was is None and self._of_bench(page):
            # Bench runs report their page without this observer, and no action there uses a ref.
            return element
        if was is None:
            # Refs are new in another browser or document.
            raise self.gone(page, ref, " that you were shown")
        if was != _known(view, ref):
            raise self.gone(page, ref, " that is what you were shown: its name is another one now")
        return element

    def gone(self, page: Tab, ref: str, why: str = "") -> SiteError:
        return actions.gone(ref, why, self.searched(page))

    @override
    async def tried(self, found: Mapping[str, tuple[str, Target]]) -> list[str]:
        lines: list[str] = []
        # Nothing is said of what cannot be looked at in a moment.
        with contextlib.suppress(Error, TimeoutError, RunOpsError):
            async with asyncio.timeout(TRIED_SECONDS):
                for node, (where, target) in found.items():
                    page = self.page(cast("Where", where))
                    busy = page.dialog is not None or (where == "scout" and self.scout.busy)
                    if not busy and locators.settled(target):
                        await self._try(page, node, target, lines)
        return [page_text.fenced(self.mask("\n".join(lines)))] if lines else []

    async def _try(self, page: Tab, node: str, target: Target, lines: list[str]) -> None:
        """Add a line for a target that does not find one element now."""
        count = await locators.locator(page.page, target).count()
        if count != 1:
            if (head := f"on the page now open, {self.searched(page)}:") not in lines:
                lines.append(head)
            lines.append(f"`{node}` {target} matches {count or 'nothing'}")
            if not count and (near := await nearest.candidates(page.page, target)):
                lines[-1] += f"; nearest: {', '.join(near[:NEAREST])}"

    async def status(self, page: Tab) -> int | None:
        if page.dialog is not None:
            return None
        with contextlib.suppress(Error, TimeoutError, RunOpsError):
            async with asyncio.timeout(STATUS_SECONDS):
                return await _STATUS.on(page.page) or None
        return None

    @override
    async def close(self) -> None:
        await self.scout.close()


def _known(view: Observation, ref: str) -> tuple[str, str]:
    element = view.element(ref)
    return page_text.known_by(element.role, element.name)
