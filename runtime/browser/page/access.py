"""Common base of all actions and readings of a tab: finds the element, keeps the deadline, reports failures."""

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
    """State that all tabs of a run share."""

    def admit(self, url: str) -> None:
        """Raises OriginRefused if a document from ``url`` may not load."""
        ...

    def committed(self, url: str) -> None:
        """Record that a document from ``url`` has loaded."""
        ...

    def error_for(self, request: object) -> int | None:
        """Return the error status of a document request (Playwright's internal object); None if there was no error."""
        ...

    def begin(self, page: Page, *, driver_waits: bool = False) -> None:
        """Begin an action in ``page`` and forget earlier requests. Raises if documents are no longer guarded.

        ``driver_waits``: Playwright itself waits for the document that the action requests.
        """
        ...

    def awaits(self, page: Page) -> bool:
        """Return True if a navigation of ``page`` that the present action began is still unanswered."""
        ...

    def crashed(self, page: Page) -> None:
        """Record that a page crashed: the answers to its requests are lost."""
        ...

    async def settled(self) -> None:
        """Wait until no tab exists that is not the site's."""
        ...

    def opening_tabs(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]:
        """Yield a function that returns True if a tab was opened within the block and is not among ``tabs`` yet."""
        ...

    @property
    def state(self) -> DownloadManager:
        """Download manager: receives the files that the site sends."""
        ...

    @property
    def dialogs(self) -> weakref.WeakSet[Dialogs]:
        """Dialogs of all tabs of the run, including tabs that do not belong to it."""
        ...


class ElementAccess(ABC):
    """Access to a tab. ``runtime.browser.page.tab.Tab`` implements it with the actions and readings that extend it."""

    page: Page
    _deadline: Deadline
    _diagnosis: Diagnosis
    _run: PageState
    documents: int
    """Documents loaded into the tab."""
    _secret_documents: frozenset[int] = frozenset({0})
    """Numbers of the documents that a secret was typed into. It is unknown for the document that was open before us."""

    @property
    def _secret_typed(self) -> bool:
        """True if a secret may have been typed into the present document."""
        return self.documents in self._secret_documents

    @abstractmethod
    async def _found(self, target: Target) -> tuple[Target, Locator]:
        """Settle the target and return its locator. Raises ``target-not-found`` if it cannot be settled in time."""

    @abstractmethod
    async def _settled_now(self, target: Target) -> Target | None:
        """Return the target as settled on the present page; None if no alternative matches."""

    @abstractmethod
    async def _attached(self, target: Target) -> Target:
        """Wait until exactly one element matches, without sending anything to the page; return the settled target."""

    @abstractmethod
    async def _do(
        self,
        target: Target,
        action: Callable[[Locator, float], Coroutine[Any, Any, Answer]],
        *,
        sends: bool = False,
        driver_waits: bool = False,
    ) -> Answer | None:
        """Perform an action on the one matching element. It receives the locator and the milliseconds left.

        An error has the phase ``before`` only if Playwright's call log proves that nothing was sent. With ``sends`` the
        action begins with the input itself, so every error has the phase ``after``: the caller first does what can fail
        before. ``driver_waits``: Playwright waits for the document that the action requests.

        Returns None if the action opened a dialog or closed its own tab: its result is then unknown.
        """

    @abstractmethod
    def _answering(self, seconds: float | None = None, phase: Phase = "before") -> AbstractAsyncContextManager[None]:
        """Limit the page's answers within the block to the step's deadline, or to ``seconds``.

        Raises ``timeout`` if they take longer, and ``dialog-open``, at once, if a dialog prevents them; both have the phase
        ``phase``.
        """

    @abstractmethod
    async def _read(
        self, target: Target | None, look: Callable[[], Awaitable[Answer]], *, waits: bool = False
    ) -> Answer:
        """Read once, again if a navigation removed the document meanwhile. ``waits``: the reading itself waits."""

    @abstractmethod
    async def _until(self, look: Callable[[], Awaitable[Answer | None]], target: Target | None = None) -> Answer | None:
        """Read until there is an answer; None when the time is up."""

    @abstractmethod
    async def _parsed(self) -> None:
        """Wait until the document is complete: half a table does not tell the number of its rows."""
