"""``transform``: pure data."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from nodes.base import EffectClass, Leaf
from nodes.template import JsonValue
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class Transform(Leaf):
    """Makes a value from values; touches neither page nor network. Exactly one of ``expr`` and ``fields``."""

    effect_default: ClassVar[EffectClass] = "read"

    type: Literal["transform"] = "transform"
    expr: JsonValue = None
    """One expression, or a text with expressions in it: its value is the node's."""
    fields: dict[str, JsonValue] | None = None
    """Names and expressions: the value is a map."""

    @model_validator(mode="after")
    def _one_way(self) -> Transform:
        if ("expr" in self.model_fields_set) == ("fields" in self.model_fields_set):
            raise ValueError("a transform takes exactly one of `expr` and `fields`")
        return self

    def summary(self) -> str:
        """Which way, and for ``fields`` which names."""
        return f"make {', '.join(self.fields)}" if self.fields is not None else "compute"

    async def run(self, ctx: LeafContext) -> Json:
        """The value: references are already filled in."""
        await ctx.act()
        return self.expr if self.fields is None else self.fields
