"""The frame of a site: parts around what a page is about (banner, navigation, side bars) that are the same on the page before, each as one line."""

from __future__ import annotations

import re
from collections.abc import Collection

from runtime.observation.lines import Item
from runtime.observation.tree import URGENT

ASIDE = frozenset({"banner", "navigation", "contentinfo", "complementary"})
"""Roles of such parts."""

LEAST = 60
"""Characters that such a part has at least: of less nothing is saved."""

_REF = re.compile(r" \[ref=\w+\]")


def known(top: Item) -> frozenset[str]:
    """What the parts of a page say, their refs aside."""
    return frozenset(_said(each) for each in _parts(top))


def fold(top: Item, before: Collection[str]) -> None:
    """Leave of each part that says what one said ``before`` only its line, with its ref. A part in which the page calls something out stays."""
    for each in _parts(top):
        if each.node.ref is not None and each.children and len(said := _said(each)) >= LEAST and said in before:
            shown = each.line if f"[ref={each.node.ref}]" in each.line else f"{each.line} [ref={each.node.ref}]"
            each.line, each.children = f"{shown}: as before", []


def told(part: str, lines: Collection[str]) -> bool:
    """Whether all of a part stands in lines, refs and margins aside (``bare``)."""
    return all(each.partition(" ")[2] in lines for each in part.split("\n"))


def bare(line: str) -> str:
    """A line without its margin and its ref."""
    return _REF.sub("", line.strip())


def _parts(top: Item) -> list[Item]:
    """The outermost such parts."""
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
    lines: list[str] = []
    open_ = [part]
    while open_:
        item = open_.pop()
        lines.append(f"{item.depth - part.depth} {_REF.sub('', item.line)}")
        open_.extend(reversed(item.children))
    return "\n".join(lines)
