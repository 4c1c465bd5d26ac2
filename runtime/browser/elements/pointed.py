"""An element of the page as it is now: its facts, and the targets that match it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from playwright.async_api import ElementHandle, Error, Frame, Page

from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.elements import facts as element_facts
from runtime.browser.elements import locators, text_match
from runtime.browser.elements.facts import Facts

Answer = TypeVar("Answer")

_IDENTITY = isolated_world.Script[str]("(element) => {" + element_facts.IDENTITY + "return identity(element); }", str)


_FRAME = isolated_world.Script[str](
    "(element) => {"
    + locators.FRAMES
    + r"""
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
"""JavaScript: a frame as a target names it: its name, a glob of its address, or CSS."""


_PLACES = isolated_world.Script[tuple[int, int]]("(all, other) => [all.length, all.indexOf(other)]", tuple[int, int])


_FACTS = isolated_world.Script[Facts](element_facts.FACTS, Facts)


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
    def __init__(self, page: Page, handle: ElementHandle, facts: Facts) -> None:
        self.facts = facts
        self._page = page
        self._handle = handle
        self._held: str | None = None  # name of the element in the world of our scripts

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
        """Return an identity by the texts of the element and its row: the same in another document that shows the same."""
        return await _IDENTITY.at(self._handle)

    async def asked(self, script: isolated_world.Script[Answer]) -> Answer:
        return await script.at(self._handle)

    @contextlib.asynccontextmanager
    async def at(self, selector: str) -> AsyncGenerator[Pointed | None]:
        """Yield the first element that a selector of Playwright finds from this one; None if it finds none."""
        handle = await self._handle.query_selector(selector)
        try:
            yield None if handle is None else await of(self._page, handle)
        finally:
            if handle is not None:
                await handle.dispose()

    def known(self, **facts: Any) -> Pointed:
        """Return the same element with other facts."""
        return Pointed(self._page, self._handle, dataclasses.replace(self.facts, **facts))

    async def said(self) -> str:
        """Return the text of the element, white space folded; the value of a field; nothing for a password."""
        return await _SAID.at(self._handle)


async def of(page: Page, handle: ElementHandle) -> Pointed:
    """Read the facts of the element. Raises Playwright's Error if it is gone."""
    found = await _FACTS.at(handle)
    frames: list[str] = []
    frame = await handle.owner_frame()
    while frame is not None and frame.parent_frame is not None:
        frames.insert(0, await _frame(frame))
        frame = frame.parent_frame
    return Pointed(page, handle, dataclasses.replace(found, frames=tuple(frames)))


async def _frame(frame: Frame) -> str:
    element = await frame.frame_element()
    try:
        return await _FRAME.at(element)
    finally:
        await element.dispose()
