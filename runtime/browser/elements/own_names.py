"""Names of elements that contain others of their role: an item of a tree is called what it says itself, without the items in it."""

from __future__ import annotations

import json
import urllib.parse

NAME = "runops-own-name"

ROLES = frozenset({"treeitem"})

ENGINE = r"""(() => {
  const folded = (text) => (text || '').replace(/[\u200b\u00ad]/g, '').replace(/\s+/g, ' ').trim();
  const INNER = '[role=group], [role=tree], [role=treeitem]';
  // With what only eyes are meant to see, such as an arrow, and without it: an observation may show either.
  const own = (element, all) => {
    const walk = (node) => {
      if (node.nodeType === Node.TEXT_NODE) return node.data;
      if (!(node instanceof Element)) return '';
      if (node !== element) {
        if (node.matches(INNER) || !node.checkVisibility({visibilityProperty: true})) return ' ';
        if (!all && node.getAttribute('aria-hidden') === 'true') return ' ';
        const said = node.getAttribute('aria-label') || (node.localName === 'img' ? node.alt : '');
        if (said) return said;
      }
      const slotted = node instanceof HTMLSlotElement ? node.assignedNodes() : [];
      const text = Array.from(slotted.length ? slotted : (node.shadowRoot ?? node).childNodes, walk).join('');
      return getComputedStyle(node).display.startsWith('inline') ? text : ` ${text} `;
    };
    const ids = (element.getAttribute('aria-labelledby') || '').split(/\s+/).map((id) => id && element.getRootNode().getElementById(id)).filter(Boolean);
    return folded(ids.map((each) => each.textContent).join(' ')) || folded(element.getAttribute('aria-label')) || folded(walk(element)) || folded(element.title);
  };
  const queryAll = (root, body) => {
    if (!(root instanceof Element)) return [];
    const {name, exact} = JSON.parse(decodeURIComponent(body));
    const fits = (said) => exact ? said === folded(name) : said.toLowerCase().includes(folded(name).toLowerCase());
    return fits(own(root, false)) || fits(own(root, true)) ? [root] : [];
  };
  return {query: (root, body) => queryAll(root, body)[0] ?? null, queryAll};
})()"""
"""Playwright selector engine: keeps the elements matched before it whose own name is the wanted one, or has it as a part.

Playwright's name of an item has the names of all items in it: each item would be found by the name of any below it.
"""


def selector(name: str, *, exact: bool) -> str:
    return f"{NAME}={urllib.parse.quote(json.dumps({'name': name, 'exact': exact}), safe='')}"
