"""Finds the targets that an edit has written for the page that is open: that of a ``goto``, or that before the next node of the bench."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from director.draft.draft import Draft
from director.draft.goal import Goal
from director.editing import limits
from nodes.base import Leaf, Node
from nodes.errors import RunOpsError
from nodes.group import Group
from nodes.targets import Target
from nodes.values import Json
from runtime.engine import rendering

_STAYS = frozenset({"check", "fill", "hover", "scroll", "select", "type", "uncheck", "upload"})
"""Actions that leave the page as it is for the node after them."""

_DONE = ("done", "passed by")


def targets(
    before: Draft | None, made: Draft, goal: Goal, marks: Mapping[str, str], bench: str | None, scout: str | None
) -> dict[str, tuple[str, Target]]:
    """Return the new targets by node, each with the page that it is for: ``bench`` or ``scout``.

    ``bench`` and ``scout`` are the addresses of the open pages, ``marks`` the states of the nodes on the bench.
    """
    nodes = list(_in_order(made.loaded.workflow.nodes))
    values: dict[str, Json] = {}
    with contextlib.suppress(RunOpsError):
        values = {"inputs": limits.given(made, goal)}
    starts: list[tuple[int, str]] = []
    following = next((at for at, node in enumerate(nodes) if not _is_done(node, marks)), 0)
    if bench is not None and following:
        starts.append((following, "bench"))
    for at, node in enumerate(nodes):
        leads = _filled(made, node, "url", values) if getattr(node, "action", None) == "goto" else None
        for where, address in (("bench", bench), ("scout", scout)):
            if isinstance(leads, str) and address is not None and _place(leads) == _place(address):
                starts.append((at + 1, where))
    was = {node.id: getattr(node, "target", None) for node in before.loaded.nodes()} if before is not None else {}
    found: dict[str, tuple[str, Target]] = {}
    for start, where in starts:
        for node in _on_one_page(nodes[start:]):
            target = _filled(made, node, "target", values)
            if isinstance(target, Target) and getattr(node, "target", None) != was.get(node.id):
                found.setdefault(node.id, (where, target))
    return found


def takes_several(node: Node) -> bool:
    return getattr(node, "query", None) in ("count", "exists", "extract")


def _in_order(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, Group) and node.when is None and node.nodes:
            yield from _in_order(node.nodes)
        else:
            yield node


def _on_one_page(nodes: Sequence[Node]) -> Iterator[Leaf]:
    """Yield the nodes that find the page as it is now: up to the first that may change it."""
    for node in nodes:
        if not isinstance(node, Leaf) or node.when is not None or getattr(node, "tab", None) is not None:
            return
        if not takes_several(node):
            yield node
        if node.touches_page and node.type == "browser_action" and getattr(node, "action", None) not in _STAYS:
            return


def _is_done(node: Node, marks: Mapping[str, str]) -> bool:
    return marks.get(node.id, "").startswith(_DONE)


def _filled(made: Draft, node: Node, field: str, values: Mapping[str, Json]) -> Any:
    """Return a field with the inputs in it; None if it is missing, or needs another value."""
    with contextlib.suppress(RunOpsError):
        written = getattr(node, field, None)
        part = written if isinstance(written, Target) else node
        filled = rendering.filled(part, made.loaded.templates, values, rendering.RecordedClock([]))
        return filled if part is written else getattr(filled, field, None)
    return None


def _place(url: str) -> str:
    address, mark, fragment = url.partition("#")
    return f"{address.partition('?')[0].rstrip('/')}{mark}{fragment}"
