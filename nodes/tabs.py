"""Tabs by name: every node that works on a page may say in which one."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints
from typing_extensions import override

from nodes.base import Leaf

MAIN = "main"
"""What the tab is called with which a browser begins."""

TabName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=80)]
"""What a tab is called: given by ``open_tab`` and ``opens``, the same in the whole file."""


class InTab(Leaf):
    """A node that works in one tab."""

    tab: TabName | None = None
    """The tab to work in, without switching to it; the current one by default. The first is called ``main``, others as ``open_tab`` or ``opens`` say."""

    @property
    @override
    def works_in(self) -> str | None:
        """The tab that is named."""
        return self.tab
