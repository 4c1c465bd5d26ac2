"""Scopes: names with a value at a place of a workflow, and the conditions for that."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from runtime.language.expressions.names_read import NOTHING, Fact
from runtime.language.expressions.references import Compiled
from runtime.language.node_tree import NodeSource

COLLECTED = frozenset({"value", "collect"})
"""Fields of a container that are computed after its block and see its names."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Need:
    """Reason for a node not to run: its own condition, or one around it. Compared by identity."""

    why: str
    """Text for people: "its `when` may be false"."""
    implied_by: tuple[frozenset[Fact], ...] = ()
    """Sets of facts; each set implies that the node ran."""

    def met(self, facts: frozenset[Fact]) -> bool:
        """Return True if the facts exclude this reason."""
        return any(each <= facts for each in self.implied_by)


@dataclasses.dataclass(slots=True, eq=False)
class Breaking:
    """A block that an error may end while the run continues elsewhere: any node in it may be the last one that ran."""

    why: str
    """Text for people: "the `try` of `pay` may have failed before it"."""
    needs: list[Need] = dataclasses.field(default_factory=list[Need])
    """One condition for each node, in order: a later node has run only if the earlier one has."""

    def another(self) -> Need:
        """Add and return the condition of one more node."""
        self.needs.append(Need(self.why))
        return self.needs[-1]


@dataclasses.dataclass(frozen=True, slots=True)
class Here:
    """Context of a reference."""

    facts: frozenset[Fact] = NOTHING
    """Facts that hold because this place was reached."""
    met: frozenset[Need] = frozenset()
    """Conditions of this place: it is reached only if they are met."""
    needs: tuple[Need, ...] = ()
    """All conditions of nodes here."""
    loops: tuple[NodeSource, ...] = ()
    """Loops around it, outermost first."""
    open: tuple[NodeSource, ...] = ()
    """Nodes around it, outermost first, and the node itself: none of them has a value yet."""
    breaking: Breaking | None = None
    """Possible early end of the block around it while the run continues."""
    error: bool = False
    """True if ``error`` is known: inside a ``catch``."""

    def within(
        self,
        *needs: Need,
        facts: frozenset[Fact] = NOTHING,
        loop: NodeSource | None = None,
        unit: NodeSource | None = None,
    ) -> Here:
        """Return an inner place, reached under further conditions."""
        return Here(
            self.facts | facts,
            self.met | set(needs),
            (*self.needs, *needs),
            (*self.loops, loop) if loop else self.loops,
            (*self.open, unit) if unit else self.open,
            self.breaking,
            self.error,
        )

    def broken_by(self, breaking: Breaking | None) -> Here:
        """Return the same place in a block that may end early, or with None in one that only the end of the run breaks."""
        return dataclasses.replace(self, breaking=breaking)

    def after(self, breaking: Breaking | None) -> Here:
        """Return the same place, given that nothing broke the block."""
        return dataclasses.replace(self, met=self.met | set(breaking.needs)) if breaking else self

    def unmet(self, needs: tuple[Need, ...], facts: frozenset[Fact]) -> list[Need]:
        """Return the conditions that nothing here implies."""
        return [need for need in needs if need not in self.met and not need.met(self.facts | facts)]


def own_needs(unit: NodeSource, when: Compiled | None) -> list[Need]:
    """Return the reasons in a node's own fields why it may have no value: first its ``when``."""
    found: list[Need] = []
    if unit.data.get("when") not in (None, True):
        found.append(Need("its `when` may be false", _implying(when)))
    if unit.data.get("on_error") == "continue":
        spared: Fact = ("undefined", "run", "errors", unit.id or "")
        found.append(Need("it may fail, and has `on_error: continue`", (frozenset({spared}),)))
    return found


def branch_need(unit: NodeSource, index: int | None, branch: Mapping[str, object], when: Compiled | None) -> Need:
    """Return the reason why the nodes of a branch may not have run; ``index`` is None for ``otherwise``."""
    name = "otherwise" if index is None else str(branch.get("name"))
    taken = frozenset[Fact]({("taken", unit.id or "", name)})
    first = _implying(when) if index == 0 else ()
    return Need(f"the branch `{name}` of `{unit.id}` may not be taken", (taken, *first))


def _implying(when: Compiled | None) -> tuple[frozenset[Fact], ...]:
    """Return sets of facts that each imply the condition: the condition as a whole, or all its parts joined by ``and``."""
    if when is None or not when.exact:
        return ()
    return tuple(frozenset({fact}) for fact in when.whole) + ((when.parts,) if when.parts else ())
