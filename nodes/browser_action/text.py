"""Selecting, copying and pasting text."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from nodes import one_time
from nodes.browser_action.base import BrowserAction, OnElement
from nodes.part import EffectClass
from nodes.targets import Target
from nodes.template import SecretText, Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.pages import ElementAction
    from nodes.ports import LeafContext


class SelectText(OnElement):
    """Selects text with the mouse, in a field or in the page. Value: the selected text.

    The page hears the mouse, and no click: a card or a link is not opened. In an editor it then waits for a moment, so that the editor has
    seen what is selected before the next step. An e-mail or number field is selected as a whole only.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"
    does: ClassVar[ElementAction] = "hover"

    action: Literal["select_text"]
    """Select text."""
    text: Text | None = None
    """The text to select; without it and ``from`` all text of the element."""
    start: Text | None = Field(default=None, alias="from")
    """Instead of ``text``: the text with which the selection begins."""
    end: Text | None = Field(default=None, alias="to")
    """The text with which it ends, the first one after ``from``; by default the end of the element."""

    @model_validator(mode="after")
    def _one_way(self) -> SelectText:
        if self.text is not None and self.start is not None:
            raise ValueError("`select_text` takes `text` or `from`, not both")
        if self.end is not None and self.start is None:
            raise ValueError("`to` goes with `from`")
        return self

    def summary(self) -> str:
        return f"select text in {self.target}"

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        return await ctx.page.select_text(target, self.text, self.start, self.end)


class Copy(BrowserAction):
    """Copies what is selected, as the key for copying does. Value: the text.

    The clipboard is the workflow's own: a later ``paste`` writes the value, and that of the machine stays as it is.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"

    action: Literal["copy"]
    """Copy the selected text."""
    target: Target | None = None
    """The field or element in which all is selected first; by default what is selected now."""

    def summary(self) -> str:
        return f"copy {self.target}" if self.target else "copy what is selected"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        await ctx.act()
        return await ctx.page.copy(target)


class Paste(BrowserAction):
    """Pastes a text in place of what is selected, as the key for pasting does. Class *effect* unless ``effect`` says otherwise. Value: none."""

    takes_up_input: ClassVar[bool] = False
    does: ClassVar[ElementAction] = "press"

    action: Literal["paste"]
    """Paste a text."""
    value: SecretText
    """The text, such as the value of a ``copy``; may be a secret."""
    target: Target | None = None
    """The field that receives it; by default the focused one."""

    def summary(self) -> str:
        return f"paste into {self.target}" if self.target else "paste"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        if target is not None and self.effect_class == "effect":
            await ctx.page.ready(target, self.does)
        await ctx.act()
        value = await one_time.current(self.value)
        await ctx.page.paste(target, value, secret=ctx.holds_secret(value))
