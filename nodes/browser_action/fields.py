"""Actions on the fields of a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from nodes.browser_action.base import OnElement
from nodes.part import EffectClass
from nodes.targets import Target
from nodes.template import Condition, Ref, SecretText, Unfit, to_text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.pages import ElementAction
    from nodes.ports import LeafContext


class Fill(OnElement):
    """Puts a text into a field, in place of its content. Value: none.

    Before the next click or key, fields filled since the last click are checked again. A field that the page has emptied meanwhile is filled
    again; if the page does not keep the text, the error is ``value-not-kept``. Reformatting by the page (``1234`` to ``1,234``) is accepted.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"
    does: ClassVar[ElementAction] = "fill"

    action: Literal["fill"]
    """Fill a field."""
    value: SecretText
    """The text; may be a secret."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        await ctx.page.fill(target, self.value, secret=ctx.holds_secret(self.value))


class Check(OnElement):
    """Checks a box or chooses a radio button. Value: none."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    does: ClassVar[ElementAction] = "check"

    action: Literal["check"]
    """Check a box or choose a radio button."""
    checked: Condition = True
    """``false`` clears the box."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        await ctx.page.check(target, self.checked)


class Uncheck(OnElement):
    """Takes the check mark from a box. Value: none."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    does: ClassVar[ElementAction] = "check"

    action: Literal["uncheck"]
    """Take the check mark from a box."""

    def summary(self) -> str:
        return f"uncheck {self.target}"

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        await ctx.page.check(target, False)


def to_options(value: Json) -> list[str]:
    options = value if isinstance(value, list) else [value]
    if not options:
        raise Unfit("is an empty list, and at least one option is wanted")
    return [to_text(option) for option in options]


class Select(OnElement):
    """Chooses options in a drop-down list. Value: the list of values chosen."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    does: ClassVar[ElementAction] = "select"

    action: Literal["select"]
    """Choose options in a drop-down list."""
    value: Annotated[str | list[str], Ref(to_options, item=to_text)]
    """Label or value of the option; a list chooses several."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        options = [self.value] if isinstance(self.value, str) else self.value
        return await ctx.page.select(target, options)
