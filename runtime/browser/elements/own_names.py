"""What an element is called as an observation prints it, where the accessible name is another text.

An item of a tree is called what it says itself, without the items in it; an element without a name what it says; and the pictures of icon
fonts belong to no name.
"""

from __future__ import annotations

import json
import re
import urllib.parse

from runtime.browser.elements import guesses, text_match

NAME = "runops-own-name"

ITEMS = frozenset({"treeitem"})
"""Roles whose accessible name contains those of the items in it."""

ENGINE = (
    "(() => {"
    + guesses.SHOWN_TEXT
    + r"""
  const INNER = '[role=group], [role=tree], [role=treeitem]';
  const bare = (text) => text.replace(/[\s\u200b\u00ad\p{Co}|]+/gu, '');
  // With what only eyes are meant to see, such as an arrow, and without it: an observation may show either.
  const own = (element, item, all) => {
    const walk = (node) => {
      if (node.nodeType === Node.TEXT_NODE) return node.data;
      if (!(node instanceof Element) || ['SCRIPT', 'STYLE', 'TEMPLATE'].includes(node.tagName)) return '';
      if (node !== element) {
        if ((item && node.matches(INNER)) || !node.checkVisibility({visibilityProperty: true}) || ligature(node)) return '';
        if (!all && node.getAttribute('aria-hidden') === 'true') return '';
        const said = node.getAttribute('aria-label') || (node.localName === 'img' ? node.alt : '');
        if (said) return said;
      }
      const slotted = node instanceof HTMLSlotElement ? node.assignedNodes() : [];
      return Array.from(slotted.length ? slotted : (node.shadowRoot ?? node).childNodes, walk).join('');
    };
    const ids = (element.getAttribute('aria-labelledby') || '').split(/\s+/).map((id) => id && element.getRootNode().getElementById(id)).filter(Boolean);
    return bare(ids.map((each) => each.textContent).join('')) || bare(element.getAttribute('aria-label') || '') || bare(walk(element)) || bare(element.title || '');
  };
  const queryAll = (root, body) => {
    if (!(root instanceof Element)) return [];
    const {name, exact, item} = JSON.parse(decodeURIComponent(body)), wanted = bare(name);
    const fits = (said) => exact ? said === wanted : said.toLowerCase().includes(wanted.toLowerCase());
    if (!fits(own(root, item, false)) && !fits(own(root, item, true))) return [];
    if (!item) (globalThis._runopsByText ||= new Set()).add(root);
    return [root];
  };
  return {query: (root, body) => queryAll(root, body)[0] ?? null, queryAll};
})()"""
)
"""Playwright selector engine: keeps the elements matched before it that are called so, or have it as a part of what they are called.

``visibility.ENGINE`` takes those that are no items only if none has that accessible name.
"""

# Private planes; JavaScript sees those beyond the first as two halves.
_PICTURE = r"(?:[\ue000-\uf8ff]|[\udb80-\udbff][\udc00-\udfff])"
_BETWEEN = rf"(?:[\s|]|{_PICTURE})"


def selector(name: str, *, exact: bool, item: bool) -> str:
    return f"{NAME}={urllib.parse.quote(json.dumps({'name': name, 'exact': exact, 'item': item}), safe='')}"


def pattern(name: str, *, exact: bool) -> re.Pattern[str]:
    """Return the pattern of an accessible name: pictures, white space and the separators of cells between its words do not count."""
    said = name.split()
    words = f"{_BETWEEN}+".join(map(text_match.literal, [each for each in said if each != "|"] or said))
    return re.compile(f"^{_BETWEEN}*{words}{_BETWEEN}*$") if exact else re.compile(words, re.IGNORECASE)


def doubtful(name: str, *, exact: bool) -> re.Pattern[str]:
    """Return the pattern of the other names of elements that ``selector`` has to look at: none, or one with a picture's word in it."""
    if not exact:
        return re.compile(r"^\s*$")
    whole, part = pattern(name, exact=True).pattern, pattern(name, exact=False).pattern
    return re.compile(rf"^\s*$|^(?!{whole}).*{part}")
