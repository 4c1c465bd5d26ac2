"""Base classes of the queries: an observation of the page, and a reading of one element."""

from __future__ import annotations

from typing import ClassVar, Literal

from nodes.part import EffectClass
from nodes.tabs import InTab
from nodes.targets import Target


class BrowserQuery(InTab):
    """Reads the page and changes nothing."""

    touches_page: ClassVar[bool] = True
    effect_default: ClassVar[EffectClass] = "read"

    type: Literal["browser_query"] = "browser_query"


class OfElement(BrowserQuery):
    """A reading of one element."""

    target: Target
    """The element."""

    def summary(self) -> str:
        return f"{getattr(self, 'query', 'read')} {self.target}"
