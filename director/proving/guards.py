"""Finds steps that runs passed by on purpose: they change nothing on the site, and their condition did not hold. Pure.

Such a step closes a banner or opens a panel if that is needed. No run can show more of it while it is not: its condition was decided, and
what it would do changes neither the site nor a value.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from director.effects import effects
from nodes.base import Leaf
from nodes.browser_action import BrowserAction
from nodes.route import OTHERWISE, Route
from runtime.language import workflow
from runtime.log import history

WHEN = "when"  # the kind of a decision about a node's own condition


def passed_by(loaded: workflow.Loaded, past: history.History) -> frozenset[str]:
    """Return the keys of all leaves that a run passed by as a condition on them or around them was decided against them."""
    return frozenset(key for path in past.scopes for key in _passed_at(loaded, past, path))


def _passed_at(loaded: workflow.Loaded, past: history.History, path: str) -> Iterator[str]:
    decided, found = past.scope(path).decided, loaded.find(path)
    if decided is None or found is None:
        return
    node, within = found.node, effects.key_of(loaded, path).removesuffix(found.node.id)
    if decided.node == WHEN:
        yield from effects.inside(found.file, [node], within)
    elif isinstance(node, Route):
        blocks = {each.name: each.nodes for each in node.branches} | {OTHERWISE: node.otherwise or []}
        for name, block in blocks.items():
            if name != decided.value:
                yield from effects.inside(found.file, block, within)


def of(loaded: workflow.Loaded, every: Sequence[Container[str]]) -> list[str]:
    """Return the keys of the leaves that are guards, and that each run (``passed_by``) passed by."""
    read = set(_names_read(loaded))
    return [
        key
        for leaf, key in effects.leaves_of(loaded)
        if every and all(key in passed for passed in every) and _only_moves(leaf) and leaf.id not in read
    ]


def _only_moves(leaf: Leaf) -> bool:
    """Return whether a step only brings the page to another state, or waits for that, and changes nothing on the site."""
    moves = leaf.moves_page or getattr(leaf, "action", None) == "wait"
    return isinstance(leaf, BrowserAction) and moves and leaf.effect_class == "read"


def _names_read(loaded: workflow.Loaded) -> Iterator[str]:
    yield from (str(use.root) for template in loaded.templates.values() for use in template.names)
    for callee in loaded.callees.values():
        yield from _names_read(callee)
