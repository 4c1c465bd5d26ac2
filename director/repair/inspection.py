"""Inspects the page of a failure: a copy of the run is repeated up to the step, and the page is read before its browser ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from playwright.async_api import Error

from director.effects import effects
from director.repair import elements, failure_kinds
from nodes.base import Leaf
from nodes.errors import RunOpsError
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.browser.elements import locators, targets
from runtime.browser.page.tab import Tab
from runtime.context import briefs
from runtime.engine import attempt, evidence
from runtime.engine.run_state import RunState
from runtime.observation.observation import Observation

LOOK_SECONDS = 10.0
"""Time limit for reading the page, in seconds."""

LEAST_MORE, MOST_MORE = 3.0, 30.0
"""Seconds that the target is waited for beyond its step's time, at least and at most."""

CLOSERS = (
    "close",
    "dismiss",
    "×",
    "✕",
    "✖",
    "x",
    "no thanks",
    "not now",
    "later",
    "skip",
    "reject",
    "reject all",
    "decline",
    "got it",
    "ok",
    "okay",
    "continue",
    "accept",
    "accept all",
    "accept cookies",
    "allow all",
    "agree",
    "i agree",
    "understood",
)
"""Names of buttons that close an overlay, least committing first."""

HARMLESS = frozenset(CLOSERS[: CLOSERS.index("got it") + 1])
"""Those that agree to nothing, and may be pressed twice."""


@dataclasses.dataclass(frozen=True, slots=True)
class Inspection:
    """The button that closes an overlay."""

    target: Target
    name: str

    @property
    def harmless(self) -> bool:
        """True if pressing it agrees to nothing."""
        return self.name.casefold().strip() in HARMLESS


@dataclasses.dataclass(slots=True)
class Seen:
    """All results of the inspection."""

    look: failure_kinds.PageLook
    candidates: list[elements.Candidate] = dataclasses.field(default_factory=list[elements.Candidate])
    left_out: list[str] = dataclasses.field(default_factory=list[str])
    """Elements that could take the action but are no candidates, each with the reason in a sentence."""
    inspector: Inspection | None = None


