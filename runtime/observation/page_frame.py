"""Page frame of a site: banner, navigation and side bars. If unchanged since the page before, each takes one line."""

from __future__ import annotations

import re
from collections.abc import Collection

from runtime.observation.lines import Item
from runtime.observation.tree import URGENT

ASIDE = frozenset({"banner", "navigation", "contentinfo", "complementary"})

LEAST = 60  # least characters of a part to fold: folding a shorter one saves nothing

_REF = re.compile(r" \[ref=\w+\]")


def known(top: Item) -> frozenset[str]:
    return frozenset(_said(each) for each in _parts(top))


def fold(top: Item, before: Collection[str]) -> None:
    """Reduce each part that is in ``before`` to its line with a ref. A part with an alert stays whole."""
    for each in _parts(top):
        if each.node.ref is not None and each.children and len(said := _said(each)) >= LEAST and said in before:
            shown = each.line if f"[ref={each.node.ref}]" in each.line else f"{each.line} [ref={each.node.ref}]"
            each.line, each.children = f"{shown}: as before", []


def is_shown(part: str, lines: Collection[str]) -> bool:
    """Return True if all lines of a part are in ``lines``, without refs and margins (``bare``)."""
    return all(each.partition(" ")[2] in lines for each in part.split("\n"))


def bare(line: str) -> str:
    return _REF.sub("", line.strip())


def _parts(top: Item) -> list[Item]:
    found: list[Item] = []
    open_ = [top]
    while open_:
        item = open_.pop()
        if item.line and item.node.role in ASIDE:
            if not any(each.role in URGENT or each.error for each in item.node.walk()):
                found.append(item)
            continue
        open_.extend(item.children)
    return found


def _said(part: Item) -> str:
    return "\n".join(f"{item.depth - part.depth} {_REF.sub('', item.line)}" for item in part.walk())
