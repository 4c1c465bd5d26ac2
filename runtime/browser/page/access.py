"""Common base of all actions and readings of a tab: finds the element, keeps the deadline, reports failures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, Literal, TypeVar

from playwright.async_api import Error, Locator, Page

from nodes.errors import Phase, RunOpsError, SiteError
from nodes.targets import Target
from runtime.browser import dialogs, in_flight, isolated_world, playwright_errors
from runtime.browser.diagnosis.diagnosis import EVIDENCE_SECONDS, Diagnosis
from runtime.browser.elements import locators
from runtime.browser.overlays import Watch
from runtime.browser.page import changes
from runtime.browser.run_pages import RunPages

Answer = TypeVar("Answer")

PAUSES = (0.01, 0.02, 0.05)  # seconds between readings; the last one repeats

_TITLE = isolated_world.Script[str]("() => Document.prototype.__lookupGetter__('title').call(document)", str)


_WINDOW = isolated_world.Script[tuple[float, float]]("() => [innerWidth, innerHeight]", tuple[float, float])

_REST = isolated_world.Script[bool](
    """({quiet, most, soon}) => {
  const began = performance.now();
"""
    + changes.OBSERVED
    + """
  // An application shows its next page when the last one has faded: a change that is to come soon. What turns for ever is none.
  const moves = () => document.getAnimations().some(({playState, currentTime, effect}) => {
    const left = effect ? effect.getComputedTiming().endTime - currentTime : 0;
    return playState === 'running' && left > 0 && left <= soon;
  });
  const rests = () => {
    if (moves()) rest.changed = performance.now();
    return document.readyState === 'complete' && performance.now() - rest.changed >= quiet;
  };
  const answer = (value) => {
    rest.gone = [];
    rest.since = performance.now();
    return value;
  };
  if (rests() || !most) return answer(rests());
  return new Promise((done) => {
    const look = () => {
      if (rests()) done(answer(true));
      else if (performance.now() - began > most) done(answer(false));
      else setTimeout(look, 20);
    };
    look();
  });
}""",
    bool,
)

QUIET_SECONDS = 0.15  # seconds without a change of the document until a page rests
FADE_SECONDS = 1.0  # seconds in which what moves on a page is to end, so that it is waited for
SETTLE_SECONDS = 2.0  # seconds that a page may take to rest


class ElementAccess:
    """A success costs one round trip: no counting before an action, no check before a reading. Failures are diagnosed afterwards."""

    def __init__(self, page: Page, run: RunPages) -> None:
        self._run = run
        self._deadline = run.deadline
        self.documents: int = 0  # documents loaded into the tab, except its first blank one
        self.pending_input = False  # true if the present document holds input that no finished effect has consumed
        self.dialogs = dialogs.Dialogs(run.dialogs)
        self._changes = changes.Changes(run, self.dialogs)
        self._secret_documents = frozenset({0})
        """Numbers of the documents that a secret may have been typed into. For 0, the document that was open before us, it is unknown."""
        self._take(page)

    def _take(self, page: Page) -> None:
        self.page = page
        self._changes.watch(page)
        self.diagnosis = Diagnosis(page, self._run, self._settled_now)
        self._overlays = Watch(self._run.overlays, page, self._deadline, self._settled_now, lambda: self.documents)

    @property
    def _secret_typed(self) -> bool:
        """True if a secret may have been typed into the present document."""
        return self.documents in self._secret_documents

    async def title(self) -> str:
        # Playwright's own `title` is empty for a page that crashed.
        return await self._read(None, lambda: _TITLE.on(self.page))

    async def window(self) -> tuple[float, float]:
        """Return width and height of the part of the page in view, in CSS pixels."""
        return await self._read(None, lambda: _WINDOW.on(self.page))

    async def rest(self, most: float = SETTLE_SECONDS) -> bool:
        """Wait until the document is loaded and has not changed for ``QUIET_SECONDS``, at the most ``most`` seconds; return whether it rests."""
        wanted = {
            "quiet": 1000 * QUIET_SECONDS,
            "soon": 1000 * FADE_SECONDS,
            "most": 1000 * min(most, self._deadline.left()),
        }
        return await self._read(None, lambda: _REST.on(self.page, wanted, milliseconds=1000 * most + 5000))

    async def drawn(self) -> None:
        answers = in_flight.of(self.page.context)
        seconds = min(in_flight.LONGEST, self._deadline.left())
        await answers.rest(self.page, seconds, lambda: self.dialogs.message is not None)
        if answers.waits(self.page):
            fix = "read it once the site has answered, or give the step a larger `timeout`"
            raise self.diagnosis.page_error("timeout", "the page still waits for an answer of the site", fix, "before")
        await self.rest()

    async def unchanged(self) -> bool:
        in_time = self._deadline.left() > changes.WAIT_SECONDS + changes.ANSWER_SECONDS
        if not in_time or self.dialogs.message is not None or self.dialogs.elsewhere is not None:
            return False
        return await self._changes.none()

    async def locate(self, target: Target) -> Target:
        if locators.settled(target):
            return target
        settled = await self._until(lambda: self._settled_now(target))
        if settled is None:
            raise await self.diagnosis.missing(target)
        return settled

    async def _settled_now(self, target: Target) -> Target | None:
        """Return the target as settled on the present page; None if no alternative matches."""
        if locators.settled(target):
            return target
        if target.any_of is not None:
            unseen: Target | None = None
            for choice in target.any_of:
                settled = await self._settled_now(locators.alternative(target, choice))
                if settled is None or not await self._count(settled):
                    continue
                if await locators.locator(self.page, settled).filter(visible=True).count():
                    return settled
                unseen = unseen or settled
            return unseen
        if target.within is not None and not locators.settled(target.within):
            within = await self._settled_now(target.within)
            return within and await self._settled_now(target.model_copy(update={"within": within}))
        assert target.nth is not None
        everything = target.model_copy(update={"nth": None})
        nth = await self._count(everything) + target.nth
        return target.model_copy(update={"nth": nth}) if nth >= 0 else None

    async def _count(self, target: Target) -> int:
        return await locators.locator(self.page, target).count()

    async def _found(self, target: Target) -> tuple[Target, Locator]:
        """Settle the target and return its locator. Raises ``target-not-found`` if it cannot be settled in time."""
        async with self._asking(target):
            await self._overlays.begin()
        target = await self.locate(target)
        return target, locators.locator(self.page, target)

    async def _attached(self, target: Target) -> Target:
        """Wait until exactly one element matches, without sending anything to the page; return the settled target."""
        target, found = await self._found(target)
        async with self._asking(target):
            await found.wait_for(state="attached", timeout=self._deadline.milliseconds())
        return target

    async def _do(
        self,
        target: Target,
        action: Callable[[Locator, float], Coroutine[Any, Any, Answer]],
        *,
        sends: bool = False,
        driver_waits: bool = False,
        watch: Literal["pointer", "keys"] | None = None,
    ) -> Answer | None:
        """Perform an action on the one matching element. It receives the locator and the milliseconds left.

        An error has the phase ``before`` only if Playwright's call log proves that nothing was sent. With ``sends`` the
        action sends input at once, so every error has the phase ``after``; the caller makes sure of the element before.
        ``driver_waits``: Playwright waits for the document that the action requests.
        ``watch``: ``unchanged`` tells afterwards if the action changed anything.

        Returns None if the action opened a dialog or closed its own tab: its result is then unknown.
        """
        target, found = await self._found(target)
        self.dialogs.refuse()
        if self.dialogs.elsewhere is not None:
            # This fails if that dialog also blocks this tab.
            await self.title()
        if sends:
            # Keys go to what has the focus, without a look for overlays.
            await self._overlays.look(at_once=True)
        if watch is not None:
            await self._changes.begin(self.page, keys=watch == "keys")
        self._run.begin(self.page, driver_waits=driver_waits)
        # A failed action may have typed something.
        self.pending_input = True

        met: list[Error] = []

        async def failed(error: Error) -> RunOpsError:
            waited = not sends and playwright_errors.only_waited(error)
            return await self.diagnosis.failed(error, target, "before" if waited else "after")

        async def act() -> Answer | None:
            try:
                return await action(found, self._deadline.milliseconds())
            except Error as error:
                met.append(error)
                waited = not sends and playwright_errors.only_waited(error)
                if not waited and playwright_errors.LOG in error.message and await self.diagnosis.closed_alone(error):
                    return None
                raise await failed(error) from None

        try:
            async with self._deadline.limit():
                return await self.dialogs.through(act())
        except TimeoutError:
            # The error may have come at the last moment, so that it could not be looked into in time.
            raise (await failed(met[0]) if met else self.diagnosis.silent("after")) from None

    @contextlib.asynccontextmanager
    async def _asking(self, target: Target | None, phase: Phase = "before") -> AsyncGenerator[None]:
        """Limit the page's answers within the block to the deadline, and report an error of Playwright in ``phase``."""
        try:
            async with self._answering(phase=phase):
                yield
        except Error as error:
            raise await self.diagnosis.failed(error, target, phase) from None

    @contextlib.asynccontextmanager
    async def _answering(self, seconds: float | None = None, phase: Phase = "before") -> AsyncGenerator[None]:
        """Limit the page's answers within the block to the step's deadline, or to ``seconds``.

        Raises ``timeout`` if they take longer, and ``dialog-open``, at once, if a dialog prevents them; both have the phase
        ``phase``.
        """
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
            raise self.diagnosis.silent(phase) from None

    async def _parsed(self) -> None:
        """Wait until the document is parsed: half a table does not tell the number of its rows."""
        await self.page.wait_for_load_state("domcontentloaded", timeout=self._deadline.milliseconds())

    async def _until(self, look: Callable[[], Awaitable[Answer | None]], target: Target | None = None) -> Answer | None:
        """Read until there is an answer; None when the time is up."""
        pauses, answered = iter(PAUSES), False
        while True:
            left = self._deadline.left()
            try:
                answer = await self._read(target, look)
            except SiteError as error:
                # A page that has answered until the end is only slow: what it did not show is the reason, and not its silence.
                if error.code == "timeout" and answered and left < EVIDENCE_SECONDS:
                    return None
                raise
            answered = True
            if answer is not None or self._deadline.over():
                return answer
            if refused := self._run.refusal():
                raise refused
            await self._overlays.look()
            await asyncio.sleep(min(next(pauses, PAUSES[-1]), self._deadline.left()))

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
                    raise await self.diagnosis.failed(error, target, "before") from None
            await asyncio.sleep(PAUSES[0])
