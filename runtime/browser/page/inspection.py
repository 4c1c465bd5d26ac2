"""Looks at what a target matches now, at the HTML of an element, at its names in CSS, and waits until the network is quiet. Acts on nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence

from playwright.async_api import Error, Locator, Request

from nodes.errors import SiteError
from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.elements import locators, rules
from runtime.browser.page.access import PAUSES, ElementAccess
from runtime.observation.lines import quoted

QUIET_SECONDS = 0.5  # seconds without any request until the network counts as quiet
LONGEST_ATTRIBUTE = 200  # characters of an attribute's value, or of an address
LONGEST_TEXT = 300  # characters of one text of an element
MOST_CHILDREN, MOST_BELOW = 40, 6  # elements that are listed of an element, and of each of these

_REF = r"""
  const number = globalThis._runopsDocument;
  const ref = (element) => element._ariaRef ? element._ariaRef.ref : element._runopsRef ? `${number ? `f${number}` : ''}x${element._runopsRef}` : null;
"""

_MATCHES = isolated_world.Script[tuple[int, list[tuple[str | None, str, bool, bool, str]]]](
    "(elements, most) => {"
    + rules.STATES
    + r"""
  const short = (text, length) => {
    const folded = (text || '').replace(/\s+/g, ' ').trim();
    return folded.length > length ? folded.slice(0, length - 1) + '…' : folded;
  };
