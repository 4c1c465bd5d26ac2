"""Queries of one element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from nodes.browser_query.base import OfElement
from nodes.parsing import Kind, read_as
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class Text(OfElement):
    """Reads the visible text of an element, white space folded. Value: text, or the type in ``as``."""

    query: Literal["text"]
    """Read an element's text."""
    as_: Kind = Field(default="text", alias="as")
    """Type of the value: ``text``, ``number`` or ``integer``."""

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target)
        await ctx.act()
        return read_as(self.as_, await ctx.page.text(target), f"the text of {target}")


class Value(OfElement):
    """Reads the content of a field. Value: text, or the type in ``as``."""

    query: Literal["value"]
    """Read a field's value."""
    as_: Kind = Field(default="text", alias="as")
    """Type of the value: ``text``, ``number`` or ``integer``."""

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target)
        await ctx.act()
        return read_as(self.as_, await ctx.page.value(target), f"the value of {target}")


class Exists(OfElement):
    """Checks whether any element matches now, without waiting. Value: true or false."""

    query: Literal["exists"]
    """Check whether an element is there."""

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        return await ctx.page.count(self.target) > 0


class Count(OfElement):
    """Counts the elements that match now, without waiting. Value: a whole number."""

    query: Literal["count"]
    """Count elements."""

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        return await ctx.page.count(self.target)


class Attribute(OfElement):
    """Reads an attribute of an element as it is written in the page. Value: text; null if the element does not have it."""

    query: Literal["attribute"]
    """Read an attribute."""
    attribute: str = Field(min_length=1)
    """Name of the attribute, such as ``href``."""

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target)
        await ctx.act()
        return await ctx.page.attribute(target, self.attribute)


class State(OfElement):
    """Reads the state of an element, which need not be visible. Value: ``{visible, enabled, checked, editable, focused, value}``.

    Elements that cannot be checked have null for ``checked``, elements without a value have null for ``value``.
    """

    query: Literal["state"]
    """Read an element's state."""

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target)
        await ctx.act()
        return await ctx.page.state(target)
