"""Tabs by name: every node that works on a page may name its tab."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints
from typing_extensions import override

from nodes.base import Leaf

MAIN = "main"
"""Name of the first tab of a browser."""

TabName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=80)]
"""Name of a tab: given by ``open_tab`` and ``opens``, the same in the whole file."""


class InTab(Leaf):
    """A node that works in one tab."""

    tab: TabName | None = None
    """The tab to work in, without switching to it; the current one by default. The first is named ``main``, others by ``open_tab`` or ``opens``."""

    @property
    @override
    def works_in(self) -> str | None:
        return self.tab