"""
    + _REF
    + r"""
  return [elements.length, elements.slice(0, most).map((element) =>
    [ref(element), element.localName, visible(element), enabled(element), element.type === 'password' ? '' : short(element.innerText || element.value, 60)])];
}""",
    tuple[int, list[tuple[str | None, str, bool, bool, str]]],
)

_HTML = isolated_world.Script[str](
    "(element, {depth, attribute, text}) => {"
    r"""
  const SILENT = ['script', 'style', 'noscript', 'template', 'link', 'meta', 'base'];
  const VOID = ['area', 'br', 'col', 'embed', 'hr', 'img', 'input', 'source', 'track', 'wbr'];
  const short = (said, most) => said.length > most ? `${said.slice(0, most - 1)}…` : said;
  const folded = (said) => said.replace(/\s+/g, ' ').trim();
  const escaped = (said) => said.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const typed = (node) => ['input', 'textarea', 'select'].includes(node.localName);
  const secret = (node) => typed(node) && (node.type === 'password' || /password/.test(node.autocomplete || ''));
  const head = (node) => {
    let said = node.localName;
    for (const {name, value} of node.attributes) {
      if (name.startsWith('data-runops')) continue;
      const shown = name === 'value' && secret(node) ? '[hidden]' : name === 'srcdoc' ? '…' : short(value, attribute);
      said += ` ${name}="${escaped(shown).replace(/"/g, '&quot;')}"`;
    }
    // A field's content is in no attribute.
    if (typed(node) && node.type !== 'checkbox' && node.type !== 'radio' && node.type !== 'hidden' && node.value && node.value !== node.getAttribute('value'))
      said += ` now="${secret(node) ? '[hidden]' : escaped(short(folded(node.value), attribute)).replace(/"/g, '&quot;')}"`;
    return said;
  };
  const lines = [];
  const walk = (node, level) => {
    const indent = '  '.repeat(level);
    if (node.nodeType === 3) {
      const said = folded(node.data);
      if (said) lines.push(indent + escaped(short(said, text)));
      return;
    }
    if (node.nodeType !== 1 || SILENT.includes(node.localName)) return;
    const tag = node.localName, opened = `${indent}<${head(node)}>`;
    if (VOID.includes(tag)) { lines.push(opened); return; }
    const inside = [...(node.shadowRoot ? node.shadowRoot.childNodes : []), ...node.childNodes]
      .filter((each) => each.nodeType === 3 ? folded(each.data) : each.nodeType === 1 && !SILENT.includes(each.localName));
    if (secret(node) || !inside.length) { lines.push(`${opened}</${tag}>`); return; }
    if (inside.length === 1 && inside[0].nodeType === 3) { lines.push(`${opened}${escaped(short(folded(inside[0].data), text))}</${tag}>`); return; }
    if (depth !== null && level >= depth) {
      lines.push(`${opened}… ${node.querySelectorAll('*').length} elements in it …</${tag}>`);
      return;
    }
    lines.push(opened);
    for (const each of inside) walk(each, level + 1);
    lines.push(`${indent}</${tag}>`);
  };
  walk(element, 0);
  return lines.join('\n');
}""",
    str,
)


_NAMES = isolated_world.Script[list[tuple[int, str, str, str | None]]](
    "(element, {children, below}) => {"
    + _REF
    + r"""
  const folded = (said) => (said || '').replace(/\s+/g, ' ').trim();
  const short = (said, most) => said.length > most ? `${said.slice(0, most - 1)}…` : said;
  const quoted = (value) => `"${value.replace(/["\\]/g, '\\$&')}"`;
  // A secret is masked only where all of it stands, so a long value is left out.
  const data = ({name, value}) => !value || value.length > 60 || /[\n\r]/.test(value) ? `[${name}]` : `[${name}=${quoted(value)}]`;
  const head = (node) => [node.localName, node.id && `#${CSS.escape(node.id)}`, ...Array.from(node.classList, (name) => `.${CSS.escape(name)}`).slice(0, 8),
    ...Array.from(node.attributes).filter(({name}) => name.startsWith('data-') && !name.startsWith('data-runops')).slice(0, 6).map(data)].filter(Boolean).join('');
  const own = (node) => short(folded(Array.from(node.childNodes, (each) => each.nodeType === 3 ? each.data : ' ').join('')), 60);
  const lines = [];
  const walk = (node, level, most) => {
    lines.push([level, head(node), ['script', 'style'].includes(node.localName) ? '' : own(node), ref(node)]);
    const inside = [...(node.shadowRoot ? node.shadowRoot.children : []), ...node.children];
    if (level === 2) { if (inside.length) lines.push([3, '', String(inside.length), null]); return; }
    for (const each of inside.slice(0, most)) walk(each, level + 1, below);
    if (inside.length > most) lines.push([level + 1, '', String(inside.length - most), null]);
  };
  walk(element, 0, children);
  return lines;
}""",
    list[tuple[int, str, str, str | None]],
)
"""JavaScript: an element and those in it, two levels deep: level, CSS, own text, ref; without CSS, the number of those left out."""


@dataclasses.dataclass(frozen=True, slots=True)
class Matched:
    ref: str | None  # as of the last observation; None if that shows no such element
    tag: str
    visible: bool
    enabled: bool
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Matches:
    target: Target  # as settled: the alternative that matches, the index from the front
    count: int
    first: Sequence[Matched]


class Inspection(ElementAccess):
    async def matches(self, target: Target, most: int) -> Matches:
        """Return what the target matches now, the first ``most`` elements each; waits for nothing."""

        async def look() -> Matches:
            settled = await self._settled_now(target)
            if settled is None:
                return Matches(target, 0, ())
            count, first = await _MATCHES.of_all(locators.locator(self.page, settled), most)
            return Matches(settled, count, [Matched(*each) for each in first])

        return await self._read(target, look)

    async def html(self, located: Locator, depth: int | None) -> str:
        """Return the HTML of an element with its attributes, without scripts and styles; passwords are hidden, ``now`` is what a field holds."""
        asked = {"depth": depth, "attribute": LONGEST_ATTRIBUTE, "text": LONGEST_TEXT}
        return await self._read(
            None, lambda: _HTML.of(located, asked, milliseconds=self._deadline.milliseconds()), waits=True
        )

    async def names(self, located: Locator, known: Callable[[str], bool]) -> str:
        """Return an element and those in it, one a line: CSS of tag, id, classes and ``data-`` attributes, then its text, and its ref if ``known``."""
        asked = {"children": MOST_CHILDREN, "below": MOST_BELOW}
        found = await self._read(
            None, lambda: _NAMES.of(located, asked, milliseconds=self._deadline.milliseconds()), waits=True
        )
        lines: list[str] = []
        for level, css, said, ref in found:
            text = f" {quoted(said, LONGEST_TEXT)}" if said else ""
            line = f"{css}{text}{f' [ref={ref}]' if ref and known(ref) else ''}" if css else f"… {said} more"
            lines.append("  " * level + line)
        return "\n".join(lines)

    async def quiet(self) -> float:
        """Wait until the page has asked for nothing for a moment; return the seconds waited. Raises SiteError ``timeout``."""
        under_way: set[Request] = set()
        since = began = time.monotonic()

        def starts(request: Request) -> None:
            nonlocal since
            under_way.add(request)
            since = time.monotonic()

        def ends(request: Request) -> None:
            nonlocal since
            under_way.discard(request)
            since = time.monotonic()

        page = self.page
        page.on("request", starts)
        page.on("requestfinished", ends)
        page.on("requestfailed", ends)
        try:
            await self._parsed()
            while under_way or time.monotonic() - since < QUIET_SECONDS:
                self.dialogs.refuse()
                if self._deadline.over():
                    asked = [each.url for each in under_way]
                    raise self.diagnosis.page_error(
                        "timeout",
                        f"the page keeps asking (waited {self._deadline.waited():g} s): {', '.join(asked[:3]) or 'again and again'}",
                        "wait for what it is to show instead",
                    )
                await asyncio.sleep(PAUSES[-1])
        except Error as error:
            raise await self.diagnosis.failed(error, None, "before") from None
        finally:
            page.remove_listener("request", starts)
            page.remove_listener("requestfinished", ends)
            page.remove_listener("requestfailed", ends)
        return round(time.monotonic() - began, 1)

    async def mismatch(self, found: Matches, target: Target) -> SiteError | None:
        """Return the error, with its evidence, unless one element matches."""
        if found.count == 1:
            return None
        return await (self.diagnosis.ambiguous(found.target) if found.count else self.diagnosis.missing(target))
