"""``browser_action``: one deed on the page. Each action is a class, so each takes its own fields and no others."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import model_validator

from nodes.base import EffectClass, Leaf
from nodes.errors import AuthorError
from nodes.targets import Target
from nodes.template import Condition, Ref, SecretText, Text, Unfit, to_text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import Deed, LeafContext


class BrowserAction(Leaf):
    """One deed on the page. It waits, as a person would, until the deed is possible; ``timeout`` bounds that."""

    touches_page: ClassVar[bool] = True

    type: Literal["browser_action"] = "browser_action"


class Goto(BrowserAction):
    """Loads an address. Value: the final address, after redirects."""

    effect_default: ClassVar[EffectClass] = "idempotent"

    action: Literal["goto"]
    """Load an address."""
    url: Text
    """The address; its origin must be one that the workflow allows."""

    def summary(self) -> str:
        """The address."""
        return f"goto {self.url}"

    async def run(self, ctx: LeafContext) -> Json:
        """Load the address."""
        if "://" not in self.url and not self.url.startswith(("about:", "data:")):
            raise AuthorError(
                "address-incomplete",
                f"`{self.url}` is no whole address",
                mend=f"write http:// or https:// before it: `https://{self.url}`",
                evidence={"url": self.url},
            )
        await ctx.act()
        await ctx.page.goto(self.url)
        await ctx.verify()
        return ctx.page.url


class OnElement(BrowserAction):
    """A deed on one element."""

    deed: ClassVar[Deed]

    target: Target
    """The element."""

    def summary(self) -> str:
        """The deed and its target."""
        return f"{self.deed} {self.target}"

    async def run(self, ctx: LeafContext) -> Json:
        """Find the element, then do the deed. A deed that must not happen twice is announced only once it can succeed."""
        target = await ctx.located(self.target)
        if self.effect_class == "effect":
            await ctx.page.ready(target, self.deed)
        await ctx.act()
        return await self.do(ctx, target)

    @abstractmethod
    async def do(self, ctx: LeafContext, target: Target) -> Json:
        """The deed itself, and the node's value."""


class Click(OnElement):
    """Clicks an element. Class *effect* unless ``effect`` says otherwise. Value: the address of the page afterwards."""

    deed: ClassVar[Deed] = "click"

    action: Literal["click"]
    """Click an element."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        """Click; the address is read once ``verify`` holds."""
        await ctx.page.click(target)
        await ctx.verify()
        return ctx.page.url


class Fill(OnElement):
    """Puts a text into a field, in place of what it holds. Value: none."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    deed: ClassVar[Deed] = "fill"

    action: Literal["fill"]
    """Fill a field."""
    value: SecretText
    """The text; may be a secret."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        """Fill the field."""
        await ctx.page.fill(target, self.value)


class Check(OnElement):
    """Checks a box or chooses a radio button. Value: none."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    deed: ClassVar[Deed] = "check"

    action: Literal["check"]
    """Check a box or choose a radio button."""
    checked: Condition = True
    """``false`` takes the check mark away."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        """Set the box."""
        await ctx.page.check(target, self.checked)


def to_options(value: Json) -> list[str]:
    """One text or a list of texts."""
    options = value if isinstance(value, list) else [value]
    if not options:
        raise Unfit("is an empty list, and at least one option is wanted")
    return [to_text(option) for option in options]


class Select(OnElement):
    """Chooses in a drop-down list. Value: the list of values chosen."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    deed: ClassVar[Deed] = "select"

    action: Literal["select"]
    """Choose in a drop-down list."""
    value: Annotated[str | list[str], Ref(to_options, item=to_text)]
    """Label or value of the option; a list chooses several."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        """Choose the options."""
        options = [self.value] if isinstance(self.value, str) else self.value
        return await ctx.page.select(target, options)


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
        """The rules."""
        return f"wait for {', '.join(str(rule) for rule in self.verify)}"

    async def run(self, ctx: LeafContext) -> Json:
        """Wait."""
        await ctx.act()
        await ctx.verify()
        return ctx.page.url


VARIANTS = (Goto, Click, Fill, Check, Select, Wait)
"""The actions, told apart by ``action``."""

__all__ = [
    "VARIANTS",
    "BrowserAction",
    "Check",
    "Click",
    "Fill",
    "Goto",
    "Select",
    "Wait",
]
