"""Actions that load documents, wait, answer dialogs, and open, choose and close tabs."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator
from typing_extensions import override

from nodes import one_time
from nodes.base import Leaf
from nodes.browser_action.base import BrowserAction, demand_whole
from nodes.part import EffectClass
from nodes.tabs import TabName
from nodes.template import SecretText, Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


SHOWN = 60  # characters of a ``data:`` address in a step's line


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
        # Such an address is a whole document.
        long = self.url.startswith("data:") and len(self.url) > SHOWN
        return f"goto {self.url[:SHOWN]}…" if long else f"goto {self.url}"

    async def run(self, ctx: LeafContext) -> Json:
        demand_whole(self.url)
        await ctx.act()
        left = ctx.page.url
        try:
            await ctx.load(self.url, anew=self.load == "always", once=self.effect_class == "effect")
        finally:
            if ctx.page.replaced:
                ctx.flag(
                    "tab-replaced",
                    "the page kept its tab busy, so the address was loaded in a new tab in its place",
                    {"left": left},
                )
        await ctx.verify()
        return ctx.page.url


class _OnPage(BrowserAction):
    """An action without preparation, whose value is the address afterwards."""

    effect_default: ClassVar[EffectClass] = "idempotent"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        await self.do(ctx)
        await ctx.verify()
        return ctx.page.url

    @abstractmethod
    async def do(self, ctx: LeafContext) -> object:
        """Do the action."""


class Back(_OnPage):
    """Goes back to the previous page, as the browser's button does. Value: its address."""

    action: Literal["back"]
    """Go back to the previous page."""

    async def do(self, ctx: LeafContext) -> object:
        return await ctx.page.back()


class Forward(_OnPage):
    """Goes forward to the page that ``back`` left. Value: its address."""

    action: Literal["forward"]
    """Go forward to the page that `back` left."""

    async def do(self, ctx: LeafContext) -> object:
        return await ctx.page.forward()


class Reload(_OnPage):
    """Reloads the page. A page that answers a form is not reloaded: that would send the form again. Value: its address."""

    action: Literal["reload"]
    """Reload the page."""

    async def do(self, ctx: LeafContext) -> object:
        return await ctx.page.reload(resend=self.effect_class == "effect")


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
        value = None if self.value is None else await one_time.current(self.value)
        await ctx.page.answer(accept=self.answer == "accept", text=value)
        await ctx.verify()
        return message


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
