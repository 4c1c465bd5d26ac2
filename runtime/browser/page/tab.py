"""Tab as a node sees it: ``nodes.pages.Page`` over Playwright.

A success costs one round trip: no counting before an action, no check before a reading. Failures are diagnosed afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

from playwright.async_api import Error, Locator, Page
from typing_extensions import override

from nodes.errors import AuthorError, LogError, Phase, RunOpsError, SiteError
from nodes.pages import ElementAction
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import isolated_world, origins, playwright_errors, playwright_internals
from runtime.browser.diagnosis import page_signals
from runtime.browser.diagnosis.diagnosis import EVIDENCE_SECONDS, Diagnosis, subject_of
from runtime.browser.elements import locators, rules, text_match
from runtime.browser.page import actions, dialogs, reads, refs
from runtime.browser.page.access import Answer, PageState

_TITLE = isolated_world.Script[str]("() => Document.prototype.__lookupGetter__('title').call(document)", str)

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

BUSY_SECONDS = 2.0
"""Seconds that the old document may stay once the site has answered for the next one."""

PAUSES = (0.01, 0.02, 0.05)
"""Seconds between readings; the last one repeats."""


class OpenTabs(Protocol):
    """Tabs of the run, as a tab needs them: ``runtime.browser.page.tabs.Tabs``."""

    untold: LogError | None

    def of(self, page: Page) -> Tab | None:
        """Return the tab of the page."""
        ...

    async def replace(self, tab: Tab) -> Page:
        """Open a page for ``tab`` that replaces its own."""
        ...

    def opening(self, name: str, opener: Tab) -> AbstractAsyncContextManager[None]:
        """Give ``name`` to the tab that the action in the block opens."""
        ...

    async def tell_again(self) -> None:
        """Record changes that could not be recorded before."""
        ...


class TabState(PageState, Protocol):
    """State that the tabs of a run share, beyond the needs of their elements."""

    def fresh_page(self) -> AbstractAsyncContextManager[Tab]:
        """Open a tab in the same browser, closed at the end."""
        ...

    @property
    def tabs(self) -> OpenTabs:
        """All tabs of the run."""
        ...


class Tab(actions.Actions, reads.Reads, refs.Refs):
    """One tab. Implements ``nodes.pages.Page``."""

    _run: TabState

    def __init__(self, page: Page, run: TabState) -> None:
        self._run = run
        self._deadline = run.deadline
        self.replaced = False
        """True if the last ``goto`` replaced a tab that did not answer."""
        self.silent = -1
        """Number of documents loaded when the tab did not answer; -1 if it answered."""
        self.documents = 0
        """Documents loaded into the tab, except its first blank one."""
        self.pending_input = False
        """True if the present document holds input that no finished effect has consumed."""
        self.posted = False
        """True if the present document answers a request that a reload would send again."""
        self.status: int | None = None
        """Error status of the present document; None if there was no error, or it is unknown."""
        self.dialogs = dialogs.Dialogs(run.dialogs)
        self._take(page)

    def _take(self, page: Page) -> None:
        """Become the tab of ``page``."""
        self.page = page
        self._diagnosis = Diagnosis(page, self._run, self._settled_now)
        self._deaf = playwright_internals.on_document(page, self._loaded)
        page.on("crash", self._run.crashed)

    def overlook(self) -> None:
        """Stop counting documents loaded here as the run's."""
        self._deaf()

    def _loaded(self, document: playwright_internals.Document) -> None:
        self.pending_input = False
        self.posted = document.method not in (None, "GET", "HEAD")
        self.status = self._run.error_for(document.request) if document.request is not None else None
        if not origins.is_blank(document.url) and _no_error_page(document.url):
            self.documents += 1
            self._run.committed(document.url)

    @property
    def url(self) -> str:
        """Address of the tab's document."""
        return self.page.url

    @property
    def closed(self) -> bool:
        """True if the tab is closed."""
        return self.page.is_closed()

    @property
    def dialog(self) -> str | None:
        """Message of the open dialog."""
        return self.dialogs.message

    def calm(self) -> None:
        """Raises ``dialog-open`` if a dialog is open, and LogError if the list of tabs could not be saved."""
        if self._run.tabs.untold is not None:
            raise self._run.tabs.untold
        self.dialogs.refuse()

    async def title(self) -> str:
        """Return the title of the tab's document."""
        # Playwright's own `title` is empty for a page that crashed.
        return await self._read(None, lambda: _TITLE.on(self.page))

    async def signs(self) -> dict[str, Json]:
        """Return the page's signals: ``runtime.browser.diagnosis.page_signals``."""
        return await self._read(None, lambda: page_signals.of(self.page))

    @contextlib.asynccontextmanager
    async def beside(self, seconds: float) -> AsyncGenerator[Tab]:
        """Open a separate tab in the same browser, closed at the end; both tabs have ``seconds`` from now on."""
        self._deadline.bound(seconds)
        async with self._run.fresh_page() as fresh:
            yield fresh

    async def goto(self, url: str, *, anew: bool = False) -> str:
        """Load ``url`` until its load event, and return the final address. A tab that does not answer is replaced by a new one.

        If only the part after ``#`` differs from the present address, the document stays, except with ``anew``.
        """
        self._run.admit(url)
        self.replaced = False
        if anew and "#" in url and await self._put_in_address(url):
            return await self._travel(url, lambda timeout: self.page.reload(timeout=timeout))
        return await self._travel(url, lambda timeout: self._leave_for(url, timeout))

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
            if self._run.awaits(self.page) or self.dialogs.message is not None or self.dialogs.elsewhere is not None:
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
        if self._run.tabs.of(self.page) is not self:
            return
        self.overlook()
        self._take(await self._run.tabs.replace(self))
        self.replaced = True
        self._run.begin(self.page, driver_waits=True)

    async def _put_in_address(self, url: str) -> bool:
        """Set the address of the present document to ``url`` if only the part after ``#`` differs: a reload then loads it anew.

        The page does not notice, so none of its scripts acts on the address, and ``back`` leads to the same page as before.
        An answer to a form loses that property and loads like any address.
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
        """Load the previous document, and return its address."""
        return await self._travel(await self._entry(-1), lambda timeout: self.page.go_back(timeout=timeout))

    async def forward(self) -> str:
        """Load the document that ``back`` left, and return its address."""
        return await self._travel(await self._entry(1), lambda timeout: self.page.go_forward(timeout=timeout))

    async def reload(self, *, resend: bool) -> str:
        """Load the document again; resend a form only with ``resend``."""
        if self.posted and not resend:
            raise AuthorError(
                "reload-resends",
                "the page is the answer to a form, and to reload it would send the form again",
                fix="load its address with `goto`, or write `effect: effect` where it is meant to be sent again",
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
        raise AuthorError(
            "no-history",
            f"there is no page to go {'back' if step < 0 else 'forward'} to in this tab",
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
                if not playwright_errors.met_error_page(error):
                    raise
                # Chromium was still showing the error page of an earlier failure; after that it continues to the address.
                there = self.page.wait_for_url(_no_error_page, timeout=self._deadline.milliseconds())
                await self.dialogs.through(there)
        except Error as error:
            raise await self._diagnosis.not_loaded(error, url) from None
        finally:
            self.dialogs.leaving = False
        return self.page.url

    @contextlib.asynccontextmanager
    async def opening(self, name: str | None) -> AsyncGenerator[None]:
        """Wait for the tab that the action in the block opens, and name it. Without ``name``, wait for nothing."""
        if name is None:
            yield
            return
        await self._run.settled()
        async with self._run.tabs.opening(name, self):
            yield

    async def wait_on(self, seconds: float, late: Callable[[], RunOpsError]) -> None:
        """Wait a little for an event outside the page; raise what happened instead, or ``late()`` when the time is up."""
        if refused := self._run.refusal():
            raise refused
        self.dialogs.refuse("after")
        if self._deadline.over():
            raise late()
        await asyncio.sleep(seconds)

    def waited(self) -> float:
        """Return the seconds since the step's attempt began."""
        return self._deadline.waited()

    async def asked(self, text: str | None) -> str:
        """Wait for a dialog, and return its message."""
        try:
            async with asyncio.timeout(self._deadline.left()):
                message = await self.dialogs.wait()
        except TimeoutError:
            raise self._diagnosis.no_dialog() from None
        if text is not None and not text_match.contains(message, text):
            raise SiteError(
                "dialog-differs",
                f'the dialog says "{playwright_errors.short(message, 200)}", and not "{text}"',
                fix="correct `text`, or look why the page asks something else",
                evidence={"seen": message, "wanted": text},
            )
        return message

    async def answer(self, *, accept: bool, text: str | None) -> None:
        """Answer the open dialog."""
        self._run.begin(self.page)
        # The effects of the answer may take longer than the deadline; the answer itself is given.
        try:
            async with asyncio.timeout(self._deadline.left()):
                await self.dialogs.answer(accept=accept, text=text)
        except TimeoutError:
            pass
        except Error as error:
            raise await self._diagnosis.failed(error, None, "after") from None
        await self._run.tabs.tell_again()

    async def locate(self, target: Target) -> Target:
        """Return the target with every ``any_of`` replaced by the first one that matches."""
        return target if locators.settled(target) else await self._settle(target)

    async def _settle(self, target: Target) -> Target:
        """Wait until the target can be settled."""

        async def attempt() -> Target | None:
            return await self._settled_now(target)

        settled = await self._until(attempt)
        if settled is None:
            raise await self._diagnosis.missing(target)
        return settled

    @override
    async def _settled_now(self, target: Target) -> Target | None:
        """Return the target as settled on the present page; None if no alternative matches."""
        if locators.settled(target):
            return target
        if target.any_of is not None:
            for choice in target.any_of:
                settled = await self._settled_now(locators.alternative(target, choice))
                if settled is not None and await self._count(settled):
                    return settled
            return None
        if target.within is not None and not locators.settled(target.within):
            within = await self._settled_now(target.within)
            return within and await self._settled_now(target.model_copy(update={"within": within}))
        assert target.nth is not None
        everything = target.model_copy(update={"nth": None})
        nth = await self._count(everything) + target.nth
        return target.model_copy(update={"nth": nth}) if nth >= 0 else None

    async def _count(self, target: Target) -> int:
        return await locators.locator(self.page, target).count()

    @override
    async def _found(self, target: Target) -> tuple[Target, Locator]:
        if not locators.settled(target):
            target = await self._settle(target)
        return target, locators.locator(self.page, target)

    async def ready(self, target: Target, action: ElementAction) -> None:
        """Wait until exactly one element matches and could take the action, without performing it."""
        target, found = await self._found(target)
        # A dry run would also detect a cover or a movement, but costs two frames; the action itself detects those before it begins and
        # reports them.
        try:
            async with self._answering():
                # A file field is often hidden by a nicer element.
                shown = "attached" if action == "upload" else "visible"
                await found.wait_for(state=shown, timeout=self._deadline.milliseconds())
                # The last check may exceed the deadline: its answer counts.
                while not await found.is_enabled(timeout=EVIDENCE_SECONDS * 1000):
                    if self._deadline.over():
                        raise self._diagnosis.not_actionable(target, "disabled", "it is disabled", None, "before")
                    await asyncio.sleep(PAUSES[-1])
        except Error as error:
            raise await self._diagnosis.failed(error, target, "before") from None

    async def click(self, target: Target) -> None:
        """Click the element."""
        await self._see_to_typed()
        await self._do(target, lambda found, timeout: found.click(timeout=timeout), driver_waits=True)

    async def dblclick(self, target: Target) -> None:
        """Double-click the element."""
        await self._see_to_typed()
        await self._do(target, lambda found, timeout: found.dblclick(timeout=timeout))

    @override
    async def _do(
        self,
        target: Target,
        action: Callable[[Locator, float], Coroutine[Any, Any, Answer]],
        *,
        sends: bool = False,
        driver_waits: bool = False,
    ) -> Answer | None:
        """Perform an action. From its start the document counts as holding input: a failed action may have typed something."""
        target, found = await self._found(target)
        self.dialogs.refuse()
        if self.dialogs.elsewhere is not None:
            # This fails if that dialog also blocks this tab.
            await self.title()
        self._run.begin(self.page, driver_waits=driver_waits)
        self.pending_input = True
        try:
            async with self._deadline.limit():
                return await self.dialogs.through(self._action(target, found, action, sends=sends))
        except TimeoutError:
            raise self._diagnosis.silent("after") from None

    async def _action(
        self,
        target: Target,
        found: Locator,
        action: Callable[[Locator, float], Coroutine[Any, Any, Answer]],
        *,
        sends: bool,
    ) -> Answer | None:
        try:
            return await action(found, self._deadline.milliseconds())
        except Error as error:
            if not sends and playwright_errors.only_waited(error):
                raise await self._diagnosis.failed(error, target, "before") from None
            if playwright_errors.has_log(error) and await self._diagnosis.closed_alone(error):
                return None
            raise await self._diagnosis.failed(error, target, "after") from None

    @override
    async def _attached(self, target: Target) -> Target:
        target, found = await self._found(target)
        try:
            async with self._answering():
                await found.wait_for(state="attached", timeout=self._deadline.milliseconds())
        except Error as error:
            raise await self._diagnosis.failed(error, target, "before") from None
        return target

    @override
    @contextlib.asynccontextmanager
    async def _answering(self, seconds: float | None = None, phase: Phase = "before") -> AsyncGenerator[None]:
        self.dialogs.refuse()
        if self.dialogs.elsewhere is not None:
            seconds = min(dialogs.ELSEWHERE_SECONDS, self._deadline.left() if seconds is None else seconds)
        try:
            async with asyncio.timeout(seconds) if seconds is not None else self._deadline.limit() as limit:
                with self.dialogs.cutting(limit):
                    yield
        except TimeoutError:
            self.dialogs.refuse(phase)
            if (elsewhere := self.dialogs.elsewhere) is not None:
                elsewhere.refuse(phase)
            raise self._diagnosis.silent(phase) from None

    async def count(self, target: Target) -> int:
        """Return the number of elements that match now."""

        async def look() -> int:
            await self._parsed()
            settled = await self._settled_now(target)
            return 0 if settled is None else await self._count(settled)

        count = await self._read(target, look)
        if not count:
            await self._diagnosis.demand_answer(target)
        return count

    @override
    async def _parsed(self) -> None:
        """Wait until the document is complete: half a table does not tell the number of its rows."""
        await self.page.wait_for_load_state("domcontentloaded", timeout=self._deadline.milliseconds())

    async def wait_for(self, rule: Rule) -> None:
        """Wait until the rule holds."""
        if rule.kind == "url" and self.dialog is not None:
            # An address can be read while a dialog is open, and does not change meanwhile.
            if not locators.address_matches(rule.url or "", self.url):
                self.dialogs.refuse("after")
            return
        last = rules.RuleCheck(False, None, None)

        async def look() -> bool | None:
            nonlocal last
            last = await self._look(rule)
            return last.holds or None

        # A condition over values does not change by waiting.
        held = await (look() if rule.kind == "expr" else self._until(look, subject_of(rule)))
        if not held:
            raise await self._diagnosis.rule_failed(rule, last)

    async def holds(self, rule: Rule) -> bool:
        """Return True if the rule holds now; False if its target is missing or ambiguous."""
        return (await self._read(subject_of(rule), lambda: self._look(rule))).holds

    async def _look(self, rule: Rule) -> rules.RuleCheck:
        subject = subject_of(rule)
        if rule.kind == "url" and self.closed:
            # A closed tab keeps its address, and would be checked until the time is up. A request to the tab reveals that it is gone.
            await self.page.title()
        for_nothing = rule.kind == "hidden" or (rule.kind == "count" and rule.count == 0)
        settled = subject if subject is None or locators.settled(subject) else await self._settled_now(subject)
        if subject is not None and settled is None:
            seen = rules.RuleCheck(for_nothing, None, None, 0)
        else:
            seen = await rules.look(self.page, rule, settled)
        if seen.holds and for_nothing and (status := await self._diagnosis.broken()) is not None:
            # A missing element on a server error page proves nothing.
            return rules.RuleCheck(False, seen.wanted, f"an error of the server ({status})")
        return seen

    @override
    async def _until(self, look: Callable[[], Awaitable[Answer | None]], target: Target | None = None) -> Answer | None:
        """Read until there is an answer; None when the time is up."""
        pauses = iter(PAUSES)
        while True:
            answer = await self._read(target, look)
            if answer is not None or self._deadline.over():
                return answer
            if refused := self._run.refusal():
                raise refused
            await asyncio.sleep(min(next(pauses, PAUSES[-1]), self._deadline.left()))

    @override
    async def _read(
        self, target: Target | None, look: Callable[[], Awaitable[Answer]], *, waits: bool = False
    ) -> Answer:
        """Read once, again if a navigation removed the document meanwhile. Raises ``timeout`` if the page does not answer.

        ``waits``: the reading itself waits until the deadline, and needs time to report its failure.
        """
        while True:
            try:
                async with self._answering(None if waits else max(self._deadline.left(), EVIDENCE_SECONDS)):
                    return await look()
            except Error as error:
                if playwright_errors.kind_of(error) != "navigated" or self._deadline.over():
                    raise await self._diagnosis.failed(error, target, "before") from None
            await asyncio.sleep(PAUSES[0])


def _no_error_page(url: str) -> bool:
    return not url.startswith("chrome-error:")
