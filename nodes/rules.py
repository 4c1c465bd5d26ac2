"""Rules say what must hold on the page. ``verify`` and ``browser_query: assert`` share them; all wait until they hold or time runs out."""

from __future__ import annotations

import re

from pydantic import Field, model_validator

from nodes.part import Part
from nodes.targets import Target
from nodes.template import Condition, Integer, Text

KINDS = (
    "url",
    "title",
    "visible",
    "hidden",
    "text",
    "value",
    "count",
    "checked",
    "enabled",
    "expr",
)
"""The kinds of rule; a rule is exactly one of them."""

NEED_TARGET = frozenset({"value", "count", "checked", "enabled"})
TAKE_TARGET = NEED_TARGET | {"text"}


class Rule(Part):
    """One thing that must hold. Exactly one kind; ``text`` may, and ``value``, ``count``, ``checked``, ``enabled`` must name a ``target``."""

    url: Text | None = None
    """Address of the page as a glob: ``**/orders``, ``https://shop.test/orders/*``. Without a ``?`` in it the query does not count."""
    title: Text | None = None
    """Text that the page's title contains."""
    visible: Target | None = None
    """An element that is seen."""
    hidden: Target | None = None
    """An element that is not seen, or is not there."""
    text: Text | None = None
    """Text that the target, or the page, contains: case-sensitive, as whole words (``paid`` is not in ``unpaid``)."""
    value: Text | None = None
    """Value that the target field holds."""
    count: Integer | None = Field(default=None)
    """How many elements match the target."""
    checked: Condition | None = None
    """Whether the target box is checked."""
    enabled: Condition | None = None
    """Whether the target can be used."""
    expr: Condition | None = None
    """A condition over values. It is looked at once: values do not change by waiting."""
    target: Target | None = None
    """The element that the rule speaks of."""
    exact: bool = False
    """Whether ``text`` and ``title`` must be the whole text."""

    @model_validator(mode="after")
    def _one_kind(self) -> Rule:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            has = f"has {len(given)}: {', '.join(given)}" if given else "has none"
            raise ValueError(f"a rule is exactly one of {', '.join(KINDS)}; this one {has}")
        if self.target is None and given[0] in NEED_TARGET:
            raise ValueError(f"`{given[0]}` needs a `target`")
        if self.target is not None and given[0] not in TAKE_TARGET:
            raise ValueError(f"`{given[0]}` takes no `target`")
        return self

    @property
    def kind(self) -> str:
        """Which of KINDS the rule is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    def __str__(self) -> str:
        """The rule as one line for people: ``text "paid" in role=row has_text="1007"``."""
        wanted = getattr(self, self.kind)
        if isinstance(self.expr, bool):
            # Filled in, one condition reads like any other.
            return "a condition"
        line = f"{self.kind} {wanted}" if isinstance(wanted, Target | bool | int) else f'{self.kind} "{wanted}"'
        return f"{line} in {self.target}" if self.target else line


def with_query(pattern: str) -> str | None:
    """The glob that was meant, where one speaks of a query and has no ``?``, without which no query counts: ``**?**page=2*`` for ``**page=2*``. None for others."""
    said = _QUERY.search(pattern)
    if said is None or "?" in pattern or "#" in pattern:
        return None
    path = pattern[: said.start()].rstrip("*&")
    return f"{path or '**'}?**{said[0].lstrip('&')}"


_QUERY = re.compile(r"[\w.%\[\]-]+=[^/]*$|&[^/]*$")
"""How what is meant as a query ends a glob: a name with its value behind an equals sign, or what an ampersand joins, in the last segment."""
