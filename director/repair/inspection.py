"""Inspects the page of a failure: a copy of the run repeats it up to the step, and the page is read before its browser ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from playwright.async_api import Error

from director.effects import effects
from director.repair import elements, failure_kinds, failures
from nodes.base import Leaf
from nodes.errors import RunOpsError
from nodes.targets import Target
from nodes.values import Json
from runtime.browser.elements import locators, targets
from runtime.browser.page.tab import Tab
from runtime.context import briefs
from runtime.engine import attempt, evidence
from runtime.engine.run_state import RunState
from runtime.observation.observation import Observation

LOOK_SECONDS = 10.0
LEAST_MORE, MOST_MORE = 3.0, 30.0  # limits of the wait for the target beyond its step's time, in seconds

_NAMES = (
    "close, dismiss, ×, ✕, ✖, x, no thanks, not now, later, skip, reject, reject all, decline, got it, "
    "ok, okay, continue, accept, accept all, accept cookies, allow all, agree, i agree, understood"
)
CLOSERS = _NAMES.split(", ")  # names of buttons that close an overlay, least committing first

HARMLESS = frozenset(CLOSERS[: CLOSERS.index("got it") + 1])  # names that agree to nothing, and may be pressed twice


@dataclasses.dataclass(frozen=True, slots=True)
class Closer:
    target: Target
    name: str

    @property
    def harmless(self) -> bool:
        """True if pressing it agrees to nothing."""
        return self.name.casefold().strip() in HARMLESS


@dataclasses.dataclass(slots=True)
class Inspection:
    look: failure_kinds.PageLook
    candidates: list[elements.Candidate] = dataclasses.field(default_factory=list[elements.Candidate])
    left_out: list[str] = dataclasses.field(default_factory=list[str])  # elements, each with the reason in a sentence
    closer: Closer | None = None


@dataclasses.dataclass(slots=True)
class Looker:
    """Inspects the page of a copy of a failed run at the failed step, and withholds side effects."""

    case: failures.Case
    say: Callable[[str], None]
    seen: Inspection | None = None
    _reached: bool = False

    def holds(self, leaf: Leaf, path: str) -> bool:
        """Return True for every side effect, and for everything after the step."""
        if path == self.case.failure.path:
            self._reached = True
            return effects.changes(leaf)
        return self._reached or effects.changes(leaf)

    async def ended(self, at: RunState, error: RunOpsError) -> None:
        if at.browser is None:
            return
        leaf, here = self.case.leaf, error.path == self.case.failure.path
        page = cast("Tab", at.browser.page)
        if leaf is not None and leaf.works_in is not None:
            page = cast("Tab", at.browser.tabs.get(leaf.works_in))
        at.browser.bound(LOOK_SECONDS)
        glance = await _glance(at, page)
        with contextlib.suppress(RunOpsError, Error):
            # If the page closes during the inspection, what was found so far counts.
            if not isinstance(error, attempt.EffectWithheld):
                self.seen = Inspection(failure_kinds.PageLook(glance, error.path, error.code))
                if here and self.case.target is not None and page.dialog is None and not page.closed:
                    await self._closely(at, page, self.seen, self.case.target)
            elif here or self._reached:
                # The withheld action looked ready, but only doing it would have revealed an overlay.
                self.seen = Inspection(failure_kinds.PageLook(glance, error.path, None))
                if here and self.case.failure.code == "target-not-actionable":
                    self.seen.closer = await _closer(page, await page.look())

    async def _closely(self, at: RunState, page: Tab, seen: Inspection, target: Target) -> None:
        """Wait longer for the target, count the matches of its parts, and search for candidates."""
        assert at.browser is not None
        assert self.case.raw is not None
        code, look = self.case.failure.code, seen.look
        came = await self._wait(page, target) if code in failure_kinds.FOUND_NOTHING | {"timeout"} else None
        at.browser.bound(LOOK_SECONDS)
        parts = [(str(part), await page.count(part)) for part in _parts(target)]
        hidden = parts[-1][1] == 0 and await _hidden(page, target)
        rows = await _rows(page, target) if self.case.failure.action in ("extract", "table", "count") else None
        seen.look = look = dataclasses.replace(look, parts=parts, came_after=came, hidden=hidden, rows=rows)
        view = await page.look()
        if look.glance.front is not None or code == "target-not-actionable":
            seen.closer = await _closer(page, view)
        if came is None:
            case = self.case
            search = elements.Elements(
                case.leaf, self.case.raw, target, case.failure.action, case.refills(), case.types_secret
            )
            seen.candidates, seen.left_out = await search.candidates(page, view), search.left_out
        already, proves = await self._holding(page)
        near = any(each.shares for each in seen.candidates)
        seen.look = dataclasses.replace(look, already=already, proves=proves, near=near)

    async def _holding(self, page: Tab) -> tuple[bool, bool]:
        """Return whether all rules of ``verify`` about page content hold already, and whether any rule does not.

        Rules about the address, the title or hidden elements say too little to count as content.
        """
        held = [(each, await page.holds(each)) for each in self.case.rules if each.kind != "expr"]
        telling = [holds for each, holds in held if each.kind not in ("url", "title", "hidden")]
        return bool(telling) and all(telling), not all(holds for _each, holds in held)

    async def _wait(self, page: Tab, target: Target) -> float | None:
        """Wait for the target beyond its step's time. Return the total seconds until it appeared; None if it was there or never came."""
        own = self.case.leaf.seconds if self.case.leaf is not None else 10.0
        more = min(MOST_MORE, max(LEAST_MORE, 2 * own))
        if await page.count(target) > 0:
            return None
        self.say(f"waiting up to {more:g} s longer for {briefs.ours(self.case.failure.path)}")
        begun = time.monotonic()
        while time.monotonic() - begun < more:
            if await page.count(target) > 0:
                return own + time.monotonic() - begun
            await asyncio.sleep(0.2)
        return None