@dataclasses.dataclass(slots=True)
class Looker:
    """Watches a copy of a run, up to the step at ``path``, and withholds side effects."""

    path: str
    node: Leaf | None
    raw: Target | None
    """The step's target in the file."""
    resolved: Target | None
    """The same with references resolved."""
    action: str
    code: str
    refills: Callable[[str], str]
    """Puts references back into a text of the page, in place of their values."""
    rules: Sequence[Rule] = ()
    """The rules that hold after the step, references resolved."""
    secret: bool = False
    """True if a secret is typed: that is only allowed in a field that hides it."""
    say: Callable[[str], None] = lambda _text: None
    seen: Seen | None = None
    _reached: bool = False

    def holds(self, leaf: Leaf, path: str) -> bool:
        """Withhold every side effect, and everything after the step."""
        if path == self.path:
            self._reached = True
            return effects.changes(leaf)
        return self._reached or effects.changes(leaf)

    async def ended(self, at: RunState, error: RunOpsError) -> None:
        """Inspect the page on which the copy ended."""
        if at.browser is None:
            return
        page = cast("Tab", at.browser.page)
        if self.node is not None and self.node.works_in is not None:
            page = cast("Tab", at.browser.tabs.get(self.node.works_in))
        at.browser.bound(LOOK_SECONDS)
        again = error.path == self.path and not isinstance(error, attempt.EffectWithheld)
        fine = isinstance(error, attempt.EffectWithheld) and (error.path == self.path or self._reached)
        glance = await self._glance(at, page)
        if fine:
            # A withheld action was ready, but only the action itself would have shown an overlay.
            self.seen = Seen(failure_kinds.PageLook(glance, error.path, None))
            if self.code == "target-not-actionable" and error.path == self.path:
                with contextlib.suppress(RunOpsError, Error):
                    self.seen.inspector = await self._inspector(page, await page.look())
            return
        look = failure_kinds.PageLook(glance, error.path, error.code)
        self.seen = Seen(look)
        if not again or self.resolved is None or page.dialog is not None or page.closed:
            return
        try:
            await self._closely(at, page, look)
        except (RunOpsError, Error):
            # The page closed during the inspection; the results until then count.
            return

    async def _glance(self, at: RunState, page: Tab) -> failure_kinds.PageGlance:
        found = evidence.Gathering(at.writer)
        signs = await found.part(page.signs) if page.dialog is None else None
        view: Observation | None = await found.part(page.look) if page.dialog is None else None
        kept: dict[str, Json] = {"url": page.url, "signs": signs, "dialog": page.dialog}
        glance = failure_kinds.PageGlance.of(at.writer.masker.json(kept), view.words if view is not None else "")
        assert glance is not None
        return glance

    async def _closely(self, at: RunState, page: Tab, look: failure_kinds.PageLook) -> None:
        """Count the matches of the target's parts, wait longer, and search for candidates."""
        assert self.resolved is not None
        assert self.seen is not None
        assert at.browser is not None
        came = await self._wait(page) if self.code in failure_kinds.FOUND_NOTHING | {"timeout"} else None
        at.browser.bound(LOOK_SECONDS)
        parts = [(str(part), await page.count(part)) for part in _parts(self.resolved)]
        behind = parts[-1][1] == 0 and await _behind(page, self.resolved)
        rows = await self._rows(page)
        look = dataclasses.replace(look, parts=parts, came_after=came, behind=behind, rows=rows)
        self.seen.look = look
        view = await page.look()
        self.seen.inspector = await self._inspector(page, view)
        if came is None:
            await self._likely(page, view)
        already, proves = await self._holding(page)
        near = any(each.shares for each in self.seen.candidates)
        self.seen.look = dataclasses.replace(look, already=already, proves=proves, near=near)

    async def _holding(self, page: Tab) -> tuple[bool, bool]:
        """Return whether all rules about page content hold already, and whether any rule does not.

        An address alone proves nothing: the previous page may have had it, too.
        """
        held = [(each, await page.holds(each)) for each in self.rules if each.kind != "expr"]
        telling = [holds for each, holds in held if each.kind not in ("url", "title", "hidden")]
        return bool(telling) and all(telling), not all(holds for _each, holds in held)

    async def _wait(self, page: Tab) -> float | None:
        """Wait for the target beyond its step's time; return the total seconds until it appeared, None if it did not."""
        assert self.resolved is not None
        own = self.node.seconds if self.node is not None else 10.0
        more = min(MOST_MORE, max(LEAST_MORE, 2 * own))
        if await page.count(self.resolved) > 0:
            return None
        self.say(f"waiting up to {more:g} s longer for {briefs.ours(self.path)}")
        begun = time.monotonic()
        while time.monotonic() - begun < more:
            if await page.count(self.resolved) > 0:
                return own + time.monotonic() - begun
            await asyncio.sleep(0.2)
        return None

    async def _rows(self, page: Tab) -> int | None:
        """Return 0 if the container of the rows exists and is empty."""
        target = self.resolved
        if target is None or target.css is None or self.action not in ("extract", "table", "count"):
            return None
        steps = target.css.split()
        for end in range(len(steps) - 1, 0, -1):
            if steps[end] in (">", "+", "~") or steps[end - 1] in ("+", "~"):
                continue
            around = " ".join(steps[:end]).rstrip("> ")
            if around and await page.count(target.model_copy(update={"css": around})) > 0:
                return 0
        return None

    async def _likely(self, page: Tab, view: Observation) -> None:
        assert self.raw is not None
        assert self.resolved is not None
        assert self.seen is not None
        found = elements.Elements(self.node, self.raw, self.resolved, self.action, self.refills, self.secret)
        self.seen.candidates = await found.candidates(page, view)
        self.seen.left_out = found.left_out

    async def _inspector(self, page: Tab, view: Observation) -> Inspection | None:
        """Return the button that closes the overlay, the least committing one."""
        assert self.seen is not None
        front = self.seen.look.glance.front
        if front is None and self.code != "target-not-actionable":
            return None
        best: tuple[int, str] | None = None
        for ref in view.refs:
            each = view.element(ref)
            said = each.name.casefold().strip(" .!")
            if each.role in ("button", "link") and said in CLOSERS:
                rank = CLOSERS.index(said)
                if best is None or rank < best[0]:
                    best = rank, ref
        if best is None:
            return None
        element = view.element(best[1])
        async with page.pointed(best[1]) as pointed:
            target = await targets.target_of(pointed, element.role, element.name, lambda _text: True)
        return Inspection(target, element.name)


def _parts(target: Target) -> Sequence[Target]:
    return [*(_parts(target.within) if target.within is not None else ()), target]


async def _behind(page: Tab, target: Target) -> bool:
    """Return whether an element of that name is in the document, but hidden."""
    if target.role is None or target.within is not None:
        return False
    found = page.page.get_by_role(cast("Any", target.role), name=target.name or "", include_hidden=True)
    return await found.count() > 0 and locators.settled(target)
