"""Observes a tab: Playwright's accessibility snapshot, and the facts that it lacks (``runtime.browser.elements.selectors``).

An observation gives its elements refs. An element can be found by its ref while it exists.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
import re
import types
from collections.abc import AsyncGenerator, Mapping

import pydantic
from playwright.async_api import Error, Frame, Locator, Request
from typing_extensions import TypedDict

from nodes.errors import SiteError
from nodes.targets import Target
from nodes.values import sound, sound_json
from runtime.browser import isolated_world, playwright_errors
from runtime.browser.elements import pointed as elements_pointed
from runtime.browser.elements import selectors
from runtime.browser.page.access import SETTLE_SECONDS, ElementAccess
from runtime.observation import grids
from runtime.observation.marks import Mark
from runtime.observation.observation import RESTLESS, Observation
from runtime.observation.tree import Fact

TRIES = 5  # attempts at an observation during which frames disappear; after them it is an error

DEEPEST = 50
"""Levels of a frame to observe: Playwright fails a few levels deeper. Elements to act on below them are listed without their place."""

_OWN = re.compile(r"(?:f(\d+))?(x\d+)")


class _Said(TypedDict, total=False):
    """What the script says of an element, by the fields of ``Fact``."""

    within: list[str]
    before: list[str]
    holds: list[str]
    role: str | None
    name: str
    password: bool
    error: str
    shown: bool
    reach: bool
    states: list[str]
    guess: str
    placeholder: str
    value: str
    size: str
    out: str


_RawFact = tuple[str | None, int, _Said]
REF = "[ref="  # what stands before each ref of a snapshot

_REF = re.compile(r"(?:f\d+)?[ex]\d+")


class _State(TypedDict):
    url: str
    rested: bool  # true if the document was waited for
    vanished: bool  # true if elements that were observed are gone since
    grids: list[grids.Split]
    collapsed: list[str]  # refs of closed items of trees
    front: list[str]  # refs of what is in front, where a modal dialog is open


_FrameFacts = tuple[
    str,
    int,
    list[_RawFact],
    list[tuple[list[str], str]],
    list[tuple[list[str | None], str, str, str]],
    bool,
    bool,
    _State,
]

_FRAME_FACTS: pydantic.TypeAdapter[_FrameFacts | None] = pydantic.TypeAdapter(_FrameFacts | None)


QUIET_SECONDS = 0.1  # seconds without any request until the effects of an action count as over


@dataclasses.dataclass(frozen=True, slots=True)
class _Try:
    """What one attempt at an observation demands; the last one takes the page as it is."""

    rested: bool  # the document is one that was waited for
    same: bool  # all parts are of one document
    whole: bool  # no element goes meanwhile


class _Replaced(Exception):
    """Another document came while the page was observed."""


class Looking(ElementAccess):
    _looked: Mapping[int, Frame] = types.MappingProxyType({})
    """Frames of the last observation, by the numbers of their documents."""
    _documents = 0
    """Document numbers given out so far."""

    async def look(
        self, target: Target | None = None, *, marks: bool = False, settle: float = SETTLE_SECONDS
    ) -> Observation:
        """Observe the page or an element; refs are valid until the next observation while their elements exist.

        ``marks`` adds test ids. It waits until the page rests, for ``settle`` seconds at the most, and says if it does not.
        """
        rests = True
        for left in reversed(range(TRIES)):
            # A page that never rests is not waited for again.
            rests = rests and (not settle or await self.rest(settle))
            settled, found = (None, None) if target is None else await self._found(target)
            tried = _Try(rested=bool(settle) and left > 0, same=left > 0, whole=rests and left > 0)
            look = functools.partial(self._seen, found, tried, marks=marks)
            try:
                seen = await self._read(settled, look, waits=found is not None)
            except _Replaced:
                rests = True
                continue
            if seen is not None:
                return seen if rests else seen.doubted(RESTLESS)
        raise SiteError(
            "timeout",
            "frames of the page appear and disappear faster than they can be observed",
            fix="wait with `verify` on the step before until the page no longer changes",
            evidence={"page": self.page.url},
        )

    async def by_ref(self, ref: str) -> Locator:
        """Return the locator of an element by its ref from the last observation. Raises SiteError ``ref-gone`` if it is gone."""

        async def look() -> Locator | None:
            located = self._located(ref)
            try:
                return located if located is not None and await located.count() == 1 else None
            except Error as error:
                if playwright_errors.says(error, playwright_errors.BY_REF):
                    return None
                raise

        located = await self._read(None, look)
        if located is None:
            raise SiteError(
                "ref-gone",
                f"there is no element {ref[:40]} any more: the page has changed since it was looked at",
                fix="look again, and use the element's new ref",
                evidence={"ref": ref[:40], "page": self.page.url},
            )
        return located

    def _located(self, ref: str) -> Locator | None:
        if own := _OWN.fullmatch(ref):
            frame = self._looked.get(int(own[1] or 0))
            if frame is None or frame.is_detached():
                return None
            return frame.locator(f"{selectors.NAME}={own[2]}")
        return self.page.get_by_ref(ref) if _REF.fullmatch(ref) else None

    async def _seen(self, found: Locator | None, tried: _Try, *, marks: bool) -> Observation | None:
        """Observe the page as it is; None if a frame or an element went away meanwhile. Raises _Replaced for another document."""
        milliseconds = self._deadline.milliseconds()
        snapshot = sound(await self.page.aria_snapshot(mode="ai", depth=DEEPEST, timeout=milliseconds))
        frames = self.page.frames if "- iframe " in snapshot else [self.page.main_frame]
        # The main frame comes first.
        frames = sorted(frames, key=lambda frame: frame.parent_frame is not None)
        # A document keeps its first number, so a ref never names an element of another document later.
        first, self._documents = self._documents, self._documents + len(frames)
        answers = await asyncio.gather(
            *(self._read_frame(frame, number, marks=marks) for number, frame in enumerate(frames, first))
        )
        facts: list[Fact] = []
        seen_marks: list[Mark] = []
        looked: dict[int, Frame] = {}
        split: list[grids.Split] = []
        title, url, front = "", self.page.url, list[str]()
        for frame, each in zip(frames, answers, strict=True):
            if each is None:
                return None
            said, number, found_in, ghosts, marked, acts, known, state = each
            framed = frame.parent_frame is not None
            if not framed:
                title, url, front = said, state["url"], state["front"]
                # If it knows no element, the snapshot belongs to the previous document.
                same = known or not (acts or REF in snapshot)
                if (tried.rested and not state["rested"]) or (tried.same and not same):
                    raise _Replaced
            if tried.whole and state["vanished"]:
                return None
            looked[number] = frame
            split += state["grids"]
            facts += [Fact(ref, "", collapsed=True, framed=framed) for ref in state["collapsed"]]
            facts += [_fact(fact, f"f{number}" if number else "", framed=framed) for fact in found_in]
            facts += [Fact(None, "", within=refs, ghost=text, framed=framed) for refs, text in ghosts]
            seen_marks += [Mark(tuple(refs), key, value, text) for refs, key, value, text in marked]
        self._looked = looked
        observation = Observation.read(snapshot, url, title, facts, seen_marks, split, front)
        if found is None:
            return observation
        ref = json.loads(await found.locator(f"{selectors.NAME}=self").text_content(timeout=milliseconds) or "null")
        if ref is not None and observation.has(ref):
            return observation.part(ref)
        # An invisible element has no ref; observing it alone gives none to its surroundings.
        alone = sound(await found.aria_snapshot(mode="ai", depth=DEEPEST, timeout=milliseconds))
        return Observation.read(alone, url, title, facts, seen_marks, split)

    async def _read_frame(self, frame: Frame, number: int, *, marks: bool) -> _FrameFacts | None:
        """Read what the snapshot lacks of a frame: title and number of its document, facts, ghosts, ``marks``; None if it went away.

        ``number`` becomes the document's number if it has none yet.
        """
        asked = f"{selectors.NAME}=facts {number}{' marks' if marks else ''}"
        try:
            answer = await frame.locator(asked).text_content(timeout=self._deadline.milliseconds())
        except Error as error:
            if frame.is_detached() or (
                frame.parent_frame is not None and playwright_errors.kind_of(error) == "navigated"
            ):
                return None
            if playwright_errors.kind_of(error) == "other":
                raise isolated_world.unreadable(error.message, self.page.url) from None
            raise
        try:
            return _FRAME_FACTS.validate_python(sound_json(json.loads(answer or "null")))
        except ValueError:
            raise isolated_world.unreadable(isolated_world.ANOTHER_SHAPE, self.page.url) from None

    @contextlib.asynccontextmanager
    async def pointed(self, ref: str) -> AsyncGenerator[elements_pointed.Pointed]:
        located = await self.by_ref(ref)
        async with self._asking(None):
            handle = await located.element_handle(timeout=self._deadline.milliseconds())
            element = await elements_pointed.of(self.page, handle)
        try:
            yield element
        finally:
            with contextlib.suppress(Error):
                await handle.dispose()

    @contextlib.asynccontextmanager
    async def settling(self, seconds: float) -> AsyncGenerator[None]:
        """Wait for the effects of the action in the block: documents, requests of the page, tabs that open.

        Waits at most ``seconds``, and not if a dialog opens.
        """
        under_way: set[Request] = set()
        changed = asyncio.Event()

        def began(request: Request) -> None:
            under_way.add(request)
            changed.set()

        def ended(request: Request) -> None:
            under_way.discard(request)
            changed.set()

        page, context = self.page, self.page.context
        # A tab that opens is there once its first request is answered.
        context.on("request", began)
        context.on("requestfinished", ended)
        context.on("requestfailed", ended)
        try:
            async with self._run.opening_tabs() as any_to_come:
                yield
                with contextlib.suppress(TimeoutError, Error):
                    async with asyncio.timeout(seconds):
                        while self.dialogs.message is None:
                            changed.clear()
                            waiting = under_way and not page.is_closed()
                            try:
                                await asyncio.wait_for(changed.wait(), None if waiting else QUIET_SECONDS)
                            except TimeoutError:
                                if not await any_to_come():
                                    break
                        if not page.is_closed() and self.dialogs.message is None:
                            await page.wait_for_load_state("domcontentloaded")
        finally:
            context.remove_listener("request", began)
            context.remove_listener("requestfinished", ended)
            context.remove_listener("requestfailed", ended)


def _fact(raw: _RawFact, prefix: str, *, framed: bool) -> Fact:
    ref, number, said = raw
    return Fact(ref, f"{prefix}x{number}", framed=framed, **said)
