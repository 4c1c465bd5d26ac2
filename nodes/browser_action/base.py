"""Base classes of the actions: an action on the page, and an action on one element."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from nodes.errors import AuthorError
from nodes.tabs import InTab
from nodes.targets import Target
from nodes.template import Condition
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.pages import ElementAction
    from nodes.ports import LeafContext


class BrowserAction(InTab):
    """One action on the page. It waits until the action is possible, at most ``timeout``."""

    touches_page: ClassVar[bool] = True

    type: Literal["browser_action"] = "browser_action"
    rest: Condition = False
    """True to wait after the action until the page rests: it is loaded, and has not changed for a moment; two seconds at the most."""

    @property
    def ends_at_rest(self) -> bool:
        return self.rest is True

    @model_validator(mode="after")
    def _time_to_hold(self) -> BrowserAction:
        if self.timeout is not None and self.held >= self.timeout:
            raise ValueError(
                f"holds for {self.held:g} s in all, and `timeout: {self.timeout:g}` leaves no time for that: write a longer `timeout`"
            )
        return self

    def demand_time(self, ctx: LeafContext) -> None:
        """Raise AuthorError ``hold-too-long`` if the attempt has no time for what it holds."""
        if self.held >= ctx.limit:
            raise AuthorError(
                "hold-too-long",
                f"the step holds for {self.held:g} s in all, and may take {ctx.limit:g} s",
                fix="write a longer `timeout`",
                evidence={"held": self.held, "limit": ctx.limit},
            )

    async def flag_unchanged(self, ctx: LeafContext) -> None:
        """Flag the step if its action has surely changed nothing that can be seen. Only for actions that are meant to change something."""
        if await ctx.page.unchanged():
            message = f"the {getattr(self, 'action', 'action')} changed nothing on the page: look whether it reached what it should"
            ctx.flag("changed-nothing", message, {"page": ctx.page.url})


class OnElement(BrowserAction):
    """An action on one element."""

    does: ClassVar[ElementAction]

    target: Target
    """The element."""

    def summary(self) -> str:
        return f"{self.does} {self.target}"

    async def run(self, ctx: LeafContext) -> Json:
        """Find the element, then do the action. An action of class *effect* is logged only once the element is ready for it."""
        self.demand_time(ctx)
        target = await ctx.located(self.target)
        if self.effect_class == "effect":
            await ctx.page.ready(target, self.does)
        await ctx.act()
        return await self.do(ctx, target)

    @abstractmethod
    async def do(self, ctx: LeafContext, target: Target) -> Json:
        """Do the action, and return the node's value."""


def lasting(hold: object, *times: object) -> float:
    """Return the seconds in all of what is held so many times; 0 if one of the numbers is still a reference."""
    numbers = [each for each in (hold, *times) if isinstance(each, int | float)]
    return math.prod(numbers) if len(numbers) == 1 + len(times) else 0.0


def demand_whole(url: str) -> None:
    """Raise AuthorError ``address-incomplete`` for an address without a scheme."""
    if "://" not in url and not url.startswith(("about:", "data:")):
        raise AuthorError(
            "address-incomplete",
            f"`{url}` is no whole address",
            fix=f"write http:// or https:// before it: `https://{url}`",
            evidence={"url": url},
        )
