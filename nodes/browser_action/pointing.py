"""Actions of the mouse."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from nodes.browser_action.base import OnElement
from nodes.tabs import TabName
from nodes.targets import Target
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
