"""Conditions on the page. ``verify`` and ``browser_query: assert`` share them; all wait until they hold or time runs out."""

from __future__ import annotations

from typing import Any, cast

from pydantic import Field, model_validator

from nodes.part import Part
from nodes.targets import Target
from nodes.template import Condition, Integer, Text

KINDS = ("url", "title", "visible", "hidden", "text", "value", "count", "checked", "enabled", "expr")
"""The kinds of rule; a rule is exactly one of them."""

NEED_TARGET = frozenset({"value", "count", "checked", "enabled"})
TAKE_TARGET = NEED_TARGET | {"text"}
EXAMPLES = {
    "text": "{text: paid, target: {test_id: status}}",
    "value": '{value: "8", target: {label: Copies}}',
    "count": "{count: 3, target: {role: row}}",
    "checked": "{checked: true, target: {label: Urgent}}",
    "enabled": "{enabled: true, target: {role: button, name: Save}}",
}
"""A rule of each kind that takes a target."""


class Rule(Part):
    """One condition that must hold. Give exactly one kind. ``text`` may name a ``target``; ``value``, ``count``, ``checked``, ``enabled`` must."""

    url: Text | None = None
    """Address of the page as a glob: ``**/orders``, ``https://shop.test/orders/*``. The query string counts only if the glob has a ``?``, ``=`` or ``&``."""
    title: Text | None = None
    """Text that the page's title contains."""
    visible: Target | None = None
    """The element, exactly one, is visible."""
    hidden: Target | None = None
    """An element that is hidden or missing."""
    text: Text | None = None
    """Text that the target, or the page, contains: case-sensitive, as whole words (``paid`` is not in ``unpaid``)."""
    value: Text | None = None
    """Content of the target field."""
    count: Integer | None = Field(default=None)
    """Number of elements that match the target."""
    checked: Condition | None = None
    """State of the target box: checked or not."""
    enabled: Condition | None = None
    """State of the target: usable or not."""
    expr: Condition | None = None
    """A condition over values. It is evaluated once: values do not change by waiting."""
    target: Target | None = None
    """The element to which the rule applies."""
    exact: bool = False
    """True if ``text`` and ``title`` must be the whole text."""

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:
        """Refuse what other tools write, a target within the kind: it stands beside it."""
        for kind, example in EXAMPLES.items():
            within = cast("dict[str, Any]", given).get(kind) if isinstance(given, dict) else None
            if isinstance(within, dict) and ("target" in within or kind != "text"):
                raise ValueError(f"the `target` of `{kind}` stands beside it: {example}")
        return given

    @model_validator(mode="after")
    def _one_kind(self) -> Rule:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            has = f"has {len(given)}: {', '.join(given)}" if given else "has none"
            raise ValueError(f"a rule is exactly one of {', '.join(KINDS)}; this one {has}")
        if self.target is None and given[0] in NEED_TARGET:
            raise ValueError(f"`{given[0]}` needs a `target` beside it: {EXAMPLES[given[0]]}")
        if self.target is not None and given[0] not in TAKE_TARGET:
            raise ValueError(f"`{given[0]}` takes no `target`")
        return self

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    def __str__(self) -> str:
        """Return the rule as one line for people: ``text "paid" in role=row has_text="1007"``."""
        wanted = getattr(self, self.kind)
        if isinstance(self.expr, bool):
            # A resolved condition is only true or false.
            return "a condition"
        line = f"{self.kind} {wanted}" if isinstance(wanted, Target | bool | int) else f'{self.kind} "{wanted}"'
        return f"{line} in {self.target}" if self.target else line
