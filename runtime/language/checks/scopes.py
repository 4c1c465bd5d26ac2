"""What is known at a place of a workflow: which names have a value there, and under which conditions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from runtime.language.expressions.names_read import NOTHING, Fact
from runtime.language.expressions.references import Compiled
from runtime.language.node_tree import NodeSource

COLLECTED = frozenset({"value", "collect"})
"""Fields of a container that are worked out after its block, and see what is in it."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Need:
    """Why a node may not have run: a condition of its own or of what is around it. Each is itself, however alike."""

    why: str
    """For people: "its `when` may be false"."""
    implied_by: tuple[frozenset[Fact], ...] = ()
    """Facts from which it follows that it ran: all of any one of these."""

    def met(self, facts: frozenset[Fact]) -> bool:
        """Whether the facts imply that the node was not kept from running by this."""
        return any(each <= facts for each in self.implied_by)


@dataclasses.dataclass(slots=True, eq=False)
class Breaking:
    """A block that an error may end, and the run goes on elsewhere: each node of it may be the last one that ran."""

    why: str
    """For people: "the `try` of `pay` may have failed before it"."""
    needs: list[Need] = dataclasses.field(default_factory=list[Need])
    """One for each node, in order: what follows a node has run only where the node has."""

    def another(self) -> Need:
        """The condition on one more node."""
        self.needs.append(Need(self.why))
        return self.needs[-1]


@dataclasses.dataclass(frozen=True, slots=True)
class Here:
    """Where a reference stands."""

    facts: frozenset[Fact] = NOTHING
    """What holds because this place was reached."""
    met: frozenset[Need] = frozenset()
    """Conditions that this place shares: without them it would not have been reached."""
    needs: tuple[Need, ...] = ()
    """All conditions on what stands here."""
    loops: tuple[NodeSource, ...] = ()
    """The loops around it, outermost first."""
    open: tuple[NodeSource, ...] = ()
    """The nodes around it, outermost first, and the node itself: none of them has a value yet."""
    breaking: Breaking | None = None
    """How the block around it may end before its end, while the run goes on."""
    error: bool = False
    """Whether ``error`` is known: inside a ``catch``."""

    def within(
        self,
        *needs: Need,
        facts: frozenset[Fact] = NOTHING,
        loop: NodeSource | None = None,
        unit: NodeSource | None = None,
    ) -> Here:
        """A place inside, reached under further conditions."""
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
        """The same place, in a block that may end so, or in one that nothing but the run's end breaks."""
        return dataclasses.replace(self, breaking=breaking)

    def after(self, breaking: Breaking | None) -> Here:
        """The same place, once it is known that nothing broke the block."""
        return dataclasses.replace(self, met=self.met | set(breaking.needs)) if breaking else self

    def unmet(self, needs: tuple[Need, ...], facts: frozenset[Fact]) -> list[Need]:
        """Those of the conditions that nothing here implies."""
        return [need for need in needs if need not in self.met and not need.met(self.facts | facts)]


def own_needs(unit: NodeSource, when: Compiled | None) -> list[Need]:
    """Why a node may have no value, by its own fields: the ``when`` first."""
    found: list[Need] = []
    if unit.data.get("when") not in (None, True):
        found.append(Need("its `when` may be false", _implying(when)))
    if unit.data.get("on_error") == "continue":
        spared: Fact = ("undefined", "run", "errors", unit.id or "")
        found.append(Need("it may fail, and has `on_error: continue`", (frozenset({spared}),)))
    return found


def branch_need(unit: NodeSource, index: int | None, branch: Mapping[str, object], when: Compiled | None) -> Need:
    """Why what is in a branch may not have run; ``index`` is None for ``otherwise``."""
    name = "otherwise" if index is None else str(branch.get("name"))
    taken = frozenset[Fact]({("taken", unit.id or "", name)})
    first = _implying(when) if index == 0 else ()
    return Need(f"the branch `{name}` of `{unit.id}` may not be taken", (taken, *first))


def _implying(when: Compiled | None) -> tuple[frozenset[Fact], ...]:
    """The condition as a whole, or all its parts joined by ``and``."""
    if when is None or not when.exact:
        return ()
    return tuple(frozenset({fact}) for fact in when.whole) + ((when.parts,) if when.parts else ())
