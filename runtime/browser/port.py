"""Interface between the engine and a browser. Modes ``own`` and ``shared`` implement it; one test suite checks both."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from nodes.errors import OriginRefused
from nodes.pages import Page, Tabs
from runtime.browser.options import Overlay


@dataclasses.dataclass(frozen=True, slots=True)
class PageFacts:
    """Facts that decide about a checkpoint, counted over all tabs of the run except those of ``fresh_page``."""

    documents: int  # documents loaded since the browser was opened (same-document navigations do not count)
    pending_input: bool  # true if a tab holds input on its present document that no finished effect has consumed
    posted: bool = False
    """True if a tab shows, or may show, the answer to a form: its address alone gives another page."""
    status: int | None = None
    """HTTP error status of the document in the current tab; None if there was no error, or it is unknown."""


@dataclasses.dataclass(frozen=True, slots=True)
class Captured:
    """State of a browser at one moment, to rebuild from."""

    data: bytes
    """Storage state with IndexedDB, sessionStorage, tabs and their addresses. Only ``restore`` reads it."""
    urls: list[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """Identity of the page in a tab: enough to detect another page, without the details that change from day to day."""

    address: str
    title: str
    frame: str  # digest of the landmarks, tables and fields of the document


@dataclasses.dataclass(frozen=True, slots=True)
class Differs:
    """A tab that was restored at its address and shows another page than before."""

    tab: str | None
    expected: Shown
    seen: Shown


@dataclasses.dataclass(frozen=True, slots=True)
class LostTab:
    """A tab that was closed on reattach: a dialog blocked it, a script ran without end, or its first document never came."""

    name: str | None
    url: str  # its address without the query; empty if it had none


@dataclasses.dataclass(frozen=True, slots=True)
class MissingAnswer:
    """A request of an action without a proper answer. The site may have carried it out."""

    request: str  # method and address, without the query
    how: Literal["lost", "late", "error"]
    status: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Dismissal:
    """An overlay that came over a page; ``problem`` says why it could not be closed, and is None if it is gone."""

    overlay: str
    problem: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """A message on a page's console, an exception that the page did not catch, or a request that failed. Text of the page."""

    at: float  # seconds since 1970
    kind: Literal["console", "error", "request"]
    text: str
    url: str | None = None  # without the query
    level: str = "error"  # `log`, `warning`, `error`, … of a console
    status: int | None = None  # HTTP status of the answer to a request
    method: str | None = None


class GivenUp(Exception):
    """The run's browser was found running but could not be used, and was ended. The message gives the reason."""


class Browser(Protocol):
    """Browser of a run: its tabs, its signed-in state, the guard on its origins."""

    @property
    def lost_tabs(self) -> Sequence[LostTab]:
        """Tabs that were closed when this browser was reattached."""
        ...

    @property
    def page(self) -> Page:
        """Current tab."""
        ...

    @property
    def tabs(self) -> Tabs: ...

    def facts(self) -> PageFacts: ...

    def effect_finished(self) -> None:
        """Record that a side effect finished: input typed before it counts as consumed."""
        ...

    def mark_pending(self) -> None:
        """After a reattach: mark the current tab as holding input that no finished effect has consumed."""
        ...

    def mark_posted(self) -> None:
        """After a reattach: mark the tabs as possibly showing the answer to a form."""
        ...

    def bound(self, seconds: float, *, quiet: float | None = None) -> None:
        """Set the deadline of the page methods to this many seconds from now, until the next call.

        With ``quiet``, a rule fails earlier: once the page has done nothing for so many seconds; at once if it rests, and more than one
        element matches.
        """
        ...

    def confine(self, origins: Sequence[str] | None, file: str) -> None:
        """Load documents only from these of the origins that the browser was opened with; None allows all of them again.

        ``file`` is the workflow file that does not allow the others; the error names it. A document that is already open
        stays.
        """
        ...

    def refusal(self) -> OriginRefused | None:
        """Return the error for the first document that the guard refused since the last call, if any."""
        ...

    def name_secrets(self, names: Sequence[str]) -> None:
        """Name the secrets of the run in fixes from now on."""
        ...

    def dismiss(self, overlays: Sequence[Overlay]) -> None:
        """Close these overlays from now on, in all tabs, while a step waits for its element or its rules."""
        ...

    def dismissed(self) -> list[Dismissal]:
        """Return the overlays that came since the last call."""
        ...

    def hear(self, mask: Callable[[str], str]) -> None:
        """Keep the messages of all tabs from now on, each masked."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The newest messages since ``hear``, oldest first."""
        ...

    async def lost_answer(self) -> MissingAnswer | None:
        """Return the answer that was lost since the last action began. Its request may have been carried out."""
        ...

    async def missing_answer(self, *, every: bool) -> MissingAnswer | None:
        """Wait until the deadline for the document that the last action requested in its tab. With ``every``: for all its answers.

        Return the answer that is then missing, if any. A server error is reported only with ``every``.
        """
        ...

    async def at_rest(self, *, earlier: bool = False) -> bool:
        """Wait until the deadline for all requests of the last side effect to end; return True if they did.

        With ``earlier``, also wait for the requests of the side effects before it.
        """
        ...

    def fresh_page(self) -> contextlib.AbstractAsyncContextManager[Page]:
        """Open a separate tab in the same browser (same cookies), closed at the end. The current tab is not touched."""
        ...

    async def capture(self) -> Captured:
        """Return the present state. Raises SiteError ``checkpoint-failed`` if a page cannot be read."""
        ...

    async def restore(self, data: bytes) -> Differs | None:
        """Restore a fresh browser to a state of ``capture``: storage, then tabs. Return the first tab that shows another page."""
        ...

    async def close(self, *, keep: bool = False) -> None:
        """End the browser and remove its profile; with ``keep``, leave it running for ``linger``. Never raises if the browser is gone."""
        ...
