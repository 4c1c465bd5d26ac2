"""Pictures of a page in which each element to act on bears its ref, as a model that sees takes them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable, Sequence

from playwright.async_api import Error, FloatRect, Locator

from nodes.targets import Target
from nodes.values import Json
from runtime.browser import isolated_world
from runtime.browser.page.observer import Looking
from runtime.browser.page.screenshots import Pictures

MOST = 300
"""Most refs in a picture: a page has no room for more that one could read."""

BOX_MILLISECONDS = 1_000.0  # milliseconds that an element may take to say where it is

# Drawn in memory, in the world of our scripts: the page is not changed, and notices nothing.
_DRAWN = isolated_world.Script[str](
    r"""async ({picture, width, labels}) => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(picture), (each) => each.charCodeAt(0))], {type: 'image/png'}));
  const canvas = new OffscreenCanvas(image.width, image.height), draw = canvas.getContext('2d');
  draw.drawImage(image, 0, 0);
  const scale = width ? image.width / width : 1;
  draw.scale(scale, scale);
  const most = {x: image.width / scale, y: image.height / scale}, height = 13, taken = [];
  draw.font = 'bold 11px sans-serif';
  draw.textBaseline = 'middle';
  for (const {ref, x, y, width, height: tall} of labels) {
    draw.strokeStyle = '#d0006f';
    draw.lineWidth = 1;
    draw.strokeRect(x + .5, y + .5, Math.max(width - 1, 1), Math.max(tall - 1, 1));
    const long = Math.ceil(draw.measureText(ref).width) + 4;
    // Where it hides neither another label nor, if possible, what stands before a field.
    const inside = (place) => ({x: Math.min(Math.max(place.x, 0), most.x - long), y: Math.min(Math.max(place.y, 0), most.y - height)});
    const places = [{x: x + width - long, y: y - height}, {x, y: y - height}, {x, y}, {x: x + width - long, y}, {x, y: y + tall - height}, {x: x + width, y}].map(inside);
    const free = (place) => !taken.some((each) => place.x < each.x + each.long && each.x < place.x + long && place.y < each.y + height && each.y < place.y + height);
    const at = places.find(free) ?? places[2];
    taken.push({...at, long});
    draw.fillStyle = '#d0006f';
    draw.fillRect(at.x, at.y, long, height);
    draw.fillStyle = '#ffffff';
    draw.fillText(ref, at.x + 2, at.y + height / 2);
  }
  const bytes = new Uint8Array(await (await canvas.convertToBlob({type: 'image/png'})).arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}""",
    str,
)


class Numbered(Pictures, Looking):
    async def numbered(self, target: Target | None, refs: Sequence[str], hide: Callable[[str], bool]) -> bytes:
        """Return a PNG of the page as far as it is in view, or of an element, with a frame and its ref at each element of ``refs``.

        Elements that cannot be seen there have none.
        """
        picture = await self.screenshot(target, full_page=False, hide=hide)
        width, height = await self.window()
        there: FloatRect | None = {"x": 0, "y": 0, "width": width, "height": height}
        if target is not None:
            _settled, found = await self._found(target)
            there = await self._box(found)
        if there is None:
            return picture
        found = [self._located(ref) for ref in refs[:MOST]]
        boxes = await asyncio.gather(*(self._box(each) for each in found if each is not None))
        named = [ref for ref, each in zip(refs, found, strict=False) if each is not None]
        labels = [_label(ref, box, there) for ref, box in zip(named, boxes, strict=True) if box and _meet(box, there)]
        asked: Json = {"picture": base64.b64encode(picture).decode(), "width": there["width"], "labels": [*labels]}
        drawn = await self._read(None, lambda: _DRAWN.on(self.page, asked, milliseconds=self._deadline.milliseconds()))
        return base64.b64decode(drawn)

    async def _box(self, found: Locator) -> FloatRect | None:
        """Return where an element is in the window; None if it cannot be seen or is gone."""
        with contextlib.suppress(Error):
            return await found.bounding_box(timeout=BOX_MILLISECONDS)
        return None


def _meet(one: FloatRect, other: FloatRect) -> bool:
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


def _label(ref: str, box: FloatRect, there: FloatRect) -> Json:
    left, top = box["x"] - there["x"], box["y"] - there["y"]
    return {"ref": ref, "x": left, "y": top, "width": box["width"], "height": box["height"]}
