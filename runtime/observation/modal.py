"""What is behind a modal dialog: no hand can reach it, and the page shows it in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from runtime.observation.folding import counted
from runtime.observation.lines import Item, items
from runtime.observation.tree import ACTING, DIALOGS, ROWS, URGENT, Node, inner

_STATE = "modal"  # state of a page with an open modal dialog
_COUNTED = ACTING | ROWS | {"heading", "clickable"}


def mark(root: Node, front: Sequence[str], refs: Mapping[str, Node]) -> None:
    """Mark all that is behind what is in ``front``; a message to the user is never behind."""
    found = [refs[ref] for ref in front if ref in refs]
    if not found:
        return
    found += [each for each in root.walk() if each.role in URGENT - DIALOGS and inner(each, 1)]
    ahead = {id(above) for node in found for above in node.above()}
    ahead |= {id(each) for node in found for each in node.walk()}
    for node in root.walk():
        node.behind = id(node) not in ahead
    root.states = (_STATE,)


def shown(root: Node) -> Item:
    """Return the lines of a page, with one for all that is behind a modal dialog."""
    top = items(root)
    if _STATE not in root.states:
        return top
    parts = [each for each in root.walk() if each.behind and not (each.parent is not None and each.parent.behind)]
    counts = Counter(each.role for part in parts for each in part.walk() if each.role in _COUNTED)
    if counts:
        most = max(parts, key=lambda part: sum(1 for _each in part.walk()))
        way = "find(role=…, name=…)" if most.ref is None else f"look(ref={most.ref})"
        line = f"behind the dialog: {counted(counts)}: {way}"
        top.children.append(Item(Node("region", parent=root), line, parent=top))
    return top
