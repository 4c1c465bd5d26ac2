"""Elements by the refs of the last observation: their facts, targets and texts; and waiting for the effects of an action."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import AsyncGenerator
from typing import TypeVar

from playwright.async_api import ElementHandle, Error, Frame, Locator, Page, Request

from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.elements import facts as element_facts
from runtime.browser.elements import locators, text_match
from runtime.browser.elements.facts import Facts
from runtime.browser.page.access import ElementAccess
from runtime.browser.page.dialogs import Dialogs

Answer = TypeVar("Answer")

QUIET_SECONDS = 0.1
"""Seconds without any request before the effects of an action count as complete."""

_IDENTITY = isolated_world.Script[str]("(element) => {" + element_facts.IDENTITY + "return identity(element); }", str)

_FRAME = isolated_world.Script[str](
    r"""(element) => {
  const frames = (root) => Array.from(root.querySelectorAll('*')).flatMap((each) => [
    ...(each.matches('iframe, frame') ? [each] : []),
    ...(each.shadowRoot ? frames(each.shadowRoot) : []),
  ]);
  const all = frames(element.ownerDocument), only = (fits) => all.filter(fits).length === 1;
  if (element.name && !/^(\*\*|\/|https?:)/.test(element.name) && only((each) => each.name === element.name)) return element.name;
  const bare = (frame) => (frame.src || '').split(/[?#]/)[0];
  if (/^https?:/.test(bare(element))) {
    const path = new URL(bare(element)).pathname;
    // A path holds wherever the site runs.
    if (path.length > 1 && only((each) => bare(each).endsWith(path))) return `**${path}`;
    if (only((each) => bare(each) === bare(element))) return bare(element);
  }
  const tag = element.localName, among = Array.from(element.parentNode.children).filter((each) => each.localName === tag);
  const place = `:nth-of-type(${among.indexOf(element) + 1})`, above = element.parentElement;
  const ways = [
    element.id && `#${CSS.escape(element.id)}`,
    element.title && `${tag}[title=${JSON.stringify(element.title)}]`,
    ...Array.from(element.classList, (each) => `${tag}.${CSS.escape(each)}`),
    element.hasAttribute('srcdoc') && `${tag}[srcdoc]`,
    ...['name', 'id', 'title', 'src'].map((each) => !element.hasAttribute(each) && `${tag}:not([${each}])`),
    above && above.id && `#${CSS.escape(above.id)} > ${tag}`,
    above && above.id && `#${CSS.escape(above.id)} > ${tag}${place}`,
    `${tag}${place}`,
  ];
  return ways.find((css) => css && only((each) => each.matches(css))) || tag;
}""",
    str,
)
"""JavaScript: identifier of a frame within its document: its name, a glob of its address, or CSS."""

_PLACES = isolated_world.Script[tuple[int, int]]("(all, other) => [all.length, all.indexOf(other)]", tuple[int, int])

_FACTS = isolated_world.Script[element_facts.ElementFacts](element_facts.FACTS, element_facts.ElementFacts)

_SAID = isolated_world.Script[str](
    "(element) => {"
    + text_match.SEEN
    + """
  if (element.type === 'password') return '';
  if (element instanceof HTMLSelectElement) return Array.from(element.selectedOptions, (each) => each.label).join(', ');
  return element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement ? element.value : folded(seen(element));
}""",
    str,
)


class Pointed:
    """An element of the page as it is now."""

    def __init__(self, page: Page, handle: ElementHandle, facts: Facts) -> None:
        self.facts = facts
        self._page = page
        self._handle = handle
        self._held: str | None = None
        """Name of the element in the world of our scripts."""

    async def places(self, target: Target) -> tuple[int, int]:
        """Return the number of elements that match the target now and the index of this one, from 0; -1 if it is none of them."""
        try:
            if self._held is None:
                self._held = await isolated_world.hold(self._handle)
            return await _PLACES.of_all(locators.locator(self._page, target), held=self._held)
        except Error:
            # A target in another frame, or one that Playwright cannot parse, does not match this element.
            return 0, -1

    async def identity(self) -> str:
        """Return its identity by its own and its row's text: the same in another document with the same content."""
        return await _IDENTITY.at(self._handle)

    async def asked(self, script: isolated_world.Script[Answer]) -> Answer:
        """Return the answer of a script, a function of the element."""
        return await script.at(self._handle)

    async def said(self) -> str:
        """Return the element's text, white space folded; the value of a field, nothing for a password."""
        return await _SAID.at(self._handle)


class Refs(ElementAccess):
    """A tab whose elements have refs."""

    dialogs: Dialogs

    @abstractmethod
    async def by_ref(self, ref: str) -> Locator:
        """Return the locator of an element by its ref from the last observation. Raises SiteError ``ref-gone``."""

    @contextlib.asynccontextmanager
    async def pointed(self, ref: str) -> AsyncGenerator[Pointed]:
        """Yield an element by its ref from the last observation. Raises SiteError ``ref-gone`` if it is gone."""
        try:
            located = await self.by_ref(ref)
            async with self._answering():
                handle = await located.element_handle(timeout=self._deadline.milliseconds())
                facts = await self._known_of(handle)
        except Error as error:
            raise await self._diagnosis.failed(error, None, "before") from None
        try:
            yield Pointed(self.page, handle, facts)
        finally:
            with contextlib.suppress(Error):
                await handle.dispose()

    async def _known_of(self, handle: ElementHandle) -> Facts:
        found = await _FACTS.at(handle)
        frames: list[str] = []
        frame = await handle.owner_frame()
        while frame is not None and frame.parent_frame is not None:
            frames.insert(0, await _frame(frame))
            frame = frame.parent_frame
        return element_facts.facts(found, frames)

    @contextlib.asynccontextmanager
    async def settling(self, seconds: float) -> AsyncGenerator[None]:
        """Wait for the effects of the action in the block: documents loaded, requests answered, new tabs open.

        Waits at most ``seconds``, and not while a dialog is open.
        """
        under_way: set[Request] = set()
        changed = asyncio.Event()

        def began(request: Request) -> None:
            under_way.add(request)
            changed.set()

        def ended(request: Request) -> None:
            under_way.discard(request)
            changed.set()

        page, context = self.page, self.page.context
        # An opening tab appears once its first request is answered.
        context.on("request", began)
        context.on("requestfinished", ended)
        context.on("requestfailed", ended)
        try:
            async with self._run.opening_tabs() as any_to_come:
                yield
                with contextlib.suppress(TimeoutError, Error):
                    async with asyncio.timeout(seconds):
                        while self.dialogs.message is None:
                            changed.clear()
                            waiting = under_way and not page.is_closed()
                            try:
                                await asyncio.wait_for(changed.wait(), None if waiting else QUIET_SECONDS)
                            except TimeoutError:
                                if not await any_to_come():
                                    break
                        if not page.is_closed() and self.dialogs.message is None:
                            await page.wait_for_load_state("domcontentloaded")
        finally:
            context.remove_listener("request", began)
            context.remove_listener("requestfinished", ended)
            context.remove_listener("requestfailed", ended)


async def _frame(frame: Frame) -> str:
    """Return the name of the frame in a target."""
    element = await frame.frame_element()
    try:
        return await _FRAME.at(element)
    finally:
        await element.dispose()
