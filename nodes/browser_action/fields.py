"""Actions on the fields of a form, and of the keyboard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field
from typing_extensions import override

from nodes import one_time
from nodes.browser_action.base import BrowserAction, OnElement, lasting
from nodes.errors import near
from nodes.part import EffectClass
from nodes.tabs import TabName
from nodes.targets import Target
from nodes.template import Condition, Integer, Number, Ref, SecretText, Template, Unfit, to_text
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
    fills_field: ClassVar[bool] = True
    does: ClassVar[ElementAction] = "fill"

    action: Literal["fill"]
    """Fill a field."""
    value: SecretText
    """The text; may be a secret."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        value = await one_time.current(self.value, lambda: ctx.page.ready(target, self.does))
        await ctx.page.fill(target, value, secret=ctx.holds_secret(value))


class Check(OnElement):
    """Checks a box or chooses a radio button. Value: none."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    fills_field: ClassVar[bool] = True
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
    fills_field: ClassVar[bool] = True
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
    fills_field: ClassVar[bool] = True
    does: ClassVar[ElementAction] = "select"

    action: Literal["select"]
    """Choose options in a drop-down list."""
    value: Annotated[str | list[str], Ref(to_options, item=to_text)]
    """Label or value of the option; a list chooses several."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        options = [self.value] if isinstance(self.value, str) else self.value
        return await ctx.page.select(target, options)


KEYS = frozenset(
    (
        *("Enter", "Tab", "Escape", "Backspace", "Delete", "Insert", "Space", "Home", "End", "PageUp", "PageDown"),
        *("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"),
        *("F10", "F11", "F12", "CapsLock", "ContextMenu", "Control", "Shift", "Alt", "Meta"),
    )
)
"""Keys by name, as in ``KeyboardEvent.key``; every other key is the one character that it types."""

MODIFIERS = frozenset({"Control", "Shift", "Alt", "Meta", "ControlOrMeta"})
"""Modifier keys; ``ControlOrMeta`` is the one for copy and paste on this machine."""

_CHARACTER = re.compile(r"[ -~]")

_BREAKS = frozenset("\r\n")  # characters that act as the key Enter when typed


class Type(OnElement):
    """Types a text into a field, key by key, in place of its content. Value: none.

    Prefer ``fill``, which is faster, unless the page reacts to each key: a search with suggestions, a field that moves on by itself. The
    field is emptied first, so typing twice leaves the same as typing once: class *idempotent*. But a line break is the key Enter, which may
    send a form: a text with one is of class *effect*, unless ``effect`` overrides it.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"
    takes_up_input: ClassVar[bool] = False
    fills_field: ClassVar[bool] = True
    does: ClassVar[ElementAction] = "type"

    action: Literal["type"]
    """Type key by key."""
    value: SecretText
    """The text; may be a secret."""
    delay: float = Field(default=0, ge=0, le=10_000)
    """Milliseconds between two keys; ``timeout`` must leave time for them."""

    @property
    @override
    def effect_class(self) -> EffectClass:
        return self.effect or (self.effect_default if _BREAKS.isdisjoint(self.value) else "effect")

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        value = await one_time.current(self.value, lambda: ctx.page.ready(target, self.does))
        await ctx.page.type(target, value, self.delay, secret=ctx.holds_secret(value))


_TIME = re.compile(r"(?:(?:wait|pause|sleep|delay|hold)\b.*|\d+(?:\.\d+)?\s*(?:ms|s|sec|seconds)?)", re.IGNORECASE)
"""What is written where someone wants to wait between keys."""


def to_keys(value: Json) -> list[str]:
    keys = value if isinstance(value, list) else [value]
    if not keys:
        raise Unfit("is an empty list, and at least one key is wanted")
    return [to_key(key) for key in keys]


def to_key(value: Json) -> str:
    text = to_text(value)
    # A plus is a key too: `Control++`.
    *held, last = re.split(r"(?<!^)(?<!\+)\+", text)
    unknown = next((each for each in held if each not in MODIFIERS), None)
    if unknown is None and last not in KEYS and not _CHARACTER.fullmatch(last):
        unknown = last
    if unknown is None:
        return text
    if _TIME.fullmatch(unknown):
        raise Unfit(
            f"has no key `{unknown}`: `hold: SECONDS` keeps each key down, and a pause between keys is another node"
        )
    if close := near(unknown, KEYS | set(MODIFIERS)):
        raise Unfit(f"has no key `{unknown}`: did you mean `{close}`?")
    raise Unfit(
        f"has no key `{unknown}`: write a character, or one of {', '.join(sorted(KEYS))}, with Control+, Shift+, Alt+, Meta+ before it"
    )


def _keys(value: str | list[str]) -> str | list[str]:
    """Check keys as they are written; a reference within a list is checked when it has its value."""
    if isinstance(value, str):
        return to_key(value)
    return [each if isinstance(each, Template) else to_key(each) for each in value] or to_keys([])


class Press(BrowserAction):
    """Presses a key, or several together, or one after the other.

    Class *effect* unless ``effect`` overrides it: Enter may send a form. Value: the address of the page afterwards.
    """

    takes_up_input: ClassVar[bool] = False
    does: ClassVar[ElementAction] = "press"

    action: Literal["press"]
    """Press a key."""
    key: Annotated[str | list[str], AfterValidator(_keys), Ref(to_keys, item=to_key)]
    """The key: ``Enter``, ``ArrowDown``, ``a``, ``Control+A`` …; a list is pressed one after the other."""
    count: Integer = Field(default=1, ge=1, le=1_000)
    """How often."""
    hold: Number = Field(default=0, ge=0, le=60)
    """Seconds for which each key stays down."""
    target: Target | None = None
    """The element that receives the key; by default the focused one."""
    opens: TabName | None = None
    """Name for the tab that the key opens. The step waits for that tab; later nodes use it by ``tab``. The current tab stays the current one."""

    def summary(self) -> str:
        often = f" {self.count} times" if self.count != 1 else ""
        return f"press {', '.join(self.keys)}{often}{f' in {self.target}' if self.target else ''}"

    @property
    def keys(self) -> list[str]:
        return [self.key] if isinstance(self.key, str) else self.key

    @property
    @override
    def held(self) -> float:
        return 0.0 if isinstance(self.key, Template) else lasting(self.hold, self.count, len(self.keys))

    async def run(self, ctx: LeafContext) -> Json:
        self.demand_time(ctx)
        page = ctx.page
        target = await ctx.located(self.target) if self.target else None
        if target is not None and self.effect_class == "effect":
            await page.ready(target, self.does)
        await ctx.act()
        async with page.opening(self.opens):
            await page.press(self.keys * self.count, target, self.hold)
        await ctx.verify()
        await self.flag_unchanged(ctx)
        return ctx.page.url
