"""``group``: a named block."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from nodes.base import Block, Container, Node
from nodes.template import JsonValue
from nodes.values import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodes.ports import BlockContext


class Group(Container):
    """Runs its nodes in order. Its end is a commit point: a resumed run does not do a finished group again.

    Ids inside stay visible after it. Value: ``value``, or that of its last node that ran.
    """

    unit: ClassVar[bool] = True

    type: Literal["group"] = "group"
    nodes: Block = Field(min_length=1)
    """The nodes to run."""
    value: JsonValue = None
    """What the group yields, in place of the value of its last node."""

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        """Its one block."""
        yield ("nodes",), self.nodes

    async def run(self, ctx: BlockContext) -> Json:
        """Run the block."""
        last = await ctx.block(self.nodes)
        return last if self.value is None else ctx.render(self, "value")
