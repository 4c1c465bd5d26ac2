"""The tab as a node sees it: ``nodes.ports.Page`` over Playwright.

Whatever goes well costs one round trip: no counting before acting, no look before a look. What went wrong is found out afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from playwright.async_api import Error, Locator, Page

from nodes.errors import Phase
from nodes.ports import Deed, FieldSource
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser import failures, locators, matching, rules
from runtime.browser.inquiry import EVIDENCE_SECONDS, Inquiry, Told, field_ambiguous, subject_of

Answer = TypeVar("Answer")

PAUSES = (0.01, 0.02, 0.05)
"""Seconds between looks; the last one again and again."""

_ROWS = (
    "(rows, fields) => {"
    + matching.SEEN
    + """
  return rows.map((row, number) => fields.map(({css, attribute, nth}, index) => {
    const all = css === null ? [row] : Array.from(row.querySelectorAll(css));
    if (nth === null && all.length > 1) return {ambiguous: all.length, number, index};
    const element = all.at(nth ?? 0);
    if (!element) return null;
    return attribute === null ? folded(seen(element)) : element.getAttribute(attribute);
  }));
}"""
)


class Circumstances(Told, Protocol):
    """What all tabs of a run share."""

    def admit(self, url: str) -> None:
        """Raises OriginRefused where a document from ``url`` may not load."""
        ...

    def committed(self, url: str) -> None:
        """A document from ``url`` has loaded."""
        ...

    def begin(self) -> None:
        """A deed begins: answers lost before it are forgotten. Raises where documents are no longer guarded."""
        ...


class Tab:
    """One tab. Implements ``nodes.ports.Page``."""

    def __init__(self, page: Page, run: Circumstances) -> None:
        self.page = page
        self._run = run
        self._patience = run.patience
        self._inquiry = Inquiry(page, run, self._settled_now)
        self.documents = 0
        """Documents loaded into the tab, its first blank one aside."""
        self.pending_input = False
        """Whether the present document holds input that no finished effect has taken up."""
        # The public event `framenavigated` does not tell a new document from a change of the fragment.
        emitter = page.main_frame._impl_obj._event_emitter  # pyright: ignore[reportPrivateUsage]
        emitter.on("navigated", self._navigated)

    def _navigated(self, event: dict[str, Any]) -> None:
        if event["newDocument"] is None or event["error"]:
            return
        self.pending_input = False
        if event["url"] != "about:blank" and _no_error_page(event["url"]):
            self.documents += 1
            self._run.committed(event["url"])

    @property
    def url(self) -> str:
        """Address of the tab's document."""
        return self.page.url

    async def title(self) -> str:
        """Title of the tab's document."""
        # Playwright's own `title` is empty for a page that crashed.
        return await self._read(None, lambda: self.page.evaluate("document.title"))

    async def goto(self, url: str) -> str:
        """Load ``url`` until its load event, and return the final address."""
        self._run.admit(url)
        self._run.begin()
        try:
            try:
                await self.page.goto(url, timeout=self._patience.milliseconds())
            except Error as error:
                if not failures.met_error_page(error):
                    raise
                # Chromium was still putting up the error page of what failed before; behind it, it goes on to where it was sent.
                await self.page.wait_for_url(_no_error_page, timeout=self._patience.milliseconds())
        except Error as error:
            raise self._inquiry.not_loaded(error, url) from None
        return self.page.url

    async def locate(self, target: Target) -> Target:
        """The target with every ``any_of`` replaced by the one that matches first."""
        return target if locators.settled(target) else await self._settle(target)

    async def _settle(self, target: Target) -> Target:
        """Wait until the target can be settled."""

        async def attempt() -> Target | None:
            return await self._settled_now(target)

        settled = await self._until(attempt)
        if settled is None:
            raise await self._inquiry.missing(target)
        return settled

    async def _settled_now(self, target: Target) -> Target | None:
        """The settled target as the page is now; None where no alternative matches."""
        if locators.settled(target):
            return target
        if target.any_of is not None:
            for choice in target.any_of:
                settled = await self._settled_now(locators.alternative(target, choice))
                if settled is not None and await self._count(settled):
                    return settled
            return None
        if target.within is not None and not locators.settled(target.within):
            within = await self._settled_now(target.within)
            return within and await self._settled_now(target.model_copy(update={"within": within}))
        assert target.nth is not None
        everything = target.model_copy(update={"nth": None})
        nth = await self._count(everything) + target.nth
        return target.model_copy(update={"nth": nth}) if nth >= 0 else None

    async def _count(self, target: Target) -> int:
        return await locators.locator(self.page, target).count()

    async def _found(self, target: Target) -> tuple[Target, Locator]:
        if not locators.settled(target):
            target = await self._settle(target)
        return target, locators.locator(self.page, target)

    async def ready(self, target: Target, deed: Deed) -> None:
        """Wait until exactly one element matches and could take the deed, without doing it."""
        target, found = await self._found(target)
        # A dry run of the deed would see a cover or a movement too, and costs two frames; the deed itself sees those before it
        # begins, and says so.
        try:
            async with self._patience.limit():
                await found.wait_for(timeout=self._patience.milliseconds())
                # The last look may take longer than there is time for: its answer counts.
                while not await found.is_enabled(timeout=EVIDENCE_SECONDS * 1000):
                    if self._patience.over():
                        raise self._inquiry.not_actionable(target, "disabled", "it is disabled", None, "before")
                    await asyncio.sleep(PAUSES[-1])
        except TimeoutError:
            raise self._inquiry.silent() from None
        except Error as error:
            raise await self._inquiry.failed(error, target, "before") from None

    async def click(self, target: Target) -> None:
        """Click the element."""
        await self._do(target, lambda found, timeout: found.click(timeout=timeout))

    async def fill(self, target: Target, text: str) -> None:
        """Put ``text`` in the place of what the field holds."""
        await self._do(target, lambda found, timeout: found.fill(text, timeout=timeout))

    async def check(self, target: Target, checked: bool) -> None:
        """Set the box or radio button."""
        await self._do(target, lambda found, timeout: found.set_checked(checked, timeout=timeout))

    async def select(self, target: Target, options: Sequence[str]) -> list[str]:
        """Choose options by label or value; returns the values chosen."""
        chosen = list(options)
        return await self._do(target, lambda found, timeout: found.select_option(chosen, timeout=timeout))

    async def _do(self, target: Target, deed: Callable[[Locator, float], Awaitable[Answer]]) -> Answer:
        """Do a deed. From its beginning the document counts as holding input: a deed that fails may still have typed something."""
        target, found = await self._found(target)
        self._run.begin()
        self.pending_input = True
        try:
            async with self._patience.limit():
                return await deed(found, self._patience.milliseconds())
        except TimeoutError:
            raise self._inquiry.silent("after") from None
        except Error as error:
            phase: Phase = "after" if failures.performed(error) else "before"
            raise await self._inquiry.failed(error, target, phase) from None

    async def text(self, target: Target) -> str:
        """Visible text of the element, white space folded."""
        target, found = await self._found(target)
        try:
            async with self._patience.limit():
                text = await found.inner_text(timeout=self._patience.milliseconds())
        except TimeoutError:
            raise self._inquiry.silent() from None
        except Error as error:
            if "not an HTMLElement" not in error.message:
                raise await self._inquiry.failed(error, target, "before") from None
            # A drawing (SVG) has a text, but no inner text.
            text = await self._read(target, found.text_content) or ""
        return matching.folded(text)

    async def value(self, target: Target) -> str:
        """What the field holds."""
        target, found = await self._found(target)
        try:
            async with self._patience.limit():
                return await found.input_value(timeout=self._patience.milliseconds())
        except TimeoutError:
            raise self._inquiry.silent() from None
        except Error as error:
            raise await self._inquiry.failed(error, target, "before") from None

    async def count(self, target: Target) -> int:
        """How many elements match now."""

        async def look() -> int:
            await self._parsed()
            settled = await self._settled_now(target)
            return 0 if settled is None else await self._count(settled)

        return await self._read(target, look)

    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        """For each element that matches, the text of each field; waits until ``least`` elements match."""
        wanted = [{"css": field.css, "attribute": field.attribute, "nth": field.nth} for field in fields]
        seen = 0

        async def look() -> list[list[Any]] | None:
            nonlocal seen
            await self._parsed()
            settled = await self._settled_now(target)
            rows: list[list[Any]] = []
            if settled is not None:
                rows = await locators.locator(self.page, settled).evaluate_all(_ROWS, wanted)
            seen = len(rows)
            return rows if seen >= least else None

        rows = await self._until(look, target)
        if rows is None:
            raise await self._inquiry.missing(target, wanted=least, seen=seen)
        for row in rows:
            for cell in row:
                if isinstance(cell, dict):
                    raise field_ambiguous(fields, cell)
        return rows

    async def _parsed(self) -> None:
        """Wait until the document is there to its end: half a table is no answer to how many rows there are."""
        await self.page.wait_for_load_state("domcontentloaded", timeout=self._patience.milliseconds())

    async def wait_for(self, rule: Rule) -> None:
        """Wait until the rule holds."""
        last = rules.Look(False, None, None)

        async def look() -> bool | None:
            nonlocal last
            last = await self._look(rule)
            return last.holds or None

        # A condition over values does not change by waiting.
        held = await (look() if rule.kind == "expr" else self._until(look, subject_of(rule)))
        if not held:
            raise await self._inquiry.rule_failed(rule, last)

    async def holds(self, rule: Rule) -> bool:
        """Whether the rule holds now; it does not where its target is missing or matches more than once."""
        return (await self._read(subject_of(rule), lambda: self._look(rule))).holds

    async def _look(self, rule: Rule) -> rules.Look:
        subject = subject_of(rule)
        if subject is None or locators.settled(subject):
            return await rules.look(self.page, rule, subject)
        settled = await self._settled_now(subject)
        if settled is None:
            missing_is_right = rule.kind == "hidden" or (rule.kind == "count" and rule.count == 0)
            return rules.Look(missing_is_right, None, None, 0)
        return await rules.look(self.page, rule, settled)

    async def _until(self, look: Callable[[], Awaitable[Answer | None]], target: Target | None = None) -> Answer | None:
        """Look until there is an answer; None when the time is up."""
        pauses = iter(PAUSES)
        while True:
            answer = await self._read(target, look)
            if answer is not None or self._patience.over():
                return answer
            if refused := self._run.refusal():
                raise refused
            await asyncio.sleep(min(next(pauses, PAUSES[-1]), self._patience.left()))

    async def _read(self, target: Target | None, look: Callable[[], Awaitable[Answer]]) -> Answer:
        """One look, again where a navigation took the document away under it. A page that does not answer runs into ``timeout``."""
        while True:
            try:
                async with asyncio.timeout(max(self._patience.left(), EVIDENCE_SECONDS)):
                    return await look()
            except TimeoutError:
                raise self._inquiry.silent() from None
            except Error as error:
                if failures.kind_of(error) != "navigated" or self._patience.over():
                    raise await self._inquiry.failed(error, target, "before") from None
            await asyncio.sleep(PAUSES[0])


def _no_error_page(url: str) -> bool:
    return not url.startswith("chrome-error:")
