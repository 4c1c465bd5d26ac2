"""Base of all queries, and every query except ``extract``, ``table`` and ``ai_extract``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from nodes.errors import AssertFailed, SiteError
from nodes.parsing import Kind, read_as
from nodes.part import EffectClass
from nodes.rules import Rule
from nodes.tabs import InTab
from nodes.targets import Target
from nodes.template import Condition
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class BrowserQuery(InTab):
    """Reads the page, or a mailbox, and changes nothing."""

    touches_page: ClassVar[bool] = True
    effect_default: ClassVar[EffectClass] = "read"

    type: Literal["browser_query"] = "browser_query"


class OfElement(BrowserQuery):
    """A reading of one element."""

    target: Target
    """The element."""

    def summary(self) -> str:
        return f"{getattr(self, 'query', 'read')} {self.target}"


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

    reads_at_once: ClassVar[bool] = True
    query: Literal["exists"]
    """Check whether an element is there."""
    hidden: Condition = False
    """True to look also at elements that cannot be seen."""

    async def run(self, ctx: LeafContext) -> Json:
        return await _counted(ctx, self.target, hidden=self.hidden) > 0


class Count(OfElement):
    """Counts the elements that match now, without waiting. Value: a whole number."""

    reads_at_once: ClassVar[bool] = True
    query: Literal["count"]
    """Count elements."""
    hidden: Condition = False
    """True to count also elements that cannot be seen."""

    async def run(self, ctx: LeafContext) -> Json:
        return await _counted(ctx, self.target, hidden=self.hidden)


async def _counted(ctx: LeafContext, target: Target, *, hidden: bool) -> int:
    """Count the elements. If none matches because what should be around it is missing, keep that with the result."""
    await ctx.act()
    count = await ctx.page.count(target, hidden=hidden)
    if not count and (target.within is not None or target.frames):
        ctx.unmatched = await ctx.page.missing_part(target)
    return count


class Box(OfElement):
    """Reads where an element is and how large, in CSS pixels. Value: ``{x, y, width, height}``, with the place of its upper left corner."""

    query: Literal["box"]
    """Read where an element is."""
    of: Target | None = None
    """The element from whose upper left corner the place is counted, such as the canvas for ``draw``; by default that of the window."""

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target)
        of = await ctx.located(self.of) if self.of is not None else None
        await ctx.act()
        x, y, width, height = await ctx.page.box(target)
        left, top, *_ = await ctx.page.box(of) if of is not None else (0.0, 0.0)
        return {"x": x - left, "y": y - top, "width": width, "height": height}


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


class Url(BrowserQuery):
    """Reads the address of the page. Value: text."""

    reads_at_once: ClassVar[bool] = True
    query: Literal["url"]
    """Read the address."""

    def summary(self) -> str:
        return "read the address"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        return ctx.page.url


class Title(BrowserQuery):
    """Reads the title of the page. Value: text."""

    reads_at_once: ClassVar[bool] = True
    query: Literal["title"]
    """Read the title."""

    def summary(self) -> str:
        return "read the title"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        return await ctx.page.title()


class Observation(BrowserQuery):
    """Reads the content of the page, or of an element, as lines: roles, names, values, texts, as assistive programs see them. Value: text.

    Interactive elements have a ref. Content beyond ``max_chars`` is folded into lines with its kind and count; no element is cut.
    """

    query: Literal["observation"]
    """Read the page as roles and names."""
    target: Target | None = None
    """The element; without it the whole page."""
    max_chars: int = Field(default=5_000, ge=200, le=1_000_000)
    """Limit of the text, in characters."""

    def summary(self) -> str:
        return f"observe {self.target or 'the page'}"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        await ctx.act()
        view = await ctx.page.look(target)
        return view.render(self.max_chars)


class Assert(BrowserQuery):
    """A finding of the workflow: rules that must hold. It is never retried and never called drift. Value: none."""

    query: Literal["assert"]
    """State the rules that must hold."""
    rules: list[Rule] = Field(min_length=1)
    """The rules; each is waited for."""

    @model_validator(mode="after")
    def _no_retry(self) -> Assert:
        if self.retry is not None:
            raise ValueError(
                "an assert is a finding and is never retried: take `retry` away, or wait longer with `timeout`"
            )
        return self

    def summary(self) -> str:
        return f"assert {', '.join(str(rule) for rule in self.rules)}"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        for rule in self.rules:
            try:
                await ctx.page.wait_for(rule)
            except SiteError as error:
                if error.code != "rule-failed":
                    raise
                raise AssertFailed(
                    "assert-failed",
                    error.message,
                    fix="look at the page: if it is right, correct the rule; if not, this is what the workflow found",
                    phase="after",
                    evidence=error.evidence,
                ) from None
