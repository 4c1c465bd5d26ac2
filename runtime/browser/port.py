"""What the engine asks of a browser. Two modes stand behind it, ``own`` and ``shared``; one suite holds both to it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Literal, Protocol

from nodes.errors import OriginRefused
from nodes.pages import Page, Tabs


@dataclasses.dataclass(frozen=True, slots=True)
class PageFacts:
    """What decides about a checkpoint; counted over all tabs of the run (the tabs of ``fresh_page`` aside)."""

    documents: int
    """Documents loaded since the browser was opened (same-document navigations do not count)."""
    pending_input: bool
    """Whether a tab holds input on its present document that no finished effect has taken up."""
    posted: bool = False
    """Whether a tab shows the answer to a form, or may: its address alone gives another page."""
    status: int | None = None
    """The error with which the site answered for the document in the current tab, where it did and that is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Captured:
    """A browser's state at one moment, to rebuild from."""

    data: bytes
    """Storage state with IndexedDB, sessionStorage, tabs and their addresses: for ``restore`` only."""
    urls: list[str]
    """Addresses of the tabs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """What a tab shows: enough to tell that it became another page, and not what changes from one day to the next."""

    address: str
    title: str
    frame: str
    """Digest of the landmarks, tables and fields of the document."""


@dataclasses.dataclass(frozen=True, slots=True)
class Differs:
    """A tab that was restored at its address, and shows another page than it did."""

    tab: str | None
    """Its name."""
    expected: Shown
    seen: Shown


@dataclasses.dataclass(frozen=True, slots=True)
class LostTab:
    """A tab that was closed when its browser was found again: it waited in a dialog, computed without end, or waited for its first document."""

    name: str | None
    url: str
    """Where it was, without the query; empty where that was nowhere."""


@dataclasses.dataclass(frozen=True, slots=True)
class MissingAnswer:
    """A request of an action that was not answered as it should be: it may have been carried out."""

    request: str
    """Method and address, without the query."""
    how: Literal["lost", "late", "error"]
    status: int | None = None
    """The error with which the server answered."""


class GivenUp(Exception):
    """The run's browser was found alive, could not be gone on with, and was ended; the message says why."""


class Browser(Protocol):
    """A run's browser: its tabs, its signed-in state, the guard on its origins."""

    @property
    def lost_tabs(self) -> Sequence[LostTab]:
        """What was closed when this browser was found again."""
        ...

    @property
    def page(self) -> Page:
        """The current tab."""
        ...

    @property
    def tabs(self) -> Tabs:
        """The tabs by name."""
        ...

    def facts(self) -> PageFacts:
        """Documents and pending input as of now."""
        ...

    def effect_finished(self) -> None:
        """A side effect finished: what was typed before it counts as taken up."""
        ...

    def mark_pending(self) -> None:
        """After a re-attach: the current tab holds input that no finished effect has taken up."""
        ...

    def mark_posted(self) -> None:
        """After a re-attach: what the tabs show may be the answer to a form."""
        ...

    def bound(self, seconds: float) -> None:
        """How long the page methods may wait from now on, until the next call of this."""
        ...

    def confine(self, origins: Sequence[str] | None, file: str) -> None:
        """From now on documents load only from these of the origins that the browser was opened with; None for all of them.

        ``file`` is the workflow file that does not allow the others, for the error. A document that is open already stays.
        """
        ...

    def refusal(self) -> OriginRefused | None:
        """The document that the guard refused since this was last asked, if any."""
        ...

    async def lost_answer(self) -> MissingAnswer | None:
        """The answer that was lost since the last action began: its request may have been carried out."""
        ...

    async def missing_answer(self, *, every: bool) -> MissingAnswer | None:
        """Wait, as long as there is time, for the document that the last action asked for in its tab; with ``every`` for the answer to all that it sent.

        The answer that is missing then, if one is. An error of the server is told only with ``every``.
        """
        ...

    async def at_rest(self, *, earlier: bool = False) -> bool:
        """Wait, as long as there is time, until nothing is on its way that the last side effect sent; return whether that is so.

        With ``earlier`` also nothing that those before it sent.
        """
        ...

    def fresh_page(self) -> contextlib.AbstractAsyncContextManager[Page]:
        """A tab of its own in the same browser (same cookies), closed at the end; the current tab is not touched."""
        ...

    async def capture(self) -> Captured:
        """The state as it is now. Raises SiteError ``checkpoint-failed`` where a page cannot be looked at."""
        ...

    async def restore(self, data: bytes) -> Differs | None:
        """Bring a fresh browser to a state that ``capture`` gave: storage first, then the tabs at their addresses. The first tab that shows another page than it did."""
        ...

    async def close(self, *, keep: bool = False) -> None:
        """End the browser and remove its profile; with ``keep`` leave it running for ``linger``. Never raises for a browser that is gone."""
        ...
