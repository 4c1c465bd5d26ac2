"""How a frame is found: by its name, by a glob of its address, or by CSS; in open shadow roots too.

It is a selector engine for Playwright, so a frame that loads late is waited for, and one that is replaced is found again.
"""

from __future__ import annotations

import json
import urllib.parse

NAME = "runops-frame"

ENGINE = """(() => {
  const frames = (root) => Array.from(root.querySelectorAll('*')).flatMap((element) => [
    ...(element.matches('iframe, frame') ? [element] : []),
    ...(element.shadowRoot ? frames(element.shadowRoot) : []),
  ]);
  const queryAll = (root, body) => {
    const {wanted, address, query} = JSON.parse(decodeURIComponent(body));
    const all = frames(root);
    if (address !== null) {
      const whole = new RegExp(`^(?:${address})$`, 's');
      return all.filter((frame) => whole.test(query ? frame.src : frame.src.split(/[?#]/)[0]));
    }
    const named = all.filter((frame) => frame.name === wanted);
    if (named.length) return named;
    document.createDocumentFragment().querySelector(wanted);
    return all.filter((frame) => frame.matches(wanted));
  };
  return {query: (root, body) => queryAll(root, body)[0] ?? null, queryAll};
})()"""
"""Name before CSS: ``payment`` is a name, and the selector of an element that there is not."""

KNOWN = """(root) => {
  const frames = (root) => Array.from(root.querySelectorAll('*')).flatMap((element) => [
    ...(element.matches('iframe, frame') ? [element] : []),
    ...(element.shadowRoot ? frames(element.shadowRoot) : []),
  ]);
  return frames(root).slice(0, 10).map((frame) =>
    [frame.name && `name="${frame.name}"`, frame.id && `id="${frame.id}"`, frame.src && `src="${frame.src.split('?')[0]}"`]
      .filter(Boolean).join(' ') || 'a frame without name or address');
}"""
"""JavaScript: one line for each frame of a document."""


def selector(wanted: str, address: str | None) -> str:
    """The selector of the frame element that is meant; ``address`` is the regular expression of its whole address, where it is found by that."""
    said = json.dumps({"wanted": wanted, "address": address, "query": "?" in wanted})
    return f"{NAME}={urllib.parse.quote(said, safe='')}"
