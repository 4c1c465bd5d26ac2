"""What the page looks like: as a picture, on paper. Secrets are painted over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.async_api import Error, Frame, Locator

from nodes.targets import Target
from runtime.browser.reach import Reach

MASK_COLOUR = "#000000"

# The texts that an element shows by itself: its own text nodes, or what a field holds. Open shadow roots are looked into.
_SHOWN = """() => {
  const shown = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll('*')) {
      const own = Array.from(element.childNodes).filter((node) => node.nodeType === 3).map((node) => node.data).join('');
      const held = element.type === 'password' ? '' : typeof element.value === 'string' ? element.value : '';
      if (own.trim() || held) shown.push([element, `${own}\\n${held}`]);
      if (element.shadowRoot) walk(element.shadowRoot);
    }
  };
  walk(document);
  return shown;
}"""

_TEXTS = f"() => ({_SHOWN})().map(([_element, text]) => text)"

_MARK = f"""(numbers) => {{
  const shown = ({_SHOWN})();
  for (const number of numbers) shown[number]?.[0].setAttribute('data-runops-hidden', '');
}}"""

_UNMARK = """() => {
  const walk = (root) => {
    for (const element of root.querySelectorAll('*')) {
      element.removeAttribute('data-runops-hidden');
      if (element.shadowRoot) walk(element.shadowRoot);
    }
  };
  walk(document);
}"""


class Pictures(Reach):
    """What a tab looks like."""

    async def screenshot(self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool]) -> bytes:
        """A PNG of the element or the page; whatever shows a text for which ``hide`` is true is painted over."""
        found = None
        if target is not None:
            target, found = await self._found(target)
        masked: list[Frame] = []
        try:
            async with self._answering():
                masked = await self._mark(hide)
                mask = [frame.locator("[data-runops-hidden]") for frame in masked]
                return await self._picture(found, full_page=full_page, mask=mask)
        except Error as error:
            raise await self._inquiry.failed(error, target, "before") from None
        finally:
            for frame in masked:
                await _ask(frame, _UNMARK)

    async def _picture(self, found: Locator | None, *, full_page: bool, mask: list[Locator]) -> bytes:
        milliseconds = self._patience.milliseconds()
        if found is not None:
            return await found.screenshot(
                timeout=milliseconds, animations="disabled", mask=mask, mask_color=MASK_COLOUR
            )
        return await self.page.screenshot(
            timeout=milliseconds, animations="disabled", mask=mask, mask_color=MASK_COLOUR, full_page=full_page
        )

    async def _mark(self, hide: Callable[[str], bool]) -> list[Frame]:
        """Mark each element that shows a secret; the frames in which there are any."""
        marked: list[Frame] = []
        for frame in self.page.frames:
            texts: list[str] = await _ask(frame, _TEXTS) or []
            if numbers := [number for number, text in enumerate(texts) if hide(text)]:
                await _ask(frame, _MARK, numbers)
                marked.append(frame)
        return marked

    async def shows(self, hide: Callable[[str], bool]) -> bool:
        """Whether the page, a frame or a field of it shows a text for which ``hide`` is true."""

        async def look() -> bool:
            for frame in self.page.frames:
                if any(hide(text) for text in await _ask(frame, _TEXTS) or ()):
                    return True
            return False

        return await self._read(None, look)

    async def pdf(self, landscape: bool) -> bytes:
        """The page as a PDF."""
        return await self._read(None, lambda: self.page.pdf(format="A4", landscape=landscape, print_background=True))


async def _ask(frame: Frame, script: str, argument: Any = None) -> Any:
    """What a frame answers; None where it went away."""
    try:
        return await frame.evaluate(script, argument)
    except Error:
        if frame.is_detached():
            return None
        raise
