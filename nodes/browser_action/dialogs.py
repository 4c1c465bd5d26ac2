"""The action that answers a dialog of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator
from typing_extensions import override

from nodes.browser_action.base import BrowserAction
from nodes.part import EffectClass
from nodes.template import SecretText, Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class Dialog(BrowserAction):
    """Answers a dialog of the page: ``alert``, ``confirm``, ``prompt``, or the question whether to leave it. Value: the text of the dialog.

    Put it after the step that opens the dialog; it waits for one that opens later. While a dialog is open nothing else can be done in its
    tab. ``accept`` is class *effect*, ``dismiss`` idempotent. Mark a click that only opens the question as ``effect: idempotent``, so that
    the answer alone counts as the action.
    """

    despite_dialog: ClassVar[bool] = True

    action: Literal["dialog"]
    """Answer a dialog."""
    answer: Literal["accept", "dismiss"]
    """The button: ``accept`` is OK, ``dismiss`` is Cancel."""
    value: SecretText | None = None
    """Text typed into a ``prompt`` before it is accepted; may be a secret."""
    text: Text | None = None
    """Text that the dialog must contain: case-sensitive, as whole words. A dialog with another text is left open, and the step fails."""

    @model_validator(mode="after")
    def _value_is_for_accept(self) -> Dialog:
        if self.value is not None and self.answer == "dismiss":
            raise ValueError("`value` goes with `answer: accept`: nothing is typed into what is dismissed")
        return self

    @property
    @override
    def effect_class(self) -> EffectClass:
        return self.effect or ("effect" if self.answer == "accept" else "idempotent")

    def summary(self) -> str:
        return f"{self.answer} dialog" + (f' "{self.text}"' if self.text else "")

    async def run(self, ctx: LeafContext) -> Json:
        message = await ctx.page.asked(self.text)
        await ctx.act()
        await ctx.page.answer(accept=self.answer == "accept", text=self.value)
        await ctx.verify()
        return message
