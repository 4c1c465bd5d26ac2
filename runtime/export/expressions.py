"""Translates the expressions of workflow files to Python."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from jinja2 import nodes

from nodes.template import Template
from nodes.values import Json
from runtime.export.code import (
    Chain,
    Code,
    Each,
    Names,
    NotCarried,
    bare,
    escaped,
    is_atom,
    keys,
    literal_piece,
    negated,
    singular,
)
from runtime.export.filters import ON_LISTS, ON_VALUES
from runtime.export.layout import literal, quoted
from runtime.language.expressions import builtins, references
from runtime.language.expressions.names_read import chain_of

_SIGNS: dict[type[nodes.Expr], str] = {
    nodes.Add: "+",
    nodes.Sub: "-",
    nodes.Mul: "*",
    nodes.Div: "/",
    nodes.FloorDiv: "//",
    nodes.Mod: "%",
    nodes.Pow: "**",
    nodes.And: "and",
    nodes.Or: "or",
}
_COMPARED = {"eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "in": "in", "notin": "not in"}
_TESTS = {
    **dict.fromkeys(("equalto", "eq", "==", "sameas"), "=="),
    **dict.fromkeys(("ne", "!="), "!="),
    **dict.fromkeys(("gt", ">", "greaterthan"), ">"),
    **dict.fromkeys(("ge", ">="), ">="),
    **dict.fromkeys(("lt", "<", "lessthan"), "<"),
    **dict.fromkeys(("le", "<="), "<="),
    "in": "in",
}


def of(value: Json, names: Names) -> str:
    """Return the Python code of a value of a workflow file, with its references."""
    if isinstance(value, Template):
        return Translation(names).text(value)
    if isinstance(value, list):
        return f"[{', '.join(of(each, names) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{quoted(str(key))}: {of(each, names)}' for key, each in value.items())}}}"
    return literal(value)


class Translation:
    """Python code for expressions that read ``names``."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def text(self, template: str) -> str:
        """Return the code of a text with expressions: one expression gives its value, others an f-string."""
        compiled = references.compile(template)
        pieces = compiled.pieces
        if compiled.exact:
            return self.code(compiled.trees[0])
        return self.formatted([each if isinstance(each, str) else self._shown(each) for each in pieces], pieces)

    def formatted(self, codes: list[str], pieces: list[str | nodes.Expr]) -> str:
        plain = "".join(each for each in pieces if isinstance(each, str))
        mark = "'" if '"' in plain and "'" not in plain else '"'
        other = '"' if mark == "'" else "'"
        body = ""
        for code, piece in zip(codes, pieces, strict=True):
            if isinstance(piece, str):
                body += escaped(piece, mark).replace("{", "{{").replace("}", "}}")
                continue
            if (mark in code and other in code) or "\\" in code or code.startswith("{"):
                return self._joined(codes, pieces)
            body += f"{{{code.replace(mark, other)}}}"
        return f"f{mark}{body}{mark}"

    def _joined(self, codes: list[str], pieces: list[str | nodes.Expr]) -> str:
        parts = [
            quoted(piece) if isinstance(piece, str) else f"str({code})"
            for code, piece in zip(codes, pieces, strict=True)
        ]
        return " + ".join(parts)

    def code(self, tree: nodes.Node) -> str:
        return self._plain(self._translate(tree))

    def _plain(self, code: Code) -> str:
        return code if isinstance(code, str) else f"[{code.inside()}]"

    def _operand(self, tree: nodes.Node) -> str:
        """Return a part of a larger expression, in parentheses if it needs them."""
        code = self.code(tree)
        return code if is_atom(code) else f"({code})"

    def _translate(self, tree: nodes.Node) -> Code:
        chain, _places, rest = chain_of(tree)
        if chain and not rest:
            return self._chain(chain)
        match tree:
            case nodes.Const():
                return literal(tree.value)
            case nodes.List() | nodes.Tuple():
                return f"[{', '.join(self.code(each) for each in tree.items)}]"
            case nodes.Dict():
                return f"{{{', '.join(f'{self.code(each.key)}: {self.code(each.value)}' for each in tree.items)}}}"
            case nodes.Getattr():
                return f"{self._operand(tree.node)}[{quoted(tree.attr)}]"
            case nodes.Getitem():
                return self.item(self._operand(tree.node), self._index(tree.arg))
            case nodes.Filter():
                return self._filter(tree)
            case _:
                return self._computed(tree)

    def _computed(self, tree: nodes.Node) -> str:
        match tree:
            case nodes.Test():
                return self._test(tree)
            case nodes.Compare():
                return self._compare(tree)
            case nodes.CondExpr():
                return self._choice(tree)
            case nodes.Not():
                return self._not(tree.node)
            case nodes.Neg():
                return f"-{self._operand(tree.node)}"
            case nodes.Pos():
                return self._operand(tree.node)
            case nodes.Call():
                return self._call(tree)
            case nodes.BinExpr():
                return f"{self._operand(tree.left)} {_SIGNS[type(tree)]} {self._operand(tree.right)}"
            case _:
                raise NotCarried(f"the expression `{type(tree).__name__}`")

    def _concatenated(self, parts: list[nodes.Expr]) -> str:
        pieces = [literal_piece(each) for each in parts]
        return self.formatted([each if isinstance(each, str) else self._shown(each) for each in pieces], pieces)

    def _shown(self, tree: nodes.Expr) -> str:
        """Return the code of a value within a text, where true and false are written as in JSON."""
        code = self.code(tree)
        if isinstance(tree, nodes.Filter) and tree.name == "string" and code.startswith("str("):
            return code[4:-1]
        is_truth = isinstance(tree, nodes.Compare | nodes.Test | nodes.Not)
        return f"str({code}).lower()" if is_truth else code

    def _chain(self, chain: Chain) -> str:
        code, rest = self._names.read(chain)
        return code + "".join(f"[{literal(key)}]" for key in rest)

    def _index(self, tree: nodes.Expr) -> str:
        if not isinstance(tree, nodes.Slice):
            return self.code(tree)
        start, stop, step = ("" if each is None else self.code(each) for each in (tree.start, tree.stop, tree.step))
        return f"{start}:{stop}{f':{step}' if step else ''}"

    def _compare(self, tree: nodes.Compare) -> str:
        left = self._operand(tree.expr)
        parts: list[str] = []
        for each in tree.ops:
            sign, constant = _COMPARED[each.op], each.expr.value if isinstance(each.expr, nodes.Const) else ...
            if constant in (None, True, False) and type(constant) is not int and sign in ("==", "!="):
                sign = "is" if sign == "==" else "is not"
            parts.append(f"{sign} {self._operand(each.expr)}")
        return " ".join([left, *parts])

    def _not(self, tree: nodes.Expr) -> str:
        if isinstance(tree, nodes.Test):
            return self._test(tree, negated=True)
        return negated(bare(self._operand(tree)))

    def item(self, code: str, index: str) -> str:
        if index == "0" and code.startswith("[") and " for " in code:
            return f"{self.need('first')}({code})"
        return f"{code}[{index}]"

    def _choice(self, tree: nodes.CondExpr) -> str:
        if tree.expr2 is None:
            raise NotCarried("an `if` without `else`")
        parts = (tree.expr1, tree.test, tree.expr2)
        body, test, other = (
            f"({self.code(each)})" if isinstance(each, nodes.CondExpr) else self.code(each) for each in parts
        )
        return f"{body} if {test} else {other}"

    def _call(self, tree: nodes.Call) -> str:
        name = tree.node.name if isinstance(tree.node, nodes.Name) else ""
        if name == "now":
            self._names.need("datetime")
            return "datetime.datetime.now().astimezone().isoformat()"
        if name == "uuid":
            self._names.need("uuid")
            return "str(uuid.uuid4())"
        raise NotCarried(f"`{name}()`")

    def _test(self, tree: nodes.Test, *, negated: bool = False) -> str:
        chain, _places, rest = chain_of(tree.node)
        if tree.name in ("defined", "undefined"):
            defined = (tree.name == "defined") != negated
            if not chain or rest:
                raise NotCarried(f"`is {tree.name}` of a computed value")
            code, keys = self._names.read(chain)
            for key in keys[:-1]:
                code += f"[{literal(key)}]"
            if not keys:
                return f"{code} is {'not ' if defined else ''}None"
            return f"{literal(keys[-1])} {'' if defined else 'not '}in {code}"
        return self._tested(self._operand(tree.node), tree.name, tree.args, negated=negated)

    def _tested(self, code: str, name: str, args: list[nodes.Expr], *, negated: bool = False) -> str:
        if name in ("none", "null"):
            return f"{code} is {'not ' if negated else ''}None"
        if name in ("true", "false"):
            return f"{code} is {'not ' if negated else ''}{name.title()}"
        if name in _TESTS and len(args) == 1:
            sign, other = _TESTS[name], self._operand(args[0])
            if negated:
                sign = {"==": "!=", "!=": "==", "in": "not in", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}[sign]
            return f"{code} {sign} {other}"
        simple = {
            "string": f"isinstance({code}, str)",
            "text": f"isinstance({code}, str)",
            "mapping": f"isinstance({code}, dict)",
            "map": f"isinstance({code}, dict)",
            "list": f"isinstance({code}, list)",
            "number": f"isinstance({code}, int | float)",
            "odd": f"{code} % 2 == 1",
            "even": f"{code} % 2 == 0",
        }.get(name)
        if name == "match" and len(args) == 1:
            self._names.need("re")
            simple = f"re.search({self._pattern(args[0])}, {code})"
            return f"not {simple}" if negated else f"{simple} is not None"
        if simple is None:
            raise NotCarried(f"the test `is {name}`")
        return f"not {simple}" if negated and "%" not in simple else f"not ({simple})" if negated else simple

    def _pattern(self, tree: nodes.Expr) -> str:
        text = tree.value if isinstance(tree, nodes.Const) else None
        if not isinstance(text, str):
            return self.code(tree)
        return f'r"{text}"' if '"' not in text and text.isprintable() and not text.endswith("\\") else quoted(text)

    # Filters.

    def _filter(self, tree: nodes.Filter) -> Code:
        if tree.node is None:
            raise NotCarried("a filter without a value")
        if tree.name == builtins.CONCATENATE and isinstance(tree.node, nodes.List):
            return self._concatenated(tree.node.items)
        given: dict[str, nodes.Expr] = {str(each.key): each.value for each in tree.kwargs}
        if tree.name in ("default", "d"):
            return self._default(tree.node, tree.args, given)
        value = self._translate(tree.node)
        if (of_list := ON_LISTS.get(tree.name)) is not None:
            return of_list(self, value, tree.args, given)
        code = self._plain(value)
        operand = code if is_atom(code) else f"({code})"
        if (of_one := ON_VALUES.get(tree.name)) is None:
            raise NotCarried(f"the filter `{tree.name}`")
        return of_one(self, operand, tree.args, given)

    def _default(self, tree: nodes.Expr, args: list[nodes.Expr], given: Mapping[str, nodes.Expr]) -> str:
        other = self.code(args[0] if args else given["default_value"]) if args or given else '""'
        also_empty = len(args) > 1 or "boolean" in given
        chain, _places, rest = chain_of(tree)
        if not chain or rest:
            if not also_empty:
                raise NotCarried("`default` of a computed value")
            return f"{self._operand(tree)} or {other}"
        code, keys = self._names.read(chain)
        code += "".join(f"[{literal(key)}]" for key in keys[:-1])
        if keys and isinstance(keys[-1], str):
            code = f"{code}.get({literal(keys[-1])}{'' if also_empty else f', {other}'})"
            return f"{code} or {other}" if also_empty else code
        return f"{code} or {other}" if also_empty else f"{other} if {code} is None else {code}"

    def each_of(self, value: Code) -> Each:
        """Return a comprehension over a list, to which conditions and the element can be added."""
        if isinstance(value, Each) and value.element == value.variable:
            return value
        source = self._plain(value)
        name = re.search(r"(\w+?)(?:\"\])?$", source)
        one = singular(name[1]) if name is not None and not isinstance(value, Each) else None
        variable = one if one is not None and not self._names.taken(one) else "each"
        return Each(variable, source if is_atom(source) else f"({source})", variable)

    def selected(self, value: Code, args: list[nodes.Expr], *, attribute: bool, negated: bool) -> Each:
        each = self.each_of(value)
        code = each.variable + keys(args[0]) if attribute else each.variable
        rest = args[1:] if attribute else args
        if not rest:
            condition = f"not {code}" if negated else code
        else:
            name = rest[0].value if isinstance(rest[0], nodes.Const) else None
            condition = self._tested(code, str(name), rest[1:], negated=negated)
        return dataclasses.replace(each, conditions=(*each.conditions, condition))

    def mapped(self, value: Code, args: list[nodes.Expr], given: Mapping[str, nodes.Expr]) -> Each:
        each = value if isinstance(value, Each) else self.each_of(value)
        if "attribute" in given:
            if "default" in given:
                key = given["attribute"].value if isinstance(given["attribute"], nodes.Const) else ""
                element = f"{each.element}.get({literal(key)}, {self.code(given['default'])})"
            else:
                element = f"{each.element}{keys(given['attribute'])}"
        elif args and isinstance(args[0], nodes.Const) and args[0].value in ON_VALUES:
            element = ON_VALUES[str(args[0].value)](self, each.element, args[1:], dict(given))
        else:
            raise NotCarried("this use of `map`")
        return dataclasses.replace(each, element=element)

    def attribute(self, value: Code, args: list[nodes.Expr], given: Mapping[str, nodes.Expr]) -> Code:
        """Return the list, or that of an attribute of its items if one is given."""
        wanted = given.get("attribute") or (args[0] if args else None)
        return value if wanted is None else self.mapped(value, [], {"attribute": wanted})

    def called(self, name: str, value: Code, more: str = "") -> str:
        return (
            f"{name}({value if isinstance(value, str) else value.inside() if not more else self._plain(value)}{more})"
        )

    def argument(self, args: list[nodes.Expr], given: Mapping[str, nodes.Expr], place: int, name: str) -> str | None:
        tree = given.get(name) or (args[place] if place < len(args) else None)
        return None if tree is None else self.code(tree)

    def need(self, helper: str) -> str:
        return self._names.need(helper)

    def pattern(self, tree: nodes.Expr) -> str:
        return self._pattern(tree)

    def plain(self, value: Code) -> str:
        return self._plain(value)


def pieces_of(text: str, names: Names) -> list[tuple[str, bool]]:
    """Return the parts of a text in order: literal ones, and with true the code of an expression."""
    translation = Translation(names)
    return [
        (each, False) if isinstance(each, str) else (translation.code(each), True)
        for each in references.compile(text).pieces
    ]
