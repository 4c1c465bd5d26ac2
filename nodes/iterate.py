"""``iterate``: a block for each item in sequence, or repeated by a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nodes.base import Block, Container, Node
from nodes.errors import AuthorError
from nodes.ports import Item
from nodes.template import Condition, JsonValue, ListValue, Ref, Unfit, kind_of, to_integer
from nodes.values import Json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nodes.ports import BlockContext, Iteration


def to_key(value: Json) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise Unfit(f"is {'empty' if value == '' else kind_of(value)}, and a key is a text or a number")
    return value


def to_count(value: Json) -> int:
    count = to_integer(value)
    if count < 1:
        raise Unfit(f"is {count}, and a number from 1 is wanted")
    return count


Key = Annotated[str, Ref(to_key, literal=False)]
Count = Annotated[int, Field(ge=1), Ref(to_count)]


WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "over": (("as",), ("max",)),
    "while": (("max",), ("key", "limit")),
    "until": (("max",), ("key", "limit")),
}
"""Kinds of loops, each with the fields that it needs and those that have no meaning with it."""


class Iterate(Container):
    """Runs its nodes for each item of a list, or repeatedly while or until a condition holds, in sequence.

    Give exactly one of ``over``, ``while`` and ``until``. The end of each iteration is a commit point. The list and the results of
    conditions are kept as they were when the loop evaluated them: a resumed run has the same items, and does not repeat finished iterations.
    Value: the list of each iteration's value (``collect``, or that of its last node that ran), in order, without failed iterations.
    """

    in_turns: ClassVar[bool] = True

    type: Literal["iterate"] = "iterate"
    over: ListValue | None = None
    """The list; takes ``as``."""
    while_: Condition | None = Field(default=None, alias="while")
    """Evaluated before each iteration: another one runs while it is true. Takes ``max``. It sees the ids of the block, as the previous
    iteration left them. Before the first one they have no value: guard them (``page is undefined or page.more``)."""
    until: Condition | None = None
    """Evaluated after each iteration: another one runs until it is true. Takes ``max``. It sees the ids of the block."""
    max: Count | None = None
    """Limit of the iterations of ``while`` or ``until``; more is the error ``loop-limit``."""
    as_: str | None = Field(default=None, alias="as", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)
    """Name of the item inside the block (of the iteration's number, without a list). ``loop`` and ``<as>_loop`` have ``index`` (from 1),
    ``first``, ``last``, ``key``, ``length``; without a list, ``last`` and ``length`` are null."""
    key: Key | None = None
    """Identifies an item, such as ``"{{ order.number }}"``: a resumed run recognises finished items by it, in any order."""
    limit: Count | None = None
    """Limit of the items of ``over``, from the first; the rest is skipped."""
    nodes: Block = Field(min_length=1)
    """The nodes of each iteration. Their ids are visible only inside the iteration."""
    collect: JsonValue = None
    """Value of each iteration, evaluated at its end, in place of that of its last node."""
    each_error: Literal["fail", "continue"] = "fail"
    """``continue``: after a failed iteration the next one begins; ``run.failures.<id>`` lists ``index``, ``key``, ``step``, ``code`` and
    ``message`` of each. It covers the same errors as ``on_error``."""

    @classmethod
    def lacking(cls, given: Collection[str]) -> list[str]:
        if not WAYS.keys() & set(given):
            return [*super().lacking(given), "over"]
        needed = [field for way, (fields, _senseless) in WAYS.items() if way in given for field in fields]
        return [*super().lacking(given), *(field for field in dict.fromkeys(needed) if field not in given)]

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        yield ("nodes",), self.nodes

    async def run(self, ctx: BlockContext) -> Json:
        return await (self._again(ctx) if self.over is None else self._items(ctx))

    async def _items(self, ctx: BlockContext) -> list[Json]:
        opened = ctx.decide(lambda: self._open(ctx))
        items, keys = opened["items"], opened["keys"]
        values: list[Json] = []
        for index, (value, key) in enumerate(zip(items, keys, strict=True), start=1):
            turn = await self._turn(ctx, Item(self.as_, value, index, len(items), key), None)
            if not turn.given_up:
                values.append(turn.value)
        return values

    async def _again(self, ctx: BlockContext) -> list[Json]:
        most: int = ctx.render(self, "max")
        condition = "until" if self.while_ is None else "while_"
        values: list[Json] = []
        index, go_on = 0, condition == "until" or ctx.goes_on(condition)
        while go_on:
            if index == most:
                raise AuthorError(
                    "loop-limit",
                    f"after {most} turn{'s' if most != 1 else ''} the loop would continue",
                    fix=f"see why `{condition.removesuffix('_')}` does not end it, or give it a larger `max`",
                    evidence={"turns": most},
                )
            index += 1
            turn = await self._turn(ctx, Item(self.as_, index, index, None, None), condition)
            if not turn.given_up:
                values.append(turn.value)
            go_on = turn.go_on
        return values

    async def _turn(self, ctx: BlockContext, item: Item, condition: str | None) -> Iteration:
        collect = None if self.collect is None else "collect"
        give_up = self.each_error == "continue"
        return await ctx.turn(self.nodes, item, collect=collect, condition=condition, give_up=give_up)

    def _open(self, ctx: BlockContext) -> Json:
        items: list[Json] = ctx.render(self, "over")
        limit: int | None = None if self.limit is None else ctx.render(self, "limit")
        bound = {} if limit is None else {"limit": limit}
        items = items[:limit]
        if self.key is None:
            return {"items": items, "keys": [None] * len(items), **bound}
        assert self.as_ is not None
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
                    fix="choose a `key` that differs for every item, or leave it out to count items by position",
                    evidence={"key": key, "positions": [first, position]},
                )
        return {"items": items, "keys": keys, **bound}
