"""Actions of the mouse on the elements of a page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from playwright.async_api import Error, Locator, Position

from nodes.errors import AuthorError
from nodes.pointer import PLAIN, STEPS, Modifier, Spot, Stroke, Way
from nodes.targets import Target
from runtime.browser import isolated_world, playwright_errors
from runtime.browser.page import boxes
from runtime.browser.page.downloads import Downloads

PAGE = Target(css="html")
LOOKS_AGAIN = 1.0  # seconds that Playwright waits for a field before we look again at what takes its clicks

_INNER = isolated_world.Script[tuple[float, float, float, float]](
    """(element) => {
  const {width, height} = element.getBoundingClientRect();
  // What is drawn inline, and what is part of a picture, has no inner box of its own.
  if (!element.clientWidth || !element.clientHeight) return [0, 0, width, height];
  // A transform scales the box as it is seen; a picture has no other.
  const [across, down] = element.offsetWidth ? [width / element.offsetWidth, height / element.offsetHeight] : [1, 1];
  return [across * element.clientLeft, down * element.clientTop, across * element.clientWidth, down * element.clientHeight];
}""",
    tuple[float, float, float, float],
)
"""Place and size of the inside of an element: its box without the border."""

_MIDDLE = isolated_world.Script[tuple[float, float]](
    """(element) => {
  const whole = element.getBoundingClientRect();
  // A link over two lines has two boxes, and between them may be nothing of it.
  const box = [...element.getClientRects()].find(({width, height}) => width * height > 0.99) || whole;
  const middle = (from, to, end) => (Math.max(from, 0) + Math.min(to, end)) / 2;
  return [middle(box.left, box.right, innerWidth) - whole.left, middle(box.top, box.bottom, innerHeight) - whole.top];
}""",
    tuple[float, float],
)
"""The middle of what the window shows of an element's first box, from the corner of the element."""


