"""What an agent needs of a tab beyond what nodes do: ``runtime.browser.page.tab.Tab`` has it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from nodes import pages
from nodes.targets import Target
from runtime.browser.elements import targets
from runtime.observation.observation import Observation


class Pointed(targets.Pointed, Protocol):
    """An element of the page as it is now."""

    async def said(self) -> str:
        """What the element says, white space folded; of a field what it holds, of a password nothing."""
        ...


class Page(pages.Page, Protocol):
    """A tab on which an agent works."""

    async def look(self, target: Target | None = None) -> Observation:
        """What a person would see of the page, or of the element, now."""
        ...

    def pointed(self, ref: str) -> AbstractAsyncContextManager[Pointed]:
        """The element that the last look called ``ref``. Raises SiteError ``ref-gone``."""
        ...

    def settling(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """What the action within sets off is waited for, ``seconds`` at most."""
        ...


class Tabs(Protocol):
    """The row of tabs."""

    def all(self) -> Sequence[object]:
        """Every open tab."""
        ...

    def name_new(self) -> Sequence[str]:
        """Give each open tab without a name one, ``tab2``, ``tab3``; the names given."""
        ...
