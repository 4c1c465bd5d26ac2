"""Actions that load documents, and the one that waits."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from nodes.browser_action.base import BrowserAction, demand_whole
from nodes.part import EffectClass
from nodes.template import Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.pages import Page
    from nodes.ports import LeafContext


class Goto(BrowserAction):
    """Loads an address. Value: the final address, after redirects."""

    effect_default: ClassVar[EffectClass] = "idempotent"

    action: Literal["goto"]
    """Load an address."""
    url: Text
    """The address; the workflow must allow its origin."""
    load: Literal["auto", "always"] = "auto"
    """Reaction if the address differs only after ``#``: its scripts show another view, and dialogs and state stay. ``always`` reloads the
    page; ``auto`` does so only for the first ``goto`` of a run, after a resume and after a failed step."""

    def summary(self) -> str:
        return f"goto {self.url}"

    async def run(self, ctx: LeafContext) -> Json:
        demand_whole(self.url)
        await ctx.act()
        left = ctx.page.url
        try:
            await ctx.load(self.url, anew=self.load == "always")
        finally:
            if ctx.page.replaced:
                ctx.flag(
                    "tab-replaced",
                    "the page kept its tab busy, so the address was loaded in a new tab in its place",
                    {"left": left},
                )
        await ctx.verify()
        return ctx.page.url


class InHistory(BrowserAction):
    """Loads a page of the tab's history."""

    effect_default: ClassVar[EffectClass] = "idempotent"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        await self.move(ctx.page)
        await ctx.verify()
        return ctx.page.url

    @abstractmethod
    async def move(self, page: Page) -> None:
        """Do the step."""


class Back(InHistory):
    """Goes back to the previous page, as the browser's button does. Value: its address."""

    action: Literal["back"]
    """Go back to the previous page."""

    async def move(self, page: Page) -> None:
        await page.back()


class Forward(InHistory):
    """Goes forward to the page that ``back`` left. Value: its address."""

    action: Literal["forward"]
    """Go forward to the page that `back` left."""

    async def move(self, page: Page) -> None:
        await page.forward()


class Reload(BrowserAction):
    """Reloads the page. A page that answers a form is not reloaded: that would send the form again. Value: its address."""

    effect_default: ClassVar[EffectClass] = "idempotent"

    action: Literal["reload"]
    """Reload the page."""

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        await ctx.page.reload(resend=self.effect_class == "effect")
        await ctx.verify()
        return ctx.page.url


class Wait(BrowserAction):
    """Waits until its ``verify`` rules hold. Value: the address of the page."""

    effect_default: ClassVar[EffectClass] = "read"

    action: Literal["wait"]
    """Wait until rules hold."""

    @model_validator(mode="after")
    def _something_to_wait_for(self) -> Wait:
        if not self.verify:
            raise ValueError("`wait` needs `verify`: the rules to wait for")
        return self

    def summary(self) -> str:
        return f"wait for {', '.join(str(rule) for rule in self.verify)}"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        await ctx.verify()
        return ctx.page.url
