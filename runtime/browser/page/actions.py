"""Actions on the elements of a page, with keyboard, mouse and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Locator
from playwright.async_api import TimeoutError as Late

from nodes.errors import SiteError
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import isolated_world, playwright_errors
from runtime.browser.page import boxes
from runtime.browser.page.pointer import PAGE
from runtime.browser.page.selected_text import SelectedText

_SCROLL = isolated_world.Script[dict[str, Json]](
    """async (element, {to, by}) => {
  const root = document.scrollingElement ?? document.documentElement;
  const page = element === document.documentElement || element === document.body;
  const box = page ? root : element;
  if (to) box.scrollTo({top: to === 'top' ? 0 : box.scrollHeight, behavior: 'instant'});
  else if (by) box.scrollBy({left: by[0], top: by[1], behavior: 'instant'});
  const moved = to || by ? box : root;
  // The page hears of it before the next frame is drawn; a page out of sight draws none.
  await new Promise((heard) => { requestAnimationFrame(heard); setTimeout(heard, 100); });
  return {
    x: Math.round(moved.scrollLeft),
    y: Math.round(moved.scrollTop),
    at_end: moved.scrollTop + moved.clientHeight >= moved.scrollHeight - 1,
  };
}""",
    dict[str, Json],
)

_FILE_FIELD = isolated_world.Script[str](
    """(element) => {
  const field = element instanceof HTMLLabelElement ? element.control : element;
  return field instanceof HTMLInputElement && field.type === 'file' ? (field.multiple ? 'several' : 'one') : 'none';
}""",
    Literal["several", "one", "none"],
)


class Actions(SelectedText):
    async def press(self, keys: list[str], target: Target | None, hold: float = 0) -> None:
        await self._refill_changed()
        if target is not None:
            target = await self._attached(target)

        async def press(found: Locator, timeout: float) -> None:  # noqa: ASYNC109 - it is Playwright's
            for number, key in enumerate(keys):
                # The focus may have moved with the key before.
                if target is not None and number == 0:
                    # This also waits for the answer to a form that the key submits.
                    await found.press(key, delay=1000 * hold, timeout=timeout)
                else:
                    await self.page.keyboard.press(key, delay=1000 * hold)

        # Playwright waits for the document that a key requests only if it finds the element itself.
        driver_waits = target is not None and len(keys) == 1
        await self._do(target or PAGE, press, sends=True, driver_waits=driver_waits, watch="keys")

    async def scroll(
        self, target: Target | None, to: Literal["top", "bottom"] | None, by: tuple[float, float] | None
    ) -> dict[str, Json]:
        target, found = await self._found(await self._attached(target or PAGE))
        async with self._asking(target, "after"):
            if to is None and by is None:
                await found.scroll_into_view_if_needed(timeout=self._deadline.milliseconds())
            argument: dict[str, Any] = {"to": to, "by": by}
            return await _SCROLL.of(found, argument, milliseconds=self._deadline.milliseconds())

    async def check(self, target: Target, checked: bool) -> None:
        async def check(found: Locator, _timeout: float) -> None:
            box = await boxes.shown(found, self._deadline)
            await box.set_checked(checked, timeout=self._deadline.milliseconds())

        await self._do(target, check)

    async def select(self, target: Target, options: Sequence[str]) -> list[str]:
        chosen = list(options)
        taken = await self._do(target, lambda found, timeout: found.select_option(chosen, timeout=timeout))
        return chosen if taken is None else taken

    async def upload(self, target: Target, files: Sequence[Path]) -> None:
        target, found = await self._found(target)
        async with self._asking(target):
            kind = await _FILE_FIELD.of(found, milliseconds=self._deadline.milliseconds())
        if kind == "one" and len(files) > 1:
            raise self._one_file_only(target, len(files), "before")
        if kind == "none":
            await self._do(target, lambda found, timeout: self._choose(target, found, files, timeout))
        else:
            chosen = list(files)
            await self._do(target, lambda found, timeout: found.set_input_files(chosen, timeout=timeout), sends=True)

    async def _choose(self, target: Target, found: Locator, files: Sequence[Path], milliseconds: float) -> None:
        try:
            async with self.page.expect_file_chooser(timeout=milliseconds) as opened:
                await found.click(timeout=milliseconds)
            chooser = await opened.value
        except Late as error:
            if not playwright_errors.says(error, playwright_errors.NO_CHOOSER):
                raise
            raise self.diagnosis.page_error(
                "no-file-chooser",
                f"{target} was clicked, and the page asked for no file (waited {self._deadline.waited():g} s)",
                "point at the file field itself (`css: input[type=file]`, it may be hidden), or at what opens the chooser",
                "after",
            ) from None
        if len(files) > 1 and not chooser.is_multiple():
            raise self._one_file_only(target, len(files), "after")
        await chooser.set_files(list(files), timeout=milliseconds)

    def _one_file_only(self, target: Target, count: int, phase: Literal["before", "after"]) -> SiteError:
        return SiteError(
            "target-not-actionable",
            f"{target} takes one file, and {count} were given",
            fix="give one file, or upload them one after the other",
            phase=phase,
            evidence={"problem": "one file only", "page": self.page.url},
        )
