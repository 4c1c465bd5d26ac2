"""Distinguishes elements with the same or no name: by captions beside them, and by the addresses of links."""

from __future__ import annotations

import re

from runtime.observation.tree import FIELDS, ROWS, Node, folded, inner

CAPTION_MOST = 80  # most characters of a caption: a longer text is not one

_BOXES = frozenset({"checkbox", "radio", "switch"})
_TEXTS = frozenset({"text", "generic", "paragraph", "strong", "emphasis", "term", "cell", "rowheader", "gridcell", "legend", "code"})  # fmt: skip
_WRAPPERS = frozenset({"generic", "paragraph", "definition", "strong", "emphasis"})
_CELLS = frozenset({"cell", "gridcell"})
_SAYS = re.compile(r"\w")
_SORTS = re.compile(r"\bsort", re.IGNORECASE)


def add(root: Node) -> None:
    """Add captions to fields without a name and terms to values; mark the links that only their addresses distinguish."""
    heads: dict[int, Node | None] = {}
    links: dict[str, list[Node]] = {}
    for node in root.walk():
        if not node.acting:
            if node.role == "definition":
                _define(node)
        elif node.role == "link":
            if node.address:
                links.setdefault(node.name or folded(inner(node)), []).append(node)
        elif not (node.name or node.placeholder) and (
            node.role in FIELDS or node.role in _BOXES or node.role == "canvas"
        ):
            _name(node, heads)
    for name, alike in links.items():
        _tell_apart(name, alike)


def _define(node: Node) -> None:
    """Set the term of a value: the nearest before it."""
    for before in reversed(_before(node)):
        if before.role == "term":
            if text := _text(before):
                node.caption, before.as_caption = text, not any(each.acting for each in before.walk())
            return
        if before.role != "definition":
            return


def _name(node: Node, heads: dict[int, Node | None]) -> None:
    """Name a field by its column, else by the text left of it or right before it; ``heads`` caches the header rows by table."""
    current = node
    for _level in range(4):
        above = current.parent
        if above is None:
            return
        if current.role in _CELLS and above.role == "row":
            node.caption = _column(current, above, heads) or _left(current, above)
            return
        before = _before(current)
        if node.role in _BOXES and current is node and not before:
            before = above.children[above.children.index(node) + 1 :][:1]
        if before:
            _caption(node, before[-1], before[-2] if len(before) > 1 else None)
            return
        if above.role not in _WRAPPERS and above.role not in _CELLS:
            return
        current = above


def _caption(node: Node, said: Node, earlier: Node | None) -> None:
    """Use the text right before the field as its caption, unless it follows a field without name or caption: then it is that field's unit."""
    if said.role not in _TEXTS or any(each.acting for each in said.walk()):
        return
    if earlier is not None and earlier.role in FIELDS and not (earlier.name or earlier.caption):
        return
    if text := _text(said):
        node.caption, said.as_caption = text, True


def _column(cell: Node, row: Node, heads: dict[int, Node | None]) -> str:
    table = next((each for each in row.above() if each.role in ("table", "grid", "treegrid")), None)
    if table is None:
        return ""
    if id(table) not in heads:
        heads[id(table)] = next((each for each in table.walk() if _is_head(each)), None)
    head = heads[id(table)]
    if head is None or head is row or len(head.children) != len(row.children):
        return ""
    return header(head.children[row.children.index(cell)])[:CAPTION_MOST]


def _is_head(node: Node) -> bool:
    return node.role == "row" and any(each.role == "columnheader" for each in node.children)


def _left(cell: Node, row: Node) -> str:
    for before in reversed(row.children[: row.children.index(cell)]):
        if any(each.acting for each in before.walk()):
            return ""
        if text := _text(before):
            return text
    return ""


def _before(node: Node) -> list[Node]:
    return node.parent.children[: node.parent.children.index(node)] if node.parent is not None else []


def _text(node: Node) -> str:
    text = folded(inner(node, 2 * CAPTION_MOST) or node.name)
    return text if len(text) <= CAPTION_MOST and _SAYS.search(text) else ""


def header(cell: Node) -> str:
    """Return a column's header without its sort controls: links to sort, and the numbers and arrows beside them."""
    if not any(each.acting for each in cell.walk()):
        return inner(cell)
    parts = [folded(inner(each) or each.name) for each in _leaves(cell)]
    words = [each for each in parts if re.search(r"[^\W\d_]", each) and not _SORTS.search(each)]
    return " ".join(words) or inner(cell)


def _leaves(cell: Node) -> list[Node]:
    found: list[Node] = []
    open_ = [cell]
    while open_:
        each = open_.pop()
        if each.acting or not each.children:
            found.append(each)
            continue
        if each.text:
            found.append(Node("text", text=each.text))
        open_.extend(reversed(each.children))
    return found


def _tell_apart(name: str, links: list[Node]) -> None:
    """Mark links with an ambiguous name: it has no letters, or another link in the same row, or outside of rows, has it too."""
    says = _SAYS.search(name) is not None
    if says and len(links) == 1:
        return
    leads: dict[int, set[str]] = {}
    rows = [_row(node, name) for node in links]
    for node, row in zip(links, rows, strict=True):
        leads.setdefault(row, set()).add(node.address)
    for node, row in zip(links, rows, strict=True):
        node.apart = not says or len(leads[row]) > 1


def _row(link: Node, name: str) -> int:
    """Return the identity of the row that distinguishes the link, else 0. A row that says no more than the link does not count."""
    for above in link.above():
        if above.role in ROWS and (above.role == "row" or folded(inner(above, len(name) + 40)) != name):
            return id(above)
    return 0
