"""Names that an expression reads, with the facts known where it reads them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator

from jinja2 import nodes

Chain = tuple[str | int, ...]
"""A name and the keys that follow it: ``order.lines[0].sku`` is ``("order", "lines", 0, "sku")``."""

Fact = tuple[str | int, ...]
"""A fact about a place: ``("defined", *chain)``, ``("undefined", *chain)``, ``("taken", route, branch)``, or ``("holds", normal form)``."""

NOTHING: frozenset[Fact] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    chain: Chain
    offsets: tuple[int, ...]
    tolerant: bool  # true if a missing value is no error: directly under `default`, `is defined` or `is undefined`
    facts: frozenset[Fact]  # facts that the expression itself has checked before it reads the name

    @property
    def root(self) -> str:
        return str(self.chain[0])

    def sure_of(self, chain: Chain, facts: frozenset[Fact] = NOTHING) -> bool:
        """Return True if ``chain`` (a prefix of this one) has a value, given further ``facts``, or may be missing."""
        return self.tolerant or ("defined", *chain) in self.facts | facts


def uses(tree: nodes.Expr, base: int) -> list[Use]:
    """Return every reading of a name in an expression that begins at offset ``base`` of its text, in order of place."""
    return sorted(_uses(tree, base, NOTHING), key=lambda use: use.offsets)


def _uses(tree: nodes.Node, base: int, facts: frozenset[Fact], *, tolerant: bool = False) -> Iterator[Use]:
    found, places, rest = chain_of(tree)
    if found:
        yield Use(found, tuple(base + place for place in places), tolerant and not rest, facts)
        for each in rest:
            yield from _uses(each, base, facts)
    elif isinstance(tree, nodes.And | nodes.Or):
        yield from _uses(tree.left, base, facts)
        yield from _uses(tree.right, base, facts | facts_of(tree.left, truth=isinstance(tree, nodes.And)))
    elif isinstance(tree, nodes.CondExpr) and tree.expr2 is not None:
        yield from _uses(tree.test, base, facts)
        yield from _uses(tree.expr1, base, facts | facts_of(tree.test, truth=True))
        yield from _uses(tree.expr2, base, facts | facts_of(tree.test, truth=False))
    elif isinstance(tree, nodes.Call):
        for each in tree.args:
            yield from _uses(each, base, facts)
    else:
        for child in tree.iter_child_nodes():
            takes_missing = _takes_missing(tree) and isinstance(tree, nodes.Filter | nodes.Test) and child is tree.node
            yield from _uses(child, base, facts, tolerant=takes_missing)


def _takes_missing(tree: nodes.Node) -> bool:
    if isinstance(tree, nodes.Filter):
        return tree.name in ("default", "d")
    return isinstance(tree, nodes.Test) and tree.name in ("defined", "undefined")


def chain_of(tree: nodes.Node | None) -> tuple[Chain, tuple[int, ...], list[nodes.Node]]:
    """Return the longest chain of literal keys from a name, the offset of each part, and the expressions in computed keys.

    ``order.lines[i].sku`` gives ``("order", "lines")`` and the expression ``i``. The chain is empty if none begins here.
    """
    parts: list[tuple[str | int, int]] = []
    computed: list[nodes.Node] = []
    while isinstance(tree, nodes.Getattr | nodes.Getitem):
        if isinstance(tree, nodes.Getattr):
            parts.append((tree.attr, tree.lineno + 1))
        elif isinstance(tree.arg, nodes.Const) and isinstance(tree.arg.value, str | int):
            parts.append((tree.arg.value, tree.arg.lineno))
        else:
            # The keys after a computed one are unknown.
            parts.clear()
            computed.append(tree.arg)
        tree = tree.node
    if not isinstance(tree, nodes.Name):
        return (), (), []
    known = [(tree.name, tree.lineno), *reversed(parts)]
    return tuple(key for key, _ in known), tuple(place for _, place in known), computed


@functools.lru_cache(maxsize=512)  # a chain of `and` requests the facts of its prefixes many times
def facts_of(tree: nodes.Node, *, truth: bool) -> frozenset[Fact]:
    """Return the facts that hold if the condition ``tree`` is ``truth``."""
    if isinstance(tree, nodes.And | nodes.Or):
        left, right = facts_of(tree.left, truth=truth), facts_of(tree.right, truth=truth)
        facts = left | right if isinstance(tree, nodes.And) == truth else (left & right) | _names(tree.left)
        return facts if isinstance(tree, nodes.And) or not truth else facts | _holds(tree)
    if isinstance(tree, nodes.Not):
        facts = facts_of(tree.node, truth=not truth)
    elif isinstance(tree, nodes.Test) and _takes_missing(tree) and (found := chain_of(tree.node)[0]):
        facts = _prefixes(found) if (tree.name == "defined") == truth else frozenset({("undefined", *found)})
    else:
        facts = _names(tree, tolerated=truth) | _taken(tree, truth)
    return facts | _holds(tree) if truth else facts


def parts_of(tree: nodes.Node) -> frozenset[Fact]:
    """Return the conditions joined by ``and`` as facts; nothing if one of them may change between evaluations."""
    if not isinstance(tree, nodes.And):
        return _holds(tree)
    left, right = parts_of(tree.left), parts_of(tree.right)
    return left | right if left and right else NOTHING


def _holds(tree: nodes.Node) -> frozenset[Fact]:
    """Return the condition as a fact, independent of layout; nothing if its value may change between evaluations."""
    return NOTHING if tree.find(nodes.Call) is not None else frozenset({("holds", repr(tree))})


def _names(tree: nodes.Node, *, tolerated: bool = False) -> frozenset[Fact]:
    """Return facts about the names that a condition always reads; ``tolerated`` includes those that may be missing."""
    read = (use for use in _uses(tree, 0, NOTHING) if not use.facts and (tolerated or not use.tolerant))
    return NOTHING.union(*(_prefixes(use.chain) for use in read))


def _prefixes(chain: Chain) -> frozenset[Fact]:
    return frozenset(("defined", *chain[:length]) for length in range(1, len(chain) + 1))


def _taken(tree: nodes.Node, truth: bool) -> frozenset[Fact]:
    if not isinstance(tree, nodes.Compare) or len(tree.ops) != 1 or tree.ops[0].op != ("eq" if truth else "ne"):
        return NOTHING
    for side, other in itertools.permutations((tree.expr, tree.ops[0].expr)):
        found = chain_of(side.node if isinstance(side, nodes.Filter) and _takes_missing(side) else side)[0]
        if found[:2] == ("run", "taken") and len(found) == 3 and isinstance(other, nodes.Const):
            return frozenset({("taken", found[2], str(other.value))})
    return NOTHING
