"""What every action and every reading of a tab has in common: finding the element, keeping to the time, saying what went wrong."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from playwright.async_api import Locator, Page

from nodes.errors import Phase
from nodes.targets import Target
from runtime.browser.deadline import Deadline
from runtime.browser.diagnosis.diagnosis import Diagnosis, DiagnosisFacts
from runtime.browser.page.dialogs import Dialogs

if TYPE_CHECKING:
    from runtime.browser.devtools.downloads import DownloadManager

Answer = TypeVar("Answer")


class PageState(DiagnosisFacts, Protocol):
    """What all tabs of a run share."""

    def admit(self, url: str) -> None:
        """Raises OriginRefused where a document from ``url`` may not load."""
        ...

    def committed(self, url: str) -> None:
        """A document from ``url`` has loaded."""
        ...

    def error_for(self, request: object) -> int | None:
        """The error with which the site answered the request (as Playwright has it within) for a document; None where there was none."""
        ...

    def begin(self, page: Page, *, driver_waits: bool = False) -> None:
        """An action begins in ``page``: what was asked for before it is forgotten. Raises where documents are no longer guarded.

        ``driver_waits``: Playwright itself waits for the document that the action asks for.
        """
        ...

    def awaits(self, page: Page) -> bool:
        """Whether the site still owes the answer to a navigation of ``page`` that the present action began."""
        ...

    def crashed(self, page: Page) -> None:
        """A page has crashed: the answers to what it had asked for are lost."""
        ...

    async def settled(self) -> None:
        """Wait until no tab is there that is none of the site's."""
        ...

    def opening_tabs(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]:
        """Within, what is given tells whether a tab has been opened that is not among ``tabs`` yet."""
        ...

    @property
    def state(self) -> DownloadManager:
        """Where files arrive that the site gives."""
        ...

    @property
    def dialogs(self) -> weakref.WeakSet[Dialogs]:
        """The dialogs of all tabs of the run, those that are no tabs of its own too."""
        ...


class ElementAccess(ABC):
    """A tab within reach: ``runtime.browser.page.tab.Tab`` is one, made of what actions and readings add to this."""

    page: Page
    _deadline: Deadline
    _diagnosis: Diagnosis
    _run: PageState
    documents: int
    """Documents loaded into the tab."""
    _secret_documents: frozenset[int] = frozenset({0})
    """Which of them a secret was typed into; of the one that was there before we were nobody knows."""

    @property
    def _secret_typed(self) -> bool:
        """Whether a secret may have been typed into the present document."""
        return self.documents in self._secret_documents

    @abstractmethod
    async def _found(self, target: Target) -> tuple[Target, Locator]:
        """The target settled, and its locator. Raises ``target-not-found`` where it cannot be settled in time."""

    @abstractmethod
    async def _settled_now(self, target: Target) -> Target | None:
        """The settled target as the page is now; None where no alternative matches."""

    @abstractmethod
    async def _attached(self, target: Target) -> Target:
        """Wait until exactly one element matches, and send nothing to the page; the settled target."""

    @abstractmethod
    async def _do(
        self,
        target: Target,
        action: Callable[[Locator, float], Coroutine[Any, Any, Answer]],
        *,
        sends: bool = False,
        driver_waits: bool = False,
    ) -> Answer | None:
        """Do an action on the one element that matches; it is given the locator and how many milliseconds are left.

        An error has the phase ``before`` only where Playwright's call log proves that nothing was sent. With ``sends`` the
        action begins with the input itself, so every error has the phase ``after``: what can fail before it is done before.
        ``driver_waits``: Playwright waits for the document that the action asks for.

        None where it opened a dialog, or closed its own tab: then nobody knows what it would have answered.
        """

    @abstractmethod
    def _answering(self, seconds: float | None = None, phase: Phase = "before") -> AbstractAsyncContextManager[None]:
        """For what the page answers in the step's time, or in ``seconds``.

        Raises ``timeout`` where it does not, and ``dialog-open``, at once, where a dialog keeps it from answering; ``phase`` is that of both.
        """

    @abstractmethod
    async def _read(
        self, target: Target | None, look: Callable[[], Awaitable[Answer]], *, waits: bool = False
    ) -> Answer:
        """One look, again where a navigation took the document away under it; ``waits`` where it waits by itself."""

    @abstractmethod
    async def _until(self, look: Callable[[], Awaitable[Answer | None]], target: Target | None = None) -> Answer | None:
        """Look until there is an answer; None when the time is up."""

    @abstractmethod
    async def _parsed(self) -> None:
        """Wait until the document is there to its end: half a table is no answer to how many rows there are."""
