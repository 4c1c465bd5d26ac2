"""Names that an expression reads, with the facts known where it reads them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

from jinja2 import nodes

Chain = tuple[str | int, ...]
"""A name and the keys that follow it: ``order.lines[0].sku`` is ``("order", "lines", 0, "sku")``."""

Fact = tuple[str | int, ...]
"""A fact about a place: ``("defined", *chain)``, ``("undefined", *chain)``, ``("taken", route, branch)``, or ``("holds", normal form)``."""

NOTHING: frozenset[Fact] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """One reading of a name."""

    chain: Chain
    offsets: tuple[int, ...]
    """Offset of each part of the chain in the text."""
    tolerant: bool
    """True if a missing value is no error: directly under ``default``, ``is defined`` or ``is undefined``."""
    facts: frozenset[Fact]
    """Facts that the expression itself establishes before it is read."""

    @property
    def root(self) -> str:
        """The name itself."""
        return str(self.chain[0])

    @property
    def offset(self) -> int:
        """Offset of the name in the text."""
        return self.offsets[0]

    @property
    def guarded(self) -> bool:
        """True if the expression itself handles a missing value of the name."""
        return self.sure_of(self.chain[:1])

    def sure_of(self, chain: Chain, facts: frozenset[Fact] = NOTHING) -> bool:
        """Return True if ``chain`` (a prefix of this one) has a value, given further ``facts``, or may be missing."""
        return self.tolerant or ("defined", *chain) in self.facts or ("defined", *chain) in facts


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
        return
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
    parts: list[tuple[str | int | None, int]] = []
    computed: list[nodes.Node] = []
    while True:
        if isinstance(tree, nodes.Getattr):
            parts.append((tree.attr, tree.lineno + 1))
        elif (
            isinstance(tree, nodes.Getitem)
            and isinstance(tree.arg, nodes.Const)
            and isinstance(tree.arg.value, str | int)
        ):
            parts.append((tree.arg.value, tree.arg.lineno))
        elif isinstance(tree, nodes.Getitem):
            parts.append((None, tree.lineno))
            computed.append(tree.arg)
        else:
            break
        tree = tree.node
    if not isinstance(tree, nodes.Name):
        return (), (), []
    known: list[tuple[str | int, int]] = [(tree.name, tree.lineno)]
    for key, place in reversed(parts):
        if key is None:
            break
        known.append((key, place))
    return tuple(key for key, _ in known), tuple(place for _, place in known), computed


@functools.lru_cache(maxsize=512)  # a chain of `and` requests the facts of its prefixes many times
def facts_of(tree: nodes.Node, *, truth: bool) -> frozenset[Fact]:
    """Return the facts that hold if the condition ``tree`` is ``truth``."""
    if isinstance(tree, nodes.Not):
        return facts_of(tree.node, truth=not truth) | holds(tree, truth=truth)
    if isinstance(tree, nodes.And | nodes.Or):
        both = facts_of(tree.left, truth=truth), facts_of(tree.right, truth=truth)
        if isinstance(tree, nodes.And) == truth:
            return both[0] | both[1] | holds(tree, truth=truth)
        return (both[0] & both[1]) | holds(tree, truth=truth) | _evaluated(tree.left)
    return _defined_by(tree, truth) | _evaluated(tree) | holds(tree, truth=truth) | _taken(tree, truth)


def holds(tree: nodes.Node, *, truth: bool) -> frozenset[Fact]:
    """Return the condition as a fact, independent of layout; nothing if its value may change between evaluations."""
    if tree.find(nodes.Call) is not None:
        return NOTHING
    form = repr(tree) if truth else f"Not(node={tree!r})"
    return frozenset({("holds", form)})


def parts_of(tree: nodes.Node) -> frozenset[Fact]:
    """Return the conditions joined by ``and`` as facts; nothing if one of them may change between evaluations."""
    if not isinstance(tree, nodes.And):
        return holds(tree, truth=True)
    left, right = parts_of(tree.left), parts_of(tree.right)
    return left | right if left and right else NOTHING


def _evaluated(tree: nodes.Node) -> frozenset[Fact]:
    """Return facts about names that must have a value because the condition could be evaluated."""
    if isinstance(tree, nodes.And | nodes.Or):
        return _evaluated(tree.left)
    if isinstance(tree, nodes.CondExpr):
        return _evaluated(tree.test)
    found, _places, rest = chain_of(tree)
    if found:
        return _prefixes(found).union(*(_evaluated(each) for each in rest))
    if _takes_missing(tree):
        return NOTHING
    return NOTHING.union(*(_evaluated(child) for child in tree.iter_child_nodes()))


def _prefixes(chain: Chain) -> frozenset[Fact]:
    return frozenset(("defined", *chain[:length]) for length in range(1, len(chain) + 1))


def _defined_by(tree: nodes.Node, truth: bool) -> frozenset[Fact]:
    if isinstance(tree, nodes.Test) and tree.name in ("defined", "undefined"):
        found, _places, rest = chain_of(tree.node)
        if found and not rest:
            return _prefixes(found) if (tree.name == "defined") == truth else frozenset({("undefined", *found)})
    elif isinstance(tree, nodes.Filter) and truth:
        found, fallback = _with_default(tree)
        if found and not fallback:
            return _prefixes(found)
    elif isinstance(tree, nodes.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0].expr, nodes.Const):
        found, fallback = _with_default(tree.expr)
        same = fallback == tree.ops[0].expr.value
        if found and (
            (tree.ops[0].op == "eq" and truth and not same) or (tree.ops[0].op == "ne" and not truth and not same)
        ):
            return _prefixes(found)
    return NOTHING


def _with_default(tree: nodes.Node) -> tuple[Chain, object]:
    """Return ``x`` and ``c`` of ``x | default(c)`` if ``c`` is a literal."""
    if isinstance(tree, nodes.Filter) and tree.name in ("default", "d") and not tree.kwargs:
        found, _places, rest = chain_of(tree.node)
        if not rest and not tree.args:
            return found, ""
        if not rest and len(tree.args) == 1 and isinstance(tree.args[0], nodes.Const):
            return found, tree.args[0].value
    return (), None


def _taken(tree: nodes.Node, truth: bool) -> frozenset[Fact]:
    if not isinstance(tree, nodes.Compare) or len(tree.ops) != 1 or tree.ops[0].op != ("eq" if truth else "ne"):
        return NOTHING
    sides = (tree.expr, tree.ops[0].expr)
    for side, other in (sides, sides[::-1]):
        inner = side.node if isinstance(side, nodes.Filter) and side.name in ("default", "d") else side
        found, _places, rest = chain_of(inner)
        if found[:2] != ("run", "taken") or len(found) != 3 or rest:
            continue
        if isinstance(other, nodes.Const) and isinstance(other.value, str):
            return frozenset({("taken", found[2], other.value)})
    return NOTHING
