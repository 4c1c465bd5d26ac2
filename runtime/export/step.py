"""What the statements of a step are made of."""

from __future__ import annotations

from typing import Any, Protocol

from nodes import pointer
from nodes.base import Leaf
from nodes.rules import Rule
from nodes.targets import Target
from nodes.template import Template
from nodes.values import Json
from runtime.export import expressions, locators
from runtime.export.code import Names, NotCarried
from runtime.export.layout import STEP, WIDTH, literal, quoted


class Body(Names, Protocol):
    """Where statements go."""

    depth: int
    lines: list[str]
    tab: str
    """The variable of the current tab."""
    answered: set[str]
    """The ids of the steps whose dialog is answered by then."""

    def line(self, code: str) -> None: ...
    def blank(self) -> None: ...
    def bound(self, code: str) -> str:
        """Return parameters that bind the variables of a loop which a function in it reads."""
        ...

    def local(self, name: str) -> str:
        """Return a free name for a variable."""
        ...

    def is_text(self, value: Json) -> bool:
        """True if a reference surely has a text as its value."""
        ...

    def is_file(self, value: Json) -> bool:
        """True if a reference has a file that a step has kept as its value."""
        ...

    def page_of(self, tab: str | None) -> str: ...
    def open_tab(self, tab: str) -> str: ...
    def set_variable(self, name: str, code: str) -> None: ...
    def lost(self, node: Leaf, what: str) -> None:
        """Note something of a step that is left out."""
        ...


Value = str | None
"""The code of a step's value; None if it has none."""


def check(body: Body, node: Leaf, rule: Rule, page: str) -> None:
    step = Step(body, node)
    step.page = page
    for code in locators.Locators(body).rule(page, rule, node.timeout, step.reach):
        body.line(code)


class Step:
    """A step's parts as code."""

    def __init__(self, body: Body, node: Any) -> None:
        self.body, self.node = body, node
        self.page = body.page_of(node.works_in)
        self.limit = [] if node.timeout is None else [f"timeout={round(node.timeout * 1000):_}"]

    def of(self, value: Json) -> str:
        return expressions.of(value, self.body)

    def find(self, target: Target, *, page: str | None = None) -> str:
        return "".join(locators.Locators(self.body).of(page or self.page, target))

    def act(self, target: Target, call: str) -> None:
        """Write a call on an element; a long way to it gets a variable."""
        self.body.line(f"{self.reach(target, len(call))}{call}")

    def reach(self, target: Target, more: int) -> str:
        """Return the way to an element, or a variable for it if the line would be too long."""
        found = self.find(target)
        if len(STEP) * self.body.depth + len(found) + more <= WIDTH:
            return found
        inner = None
        if target.within is not None and target.any_of is None:
            around = self.reach(target.within.model_copy(update={"frame": target.frame or target.within.frame}), WIDTH)
            inner = target.model_copy(update={"within": None, "frame": None})
            found = self.find(inner, page=around)
            if len(STEP) * self.body.depth + len(found) + more <= WIDTH:
                return found
        variable = self.body.local(locators.variable_of(target))
        self.assign(variable, locators.Locators(self.body).of(self.page, target) if inner is None else [found])
        return variable

    def assign(self, variable: str, chain: list[str]) -> None:
        """Write a variable with the element that a chain of calls finds, in several statements if one is too long."""
        if (
            (len(chain) > 2 or not chain[0].isidentifier())
            and len(chain) > 1
            and len(STEP) * self.body.depth + len(f"{variable} = {''.join(chain)}") > WIDTH
        ):
            self.assign(variable, chain[:-1])
            chain = [variable, chain[-1]]
        self.body.line(f"{variable} = {''.join(chain)}")

    def call(self, name: str, *arguments: str) -> str:
        return f".{name}({', '.join([*arguments, *self.limit])})"

    def stroke(self, *, hold: bool = True) -> list[str]:
        """Return the arguments of a click."""
        node = self.node
        given: list[str] = []
        if getattr(node, "button", "left") != "left":
            given.append(f"button={quoted(node.button)}")
        if getattr(node, "modifiers", None):
            given.append(f"modifiers={literal(list(node.modifiers))}")
        if node.at is not None:
            given.append(f"position={spot(self, node.at)}")
        if hold and getattr(node, "hold", 0):
            given.append(f"delay={milliseconds(self, node.hold)}")
        return given


def milliseconds(step: Step, seconds: Json) -> str:
    return f"{step.of(seconds)} * 1000" if isinstance(seconds, Template) else f"{round(seconds * 1000):_}"


def spot(step: Step, at: pointer.Spot) -> str:
    if at.is_relative:
        raise NotCarried("a place in percent of an element")
    return f'{{"x": {amount(step, at.x)}, "y": {amount(step, at.y)}}}'


def pair(step: Step, at: Any) -> str:
    if isinstance(at, pointer.Spot) and at.is_relative:
        raise NotCarried("a place in percent of an element")
    return f"({amount(step, at.x)}, {amount(step, at.y)})"


def amount(step: Step, number: Json) -> str:
    return step.of(number) if isinstance(number, str) else f"{number:g}"


def string(step: Step, value: Json) -> str:
    """Return the code of a text; a single reference may have a number as its value."""
    code = step.of(value)
    plain = not isinstance(value, Template) or code.startswith(("f'", 'f"', '"', "'"))
    return code if plain or step.body.is_text(value) else f"str({code})"
