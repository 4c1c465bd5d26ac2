"""Python code of values: what an expression can name, and pieces of code that can still grow."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from typing import Protocol

from jinja2 import nodes

from runtime.export.layout import SIGNS, quoted

Chain = tuple[str | int, ...]


class NotCarried(Exception):
    """Something of the workflow has no plain equivalent; the message says what."""


class Names(Protocol):
    """What an expression can name, and what the file needs for it."""

    def read(self, chain: Chain) -> tuple[str, Chain]:
        """Return the code of a name with the keys that it takes up, and the keys that are left. Raises NotCarried."""
        ...

    def taken(self, name: str) -> bool:
        """True if a variable of this name would hide another."""
        ...

    def need(self, helper: str) -> str:
        """Note that the file needs a helper function or a module; return its name."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Each:
    """A list comprehension that can still grow."""

    variable: str
    source: str
    element: str
    conditions: tuple[str, ...] = ()

    def inside(self) -> str:
        conditions = "".join(f" if {each}" for each in self.conditions)
        return f"{self.element} for {self.variable} in {self.source}{conditions}"


Code = str | Each


def keys(tree: nodes.Expr) -> str:
    """Return the code of an attribute in text, such as ``'order.total'``."""
    wanted = tree.value if isinstance(tree, nodes.Const) else None
    if isinstance(wanted, int):
        return f"[{wanted}]"
    if not isinstance(wanted, str):
        raise NotCarried("a computed `attribute`")
    return "".join(f"[{key if key.isdecimal() else quoted(key)}]" for key in wanted.split("."))


def literal_piece(tree: nodes.Expr) -> str | nodes.Expr:
    return tree.value if isinstance(tree, nodes.Const) and isinstance(tree.value, str) else tree


def bare(code: str) -> str:
    """Return a part without the parentheses that it needs only beside an operator."""
    return code[1:-1] if code.startswith("(") and code.endswith(")") and is_atom(code) else code


def singular(name: str) -> str | None:
    return name[:-1] if re.fullmatch(r"[a-z_]{2,}[^s]s", name) else None


def escaped(text: str, mark: str) -> str:
    body = json.dumps(text, ensure_ascii=False)[1:-1]
    return body.replace('\\"', '"') if mark == "'" else body


def is_atom(code: str) -> bool:
    """True if an expression needs no parentheses beside an operator: it has no blank outside of brackets and texts."""
    depth = 0
    mark: str = ""
    before: str = ""
    for place, each in enumerate(code):
        if mark:
            mark = "" if each == mark and before != "\\" else mark
        elif each in "'\"":
            mark = each
        elif each in "([{":
            depth += 1
        elif each in ")]}":
            depth -= 1
            if depth == 0 and code[0] == "(" and place < len(code) - 1 and code[place + 1] == " ":
                return False
        elif (each == " " and depth == 0) or (each == "-" and place == 0 and not code[1:2].isdigit()):
            return False
        before = "" if before == "\\" else each
    return True


_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


def negated(condition: str) -> str:
    """Return the opposite of a condition."""
    tree, raw = ast.parse(condition, mode="eval").body, condition.encode()
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return condition.removeprefix("not ")
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        start, end, sign = tree.left.end_col_offset or 0, tree.comparators[0].col_offset, type(tree.ops[0])
        between = raw[start:end].decode().replace(SIGNS[sign], _OPPOSITE[sign], 1)
        return f"{raw[:start].decode()}{between}{raw[end:].decode()}"
    return f"not {condition}" if is_atom(condition) else f"not ({condition})"
