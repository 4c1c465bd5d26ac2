"""``group``: a named block, or another workflow file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from nodes.base import Block, Container, Node
from nodes.template import JsonValue
from nodes.values import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodes.ports import BlockContext


class Group(Container):
    """Runs its nodes in order, or another workflow file. Its end is a commit point: a resumed run does not repeat a finished group.

    Give exactly one of ``nodes`` and ``use``. Ids in ``nodes`` stay visible after the group. A file in ``use`` has a separate scope: it sees
    its ``inputs``, its ``secrets`` and its own nodes and variables, works in the same browser, and exposes only its ``output``. There
    documents load only from origins that both files allow. Value: ``value``, or that of the last node that ran, or the file's ``output``.
    """

    unit: ClassVar[bool] = True

    type: Literal["group"] = "group"
    nodes: Block | None = None
    """The nodes to run."""
    use: str | None = Field(default=None, min_length=1)
    """The workflow file to run, relative to the folder of this file and inside the project."""
    with_: dict[str, JsonValue] | None = Field(default=None, alias="with")
    """The inputs of the file in ``use``, by name. An input with a ``default`` may be left out."""
    secrets: list[str] | None = None
    """The secrets for the file in ``use``: all that it declares. This file must declare the same names."""
    value: JsonValue = None
    """Value of the group, in place of that of its last node or of the file's ``output``."""

    @model_validator(mode="after")
    def _nodes_or_use(self) -> Group:
        if self.nodes is None and self.use is None:
            raise PydanticCustomError("needed", "`group` needs `nodes` or `use`")
        if self.nodes is not None and self.use is not None:
            raise ValueError("a `group` has `nodes` or `use`, and this one has both")
        if self.use is None and not (self.with_ is None and self.secrets is None):
            raise ValueError(
                f"`{'secrets' if self.with_ is None else 'with'}` is for the file in `use`, and this group has `nodes`"
            )
        return self

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        if self.nodes is not None:
            yield ("nodes",), self.nodes

    async def run(self, ctx: BlockContext) -> Json:
        last = await (ctx.callee(self, "with_", self.secrets or []) if self.nodes is None else ctx.block(self.nodes))
        return last if self.value is None else ctx.render(self, "value")
