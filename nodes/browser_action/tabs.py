"""Actions that open, choose and close tabs. They work on the list of tabs, not in one tab."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nodes.base import Leaf
from nodes.browser_action.base import demand_whole
from nodes.part import EffectClass
from nodes.tabs import TabName
from nodes.template import Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class OnTabs(Leaf):
    """An action on the list of tabs. A dialog in a tab does not disturb it."""

    touches_page: ClassVar[bool] = True
    despite_dialog: ClassVar[bool] = True
    effect_default: ClassVar[EffectClass] = "idempotent"

    type: Literal["browser_action"] = "browser_action"


class OpenTab(OnTabs):
    """Opens a tab and makes it the current one; an open tab with this name is used. Value: the address of its page."""

    action: Literal["open_tab"]
    """Open a tab."""
    tab: TabName
    """Name of the tab from now on."""
    url: Text | None = None
    """Address to load in it; without one the tab stays as it is, a new one blank."""

    def summary(self) -> str:
        return f"open tab {self.tab}" + (f" at {self.url}" if self.url else "")

    async def run(self, ctx: LeafContext) -> Json:
        if self.url is not None:
            demand_whole(self.url)
        await ctx.act()
        await ctx.tabs.open(self.tab)
        if self.url is not None:
            await ctx.load(self.url)
        await ctx.verify()
        return ctx.page.url


class SwitchTab(OnTabs):
    """Makes a tab the current one: nodes that name no tab work in it from now on. Value: the address of its page."""

    action: Literal["switch_tab"]
    """Choose the current tab."""
    tab: TabName
    """The tab. The first one is called ``main``."""

    def summary(self) -> str:
        return f"switch to tab {self.tab}"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        await ctx.tabs.switch(self.tab)
        await ctx.verify()
        return ctx.page.url


class CloseTab(OnTabs):
    """Closes a tab; one that is already closed is no error. Value: the address of the page of the current tab afterwards.

    After the current tab the one that opened it becomes current, else ``main``.
    """

    action: Literal["close_tab"]
    """Close a tab."""
    tab: TabName | None = None
    """The tab; the current one by default."""

    def summary(self) -> str:
        return f"close tab {self.tab}" if self.tab else "close the current tab"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        await ctx.tabs.close(self.tab)
        await ctx.verify()
        return ctx.page.url
