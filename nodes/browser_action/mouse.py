"""Actions of the mouse, and scrolling."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import override

from nodes import pointer
from nodes.browser_action.base import BrowserAction, OnElement, lasting
from nodes.browser_action.files import some_files, to_path, to_paths
from nodes.part import EffectClass
from nodes.pointer import Button, Distance, Modifier, Spot
from nodes.tabs import TabName
from nodes.targets import Target
from nodes.template import Integer, Number, Ref, Unfit, kind_of
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.pages import ElementAction, Page
    from nodes.ports import LeafContext

LONGEST = 60  # limit of ``hold``, in seconds


class Opener(OnElement):
    """An action on an element that may open a tab."""

    button: Button = "left"
    """Button of the mouse."""
    modifiers: list[Modifier] = Field(default_factory=list, max_length=4)
    """Keys held down meanwhile."""
    at: Spot | None = None
    """Where in the element; by default in its middle."""
    hold: Number = Field(default=0, ge=0, le=LONGEST)
    """Seconds for which the button stays down, at each click."""
    opens: TabName | None = None
    """Name for the tab that the action opens. The step waits for that tab; later nodes use it by ``tab``. The current tab stays the current one."""

    @property
    @override
    def held(self) -> float:
        return lasting(self.hold, self.times)

    @property
    def times(self) -> int:
        return 1

    def summary(self) -> str:
        button = f"{self.button} " if self.button != "left" else ""
        return f"{button}{self.does} {self.target}"

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        page = ctx.page
        async with page.opening(self.opens):
            await self.strike(page, target)
        await ctx.verify()
        await self.flag_unchanged(ctx)
        return ctx.page.url

    @abstractmethod
    async def strike(self, page: Page, target: Target) -> None:
        """Do the action."""

    def stroke(self, count: int = 1) -> pointer.Stroke:
        return pointer.Stroke(self.at, self.button, tuple(self.modifiers), count, self.hold)


class Click(Opener):
    """Clicks an element. Class *effect* unless ``effect`` overrides it. Value: the address of the page afterwards."""

    does: ClassVar[ElementAction] = "click"

    action: Literal["click"]
    """Click an element."""
    count: Integer = Field(default=1, ge=1, le=10)
    """Number of clicks, quickly one after the other: 3 selects a paragraph."""

    @property
    @override
    def times(self) -> int:
        return self.count

    async def strike(self, page: Page, target: Target) -> None:
        await page.click(target, self.stroke(self.count))


class DoubleClick(Opener):
    """Clicks an element twice, as one action. Class *effect* unless ``effect`` overrides it. Value: the address of the page afterwards."""

    does: ClassVar[ElementAction] = "dblclick"

    action: Literal["dblclick"]
    """Click an element twice."""

    @property
    @override
    def times(self) -> int:
        return 2

    async def strike(self, page: Page, target: Target) -> None:
        await page.dblclick(target, self.stroke())


class Tap(OnElement):
    """Taps an element with a finger, in a browser with ``touch: true``. Value: the address of the page afterwards.

    Class *effect* unless ``effect`` overrides it.
    """

    does: ClassVar[ElementAction] = "tap"

    action: Literal["tap"]
    """Tap an element with a finger."""
    at: Spot | None = None
    """Where in the element; by default in its middle."""

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        await ctx.page.tap(target, self.at)
        await ctx.verify()
        await self.flag_unchanged(ctx)
        return ctx.page.url


class Hover(OnElement):
    """Moves the mouse over an element, so that its menu or hint shows. Value: none."""

    effect_default: ClassVar[EffectClass] = "idempotent"
    does: ClassVar[ElementAction] = "hover"

    action: Literal["hover"]
    """Move the mouse over an element."""
    modifiers: list[Modifier] = Field(default_factory=list, max_length=4)
    """Keys held down meanwhile."""
    at: Spot | None = None
    """Where in the element; by default in its middle."""
    hold: Number = Field(default=0, ge=0, le=LONGEST)
    """Seconds for which the mouse stays there before the next step."""

    @property
    @override
    def held(self) -> float:
        return lasting(self.hold)

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        await ctx.page.hover(target, pointer.Stroke(self.at, modifiers=tuple(self.modifiers), hold=self.hold))


Steps = Annotated[int, Field(ge=1, le=200)]


class Drag(BrowserAction):
    """Drags an element onto another, by a distance, or along a path; or drops files of the project on an element.

    The mouse is pressed, moved and released, so that pages which follow it and pages with draggable elements both hear of it. Class *effect*
    unless ``effect`` says otherwise. Value: none.
    """

    takes_up_input: ClassVar[bool] = False
    does: ClassVar[ElementAction] = "drag"

    action: Literal["drag"]
    """Drag an element, or drop files."""
    target: Target | None = None
    """The element to drag."""
    from_at: Spot | None = None
    """Where in it the mouse takes hold; by default in its middle."""
    to: Target | None = None
    """The element on which it is dropped."""
    at: Spot | None = None
    """Where in ``to`` it is dropped; by default in its middle."""
    by: Distance | None = None
    """Instead of ``to``: how far it is dragged."""
    path: list[Spot] | None = Field(default=None, min_length=1, max_length=1_000)
    """Instead of ``to``: places that the mouse passes, from the upper left corner that ``target`` had at the beginning."""
    files: Annotated[str | list[str], AfterValidator(some_files), Ref(to_paths, item=to_path)] | None = None
    """Instead of ``target``: paths of files that are dropped on ``to``, as for ``upload``."""
    steps: Steps = pointer.STEPS
    """Number of moves for each part of the way: pages that follow the mouse miss a single jump."""

    @model_validator(mode="after")
    def _one_way(self) -> Drag:
        if (self.target is None) == (self.files is None):
            raise ValueError("`drag` needs `target` or `files`, one of them")
        if self.files is not None and self.to is None:
            raise ValueError("`files` are dropped on `to`")
        if self.files is not None and self.from_at is not None:
            raise ValueError("`from_at` is a place in `target`, and `files` have none")
        if self.files is not None and "steps" in self.model_fields_set:
            raise ValueError("`steps` are moves of what is dragged, and `files` are dropped at once")
        if sum(each is not None for each in (self.to, self.by, self.path)) != 1:
            raise ValueError("`drag` needs `to`, `by` or `path`, one of them")
        if self.at is not None and self.to is None:
            raise ValueError("`at` is a place in `to`")
        return self

    @property
    def paths(self) -> list[str]:
        return [self.files] if isinstance(self.files, str) else self.files or []

    def summary(self) -> str:
        what = ", ".join(self.paths) or str(self.target)
        where = f"to {self.to}" if self.to is not None else "along a path"
        return f"drag {what} {f'by {self.by.x:g}, {self.by.y:g}' if self.by is not None else where}"

    async def run(self, ctx: LeafContext) -> Json:
        files = [ctx.artifacts.find(path) for path in self.paths]
        target = await ctx.located(self.target) if self.target is not None else None
        to = await ctx.located(self.to) if self.to is not None else None
        for each in (target, to):
            if each is not None:
                await ctx.page.ready(each, self.does)
        await ctx.act()
        if target is None:
            assert to is not None
            await ctx.page.drop(to, self.at, files)
        elif to is not None:
            await ctx.page.drag(target, to, self.from_at, self.at, self.steps)
        else:
            by = (self.by.x, self.by.y) if self.by is not None else None
            await ctx.page.move_pressed(target, pointer.Way(self.from_at, tuple(self.path or ()), by, self.steps))
        await self.flag_unchanged(ctx)


class Draw(OnElement):
    """Draws a line with the mouse, such as on a canvas: presses at the first place, moves through the others, releases at the last.

    Class *effect* unless ``effect`` says otherwise. Value: none.
    """

    takes_up_input: ClassVar[bool] = False
    does: ClassVar[ElementAction] = "drag"

    action: Literal["draw"]
    """Draw a line with the mouse."""
    path: list[Spot] = Field(min_length=2, max_length=1_000)
    """The places, from the element's upper left corner."""
    steps: Steps = pointer.STEPS
    """Number of moves between two places."""

    def summary(self) -> str:
        return f"draw on {self.target}"

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        await ctx.page.move_pressed(target, pointer.Way(self.path[0], tuple(self.path[1:]), None, self.steps))
        await self.flag_unchanged(ctx)


