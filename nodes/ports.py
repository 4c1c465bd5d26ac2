"""What a node may ask of the runtime: a few small protocols. A node is tested with fakes of these, and never sees Playwright or the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from nodes.base import Node
from nodes.part import Part
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json

Deed = Literal["click", "fill", "check", "select"]
"""What an element must be able to take before it counts as ready."""


class Page(Protocol):
    """The current tab. Every method waits as a person would, within the attempt's time, and raises SiteError with a stable code.

    Codes: ``target-not-found`` (evidence has ``nearest`` candidates), ``target-ambiguous``, ``target-not-actionable``,
    ``navigation-failed``, ``timeout``, ``page-crashed``, ``answer-lost``; OriginRefused with ``origin-refused``.
    An error's ``phase`` is ``after`` once the deed may have reached the page.
    """

    @property
    def url(self) -> str:
        """Address of the tab's document."""
        ...

    async def title(self) -> str:
        """Title of the tab's document."""
        ...

    async def goto(self, url: str) -> str:
        """Load ``url``, wait until its document is loaded, and return the final address."""
        ...

    async def locate(self, target: Target) -> Target:
        """The target with every ``any_of`` replaced by the one that matches first; at once, and the same object, where there is none."""
        ...

    async def ready(self, target: Target, deed: Deed) -> None:
        """Wait until exactly one element matches and could take the deed, without doing it."""
        ...

    async def click(self, target: Target) -> None:
        """Click the element."""
        ...

    async def fill(self, target: Target, text: str) -> None:
        """Put ``text`` in the place of what the field holds."""
        ...

    async def check(self, target: Target, checked: bool) -> None:
        """Set the box or radio button."""
        ...

    async def select(self, target: Target, options: Sequence[str]) -> list[str]:
        """Choose options by label or value; returns the values chosen."""
        ...

    async def text(self, target: Target) -> str:
        """Visible text of the element, white space folded."""
        ...

    async def value(self, target: Target) -> str:
        """What the field holds."""
        ...

    async def count(self, target: Target) -> int:
        """How many elements match now."""
        ...

    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        """For each element that matches, the text of each field, None where it has none; waits until ``least`` elements match.

        Raises ``field-ambiguous`` where a field's css matches more than once in a row and ``nth`` does not say which.
        """
        ...

    async def wait_for(self, rule: Rule) -> None:
        """Wait until the rule holds; raises ``rule-failed`` with evidence (``rule``, ``wanted``, ``seen``) when time runs out."""
        ...

    async def holds(self, rule: Rule) -> bool:
        """Whether the rule holds now."""
        ...


class FieldSource(Protocol):
    """Where in a row a field of ``extract`` stands."""

    @property
    def css(self) -> str | None:
        """Selector below the row; None means the row itself."""
        ...

    @property
    def attribute(self) -> str | None:
        """Attribute to read in place of the text."""
        ...

    @property
    def nth(self) -> int | None:
        """Which of several matches."""
        ...


class LeafContext(Protocol):
    """What one attempt of a leaf sees. The node's own fields already hold values in place of references."""

    @property
    def page(self) -> Page:
        """The tab the node works on."""
        ...

    async def act(self) -> None:
        """The last thing before the deed: the call is written, and for class *effect* it is on the disk, when this returns.

        Call it once, after finding what is to be acted on. Whatever is raised before it counts as phase ``before``.
        """
        ...

    async def located(self, target: Target) -> Target:
        """``page.locate``, with the choice among ``any_of`` noted in the call."""
        ...

    async def verify(self) -> None:
        """Wait until the node's ``verify`` rules hold. A node whose value depends on them calls it; otherwise it follows ``run``."""
        ...


class BlockContext(Protocol):
    """What a container sees: it runs blocks, and what it decides is kept, so that a resumed run decides the same."""

    def render(self, part: Part, field: str, **bound: Json) -> Json:
        """The value of ``part.field``, coerced to the field's kind, with ``bound`` names in scope too."""
        ...

    def decide(self, evaluate: Callable[[], Json]) -> Json:
        """What this scope decided when it was first opened, or else what ``evaluate()`` yields now, which is then recorded."""
        ...

    async def block(self, nodes: Sequence[Node]) -> Json:
        """Run a block in the scope around the container; the value of its last node that ran, None if none did."""
        ...

    async def item(self, nodes: Sequence[Node], item: Item) -> Json:
        """Run a block for one item, in a scope of its own with ``item.bound`` and ``loop`` in it; its value."""
        ...

    def note_taken(self, branch: str | None) -> None:
        """Name the branch that was taken: it is then ``run.taken.<id>``."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One turn of a loop."""

    name: str
    """The ``as`` name; ``<name>_loop`` is the turn's ``loop``."""
    value: Json
    index: int
    """From 1."""
    length: int
    key: str | int | float | None
    """What tells the item from the others, where the loop has a ``key``."""

    @property
    def segment(self) -> str:
        """How the turn stands in a step path: ``[#1007]`` by key, ``[3]`` by index."""
        return f"[{self.index}]" if self.key is None else f"[#{escaped(self.key)}]"

    @property
    def loop(self) -> dict[str, Json]:
        """What ``loop`` is inside the block."""
        return {
            "index": self.index,
            "first": self.index == 1,
            "last": self.index == self.length,
            "key": self.key,
            "length": self.length,
        }


def escaped(key: str | float) -> str:
    """A key as it stands in a step path, which a slash or a bracket in it would break."""
    text = str(key)
    for mark in "%/]\n":
        text = text.replace(mark, f"%{ord(mark):02X}")
    return text
