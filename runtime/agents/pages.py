"""What an agent needs of a tab beyond what nodes do: ``runtime.browser.page.Tab`` has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from nodes import pages
from runtime.agents import targets
from runtime.browser import refs


class Element(Protocol):
    """What a look knows of an element."""

    @property
    def role(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


class View(Protocol):
    """One look at the page: ``runtime.observation.Observation``."""

    @property
    def url(self) -> str: ...  # noqa: D102
    def masked(self, mask: Callable[[str], str]) -> View: ...  # noqa: D102
    def render(self, budget: int) -> str: ...  # noqa: D102
    def subtree(self, ref: str, budget: int) -> str: ...  # noqa: D102
    def find(self, role: str | None, name: str | None, row: str | None, text: str | None, budget: int) -> str: ...  # noqa: D102
    def since(self, earlier: View, budget: int) -> str: ...  # noqa: D102
    def continues(self, earlier: View) -> bool: ...  # noqa: D102
    def has(self, ref: str) -> bool: ...  # noqa: D102
    def element(self, ref: str) -> Element: ...  # noqa: D102


class Pointed(targets.Pointed, Protocol):
    """An element of the page as it is now."""

    @property
    def facts(self) -> refs.Facts: ...  # noqa: D102

    async def said(self) -> str:
        """What the element says, white space folded; of a field what it holds, of a password nothing."""
        ...


class Page(pages.Page, Protocol):
    """A tab on which an agent works."""

    def pointed(self, ref: str) -> AbstractAsyncContextManager[Pointed]:
        """The element that the last look called ``ref``. Raises SiteError ``ref-gone``."""
        ...

    def settling(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """What the deed within sets off is waited for, ``seconds`` at most."""
        ...


class Tabs(Protocol):
    """The row of tabs."""

    def all(self) -> Sequence[object]:
        """Every open tab."""
        ...

    def name_new(self) -> Sequence[str]:
        """Give each open tab without a name one, ``tab2``, ``tab3``; the names given."""
        ...
