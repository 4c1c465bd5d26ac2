"""A tab as a node sees it (``nodes.pages.Page`` over Playwright), and the list of all tabs of a run (``nodes.pages.Tabs``)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Literal

from playwright.async_api import BrowserContext, Dialog, Error, Page
from typing_extensions import override

from nodes.errors import AuthorError, LogError, SiteError
from nodes.pages import ElementAction
from nodes.tabs import MAIN
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import in_flight, isolated_world, origins, playwright_errors, playwright_internals
from runtime.browser.diagnosis.diagnosis import EVIDENCE_SECONDS
from runtime.browser.elements import text_match
from runtime.browser.page import actions, inspection, numbered, reads
from runtime.browser.page.access import PAUSES
from runtime.browser.run_pages import RunPages

_HERE = isolated_world.Script[bool]("() => true", bool)

_PUT_IN_ADDRESS = isolated_world.Script[bool](
    """url => {
  const [to, at] = [new URL(url), new URL(location.href)];
  if (to.href.split('#')[0] !== at.href.split('#')[0]) return false;
  history[to.href === at.href ? 'replaceState' : 'pushState'](null, '', to.href);
  return location.href === to.href;
}""",
    bool,
)

ANSWER_SECONDS = 3.0
"""Seconds that a page may take to answer before it is left. One that computes without end does not answer."""

BUSY_SECONDS = 2.0  # seconds that the old document may stay once the site has answered for the next one
LOOK_SECONDS = 0.02  # seconds between two checks for an opening tab
CLOSE_SECONDS = 5.0  # seconds that a tab may take to close


class Tab(actions.Actions, reads.Reads, numbered.Numbered, inspection.Inspection):
    def __init__(self, page: Page, run: RunPages, tabs: Tabs) -> None:
        self._tabs = tabs
        self.replaced = False  # true if the last `goto` replaced a tab that did not answer
        self.silent = -1  # number of documents loaded when the tab did not answer; -1 if it answered
        self.posted = False  # true if the present document answers a request that may not be sent again
        self._once = False  # true if the next document is that of an address that acts
        self.status: int | None = None
        """Error status of the present document; None if there was no error, or it is unknown."""
        super().__init__(page, run)

    @override
    def _take(self, page: Page) -> None:
        super()._take(page)
        self._stop_counting = playwright_internals.on_document(page, self._loaded)
        page.on("crash", self._run.answers.crashed)

    def overlook(self) -> None:
        """Stop counting documents loaded here as the run's."""
        self._stop_counting()

    async def leave(self) -> None:
        """Take back what the run set up in the tab, for the one who lent it: no overlay is closed, and no dialog stays open."""
        if self.dialogs.message is not None:
            await self.dialogs.answer(accept=False, text=None)
        self._run.dismiss(())
        await self._overlays.begin()

    def _loaded(self, document: playwright_internals.Document) -> None:
        self.pending_input = False
        self._changes.new_document()
        acts = self._once and not document.redirected
        self.posted, self._once = acts or document.method not in (None, "GET", "HEAD"), False
        self.status = self._run.error_for(document.request) if document.request is not None else None
        self.diagnosis.asked_credentials = document.request is not None and self._run.asked_credentials(
            document.request
        )
        if not (origins.is_blank(document.url) or origins.is_error_page(document.url)):
            self.documents += 1
            self._run.committed(document.url)

    @property
    def url(self) -> str:
        return self.page.url

    @property
    def closed(self) -> bool:
        return self.page.is_closed()

    @property
    def dialog(self) -> str | None:
        return self.dialogs.message

    def calm(self) -> None:
        """Raise ``dialog-open`` if a dialog is open, and LogError if the list of tabs could not be saved."""
        if self._tabs.unsaved is not None:
            raise self._tabs.unsaved
        self.dialogs.refuse()

    async def signs(self) -> dict[str, Json]:
        return await self._read(None, self.diagnosis.signs)

    @contextlib.asynccontextmanager
    async def beside(self, seconds: float) -> AsyncGenerator[Tab]:
        """Open a separate tab in the same browser; both tabs have ``seconds`` from now on."""
        self._deadline.bound(seconds)
        async with self._tabs.fresh_page() as fresh:
            yield fresh

    async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
        self._run.admit(url)
        self.replaced = False
        if anew and "#" in url and await self._put_in_address(url):
            return await self._travel(url, lambda timeout: self.page.reload(timeout=timeout))
        return await self._travel(url, lambda timeout: self._load_once(url) if once else self._leave_for(url, timeout))

    async def _load_once(self, url: str) -> None:
        """Load ``url`` with one request: a tab that does not answer is replaced before it."""
        if await self.is_busy(min(BUSY_SECONDS, self._deadline.left() / 3)):
            await self._replace()
        self._once = True
        await self.page.goto(url, timeout=self._deadline.milliseconds())

    async def _leave_for(self, url: str, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
        loading = asyncio.ensure_future(self.page.goto(url, timeout=timeout))
        try:
            if await self._stays(loading):
                loading.cancel()
                await self._replace()
                await self.page.goto(url, timeout=self._deadline.milliseconds())
            else:
                await loading
        finally:
            loading.cancel()

    async def _stays(self, loading: asyncio.Future[Any]) -> bool:
        """Return True if the old document stays although the site was asked, owes no answer, and no dialog is open."""
        span, before = min(BUSY_SECONDS, self._deadline.left() / 3), self.documents
        since = time.monotonic()
        while time.monotonic() - since < span:
            await asyncio.wait([loading], timeout=PAUSES[-1])
            if loading.done() or self.documents != before:
                return False
            if (
                self._run.answers.awaits(self.page)
                or self.dialogs.message is not None
                or self.dialogs.elsewhere is not None
            ):
                since = time.monotonic()
        return True

    async def is_busy(self, seconds: float) -> bool:
        """Return True if the document stays silent for ``seconds`` without a dialog as the cause."""
        try:
            async with asyncio.timeout(seconds):
                await _HERE.on(self.page)
        except TimeoutError:
            return self.dialogs.message is None and self.dialogs.elsewhere is None
        except (Error, SiteError):
            pass
        return False

    async def _replace(self) -> None:
        """Continue in a new tab of the same browser; close the old one."""
        if self._tabs.of(self.page) is not self:
            return
        self.overlook()
        self._take(await self._tabs.replace(self))
        self.replaced = True
        self._run.begin(self.page, driver_waits=True)

    async def _put_in_address(self, url: str) -> bool:
        """Set the address of the present document to ``url``, unnoticed by its scripts, if only the part after ``#`` differs.

        A reload then loads it anew; an answer to a form loads like any address.
        """
        self.dialogs.refuse()
        if origins.origin(url) != origins.origin(self.page.url):
            return False
        try:
            return await _PUT_IN_ADDRESS.on(
                self.page, url, milliseconds=1000 * min(self._deadline.left(), ANSWER_SECONDS)
            )
        except (Error, SiteError):
            return False

    async def back(self) -> str:
        if self._run.engine != "chromium":
            return await self._step("back", self.page.go_back, self.page.go_forward)
        return await self._travel(await self._entry(-1), lambda timeout: self.page.go_back(timeout=timeout))

    async def forward(self) -> str:
        if self._run.engine != "chromium":
            return await self._step("forward", self.page.go_forward, self.page.go_back)
        return await self._travel(await self._entry(1), lambda timeout: self.page.go_forward(timeout=timeout))

    async def _step(self, way: str, there: Callable[..., Any], again: Callable[..., Any]) -> str:
        """Go one step in the history of a browser that does not tell it; only the arrival shows if there was a page."""
        before = self.page.url
        await self._travel(before, lambda timeout: there(timeout=timeout))
        if self.page.url == before:
            raise self._no_history(way)
        if origins.is_blank(self.page.url):
            # The blank page at the start of a tab does not count.
            await self._travel(before, lambda timeout: again(timeout=timeout))
            raise self._no_history(way)
        return self.page.url

    async def reload(self, *, resend: bool) -> str:
        if self.posted and not resend:
            raise AuthorError(
                "reload-resends",
                "the page is the answer to a form, or to an address that acts, and to reload it would send that again",
                fix="load an address with `goto`, or write `effect: effect` where it is meant to be sent again",
                evidence={"page": self.page.url},
            )
        return await self._travel(self.page.url, lambda timeout: self.page.reload(timeout=timeout))

    async def _entry(self, step: Literal[-1, 1]) -> str:
        """Return the address before or after the present one in the history of the tab."""
        self.dialogs.refuse()
        session = await self.page.context.new_cdp_session(self.page)
        try:
            history: dict[str, Any] = await session.send("Page.getNavigationHistory")  # pyright: ignore[reportUnknownMemberType]
        finally:
            await session.detach()
        place = history["currentIndex"] + step
        entries = history["entries"]
        # The blank page at the start of a tab does not count.
        if 0 <= place < len(entries) and (place > 0 or entries[0]["url"] != "about:blank"):
            return str(entries[place]["url"])
        raise self._no_history("back" if step < 0 else "forward")

    def _no_history(self, way: str) -> AuthorError:
        return AuthorError(
            "no-history",
            f"there is no page to go {way} to in this tab",
            fix="load the page with `goto`",
            evidence={"page": self.page.url},
        )

    async def _travel(self, url: str, load: Callable[[float], Coroutine[Any, Any, object]]) -> str:
        """Load a document until its load event; return the final address. A dialog on the way ends the wait."""
        self.dialogs.refuse()
        self._run.begin(self.page, driver_waits=True)
        self.dialogs.leaving = True
        try:
            try:
                await self.dialogs.through(load(self._deadline.milliseconds()))
            except Error as error:
                if not playwright_errors.says(error, playwright_errors.ERROR_PAGE):
                    raise
                # Chromium was still showing the error page of an earlier failure; after that it continues to the address.
                there = self.page.wait_for_url(
                    lambda shown: not origins.is_error_page(shown), timeout=self._deadline.milliseconds()
                )
                await self.dialogs.through(there)
        except Error as error:
            raise await self.diagnosis.not_loaded(error, url) from None
        finally:
            self.dialogs.leaving = False
        return self.page.url

    @contextlib.asynccontextmanager
    async def opening(self, name: str | None) -> AsyncGenerator[None]:
        if name is None:
            yield
            return
        await self._run.settled()
        async with self._tabs.opening(name, self):
            yield

    async def asked(self, text: str | None) -> str:
        try:
            async with asyncio.timeout(self._deadline.left()):
                message = await self.dialogs.wait()
        except TimeoutError:
            raise self.diagnosis.no_dialog() from None
        if text is not None and not text_match.contains(message, text):
            raise SiteError(
                "dialog-differs",
                f'the dialog says "{playwright_errors.short(message, 200)}", and not "{text}"',
                fix="correct `text`, or look why the page asks something else",
                evidence={"seen": message, "wanted": text},
            )
        return message

    async def answer(self, *, accept: bool, text: str | None) -> None:
        self._run.begin(self.page)
        # The effects of the answer may take longer than the deadline; the answer itself is given.
        try:
            async with asyncio.timeout(self._deadline.left()):
                await self.dialogs.answer(accept=accept, text=text)
        except TimeoutError:
            pass
        except Error as error:
            raise await self.diagnosis.failed(error, None, "after") from None
        await self._tabs.record_again()

    async def ready(self, target: Target, action: ElementAction) -> None:
        target, found = await self._found(target)
        # A dry run would also detect a cover or a movement, but costs two frames; the action itself detects those before it begins and
        # reports them.
        async with self._asking(target):
            # A file field is often hidden by a nicer element.
            shown = "attached" if action == "upload" else "visible"
            await found.wait_for(state=shown, timeout=self._deadline.milliseconds())
            # The last check may exceed the deadline: its answer counts.
            while not await found.is_enabled(timeout=EVIDENCE_SECONDS * 1000):
                if self._deadline.over():
                    raise self.diagnosis.not_actionable(target, "disabled", "it is disabled", None, "before")
                await asyncio.sleep(PAUSES[-1])


class Tabs:
    def __init__(self, context: BrowserContext, run: RunPages) -> None:
        self.changed: Callable[[], Awaitable[bool]] | None = None
        """Awaited when a name or the current tab changes; returns False if some tab could not be recorded."""
        self._recorded = True
        self.unsaved: LogError | None = None  # error that prevented a change from being saved outside a step
        self.closed_documents = 0  # documents loaded into tabs that are closed by now
        self._context = context
        self._run = run
        self._tabs: dict[Page, Tab] = {}
        self._fresh: dict[Page, Tab] = {}  # tabs that do not belong to the run: `confirm` uses them
        self._names: dict[str, Page] = {}
        self._openers: dict[Page, Page] = {}
        self._arrivals: list[list[Page]] = []
        self._current: Tab | None = None
        self._tasks: set[asyncio.Future[None]] = set()
        for page in context.pages:
            self.add(page)
        context.on("page", self._opened)
        context.on("dialog", self._dialog_opened)

    def _opened(self, page: Page) -> None:
        tab = self.add(page)
        # Playwright reports a tab that opens by itself only after its document has loaded.
        if not origins.is_blank(page.url):
            tab.documents = 1
            self._run.committed(page.url)

    def _dialog_opened(self, dialog: Dialog) -> None:
        if dialog.page is not None:
            (self._fresh.get(dialog.page) or self.add(dialog.page)).dialogs.appeared(dialog)

    @contextlib.asynccontextmanager
    async def fresh_page(self) -> AsyncGenerator[Tab]:
        """Open a separate tab, closed at the end. Raises SiteError if the browser can open no more tabs."""
        try:
            page = await self._context.new_page()
        except Error as error:
            raise playwright_errors.gone(error, "about:blank", "before") from None
        self.forget(page)
        in_flight.of(self._context)  # it knows what the page asks for from now on
        tab = self._fresh[page] = Tab(page, self._run, self)
        try:
            yield tab
        finally:
            await shut(page)
            del self._fresh[page]

    def is_separate(self, page: Page) -> bool:
        """Return whether the page is that of a ``fresh_page``."""
        return page in self._fresh

    def add(self, page: Page) -> Tab:
        tab = self._tabs.get(page)
        if tab is None:
            tab = self._tabs[page] = Tab(page, self._run, self)
            page.once("close", self._closed)
            page.on("popup", lambda popup: self._openers.update({popup: page}))
            for arrived in self._arrivals:
                arrived.append(page)
        return tab

    def forget(self, page: Page) -> None:
        """Take a page out of the run's tabs, because RunOps opened it for itself, as for ``confirm``."""
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
            self._spawn(self._record_beside())

    @property
    def current(self) -> Tab:
        assert self._current is not None, "a session begins with a tab"
        return self._current

    @property
    def named(self) -> Mapping[str, Page]:
        return self._names

    def all(self) -> list[Tab]:
        return list(self._tabs.values())

    def of(self, page: Page) -> Tab | None:
        return self._tabs.get(page)

    def get(self, name: str | None) -> Tab:
        if name is None:
            return self.current
        if name not in self._names:
            raise self.lacking(f"the tab `{name}` is not open")
        return self._tabs[self._names[name]]

    def lacking(self, message: str) -> SiteError:
        names = {page: name for name, page in self._names.items()}
        shown: list[Json] = [{"name": names.get(page), "url": page.url} for page in self._tabs]
        return SiteError(
            "tab-closed",
            message,
            fix="look at which step closed it, or never opened it; `open_tab` opens one",
            evidence={"open": shown},
        )

    async def resume(self, names: Mapping[str, Page], current: Page) -> None:
        self.begin(names, current)
        await self._record()

    def begin(self, names: Mapping[str, Page], current: Page) -> None:
        self._names = dict(names)
        self._current = self._tabs[current]

    async def open(self, name: str) -> None:
        if name not in self._names:
            try:
                page = await self._context.new_page()
            except Error as error:
                raise playwright_errors.gone(error, self.current.url, "after") from None
            self.add(page)
            self._names[name] = page
        self._current = self._tabs[self._names[name]]
        await self._record()

    def name_new(self) -> list[str]:
        """Give each open tab without a name one: ``tab2``, ``tab3`` …. Return the new names, the oldest tab first."""
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
        self._current = self.get(name)
        await self._record()

    async def close(self, name: str | None) -> None:
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
        await self._record()

    async def replace(self, tab: Tab) -> Page:
        """Replace the page of ``tab`` by a new one, and close the old one. Name, opener and counts stay."""
        old = tab.page
        new = await self._context.new_page()
        self.add(new).overlook()
        self.forget(new)
        self._tabs = {new if page is old else page: each for page, each in self._tabs.items()}
        self._names = {name: new if page is old else page for name, page in self._names.items()}
        self._openers = {
            new if page is old else page: new if opener is old else opener for page, opener in self._openers.items()
        }
        self._spawn(shut(old))
        await self._record()
        return new

    @contextlib.asynccontextmanager
    async def opening(self, name: str, opener: Tab) -> AsyncGenerator[None]:
        arrived: list[Page] = []
        self._arrivals.append(arrived)
        try:
            yield
            while (page := self._first(arrived, opener.page)) is None:
                if refused := self._run.refusal():
                    raise refused
                opener.dialogs.refuse("after")
                if self._run.deadline.over():
                    raise opener.diagnosis.page_error(
                        "no-tab-opened",
                        f"no tab opened that could be called `{name}` (waited {self._run.deadline.waited():g} s)",
                        "look whether the step opens a tab at all; if it does so late, give it a larger `timeout`",
                        "after",
                    )
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._arrivals.remove(arrived)
        self._names.pop(name, None)
        if page in self._tabs:
            self._names[name] = page
        await self._record()

    def _first(self, arrived: list[Page], opener: Page) -> Page | None:
        """Return the tab that the action opened. A tab whose opener is already closed may also be the one."""
        return next((page for page in arrived if self._openers.get(page, opener) is opener), None)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _record(self) -> None:
        if self.changed is not None:
            self._recorded = await self.changed()
            self.unsaved = None

    async def _record_beside(self) -> None:
        """Record a change outside a step; if it cannot be saved, the next step on a page reports it."""
        try:
            await self._record()
        except LogError as error:
            self.unsaved = error

    async def record_again(self) -> None:
        """Record changes that could not be recorded before."""
        if not self._recorded:
            await self._record()


async def shut(page: Page) -> None:
    """Close a page. A page that does not answer cannot be closed; it ends with the browser."""
    with contextlib.suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await page.close()
