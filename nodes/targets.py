"""Targets find elements: first by the words that a person uses for them, last by css or xpath."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from nodes.part import Part
from nodes.template import Integer, Ref, Text, Unfit, to_text
from nodes.values import Json

WAYS = ("role", "label", "placeholder", "text", "test_id", "alt", "title", "css", "xpath", "any_of")
"""The ways of finding; a target has exactly one of them."""

ROLES = frozenset(
    re.findall(
        r"\w+",
        """
        alert alertdialog application article banner blockquote button caption cell checkbox code
        columnheader combobox complementary contentinfo definition deletion dialog directory document
        emphasis feed figure form generic grid gridcell group heading img insertion link list listbox
        listitem log main marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter
        navigation none note option paragraph presentation progressbar radio radiogroup region row
        rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong
        subscript superscript switch tab table tablist tabpanel term textbox time timer toolbar tooltip
        tree treegrid treeitem
        """,
    )
)
"""The ARIA roles that Playwright's ``get_by_role`` knows."""


_INSTEAD = {
    "item": ": write `listitem`",
    **dict.fromkeys(("card", "clickable", "editable", "draggable", "droppable"), ": find it by `css`"),
}
"""What to write for a word with which an observation begins a line, and which is no role."""


def _known_role(role: str) -> str:
    if "{{" not in role and role not in ROLES:
        raise ValueError(f"`{role}` is not an ARIA role{_INSTEAD.get(role, '')}")
    return role


def to_frames(value: Json) -> list[str]:
    frames = value if isinstance(value, list) else [value]
    if not frames:
        raise Unfit("is an empty list, and at least one frame is wanted")
    return [to_text(frame) for frame in frames]


class Target(Part):
    """Finds one element. Give exactly one way of finding, and any of ``within``, ``has_text``, ``nth``, ``exact`` to narrow it."""

    role: Annotated[Text, AfterValidator(_known_role)] | None = None
    """ARIA role, such as ``button``, ``link``, ``row``, ``textbox``."""
    name: Text | None = None
    """Accessible name, with ``role``: a part of it in any case, unless ``exact``. If none has it, the text of an element without a name, such as
    a list item."""
    label: Text | None = None
    """Text of the field's label."""
    placeholder: Text | None = None
    """Placeholder text of the field."""
    text: Text | None = None
    """Visible text of the element."""
    test_id: Text | None = None
    """Value of ``data-testid``."""
    alt: Text | None = None
    """Alternative text of the image."""
    title: Text | None = None
    """Value of the ``title`` attribute."""
    css: Text | None = None
    """CSS selector."""
    xpath: Text | None = None
    """XPath expression."""
    any_of: list[Target] | None = Field(default=None, min_length=2)
    """Targets in order of preference: the first that matches is used, and the log names it."""
    within: Target | None = None
    """The row, card or region that contains the element."""
    has_text: Text | None = None
    """Text that the element contains: case-sensitive, as whole words (``100`` is not in ``1007``)."""
    nth: Integer | None = None
    """Index among several matches, from 0; negative counts from the end."""
    frame: Annotated[str | list[str], Ref(to_frames, item=to_text)] | None = None
    """The frame with the element and everything in ``within``: its name, a CSS selector, or a glob of its address. A list for nested frames,
    outermost first."""
    exact: bool | None = None
    """True if names and texts must be the whole text, in the same case."""

    @model_validator(mode="after")
    def _one_way(self) -> Target:
        given = [way for way in WAYS if getattr(self, way) is not None]
        if not given:
            raise ValueError(f"a target needs one way of finding: {', '.join(WAYS)}")
        if len(given) > 1:
            raise ValueError(f"a target takes one way of finding, and this one has {len(given)}: {', '.join(given)}")
        if self.name is not None and self.role is None:
            raise ValueError("`name` goes with `role`")
        if self.frame is not None and self.within is not None and self.within.frames:
            raise ValueError("`frame` is given twice: a target is always in the same frame as its `within`")
        return self

    @property
    def frames(self) -> list[str]:
        """Return the frames that lead to the element, outermost first; empty if it is in the page itself."""
        if self.frame is not None:
            return [self.frame] if isinstance(self.frame, str) else self.frame
        return self.within.frames if self.within is not None else []

    def __str__(self) -> str:
        """Return the target as one line for people: ``role=button name="Pay" within role=row has_text="1007"``."""
        way = next(way for way in WAYS if getattr(self, way) is not None)
        found = " | ".join(str(each) for each in self.any_of) if self.any_of else getattr(self, way)
        line = f"{way}={found}" if way in ("role", "css", "xpath", "any_of") else f'{way}="{found}"'
        if self.name is not None:
            line += f' name="{self.name}"'
        if self.has_text is not None:
            line += f' has_text="{self.has_text}"'
        if self.exact:
            line += " exact=true"
        if self.nth is not None:
            line += f" nth={self.nth}"
        if self.within is not None:
            line += f" within {self.within}"
        return line if self.frame is None else f"{line} frame={' > '.join(self.frames)}"
