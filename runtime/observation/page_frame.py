"""Page frame of a site: banner, navigation, side bars, and rows of links and buttons. What was shown before takes one line."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from runtime.observation.folding import counted, kind_of
from runtime.observation.lines import Item
from runtime.observation.tree import ASIDE, FIELDS, URGENT, Node

LEAST = 60  # least characters of a part to fold: folding a shorter one saves nothing
FEWEST = 5  # least elements side by side that are folded as one part

_REF = re.compile(r" \[ref=\w+\]")
TEXT_MOST = 80  # most characters of a line in a row of links

_DATA = FIELDS | {"checkbox", "radio", "switch", "row", "canvas"}
"""Roles of what a page is about: they have no place in a row of links."""


def known(top: Item) -> frozenset[str]:
    """Return the parts of a page, and its pairs of neighbours: what stands in a row of links on another page, too, has them all."""
    pairs = (f"{_said(one)}\n{_said(other)}" for row in _rows(top) for one, other in itertools.pairwise(row))
    return frozenset((*map(_said, _parts(top)), *pairs))


def fold(top: Item, before: Collection[str]) -> None:
    """Reduce each part that is in ``before`` to its line, with a ref where it has one. A part with an alert stays whole."""
    for each in _parts(top):
        if each.children and len(said := _said(each)) >= LEAST and said in before:
            each.line, each.children = f"{_with_ref(each.line, each.node)}: as before", []
    for row in list(_rows(top)):
        pairs = [f"{_said(one)}\n{_said(other)}" in before for one, other in itertools.pairwise(row)]
        for run in _runs(pairs):
            for node, part in list(_wrapped([row[each] for each in run])):
                if len(part) >= FEWEST and sum(len(each.line) for each in part) >= LEAST:
                    _reduce(part, node)


def _reduce(part: Sequence[Item], node: Node) -> None:
    """Put one line in the place of neighbours, with the ref of the element around them."""
    above = part[0].parent
    assert above is not None, "only the page has none"
    counts = Counter(map(kind_of, part))
    shown = Item(node, _with_ref(f"part of {counted(counts)}", node) + ": as before", parent=above, depth=part[0].depth)
    place = above.children.index(part[0])
    above.children[place : place + len(part)] = [shown]


def _wrapped(run: list[Item]) -> Iterator[tuple[Node, list[Item]]]:
    """Yield the largest elements with a ref that hold nothing but neighbours of the run, with these."""
    above = run[0].parent
    assert above is not None, "only the page has none"
    around = {id(each): {id(node) for node in each.node.above()} for each in above.children}
    left = list(run)
    while left:
        found: tuple[Node, list[Item]] | None = None
        for node in left[0].node.above():
            held = [each for each in above.children if id(node) in around[id(each)]]
            if node is above.node or held != left[: len(held)]:
                break
            found = (node, held) if node.ref is not None else found
        if found is not None:
            yield found
        left = left[len(found[1]) if found is not None else 1 :]


def _with_ref(line: str, node: Node) -> str:
    # A part whose size is that of nothing has no ref, but what is in it has one.
    while node.ref is None and len(node.children) == 1:
        node = node.children[0]
    return line if node.ref is None or f"[ref={node.ref}]" in line else f"{line} [ref={node.ref}]"


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


def _rows(top: Item) -> Iterator[list[Item]]:
    """Yield the neighbours of each level that may belong to the frame of the site: links, buttons, and texts between them."""
    for above in top.walk():
        if len(above.children) < FEWEST:
            continue
        for usual, row in itertools.groupby(above.children, key=_is_usual):
            neighbours = list(row)
            if usual and len(neighbours) >= FEWEST:
                yield neighbours


def _is_usual(item: Item) -> bool:
    """Return True for a link, a button, a heading, or a short text; False for data, and for what holds other parts of the page."""
    if kind_of(item) in ("row", "card", "item", "article") or item.children or len(item.line) > TEXT_MOST:
        return False
    node = item.node
    if node.role in _DATA or node.error:
        return False
    return node.acting or node.role == "heading" or kind_of(item) == "text"


def _runs(joined: Sequence[bool]) -> Iterator[range]:
    """Yield the places of neighbours that are all joined."""
    first = 0
    for number, each in enumerate([*joined, False]):
        if not each:
            yield range(first, number + 1)
            first = number + 1


def _said(part: Item) -> str:
    return "\n".join(f"{item.depth - part.depth} {_REF.sub('', item.line)}" for item in part.walk())
