"""Tab features for agents beyond those for nodes. Implemented by ``runtime.browser.page.tab.Tab``."""

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
        """Return the element's text, white space folded; a field's value; nothing for a password."""
        ...


class Page(pages.Page, Protocol):
    """A tab on which an agent works."""

    async def look(self, target: Target | None = None) -> Observation:
        """Return the visible content of the page, or of the element, now."""
        ...

    def pointed(self, ref: str) -> AbstractAsyncContextManager[Pointed]:
        """Return the element with ``ref`` in the last observation. Raises SiteError ``ref-gone``."""
        ...

    def settling(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Wait for the results of the action within, ``seconds`` at most."""
        ...


class Tabs(Protocol):
    """The row of tabs."""

    def all(self) -> Sequence[object]:
        """Return every open tab."""
        ...

    def name_new(self) -> Sequence[str]:
        """Name each open tab that has no name, ``tab2``, ``tab3``; return the new names."""
        ...
