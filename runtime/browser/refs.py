"""Elements by the refs of the last look: what is known of one, which targets match it, what it says; and waiting for what a deed sets off."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import urllib.parse
from abc import abstractmethod
from collections.abc import AsyncGenerator
from typing import Any

from playwright.async_api import ElementHandle, Error, Locator, Page, Request

from nodes.targets import Target
from runtime.browser import locators, matching
from runtime.browser.dialogs import Dialogs
from runtime.browser.reach import Reach

QUIET_SECONDS = 0.1
"""How long nothing must be under way before what a deed set off counts as over."""

_FACTS = (
    "(element) => {"
    + matching.SEEN
    + """
  const attribute = (name) => element.getAttribute(name) || '';
  const short = (text) => { const found = folded(text || ''); return found.length <= 60 ? found : ''; };
  const field = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement;
  const box = element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);
  const aria = element.getAttribute('aria-checked');
  const rows = [];
  for (let around = element.parentElement; around; around = around.parentElement) {
    const role = around.getAttribute('role');
    const kind = role || {TR: 'row', LI: 'listitem', ARTICLE: 'article'}[around.tagName];
    if (!['row', 'listitem', 'article'].includes(kind)) continue;
    const texts = [];
    const walk = (node) => {
      if (node === element || texts.length >= 8) return;
      const own = Array.from(node.childNodes).filter((child) => child.nodeType === 3).map((child) => child.data).join(' ');
      const around = node.contains(element);
      const said = own.trim() ? short(around ? own : seen(node)) : '';
      if (said && !texts.includes(said)) texts.push(said);
      if (!said || around) for (const child of node.children) walk(child);
    };
    walk(around);
    rows.push({role: kind, texts});
    if (rows.length === 2) break;
  }
  return {
    tag: element.tagName.toLowerCase(),
    type: field ? element.type : '',
    test_id: attribute('data-testid'),
    id: element.id || '',
    name: attribute('name'),
    placeholder: attribute('placeholder'),
    title: attribute('title'),
    alt: attribute('alt'),
    labels: field && element.labels ? Array.from(element.labels, (each) => short(each.textContent)).filter(Boolean) : [],
    text: short(seen(element)),
    checked: box ? element.checked : aria === null ? null : aria === 'true',
    rows,
  };
}"""
)

_PLACES = "(all, other) => [all.length, all.indexOf(other)]"

_SAID = (
    "(element) => {"
    + matching.SEEN
    + """
  if (element.type === 'password') return '';
  if (element instanceof HTMLSelectElement) return Array.from(element.selectedOptions, (each) => each.label).join(', ');
  return element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement ? element.value : folded(seen(element));
}"""
)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Something that stands among others of its kind, and holds the element."""

    role: str
    texts: tuple[str, ...]
    """Short texts in it, in the order of the page."""


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What the document says of an element; texts are empty where it says nothing."""

    tag: str = ""
    type: str = ""
    """Of a field: ``text``, ``checkbox``, ``select-one`` …"""
    test_id: str = ""
    id: str = ""
    name: str = ""
    placeholder: str = ""
    title: str = ""
    alt: str = ""
    labels: tuple[str, ...] = ()
    text: str = ""
    checked: bool | None = None
    """Of what can be checked."""
    rows: tuple[Row, ...] = ()
    """The rows, items and articles that it stands in, the nearest first."""
    frames: tuple[str, ...] = ()
    """The frames that lead to it, outermost first, each as a target names it."""


class Pointed:
    """An element of the page as it is now."""

    def __init__(self, page: Page, handle: ElementHandle, facts: Facts) -> None:
        self.facts = facts
        self._page = page
        self._handle = handle

    async def places(self, target: Target) -> tuple[int, int]:
        """How many elements match the target now, and which of them it is, from 0; -1 where it is none of them."""
        try:
            count, index = await locators.locator(self._page, target).evaluate_all(_PLACES, self._handle)
        except Error:
            # A target in another frame, or one that Playwright does not understand, is none of this element's.
            return 0, -1
        return int(count), int(index)

    async def said(self) -> str:
        """What the element says, white space folded; of a field what it holds, of a password nothing."""
        return str(await self._handle.evaluate(_SAID))


class Refs(Reach):
    """A tab whose elements have refs."""

    dialogs: Dialogs

    @abstractmethod
    async def by_ref(self, ref: str) -> Locator:
        """The element that the last look called ``ref``. Raises SiteError ``ref-gone``."""

    @contextlib.asynccontextmanager
    async def pointed(self, ref: str) -> AsyncGenerator[Pointed]:
        """The element that the last look called ``ref``. Raises SiteError ``ref-gone`` where there is none any more."""
        try:
            located = await self.by_ref(ref)
            async with self._answering():
                handle = await located.element_handle(timeout=self._patience.milliseconds())
                facts = await self._known_of(handle)
        except Error as error:
            raise await self._inquiry.failed(error, None, "before") from None
        try:
            yield Pointed(self.page, handle, facts)
        finally:
            with contextlib.suppress(Error):
                await handle.dispose()

    async def _known_of(self, handle: ElementHandle) -> Facts:
        found: dict[str, Any] = await handle.evaluate(_FACTS)
        rows = tuple(Row(each["role"], tuple(each["texts"])) for each in found.pop("rows"))
        labels = tuple(found.pop("labels"))
        frames: list[str] = []
        frame = await handle.owner_frame()
        while frame is not None and frame.parent_frame is not None:
            frames.insert(0, frame.name or _address(frame.url))
            frame = frame.parent_frame
        return Facts(**found, labels=labels, rows=rows, frames=tuple(frames))

    @contextlib.asynccontextmanager
    async def settling(self, seconds: float) -> AsyncGenerator[None]:
        """What the deed within sets off is waited for: its documents loaded, the requests that the page sends answered, the tabs there that it opens.

        It is waited for ``seconds`` at most, and not where a dialog opens.
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
        # A tab that opens is there once its first request is answered.
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


def _address(url: str) -> str:
    """The address of a frame as a glob that holds wherever the site runs."""
    path = urllib.parse.urlsplit(url).path
    return f"**{path}" if len(path) > 1 else url.partition("?")[0].partition("#")[0]
