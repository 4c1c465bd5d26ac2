"""What tells elements apart that their own names do not: captions that stand beside them, and where links of the same name lead."""

from __future__ import annotations

import re

from runtime.observing.tree import FIELDS, ROWS, Node, folded, inner

CAPTION_MOST = 80
"""Characters of what may be a caption: more is a text of its own."""

_BOXES = frozenset({"checkbox", "radio", "switch"})
_TEXTS = frozenset({"text", "generic", "paragraph", "strong", "emphasis", "term", "cell", "rowheader", "gridcell", "legend", "code"})  # fmt: skip
_WRAPPERS = frozenset({"generic", "paragraph", "definition", "strong", "emphasis"})
_CELLS = frozenset({"cell", "gridcell"})
_SAYS = re.compile(r"\w")
_SORTS = re.compile(r"\bsort", re.IGNORECASE)


def add(root: Node) -> None:
    """Give fields without a name the captions beside them, values their terms, and mark the links that only their addresses tell apart."""
    heads: dict[int, Node | None] = {}
    for node in root.walk():
        if node.role == "definition" and not node.acting:
            _define(node)
        elif node.acting and (node.role in FIELDS or node.role in _BOXES) and not (node.name or node.placeholder):
            _name(node, heads)
    _tell_links_apart(root)


def _define(node: Node) -> None:
    """The term of a value: the nearest before it."""
    for before in reversed(_before(node)):
        if before.role == "term":
            if text := _text(before):
                node.caption, before.told = text, not any(each.acting for each in before.walk())
            return
        if before.role != "definition":
            return


def _name(node: Node, heads: dict[int, Node | None]) -> None:
    """What the column is called, else what stands left of the field, or right before it; ``heads`` are the rows of headers that are known, by table."""
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
    """Take for the caption what is said right before the field, unless it stands behind another field that has none: there it is the unit of that one."""
    if said.role not in _TEXTS or any(each.acting for each in said.walk()):
        return
    if earlier is not None and earlier.role in FIELDS and not (earlier.name or earlier.caption):
        return
    if text := _text(said):
        node.caption, said.told = text, True


def _column(cell: Node, row: Node, heads: dict[int, Node | None]) -> str:
    """What stands above the cell; empty where nothing does."""
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
    """What stands above a column, without what sorts it: links that are called so, and the numbers and arrows beside them."""
    if not any(each.acting for each in cell.walk()):
        return inner(cell)
    parts = [folded(inner(each) or each.name) for each in _leaves(cell)]
    words = [each for each in parts if re.search(r"[^\W\d_]", each) and not _SORTS.search(each)]
    return " ".join(words) or inner(cell)


def _leaves(cell: Node) -> list[Node]:
    """What the cell says, part by part."""
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


def _tell_links_apart(root: Node) -> None:
    """Mark the links whose name does not tell where they lead: it says nothing, or another beside them, in the same row or outside of rows, has it too."""
    links: list[tuple[Node, tuple[int, str]]] = []
    leads: dict[tuple[int, str], set[str]] = {}
    for node in root.walk():
        if node.role != "link" or not node.acting or not node.address:
            continue
        name = folded(node.name or inner(node))
        # One that says no more than the link does not tell it apart.
        row = next((each for each in node.above() if each.role in ROWS and folded(inner(each)) != name), root)
        key = (id(row), name)
        links.append((node, key))
        leads.setdefault(key, set()).add(node.address)
    for node, key in links:
        node.apart = len(leads[key]) > 1 or not _SAYS.search(key[1])
