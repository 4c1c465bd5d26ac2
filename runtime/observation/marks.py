"""Targets by what the document calls an element, shown where a person reads no equally good name."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from runtime.observation.tree import FIELDS, ROWS, Node, inner

MOST = 3  # most marks shown for parts of one text
LONGEST = 60  # most characters of a mark; a longer one is useless as a target

_PLAIN = re.compile(r"(?!(?i:true|false|yes|no|on|off|null|y|n)$)[A-Za-z_][\w-]*")
"""Texts that YAML reads without quotation marks."""
_SHOWN = frozenset({"definition", "table", "grid", "treegrid", "form", "dialog", "status", "alert"})


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    refs: tuple[str | None, ...]  # its own ref, if any, then those of its ancestors, the nearest first
    key: str  # of a target: `test_id`, for all elements; `css`, by id or name, for fields and buttons
    value: str
    said: str  # its text; empty if it is too long to show


def add(marks: Sequence[Mark], refs: Mapping[str, Node]) -> None:
    """Mark nodes (``refs`` by ref) if a target has nothing better; in rows only elements to act on."""
    parts: Counter[int] = Counter()
    for mark in marks:
        node = next((refs[each] for each in mark.refs if each is not None and each in refs), None)
        if node is None or len(mark.value) > LONGEST:
            continue
        if mark.refs[0] in refs:
            node.own_mark = target(mark)
        # A value is shown with all its content.
        value = next((each for each in (node, *node.above()) if each.role == "definition" and each.caption), None)
        if mark.refs[0] in refs and value in (None, node):
            node.mark = target(mark) if _wants(node) else node.mark
        elif (text := value or _saying(node, mark.said)) is not None and mark.said and parts[id(text)] < MOST:
            parts[id(text)] += 1
            part = "" if mark.said == inner(text) else f" = {json.dumps(mark.said, ensure_ascii=False)}"
            text.mark = f"{text.mark} {target(mark)}{part}".strip()


def target(mark: Mark) -> str:
    plain = _PLAIN.fullmatch(mark.value)
    return f"{{{mark.key}: {mark.value if plain else json.dumps(mark.value, ensure_ascii=False)}}}"


def _saying(node: Node, said: str) -> Node | None:
    """Return the text that contains the element's text; None if another element shows it."""
    if not said or node.acting or _in_row(node):
        return None
    return next((each for each in (node, *node.children) if not each.acting and said in each.text), None)


def _wants(node: Node) -> bool:
    """Return True if the element has a line but no name that a person knows it by."""
    if node.name or (not node.acting and _in_row(node)):
        return False
    if node.acting:
        return node.role in FIELDS or not inner(node, 1)
    return bool(node.text) or node.reach or node.role in _SHOWN


def _in_row(node: Node) -> bool:
    return any(each.role in ROWS for each in node.above())
