"""Texts typed into fields, and a check that the fields still hold them before the next click or key.

Pages that bind late may empty or change a field after it was filled. So fields filled since the last click are checked once
before the next one. It costs one reading, however late the page binds.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Sequence

from playwright.async_api import Error, Locator

from nodes.errors import SiteError
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import isolated_world
from runtime.browser.elements import locators
from runtime.browser.page.access import ElementAccess

PAUSES = (0.1, 0.3, 0.8, 1.5)  # seconds between filling a field again and checking it again

_HELD = isolated_world.Script[list[tuple[str, bool]]](
    """(fields) => fields.map((field) => {
  const element = field instanceof HTMLLabelElement ? field.control ?? field : field;
  return [String(element.value ?? element.innerText ?? ''), element.type === 'password'];
})""",
    list[tuple[str, bool]],
)


@dataclasses.dataclass(frozen=True, slots=True)
class FilledText:
    target: Target
    text: str
    secret: bool
    document: int  # number of documents that the tab had loaded by then


class Filled(ElementAccess):
    _texts: tuple[FilledText, ...] = ()

    async def fill(self, target: Target, text: str, *, secret: bool = False) -> None:
        target, _found = await self._found(target)
        self._secret_begins(secret=secret)
        await self._do(target, lambda found, timeout: found.fill(text, timeout=timeout))
        self._remember(target, text, secret=secret)

    async def type(self, target: Target, text: str, delay: float, *, secret: bool = False) -> None:
        target, _found = await self._found(target)
        await self._do(target, lambda found, timeout: found.fill("", timeout=timeout))
        self._secret_begins(secret=secret)
        # The field exists, it was just emptied: from here on keys are sent.
        await self._do(
            target,
            lambda found, timeout: found.press_sequentially(text, delay=delay, timeout=timeout),
            sends=True,
        )
        self._remember(target, text, secret=secret)

    def _secret_begins(self, *, secret: bool) -> None:
        if secret:
            self._secret_documents = self._secret_documents | {self.documents}

    def _remember(self, target: Target, text: str, *, secret: bool) -> None:
        others = (each for each in self._texts if each.target != target)
        self._texts = (*others, FilledText(target, text, secret, self.documents))

    async def _refill_changed(self) -> None:
        """Fill fields again that the page has emptied or changed since. Raises ``value-not-kept``.

        Runs before the input of another action, so its errors have the phase ``before``: that input was not sent.
        """
        try:
            await self._kept()
        except SiteError as error:
            raise error.replaced(phase="before") from None

    async def _kept(self) -> None:
        texts, self._texts = list(self._texts), ()
        while texts := [each for each in texts if each.document == self.documents]:
            if await self._all_held(texts):
                return
            held = await asyncio.gather(*(self._held(each) for each in texts))
            lost = [
                (each, seen[0])
                for each, seen in zip(texts, held, strict=True)
                if seen is not None and not same(seen[0], each.text)
            ]
            if not lost:
                return
            # A page that rewrote a text twice in the same way formats it like that.
            texts = [each for each in texts if each not in [rewritten for rewritten, _seen in lost]]
            for each, seen in lost:
                await self._fill_again(each, seen)

    async def _all_held(self, texts: Sequence[FilledText]) -> bool:
        """Return True if the fields together hold the texts, with one reading for all."""
        every = functools.reduce(Locator.or_, [locators.locator(self.page, each.target) for each in texts])
        try:
            async with self._answering():
                found = await _HELD.of_all(every)
        except (Error, SiteError):
            # The fields are in several frames: check them one by one.
            return False
        return sorted(folded(seen) for seen, _password in found) == sorted(folded(each.text) for each in texts)

    async def _held(self, text: FilledText) -> tuple[str, bool] | None:
        """Return the field's text, and True if it is a password field; None if it is gone, so no longer part of the form."""
        try:
            async with self._answering():
                found = await _HELD.of_all(locators.locator(self.page, text.target))
        except Error:
            return None
        return (found[0][0], found[0][1]) if len(found) == 1 else None

    async def _fill_again(self, text: FilledText, before: str) -> None:
        hidden = text.secret
        for pause in PAUSES:
            await self._do(text.target, lambda found, timeout: found.fill(text.text, timeout=timeout))
            await asyncio.sleep(min(pause, self._deadline.left()))
            held = await self._held(text)
            if held is None or same(held[0], text.text):
                return
            seen, hidden = held[0], hidden or held[1]
            if seen == before and not cut(seen, text.text):
                return
            before = seen
            if self._deadline.over():
                break
        evidence: dict[str, Json] = {"field": str(text.target), "page": self.page.url}
        if not hidden:
            evidence |= {"wanted": text.text, "seen": before}
        raise SiteError(
            "value-not-kept",
            f"{text.target} was filled, but the page does not keep the text"
            + ("" if hidden else f": it holds {before!r}"),
            fix="wait for the page with `verify` on the step before, take `type` where it listens to each key, or give a text that the field takes",
            evidence=evidence,
        )


def same(seen: str, text: str) -> bool:
    """Return True if a field that holds ``seen`` holds ``text``, apart from line ends and outer white space."""
    return folded(seen) == folded(text)


def cut(seen: str, text: str) -> bool:
    """Return True if ``seen`` is only the beginning of ``text``: empty or cut off."""
    return folded(text).startswith(folded(seen))


def folded(text: str) -> str:
    """Return ``text`` with each run of white space as one space, and none at its ends."""
    return " ".join(text.split())