class Wheel(BrowserAction):
    """Turns the wheel of the mouse over an element, or over the middle of the page. Value: none.

    Use it where the page listens to the wheel itself, such as a map; ``scroll`` for what scrolls.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"

    action: Literal["wheel"]
    """Turn the wheel over an element."""
    target: Target | None = None
    """The element."""
    at: Spot | None = None
    """Where in it; by default in its middle."""
    by: Distance
    """How far, in CSS pixels; a notch of a wheel has about 100."""
    modifiers: list[Modifier] = Field(default_factory=list, max_length=4)
    """Keys held down meanwhile."""

    def summary(self) -> str:
        return f"turn the wheel by {self.by.x:g}, {self.by.y:g} over {self.target or 'the page'}"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        await ctx.act()
        how = pointer.Stroke(self.at, modifiers=tuple(self.modifiers))
        await ctx.page.wheel(target, (self.by.x, self.by.y), how)


End = Literal["top", "bottom"]


def to_end(value: Json) -> End:
    if value not in ("top", "bottom"):
        raise Unfit(f"is {repr(value) if isinstance(value, str) else kind_of(value)}, and `top` or `bottom` is wanted")
    return "top" if value == "top" else "bottom"


class Scroll(BrowserAction):
    """Scrolls an element into view; with ``to`` or ``by`` scrolls within it, or without a target the page.

    Value: ``{x, y, at_end}`` of the scrolled element or page: its scroll position in pixels, and whether its lower end is reached.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"

    action: Literal["scroll"]
    """Scroll an element into view, or to a position."""
    target: Target | None = None
    """The element."""
    to: Annotated[End, Ref(to_end)] | None = None
    """End to scroll to: ``top`` or ``bottom``."""
    by: Distance | None = None
    """Distance to scroll from the present position."""

    @model_validator(mode="after")
    def _one_place(self) -> Scroll:
        if self.to is not None and self.by is not None:
            raise ValueError("`scroll` takes `to` or `by`, not both")
        if self.target is None and self.to is None and self.by is None:
            raise ValueError("`scroll` needs a `target`, or `to` or `by`")
        return self

    def summary(self) -> str:
        where = f" to {self.to}" if self.to else f" by {self.by.x:g}, {self.by.y:g}" if self.by else ""
        return f"scroll {self.target or 'the page'}{where}"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        await ctx.act()
        return await ctx.page.scroll(target, self.to, (self.by.x, self.by.y) if self.by else None)