class Pointer(Downloads):
    async def click(self, target: Target, how: Stroke = PLAIN) -> None:
        await self._refill_changed()
        at = await self._position(target, how.at)

        async def click(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            await found.click(
                position=at,
                button=how.button,
                modifiers=how.modifiers or None,
                click_count=how.count,
                delay=1000 * how.hold,
                timeout=timeout,
            )

        async def click_shown(found: Locator, _timeout: float) -> None:
            """Click what is seen of a field. While neither it nor its control takes a click, the page may still be drawn."""
            while (seen := await boxes.seen(found, self._deadline)) is None and self._deadline.left() > LOOKS_AGAIN:
                # A trial closes overlays, as the click itself does. Its input is kept from the page only while it lasts.
                try:
                    await found.click(trial=True, timeout=1000 * LOOKS_AGAIN)
                    break
                except Error as error:
                    if not playwright_errors.only_waited(error):
                        raise
            await click(seen or found, self._deadline.milliseconds())

        acts = click_shown if at is None and boxes.may_be(target) else click
        await self._do(target, acts, driver_waits=True, watch="pointer")

    async def dblclick(self, target: Target, how: Stroke = PLAIN) -> None:
        await self._refill_changed()
        at = await self._position(target, how.at)
        await self._do(
            target,
            lambda found, timeout: found.dblclick(
                position=at,
                button=how.button,
                modifiers=how.modifiers or None,
                delay=1000 * how.hold,
                timeout=timeout,
            ),
            watch="pointer",
        )

    async def tap(self, target: Target, at: Spot | None = None) -> None:
        if not self._run.touch:
            raise AuthorError(
                "no-touch",
                "the browser has no touch screen",
                fix="write `browser: {touch: true}` at the head of the file",
            )
        await self._refill_changed()
        spot = await self._position(target, at)

        async def tap(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            # Playwright's own `tap` refuses a browser whose touch screen it did not make itself.
            await found.click(position=spot, trial=True, timeout=timeout)
            x, y = await self._touched(found, spot)
            session = await self.page.context.new_cdp_session(self.page)
            try:
                for what, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
                    event: dict[str, Any] = {"type": what, "touchPoints": points}
                    await session.send("Input.dispatchTouchEvent", event)  # pyright: ignore[reportUnknownMemberType]
            finally:
                await session.detach()

        await self._do(target, tap, watch="pointer")

    async def _touched(self, found: Locator, spot: Position | None) -> tuple[float, float]:
        """Return the place of a tap in the window: the spot, or the middle of what is seen of the element's first box."""
        if spot is not None:
            left, top, _width, _height = await self._inside(found)
            return left + spot["x"], top + spot["y"]
        box = await found.bounding_box(timeout=self._deadline.milliseconds())
        across, down = await _MIDDLE.of(found, milliseconds=self._deadline.milliseconds())
        return (box["x"] if box else 0) + across, (box["y"] if box else 0) + down

    async def hover(self, target: Target, how: Stroke = PLAIN) -> None:
        at = await self._position(target, how.at)

        async def hover(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            if how.modifiers:
                # Keys are pressed only once the element is there. Those of Playwright's own `hover` would go up before the hold.
                await found.wait_for(state="visible", timeout=timeout)
            async with self._held_down(how.modifiers):
                await found.hover(position=at, timeout=timeout)
                await asyncio.sleep(how.hold)

        await self._do(target, hover)

    async def drag(
        self, target: Target, to: Target, start: Spot | None = None, at: Spot | None = None, steps: int = STEPS
    ) -> None:
        await self._refill_changed()
        grip = await self._position(target, start)
        to, place = await self._found(to)

        async def drag(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            await found.hover(position=grip, timeout=timeout)
            await self.page.mouse.down()
            try:
                # What is dragged, or lies over it, may cover the place: a person drops there all the same.
                try:
                    await place.scroll_into_view_if_needed(timeout=timeout)
                    left, top, width, height = await self._inside(place)
                except Error as error:
                    raise await self.diagnosis.failed(error, to, "after") from None
                x, y = at.within(width, height) if at is not None else (width / 2, height / 2)
                await self.page.mouse.move(left + x, top + y, steps=steps)
                # Pages with draggable elements accept a drop only where the mouse has moved over them.
                await self.page.mouse.move(left + x, top + y)
            finally:
                await self.page.mouse.up()

        await self._do(target, drag, watch="pointer")

    async def move_pressed(self, target: Target, way: Way) -> None:
        await self._refill_changed()
        start = await self._position(target, way.start)

        async def move(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            await found.hover(position=start, timeout=timeout)
            left, top, width, height = await self._inside(found)
            x, y = (start["x"], start["y"]) if start is not None else (width / 2, height / 2)
            points = [each.within(width, height) for each in way.path]
            points += [(x + way.by[0], y + way.by[1])] if way.by is not None else []
            await self.page.mouse.down()
            try:
                for across, down in points:
                    await self.page.mouse.move(left + across, top + down, steps=way.steps)
            finally:
                await self.page.mouse.up()

        await self._do(target, move, watch="pointer")

    async def drop(self, target: Target, at: Spot | None, files: Sequence[Path]) -> None:
        self._run.demand_chromium("drop of files")
        await self._refill_changed()
        spot = await self._position(target, at)
        data: dict[str, Any] = {"items": [], "files": [str(each) for each in files], "dragOperationsMask": 1}

        async def drop(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            await found.hover(position=spot, timeout=timeout)
            left, top, width, height = await self._inside(found)
            x, y = (spot["x"], spot["y"]) if spot is not None else (width / 2, height / 2)
            session = await self.page.context.new_cdp_session(self.page)
            try:
                for what in ("dragEnter", "dragOver", "drop"):
                    event = {"type": what, "x": left + x, "y": top + y, "data": data}
                    await session.send("Input.dispatchDragEvent", event)  # pyright: ignore[reportUnknownMemberType]
            finally:
                await session.detach()

        await self._do(target, drop, watch="pointer")

    async def box(self, target: Target) -> tuple[float, float, float, float]:
        target, found = await self._found(target)
        async with self._asking(target):
            await found.wait_for(state="visible", timeout=self._deadline.milliseconds())
            return await self._inside(found)

    async def wheel(self, target: Target | None, by: tuple[float, float], how: Stroke) -> None:
        at = await self._position(target or PAGE, how.at)

        async def turn(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            if target is None and at is None:
                width, height = await self.window()
                await self.page.mouse.move(width / 2, height / 2)
            else:
                await found.hover(position=at, timeout=timeout)
            async with self._held_down(how.modifiers):
                await self.page.mouse.wheel(*by)

        await self._do(target or PAGE, turn)

    @contextlib.asynccontextmanager
    async def _held_down(self, keys: Sequence[Modifier]) -> AsyncGenerator[None]:
        keyboard = self.page.keyboard
        try:
            for each in keys:
                await keyboard.down(each)
            yield
        finally:
            for each in reversed(keys):
                await keyboard.up(each)

    async def _position(self, target: Target, at: Spot | None) -> Position | None:
        """Return the place in the element, in pixels; None for its middle."""
        if at is None:
            return None
        width = height = 0.0
        if at.is_relative:
            target, found = await self._found(target)
            async with self._asking(target):
                inner = await _INNER.of(found, milliseconds=self._deadline.milliseconds())
            _left, _top, width, height = inner
        x, y = at.within(width, height)
        return {"x": x, "y": y}

    async def _inside(self, found: Locator) -> tuple[float, float, float, float]:
        """Return the inside of the element in the window: left, top, width and height."""
        box = await found.bounding_box(timeout=self._deadline.milliseconds())
        left, top, width, height = await _INNER.of(found, milliseconds=self._deadline.milliseconds())
        return ((box["x"] if box else 0) + left, (box["y"] if box else 0) + top, width, height)
