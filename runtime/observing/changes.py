"""What changed between two looks at a tab."""

from __future__ import annotations

from collections import Counter

from runtime.observing.folding import bounded
from runtime.observing.lines import NAME_MOST, TEXT_MOST, line_of, quoted
from runtime.observing.tree import FIELDS, URGENT, Node, inner

_LEAST_COMMON = 0.3
"""Share of the earlier refs that a document keeps; one that keeps fewer is a new one."""


def changes(before: Node, after: Node, budget: int) -> str:
    """What changed, the most telling first, in at most ``budget`` characters; the empty text where nothing did."""
    old, new = _lines(before), _lines(after)
    gone, came = old - new, new - old
    by_ref = {ref: node for ref, node in _refs(before).items() if ref in _refs(after)}
    told: list[tuple[int, str]] = []
    replaced: Counter[str] = Counter()
    for ref, now in _refs(after).items():
        earlier = by_ref.get(ref)
        if earlier is None or line_of(earlier) == line_of(now):
            continue
        told.append((1 if now.error else 2, f"changed: {line_of(now)} (was: {_was(earlier, now)})"))
        replaced[line_of(earlier)] += 1
        replaced[line_of(now)] += 1
    for sign, lines in (("new", came), ("gone", gone)):
        for line, number in (lines - replaced).items():
            rank = _rank(line, sign)
            told.append((rank, f"{sign}: {line}" + (f" ({number} times)" if number > 1 else "")))
    told.sort(key=lambda each: each[0])
    return bounded([line for _rank, line in told], budget, "… {} more changes: look()") if told else ""


def _rank(line: str, sign: str) -> int:
    role = line.split(" ", 1)[0]
    if role in URGENT:
        return 0
    if role == "heading":
        return 1
    acting = "[ref=" in line
    if sign == "new":
        return 3 if acting else 4
    return 6 if acting else 5


def _was(earlier: Node, now: Node) -> str:
    if earlier.text != now.text and earlier.role in FIELDS:
        return quoted(earlier.text, NAME_MOST)
    if earlier.states != now.states:
        return ", ".join(earlier.states) or f"not {', '.join(now.states)}"
    if earlier.name != now.name:
        return quoted(earlier.name, NAME_MOST)
    return line_of(earlier)


def _refs(root: Node) -> dict[str, Node]:
    return {each.ref: each for each in root.walk() if each.acting and each.ref is not None}


def _lines(root: Node) -> Counter[str]:
    """What can be compared: what one acts on, headings, alerts, texts."""
    found: Counter[str] = Counter()
    for node in root.walk():
        if node.role in URGENT:
            found[f"{node.role} {quoted(inner(node, TEXT_MOST), TEXT_MOST)}"] += 1
        elif node.acting or node.role == "heading":
            found[line_of(node)] += 1
        elif node.role == "option":
            continue
        elif node.text and not any(each.acting and each.name == node.text for each in node.above()):
            found[quoted(node.text, TEXT_MOST)] += 1
    return found
