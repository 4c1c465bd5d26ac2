"""Finds texts of a workflow in the text of a page: white space folded, same case, whole words.

The page compares, with one JavaScript regular expression from here, so rules, ``has_text`` and titles cannot differ.
"""

from __future__ import annotations

import re

_SYNTAX = re.compile(r"[\^$\\.*+?()\[\]{}|/]")

# Scripts without spaces between words: a neighbouring letter does not tell the end of a word there. Korean has spaces, but
# attaches its particles to the word.
_UNSPACED = "".join(
    rf"\p{{Script_Extensions={script}}}"
    for script in ("Han", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
)

_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}\p{{Pc}}]--[{_UNSPACED}]]"
r"""Character of a word. Python's and JavaScript's ``\\w`` differ, and JavaScript's is ASCII only."""

# A text has a boundary only where its own edge is a word character: "(paid" may follow a letter, "paid" may not.
_STARTS = rf"(?:(?!{_WORD})|(?<!{_WORD}))"
_ENDS = rf"(?:(?<!{_WORD})|(?!{_WORD}))"


def literal(text: str) -> str:
    """Return the regular expression, of JavaScript or Python, that is the text itself."""
    return _SYNTAX.sub(r"\\\g<0>", text)


def pattern(text: str, *, exact: bool = False) -> str:
    """Return the regular expression (flag ``v``) that finds ``text`` in a folded text, as whole words; with ``exact`` as all of it.

    An empty text matches everywhere; with ``exact``, only in an empty text.
    """
    words = r"\s+".join(map(literal, text.split()))
    if exact:
        return f"^{words}$"
    return f"{_STARTS}{words}{_ENDS}" if words else ""


SEEN = r"""
const seen = (element) => {
  const button = element instanceof HTMLInputElement && ['button', 'submit', 'reset'].includes(element.type);
  if (button) return element.value;
  return shadowed(element) ? rendered(element) : element.innerText ?? element.textContent ?? '';
};
const shadowed = (element) =>
  [element, ...element.querySelectorAll('*')].some((each) => each.shadowRoot || each.localName === 'slot');
const rendered = (node) => {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (!(node instanceof HTMLElement)) return node instanceof Element ? node.textContent : '';
  const {display, visibility} = getComputedStyle(node);
  if (display === 'none' || visibility !== 'visible' || ['SCRIPT', 'STYLE', 'TEMPLATE'].includes(node.tagName)) return '';
  const slotted = node instanceof HTMLSlotElement ? node.assignedNodes() : [];
  const parts = slotted.length ? slotted : (node.shadowRoot ?? node).childNodes;
  const text = Array.from(parts, rendered).join('');
  return display.startsWith('inline') || display === 'contents' ? text : `\n${text}\n`;
};
const folded = (text) => text.replace(/[\u200b\u00ad]/g, '').replace(/\s+/g, ' ').trim();
"""
"""JavaScript: text of an element as a person sees it (without hidden parts, with row cells separated), and folding of white space.

``innerText`` omits shadow roots, so the script collects their text itself.
"""

ENGINE_NAME = "runops-has-text"

ENGINE = (
    "(() => {"
    + SEEN
    + """
  const matches = (root, body) => {
    if (!(root instanceof Element)) return [];
    return new RegExp(decodeURIComponent(body), 'v').test(folded(seen(root))) ? [root] : [];
  };
  return { query: (root, body) => matches(root, body)[0] ?? null, queryAll: matches };
})()"""
)
"""Playwright selector engine: keeps the elements matched before it that contain the pattern (percent-encoded).

Playwright's own ``has_text`` joins the cells of a row without a space, so ``<td>10</td><td>07</td>`` would read as 1007.
"""


def contains(text: str, wanted: str) -> bool:
    """Return True if ``text`` contains ``wanted`` as whole words in the same case, for text outside a page."""
    words = r"\s+".join(re.escape(word) for word in wanted.split())
    return re.search(rf"(?:(?!\w)|(?<!\w)){words}(?:(?<!\w)|(?!\w))", folded(text)) is not None


_INVISIBLE = str.maketrans("", "", "\u200b\u00ad")


def folded(text: str) -> str:
    """Fold white space to single spaces, strip the ends, and remove zero-width spaces and soft hyphens."""
    return " ".join(text.translate(_INVISIBLE).split())
