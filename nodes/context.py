"""``context``: sets variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from nodes.base import EffectClass, Leaf
from nodes.template import JsonValue
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class Context(Leaf):
    """Sets variables, which every later node reads as ``vars.<name>``. Only ``context`` writes them. Value: what was set."""

    effect_default: ClassVar[EffectClass] = "read"

    type: Literal["context"] = "context"
    set: dict[str, JsonValue] = Field(min_length=1)
    """Names and their new values."""

    def summary(self) -> str:
        """Names that are set."""
        return f"set {', '.join(self.set)}"

    async def run(self, ctx: LeafContext) -> Json:
        """The values as they are in the file, references filled in; the engine folds them into ``vars``."""
        await ctx.act()
        return self.set
