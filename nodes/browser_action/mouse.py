"""Actions of the mouse, and scrolling."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from nodes.browser_action.base import BrowserAction, OnElement
from nodes.part import EffectClass, Part
from nodes.tabs import TabName
from nodes.targets import Target
from nodes.template import Integer
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.pages import ElementAction, Page
    from nodes.ports import LeafContext


class Opener(OnElement):
    """An action on an element that may open a tab."""

    opens: TabName | None = None
    """Name for the tab that the action opens. The step waits for that tab; later nodes use it by ``tab``. The current tab stays the current one."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        page = ctx.page
        async with page.opening(self.opens):
            await self.strike(page, target)
        await ctx.verify()
        return ctx.page.url

    @abstractmethod
    async def strike(self, page: Page, target: Target) -> None:
        """Do the action."""


class Click(Opener):
    """Clicks an element. Class *effect* unless ``effect`` overrides it. Value: the address of the page afterwards."""

    does: ClassVar[ElementAction] = "click"

    action: Literal["click"]
    """Click an element."""

    async def strike(self, page: Page, target: Target) -> None:
        await page.click(target)


class DoubleClick(Opener):
    """Clicks an element twice, as one action. Class *effect* unless ``effect`` overrides it. Value: the address of the page afterwards."""

    does: ClassVar[ElementAction] = "dblclick"

    action: Literal["dblclick"]
    """Click an element twice."""

    async def strike(self, page: Page, target: Target) -> None:
        await page.dblclick(target)


class Hover(OnElement):
    """Moves the mouse over an element, so that its menu or hint shows. Value: none."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    does: ClassVar[ElementAction] = "hover"

    action: Literal["hover"]
    """Move the mouse over an element."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        await ctx.page.hover(target)


class Drag(BrowserAction):
    """Drags an element onto another. Class *effect* unless ``effect`` says otherwise. Value: none."""

    takes_up_input: ClassVar[bool] = False
    does: ClassVar[ElementAction] = "drag"

    action: Literal["drag"]
    """Drag an element onto another."""
    target: Target
    """The element to drag."""
    to: Target
    """The element on which it is dropped."""

    def summary(self) -> str:
        return f"drag {self.target} to {self.to}"

    async def run(self, ctx: LeafContext) -> Json:
        target, to = await ctx.located(self.target), await ctx.located(self.to)
        await ctx.page.ready(target, self.does)
        await ctx.page.ready(to, self.does)
        await ctx.act()
        await ctx.page.drag(target, to)


class Distance(Part):
    """Distance to scroll, in CSS pixels; negative is up or left."""

    x: Integer = 0
    """To the right."""
    y: Integer = 0
    """Down."""


class Scroll(BrowserAction):
    """Scrolls an element into view; with ``to`` or ``by`` scrolls within it, or without a target the page.

    Value: ``{x, y, at_end}`` of the scrolled element or page: its scroll position in pixels, and whether its lower end is reached.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"

    action: Literal["scroll"]
    """Scroll an element into view, or to a position."""
    target: Target | None = None
    """The element."""
    to: Literal["top", "bottom"] | None = None
    """End to scroll to: ``top`` or ``bottom``."""
    by: Distance | None = None
    """Distance to scroll from the present position."""

    @model_validator(mode="after")
    def _one_place(self) -> Scroll:
        if self.to is not None and self.by is not None:
            raise ValueError("`scroll` takes `to` or `by`, not both")
        if self.target is None and self.to is None and self.by is None:
            raise ValueError("`scroll` needs a `target`, or `to` or `by`")
        return self

    def summary(self) -> str:
        where = f" to {self.to}" if self.to else f" by {self.by.x}, {self.by.y}" if self.by else ""
        return f"scroll {self.target or 'the page'}{where}"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        await ctx.act()
        return await ctx.page.scroll(target, self.to, (self.by.x, self.by.y) if self.by else None)
