from typing import Literal

from pydantic import Field

from nodes.base import Block, Container
from nodes.template import Text


class Labelled(Container):
    """Runs its nodes. Value: a map with the ``label`` and the ``value`` of the last node that ran."""

    unit = True

    type: Literal["acme.labelled"] = "acme.labelled"
    label: Text
    """What to call the value."""
    nodes: Block = Field(min_length=1)
    """The nodes to run."""

    def blocks(self):
        yield ("nodes",), self.nodes

    async def run(self, ctx):
        return {"label": ctx.render(self, "label"), "value": await ctx.block(self.nodes)}
