"""``route``: the first branch whose condition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from nodes.base import Block, Container, Node
from nodes.part import Part
from nodes.template import Condition, JsonValue
from nodes.values import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodes.ports import BlockContext

OTHERWISE = "otherwise"
"""Name of the ``otherwise`` block in ``run.taken``."""


class Branch(Part):
    """One branch of a ``route``."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)
    """Name of the branch in ``run.taken.<id>``."""
    when: Condition
    """The branch is taken if this is true and no branch above it was taken."""
    nodes: Block = Field(min_length=1)
    """The nodes of the branch."""


class Route(Container):
    """Runs the first branch whose ``when`` is true, else ``otherwise``, else nothing. An error in a ``when`` fails the node.

    The decision is kept: a resumed run takes the same branch. Value: ``value``, or that of the taken block; its name is ``run.taken.<id>``.
    """

    type: Literal["route"] = "route"
    branches: list[Branch] = Field(min_length=1)
    """The branches, evaluated in order."""
    otherwise: Block | None = None
    """The nodes to run when no branch is taken."""
    value: JsonValue = None
    """Value of the route, in place of that of the taken block."""

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        for index, branch in enumerate(self.branches):
            yield ("branches", index, "nodes"), branch.nodes
        if self.otherwise is not None:
            yield (OTHERWISE,), self.otherwise

    async def run(self, ctx: BlockContext) -> Json:
        taken = ctx.decide(lambda: self._first_that_holds(ctx))
        ctx.note_taken(taken)
        nodes = self._block_of(taken)
        last = await ctx.block(nodes) if nodes else None
        return last if self.value is None else ctx.render(self, "value")

    def _first_that_holds(self, ctx: BlockContext) -> str | None:
        for branch in self.branches:
            if ctx.render(branch, "when"):
                return branch.name
        return OTHERWISE if self.otherwise is not None else None

    def _block_of(self, taken: str | None) -> list[Node] | None:
        if taken == OTHERWISE:
            return self.otherwise
        return next((branch.nodes for branch in self.branches if branch.name == taken), None)
