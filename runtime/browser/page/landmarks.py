"""Landmarks of a document: enough to tell one page of a site from another, without anything that changes with its data."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import time

from playwright.async_api import Error, Page

from nodes.errors import SiteError
from runtime.browser import isolated_world
from runtime.browser.port import Differs, Shown

SECONDS = 5.0  # seconds that a reloaded page may take to show the same again: its scripts build it

PAUSE = 0.05

_FRAME = isolated_world.Script[tuple[str, list[str], bool]](
    r"""() => {
  const PARTS = 'main, nav, header, footer, aside, form, dialog, h1, table, th, input:not([type=hidden]), select, textarea, canvas, iframe,'
    + '[role=main], [role=navigation], [role=banner], [role=contentinfo], [role=complementary], [role=form], [role=search],'
    + '[role=dialog], [role=alertdialog], [role=grid], [role=treegrid], [role=tablist], [contenteditable=true]';
  const lines = [];
  for (const element of document.querySelectorAll(PARTS)) {
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    const says = ['H1', 'TH'].includes(element.tagName) ? element.textContent.trim() : '';
    const line = [element.tagName, element.getAttribute('role'), element.getAttribute('name'), element.type, says].join(' ');
    // A list with a row more is the same page.
    if (!lines.includes(line)) lines.push(line);
    if (lines.length === 300) break;
  }
  const of = (name) => Document.prototype.__lookupGetter__(name).call(document);
  return [of('title'), lines, of('readyState') !== 'loading'];
}""",
    tuple[str, list[str], bool],
)

_NUMBER = re.compile(r"\d+")


async def shown(page: Page) -> Shown | None:
    """Return the identity of ``page``; None while it still arrives. Raises Playwright's Error, and SiteError ``page-unreadable``."""
    title, lines, whole = await _FRAME.on(page)
    folded = _NUMBER.sub("#", "\n".join(lines))
    return Shown(page.url, title, hashlib.sha256(folded.encode()).hexdigest()[:16]) if whole else None


async def differs(page: Page, name: str | None, expected: Shown) -> Differs | None:
    """Return the difference between ``page``, once it had time to load, and ``expected``; None if there is none."""
    until = time.monotonic() + SECONDS
    while True:
        seen: Shown | None = None
        # It may be loading another document.
        with contextlib.suppress(Error, SiteError):
            seen = await shown(page)
        seen = seen or Shown(page.url, "", "")
        if _alike(expected) == _alike(seen):
            return None
        if time.monotonic() > until:
            return Differs(name, expected, seen)
        await asyncio.sleep(PAUSE)


def _alike(page: Shown) -> tuple[str, str, str]:
    """Return the parts that do not change with the data: numbers in a title or a query are ignored."""
    address, mark, query = page.address.partition("?")
    return address + mark + _NUMBER.sub("#", query), _NUMBER.sub("#", page.title), page.frame
