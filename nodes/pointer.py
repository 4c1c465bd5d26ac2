"""Where and how the mouse works: places in an element, distances, its buttons and the keys held with them."""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Literal

from pydantic import AfterValidator

from nodes.part import Part
from nodes.template import Number, Ref, Unfit, kind_of
from nodes.values import Json

Button = Literal["left", "right", "middle"]
Modifier = Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]
"""Keys held down meanwhile; ``ControlOrMeta`` is the one for copy and paste on this machine."""

STEPS = 8  # number of moves for a part of a way, by default: pages that follow the mouse miss a single jump

_LENGTH = re.compile(r"(-?\d+(?:\.\d+)?)(%?)")


def to_length(value: Json) -> float | str:
    """Return a number of pixels, also of a text such as an attribute, as a number; a percentage as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (found := _LENGTH.fullmatch(value.strip())):
        return found[0] if found[2] else float(found[1])
    raise Unfit(f"is {kind_of(value)}, and pixels (`12`) or a percentage (`50%`) are wanted")


Length = Annotated[float | str, AfterValidator(to_length), Ref(to_length)]


class Spot(Part):
    """A place in an element, from its upper left corner: CSS pixels (``12``), or a percentage of its size (``50%``)."""

    x: Length
    """To the right."""
    y: Length
    """Down."""

    @property
    def is_relative(self) -> bool:
        """True if the place depends on the element's size."""
        return isinstance(self.x, str) or isinstance(self.y, str)

    def within(self, width: float, height: float) -> tuple[float, float]:
        """Return the place in an element of this size, in pixels."""
        return _pixels(self.x, width), _pixels(self.y, height)

    def __str__(self) -> str:
        return f"{self.x:g}, {self.y:g}" if not self.is_relative else f"{self.x}, {self.y}"


def _pixels(length: float | str, size: float) -> float:
    return float(length.removesuffix("%")) * size / 100 if isinstance(length, str) else length


class Distance(Part):
    """Distance in CSS pixels; negative is up or left."""

    x: Number = 0
    """To the right."""
    y: Number = 0
    """Down."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stroke:
    """How the mouse strikes an element."""

    at: Spot | None = None  # its middle by default
    button: Button = "left"
    modifiers: tuple[Modifier, ...] = ()
    count: int = 1
    hold: float = 0.0  # seconds between down and up


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """The way of the mouse with its button down, through ``path``, then ``by`` a distance."""

    start: Spot | None = None  # where it is pressed, by default in the middle
    path: tuple[Spot, ...] = ()
    by: tuple[float, float] | None = None
    steps: int = STEPS  # number of moves for each part of the way


PLAIN = Stroke()
