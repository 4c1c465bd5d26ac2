"""Overlays that the workflow dismisses wherever they appear, such as cookie banners. Playwright looks for them while an action waits."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from playwright.async_api import ElementHandle, Error, Locator, Page
from playwright.async_api import TimeoutError as Late

from nodes.targets import Target
from runtime.browser import playwright_errors
from runtime.browser.deadline import Deadline
from runtime.browser.elements import locators
from runtime.browser.options import Overlay
from runtime.browser.port import Dismissal

TRIES = 2  # tries to close an overlay in one document: another one may lie over it, and be closed in between
CLICK_SECONDS = 2.0  # seconds that a click on an overlay may take
GONE_SECONDS = 3.0  # seconds that an overlay may still be seen once it was clicked
LOOK_SECONDS = 0.5  # seconds between two looks for overlays while a step reads


class Overlays:
    """The overlays that a run dismisses, and what became of them."""

    def __init__(self) -> None:
        self.wanted: Sequence[Overlay] = ()
        self.happened: list[Dismissal] = []

    def taken(self) -> list[Dismissal]:
        """Return what happened since the last call."""
        happened, self.happened = self.happened, []
        return happened


class Watch:
    """Looks for the overlays in one tab."""

    def __init__(
        self,
        overlays: Overlays,
        page: Page,
        deadline: Deadline,
        settle: Callable[[Target], Awaitable[Target | None]],
        documents: Callable[[], int],
    ) -> None:
        """``settle`` settles a target on the present page; ``documents`` is the number of documents loaded into the tab."""
        self._overlays = overlays
        self._page = page
        self._deadline = deadline
        self._settle = settle
        self._documents = documents
        self._watched: Sequence[Overlay] = ()
        self._locators: list[Locator] = []
        self._failed: collections.Counter[tuple[str, int]] = collections.Counter()
        """Failed tries, by the overlay's target and the number of the document; after ``TRIES`` it is left alone there."""
        self._looked = 0.0

    async def begin(self) -> None:
        """Let Playwright look for the overlays whenever an action in the tab waits."""
        wanted = self._overlays.wanted
        if self._watched == wanted:
            return
        while self._locators:
            await self._page.remove_locator_handler(self._locators.pop())
        for overlay in wanted:
            for target in _choices(overlay.target):
                found = locators.locator(self._page, target).first
                self._locators.append(found)
                await self._page.add_locator_handler(found, self._closing(overlay), no_wait_after=True)
        # After an error the next action tries again.
        self._watched = wanted

    async def look(self, *, at_once: bool = False) -> None:
        """Dismiss what is seen now, for a step that waits without an action; at most every ``LOOK_SECONDS``, unless ``at_once``."""
        if not self._overlays.wanted or not (at_once or time.monotonic() - self._looked >= LOOK_SECONDS):
            return
        # What the page says about that, the step itself reports.
        with contextlib.suppress(Error):
            await self.begin()
            # It waits for nothing, and lets Playwright look first.
            await self._page.locator("html").wait_for(state="attached", timeout=self._deadline.milliseconds())
        self._looked = time.monotonic()

    def _closing(self, overlay: Overlay) -> Callable[[Locator], Awaitable[None]]:
        async def close(found: Locator) -> None:
            name = str(overlay.target)
            here = (name, self._documents())
            if self._failed[here] == TRIES:
                return
            problem = await self._close(overlay, found)
            if problem is not None:
                self._failed[here] += 1
            if problem is None or self._failed[here] == TRIES:
                self._overlays.happened.append(Dismissal(name, problem))

        return close

    async def _close(self, overlay: Overlay, found: Locator) -> str | None:
        """Click the overlay away; return why that failed, None if it is gone."""
        try:
            element = await found.element_handle(timeout=self._left(CLICK_SECONDS))
        except Error as error:
            return _problem(error, str(overlay.target))
        try:
            return await self._click_away(overlay, found, element)
        finally:
            # A page that is left has let go of it already.
            with contextlib.suppress(Error):
                await element.dispose()

    async def _click_away(self, overlay: Overlay, found: Locator, element: ElementHandle) -> str | None:
        try:
            clicked = found
            if overlay.click is not None:
                settled = await self._settle(overlay.click)
                if settled is None:
                    return f"there is no {overlay.click}"
                clicked = locators.locator(self._page, settled)
            await clicked.click(timeout=self._left(CLICK_SECONDS))
        except Error as error:
            return _problem(error, str(overlay.click or overlay.target))
        try:
            await element.wait_for_element_state("hidden", timeout=self._left(GONE_SECONDS))
        except Late:
            return "it was clicked, and is still there"
        except Error:
            # The click left the page.
            return None
        return None

    def _left(self, most: float) -> float:
        return min(1000 * most, self._deadline.milliseconds())


def _choices(target: Target) -> Iterator[Target]:
    """Yield the settled targets that ``target`` stands for: each alternative of ``any_of`` is looked for."""
    if target.any_of is not None:
        for each in target.any_of:
            yield from _choices(locators.alternative(target, each))
    elif target.within is not None and not locators.settled(target.within):
        for each in _choices(target.within):
            yield target.model_copy(update={"within": each})
    else:
        yield target


def _problem(error: Error, target: str) -> str:
    kind = playwright_errors.kind_of(error)
    if kind == "not actionable":
        _word, why, _element = playwright_errors.obstacle(error)
        return f"{target} cannot be clicked: {why}"
    return {
        "missing": f"there is no {target}",
        "ambiguous": f"several elements match {target}",
        "bad target": f"{target} is no valid selector",
    }.get(kind, f"the click on {target} failed")