async def _glance(at: RunState, page: Tab) -> failure_kinds.PageGlance:
    found = evidence.Gathering(at.writer)
    signs = await found.part(page.signs) if page.dialog is None else None
    view: Observation | None = await found.part(page.look) if page.dialog is None else None
    kept: dict[str, Json] = {"url": page.url, "signs": signs, "dialog": page.dialog}
    return failure_kinds.PageGlance.of(at.writer.masker.json(kept), view.words if view is not None else "")


async def _rows(page: Tab, target: Target) -> int | None:
    """Return 0 if the container of the rows exists and is empty."""
    steps = (target.css or "").split()
    for end in range(len(steps) - 1, 0, -1):
        if steps[end] in (">", "+", "~") or steps[end - 1] in ("+", "~"):
            continue
        around = " ".join(steps[:end]).rstrip("> ")
        if around and await page.count(target.model_copy(update={"css": around})) > 0:
            return 0
    return None


async def _closer(page: Tab, view: Observation) -> Closer | None:
    """Return the button or link that closes the overlay; of several, the least committing one."""
    found = [(view.element(ref), ref) for ref in view.refs]
    named = [(each.name.casefold().strip(" .!"), ref) for each, ref in found if each.role in ("button", "link")]
    ranked = sorted((CLOSERS.index(name), ref) for name, ref in named if name in CLOSERS)
    if not ranked:
        return None
    element = view.element(ranked[0][1])
    async with page.pointed(ranked[0][1]) as pointed:
        target = await targets.target_of(pointed, element.role, element.name, lambda _text: True)
    return Closer(target, element.name)


def _parts(target: Target) -> Sequence[Target]:
    return [*(_parts(target.within) if target.within is not None else ()), target]


async def _hidden(page: Tab, target: Target) -> bool:
    """Return whether an element of that name is in the document, but hidden."""
    if target.role is None or target.within is not None:
        return False
    found = page.page.get_by_role(cast("Any", target.role), name=target.name or "", include_hidden=True)
    return await found.count() > 0 and locators.settled(target)
