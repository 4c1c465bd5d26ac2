"""How a text of the workflow is looked for in what the page shows: white space folded, the same case, whole words.

The comparison runs in the page, as one JavaScript regular expression made here, so rules, ``has_text`` and titles cannot differ.
"""

from __future__ import annotations

import re

_SYNTAX = re.compile(r"[\^$\\.*+?()\[\]{}|/]")

# Scripts that put no space between words: there a neighbouring letter says nothing about where a word ends. Korean has spaces, but glues
# its particles to the word.
_UNSPACED = "".join(
    rf"\p{{Script_Extensions={script}}}"
    for script in ("Han", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
)

_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}\p{{Pc}}]--[{_UNSPACED}]]"
"""A character that belongs to a word. Python's and JavaScript's ``\\w`` differ, and JavaScript's knows ASCII only."""

# A text has a boundary only where its own edge is a word character: "(paid" may follow a letter, "paid" may not.
_STARTS = rf"(?:(?!{_WORD})|(?<!{_WORD}))"
_ENDS = rf"(?:(?<!{_WORD})|(?!{_WORD}))"


def pattern(text: str, *, exact: bool = False) -> str:
    """The regular expression (flags ``v``) that finds ``text`` in a folded text: as whole words, or with ``exact`` as the whole of it.

    An empty text is found everywhere, and exactly only in an empty one.
    """
    words = r"\s+".join(_SYNTAX.sub(r"\\\g<0>", word) for word in text.split())
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
"""JavaScript: the text of an element as a person sees it (a hidden part is not in it, the cells of a row are apart), and white space folded.

``innerText`` leaves out what stands in shadow roots, so there the text is put together here."""

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
"""A selector engine for Playwright: keeps the elements before it in which the pattern (percent-encoded) is found.

Playwright's own ``has_text`` joins the cells of a row without a space, so ``<td>10</td><td>07</td>`` would read as 1007.
"""


def contains(text: str, wanted: str) -> bool:
    """Whether ``text`` contains ``wanted`` as whole words, in the same case: for a text that no page can be asked about."""
    words = r"\s+".join(re.escape(word) for word in wanted.split())
    return re.search(rf"(?:(?!\w)|(?<!\w)){words}(?:(?<!\w)|(?!\w))", folded(text)) is not None


_INVISIBLE = str.maketrans("", "", "\u200b\u00ad")


def folded(text: str) -> str:
    """The text with each run of white space as one space and none at its ends, without zero-width spaces and soft hyphens."""
    return " ".join(text.translate(_INVISIBLE).split())
