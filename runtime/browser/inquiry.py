"""What went wrong on a page: from what Playwright raised, and one more look, to the error that a person reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from playwright.async_api import Error, Page

from nodes.errors import OriginRefused, Phase, RunOpsError, SiteError
from nodes.ports import FieldSource
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser import failures, locators, nearest, rules
from runtime.browser.patience import Patience

Answer = TypeVar("Answer")

EVIDENCE_SECONDS = 1.0
"""How long evidence may be gathered once a deed has failed."""


class Told(Protocol):
    """What a run knows that its pages do not."""

    @property
    def patience(self) -> Patience:
        """How long anything may take."""
        ...

    def refusal(self) -> OriginRefused | None:
        """The document that the guard refused, told once: then that is what went wrong."""
        ...


class Inquiry:
    """Looks into what went wrong on one page. Its looks are short, and never fail."""

    def __init__(self, page: Page, run: Told, settle: Callable[[Target], Awaitable[Target | None]]) -> None:
        """``settle`` gives a target as it is settled now, None where nothing matches."""
        self.page = page
        self._run = run
        self._patience = run.patience
        self._settle = settle

    def not_loaded(self, error: Error, url: str) -> RunOpsError:
        """A document could not be loaded."""
        if refused := self._run.refusal():
            return refused
        kind = failures.kind_of(error)
        if kind in ("gone", "crashed"):
            return failures.gone(error, self.page.url, "after")
        if "Timeout" in error.message:
            return SiteError(
                "timeout",
                f"{url} was not loaded in time (waited {self._patience.waited():g} s)",
                mend="give the step a larger `timeout`, or look what the page is still loading",
                phase="after",
                evidence={"url": url, "waited": self._patience.waited()},
            )
        seen = failures.network_error(error)
        phase: Phase = "before" if seen in failures.NEVER_SENT else "after"
        said = seen or failures.short(error.message.split("Call log:", 1)[0].removeprefix("Page.goto: "), 200)
        return failures.no_address(url, said, phase, {"url": url, "seen": said})

    async def failed(self, error: Error, target: Target | None, phase: Phase) -> RunOpsError:
        """A deed or a look failed."""
        if refused := self._run.refusal():
            return refused
        kind = failures.kind_of(error)
        if kind in ("gone", "crashed"):
            return failures.gone(error, self.page.url, phase)
        said = failures.short(error.message.split("Call log:", 1)[0], 200)
        if target is None or kind == "navigated":
            return self.silent(phase, said)
        if kind == "bad target":
            return failures.bad_target(target, error)
        if kind == "ambiguous":
            return await self.ambiguous(target, phase)
        if kind == "missing":
            return await self.missing(target)
        if kind == "other":
            return self.not_actionable(target, "refused", f"the browser refused: {said}", None, phase)
        problem, words, element = failures.obstacle(error)
        if problem == "busy" and phase == "after":
            return SiteError(
                "timeout",
                f"{target} took the deed, and the page did not answer in time (waited {self._patience.waited():g} s)",
                mend="give the step a larger `timeout`, and a `confirm` that tells whether it was carried out",
                phase="after",
                evidence={"page": self.page.url, "waited": self._patience.waited()},
            )
        return self.not_actionable(target, problem, words, element, phase)

    def silent(self, phase: Phase = "before", said: str | None = None) -> SiteError:
        """The page does not answer."""
        return SiteError(
            "timeout",
            "the page does not answer" + (f": {said}" if said else ""),
            mend="look whether a script or a dialog of the page blocks it",
            phase=phase,
            evidence={"page": self.page.url, "waited": self._patience.waited()},
        )

    def not_actionable(self, target: Target, problem: str, words: str, element: str | None, phase: Phase) -> SiteError:
        """The element is there, and cannot take the deed."""
        return SiteError(
            "target-not-actionable",
            f"{target} is there, but {words}",
            mend="wait for the state you need with `verify` on the step before, or point at another element",
            phase=phase,
            evidence={
                "problem": problem,
                "element": element,
                "page": self.page.url,
                "waited": self._patience.waited(),
            },
        )

    async def ambiguous(self, target: Target, phase: Phase = "before") -> SiteError:
        """More than one element matches."""
        found = locators.locator(self.page, target)
        candidates = await self._evidence(lambda: nearest.described(found), [])
        count = await self._evidence(found.count, len(candidates))
        return SiteError(
            "target-ambiguous",
            f"{count} elements match {target}",
            mend="narrow the target with `within`, `has_text` or `exact`, or choose one with `nth`",
            phase=phase,
            evidence={"count": count, "candidates": candidates, "page": self.page.url},
        )

    async def missing(self, target: Target, *, wanted: int = 1, seen: int = 0) -> SiteError:
        """No element matches, or too few of them do."""
        waited = self._patience.waited()
        lacking = await self._evidence(lambda: self._lacking(target), target)
        what = "no element matches" if not seen else f"only {seen} of at least {wanted} elements match"
        return SiteError(
            "target-not-found",
            f"{what} {lacking}  (waited {waited:g} s)",
            mend="look at the page, and correct the target or what comes before it",
            evidence={
                "page": self.page.url,
                "title": await self._evidence(self.page.title, ""),
                "waited": waited,
                "nearest": await self._evidence(lambda: nearest.candidates(self.page, lacking), []),
            },
        )

    async def _lacking(self, target: Target) -> Target:
        """The outermost part of the target that matches nothing: often the row is missing, not the button in it."""
        if target.within is not None:
            outer = await self._lacking(target.within)
            settled = await self._settle(outer)
            if settled is None or not await locators.locator(self.page, settled).count():
                return outer
        return target

    async def rule_failed(self, rule: Rule, look: rules.Look) -> RunOpsError:
        """A rule does not hold; ``look`` is the last one that was taken."""
        subject = subject_of(rule)
        if subject is not None and look.matches > 1 and rule.kind != "count":
            settled = await self._evidence(lambda: self._settle(subject), None)
            return await self.ambiguous(settled or subject, "after")
        evidence: dict[str, Any] = {
            "rule": str(rule),
            "wanted": look.wanted,
            "seen": look.seen,
            "page": self.page.url,
            "waited": self._patience.waited(),
        }
        seen = f"seen: {look.seen!r}"
        if subject is not None and look.matches == 0 and rule.kind != "count":
            seen = f"no element matches {subject}"
            evidence["nearest"] = await self._evidence(lambda: nearest.candidates(self.page, subject), [])
        return SiteError("rule-failed", f"{rule} does not hold; {seen}", phase="after", evidence=evidence)

    async def _evidence(self, gather: Callable[[], Awaitable[Answer]], otherwise: Answer) -> Answer:
        """What can be learned in a moment; evidence must not hide the error that it is for."""
        try:
            async with asyncio.timeout(EVIDENCE_SECONDS):
                return await gather()
        except (Error, TimeoutError, RunOpsError):
            return otherwise


def subject_of(rule: Rule) -> Target | None:
    """The element that a rule speaks of."""
    return rule.visible or rule.hidden or rule.target


def field_ambiguous(fields: Sequence[FieldSource], cell: dict[str, int]) -> SiteError:
    """A field of a row is there more than once."""
    css, row = fields[cell["index"]].css, cell["number"] + 1
    return SiteError(
        "field-ambiguous",
        f"{css} matches {cell['ambiguous']} times in row {row}",
        mend="make the css of the field more exact, or choose one with `nth`",
        evidence={"css": css, "row": row, "count": cell["ambiguous"]},
    )
