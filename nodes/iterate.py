"""``iterate``: a block for each item, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from nodes.base import Block, Container, Node
from nodes.errors import AuthorError
from nodes.ports import Item
from nodes.template import ListValue, Ref, Unfit, kind_of
from nodes.values import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodes.ports import BlockContext


def to_key(value: Json) -> str | int | float:
    """Text that is not empty, or a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise Unfit(f"is {'empty' if value == '' else kind_of(value)}, and a key is a text or a number")
    return value


Key = Annotated[str, Ref(to_key, literal=False)]


class Iterate(Container):
    """Runs its nodes for each item of a list, in sequence. The end of each item is a commit point.

    The list is kept as it was when the loop began: a resumed run goes on with the same items. Value: the list of each item's value
    (that of its last node that ran), in order.
    """

    type: Literal["iterate"] = "iterate"
    over: ListValue
    """The list to walk."""
    as_: str = Field(alias="as", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)
    """Name of the item inside the block; ``loop`` and ``<as>_loop`` tell ``index`` (from 1), ``first``, ``last``, ``key``, ``length``."""
    key: Key | None = None
    """What tells one item from the others, such as ``"{{ order.number }}"``: a resumed run knows finished items by it, in whatever order."""
    nodes: Block = Field(min_length=1)
    """The nodes to run for each item. Their ids are seen only inside the item."""

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        """Its one block."""
        yield ("nodes",), self.nodes

    async def run(self, ctx: BlockContext) -> Json:
        """Keep the list, then run the block for each item."""
        opened = ctx.decide(lambda: self._open(ctx))
        items, keys = opened["items"], opened["keys"]
        return [
            await ctx.item(self.nodes, Item(self.as_, value, index, len(items), key))
            for index, (value, key) in enumerate(zip(items, keys, strict=True), start=1)
        ]

    def _open(self, ctx: BlockContext) -> Json:
        items: list[Json] = ctx.render(self, "over")
        if self.key is None:
            return {"items": items, "keys": [None] * len(items)}
        position_of: dict[str, int] = {}
        keys: list[Json] = []
        for position, value in enumerate(items, start=1):
            key = ctx.render(self, "key", **{self.as_: value})
            first = position_of.setdefault(str(key), position)
            keys.append(key)
            if first != position:
                raise AuthorError(
                    "key-not-unique",
                    f"two items have the key {key!r}",
                    mend="choose a `key` that differs for every item, or leave it out to count items by position",
                    evidence={"key": key, "positions": [first, position]},
                )
        return {"items": items, "keys": keys}
