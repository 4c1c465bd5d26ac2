"""Lays out Python statements as Ruff and Black do, so that exported files need no formatter."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Sequence

WIDTH = 88
STEP = "    "

SIGNS: dict[type[ast.AST], str] = {
    ast.And: "and",
    ast.Or: "or",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}


def quoted(text: str) -> str:
    """Return a text as a Python literal, in the quotes that a formatter prefers."""
    if '"' in text and "'" not in text and text.isprintable() and "\\" not in text:
        return f"'{text}'"
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in json.dumps(text, ensure_ascii=False))


def literal(value: object) -> str:
    """Return a JSON value as a Python literal."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(literal(each) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{quoted(str(key))}: {literal(each)}' for key, each in value.items())}}}"
    return repr(value)


def statement(depth: int, code: str) -> list[str]:
    """Return the lines of a statement, or of the head of a compound one, given on one line."""
    indent = STEP * depth
    if len(indent) + len(code) <= WIDTH:
        return [f"{indent}{code}"]
    prefix, expression, suffix = _divided(code)
    lines = _Layout(expression).of_statement(indent, prefix, suffix)
    # Whatever the layout: it must never change what the statement does.
    return lines if _meaning("\n".join(lines).strip()) == _meaning(code) else [f"{indent}{code}"]


def _meaning(code: str) -> str | None:
    whole = f"{code.removeprefix('el')} pass" if code.endswith(":") else code
    try:
        return ast.dump(ast.parse(whole))
    except SyntaxError:
        return None


def function_head(depth: int, name: str, parameters: Sequence[str], returns: str = "") -> list[str]:
    """Return the lines of the head of a function."""
    indent = STEP * depth
    head, end = f"{indent}def {name}(", f"){f' -> {returns}' if returns else ''}:"
    together = ", ".join(parameters)
    if len(head) + len(together) + len(end) <= WIDTH:
        return [f"{head}{together}{end}"]
    if len(indent) + len(STEP) + len(together) <= WIDTH:
        return [head, f"{indent}{STEP}{together}", f"{indent}{end}"]
    return [head, *(f"{indent}{STEP}{each}," for each in parameters), f"{indent}{end}"]


def comment(depth: int, text: str) -> list[str]:
    """Return a comment, wrapped."""
    begin = f"{STEP * depth}# "
    wrapped = [line for part in text.splitlines() for line in _wrapped(part, max(40, WIDTH - len(begin)))]
    return [f"{begin}{line}" for line in wrapped]


def docstring(depth: int, paragraphs: Sequence[str]) -> list[str]:
    """Return a docstring; of each paragraph lines that begin with a blank stay as they are, others are wrapped."""
    indent = STEP * depth
    texts = [each.replace("\\", "\\\\").replace('"""', "'''").strip() for each in paragraphs]
    texts[0] = f"'{texts[0][1:]}" if texts[0].startswith('"') else texts[0]
    if len(texts) == 1 and len(indent) + len(texts[0]) + 6 <= WIDTH and not texts[0].endswith('"'):
        return [f'{indent}"""{texts[0]}"""']
    lines: list[str] = []
    for number, text in enumerate(texts):
        lines += [""] if number else []
        for line in text.splitlines():
            room = WIDTH - len(indent) - (0 if lines else 6)
            lines += [line] if line.startswith(" ") else _wrapped(line, room) or [""]
    first, *rest = lines
    return [f'{indent}"""{first}', *(f"{indent}{line}".rstrip() for line in rest), f'{indent}"""']


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _divided(code: str) -> tuple[str, str, str]:
    """Divide a statement into what stands before its expression, the expression, and what stands after it."""
    suffix = ":" if code.endswith(":") else ""
    body = code.removesuffix(":") if suffix else code
    for word in ("return ", "raise ", "assert ", "if ", "elif ", "while "):
        if body.startswith(word):
            return word, body.removeprefix(word), suffix
    if body.startswith("for "):
        tree = ast.parse(f"{body}: pass").body[0]
        assert isinstance(tree, ast.For)
        return body[: tree.iter.col_offset], body[tree.iter.col_offset :], suffix
    if body.startswith("with "):
        return "with ", body.removeprefix("with "), suffix
    tree = ast.parse(code).body[0]
    if isinstance(tree, ast.Assign):
        return code[: tree.value.col_offset], code[tree.value.col_offset :], ""
    return "", code, ""


class _Layout:
    def __init__(self, source: str) -> None:
        head, alias, rest = source.partition(" as ")
        self._alias = f"{alias}{rest}" if alias and rest.isidentifier() else ""
        self._source = (head if self._alias else source).encode()
        self._tree = ast.parse(self._source, mode="eval").body

    def of_statement(self, indent: str, prefix: str, suffix: str) -> list[str]:
        end = f"{self._alias}{suffix}"
        if _has_brackets(self._tree):
            text = f"{indent}{prefix}{self._broken(self._tree, indent)}{end}"
        else:
            inner = indent + STEP
            flat = self._flat(self._tree)
            body = flat if len(inner) + len(flat) <= WIDTH else self._split(self._tree, inner)
            if body is None:
                text = f"{indent}{prefix}{flat}{end}"
            else:
                text = f"{indent}{prefix}(\n{inner}{body}\n{indent}){end}"
        return text.split("\n")

    def _flat(self, node: ast.AST) -> str:
        text = ast.get_source_segment(self._source.decode(), node) or ""
        return f"({text})" if isinstance(node, ast.GeneratorExp) and not text.startswith("(") else text

    def _fit(self, node: ast.AST, indent: str, spare: int = 1) -> str:
        """Return a part that begins a line: on this line if there is room, else broken."""
        flat = self._source_of(node)
        if len(indent) + len(flat) + spare <= WIDTH:
            return flat
        if _has_brackets(node):
            return self._broken(node, indent)
        return self._split(node, indent) or flat

    def _source_of(self, node: ast.AST) -> str:
        """Return the text of a part with the parentheses around it, which belong to no node."""
        flat = self._flat(node)
        start = _offset(self._source, node)
        before, after = self._source[:start].decode(), self._source[start + len(flat.encode()) :].decode()
        if isinstance(node, ast.GeneratorExp | ast.Tuple) or not (before.endswith("(") and after.startswith(")")):
            return flat
        # An opening bracket directly after a name or a bracket is that of a call.
        called = before[:-1][-1:]
        return flat if called and (called.isalnum() or called in "_])") else f"({flat})"

    def _broken(self, node: ast.AST, indent: str) -> str:
        inner = indent + STEP
        match node:
            case ast.Call(func=func, args=args, keywords=keywords):
                return f"{self._flat(func)}({self._arguments([*args, *keywords], indent)})"
            case ast.List(elts=items) | ast.Set(elts=items):
                opening, closing = ("[", "]") if isinstance(node, ast.List) else ("{", "}")
                lines = "".join(f"\n{inner}{self._fit(each, inner)}," for each in items)
                return f"{opening}{lines}\n{indent}{closing}"
            case ast.Dict(keys=keys, values=values):
                lines = ""
                for key, value in zip(keys, values, strict=True):
                    name = "**" if key is None else f"{self._flat(key)}: "
                    lines += f"\n{inner}{name}{self._after(value, inner, len(name))},"
                return f"{{{lines}\n{indent}}}"
            case ast.ListComp():
                return f"[\n{inner}{self._comprehension(node, inner)}\n{indent}]"
            case ast.Subscript(value=value, slice=index) if _has_brackets(value):
                return f"{self._broken(value, indent)}[{self._source_of(index)}]"
            case ast.Subscript(value=value, slice=index):
                return f"{self._flat(value)}[\n{inner}{self._fit(index, inner, 0)}\n{indent}]"
            case _:
                return self._flat(node)

    def _after(self, value: ast.AST, indent: str, used: int) -> str:
        """Return a part behind others on its line."""
        flat = self._source_of(value)
        if len(indent) + used + len(flat) + 1 <= WIDTH:
            return flat
        if _has_brackets(value):
            return self._broken(value, indent)
        bare, inner = self._flat(value), indent + STEP
        if flat != bare:
            body = bare if len(inner) + len(bare) <= WIDTH else self._split(value, inner) or bare
            return f"(\n{inner}{body}\n{indent})"
        return self._split(value, indent) or flat

    def _arguments(self, arguments: Sequence[ast.AST], indent: str) -> str:
        inner = indent + STEP
        if len(arguments) == 1 and isinstance(arguments[0], ast.GeneratorExp):
            return f"\n{inner}{self._comprehension(arguments[0], inner)}\n{indent}"
        flats = [self._argument(each, "", None) for each in arguments]
        together = ", ".join(flats)
        if len(inner) + len(together) <= WIDTH:
            return f"\n{inner}{together}\n{indent}"
        if len(arguments) == 1:
            return f"\n{inner}{self._argument(arguments[0], inner, 0)}\n{indent}"
        return "".join(f"\n{inner}{self._argument(each, inner, 1)}," for each in arguments) + f"\n{indent}"

    def _argument(self, each: ast.AST, indent: str, spare: int | None) -> str:
        if not isinstance(each, ast.keyword):
            return self._source_of(each) if spare is None else self._fit(each, indent, spare)
        if spare is None:
            return f"{each.arg}={self._source_of(each.value)}"
        return f"{each.arg}={self._after(each.value, indent, len(each.arg or '') + 1)}"

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, indent: str) -> str:
        source = self._flat(node)[1:-1]
        if len(indent) + len(source) <= WIDTH:
            return source
        lines = [self._fit(node.elt, indent, 0)]
        for each in node.generators:
            head = f"for {self._flat(each.target)} in "
            lines.append(f"{head}{self._after(each.iter, indent, len(head) - 1)}")
            lines += [f"if {self._after(condition, indent, 2)}" for condition in each.ifs]
        return f"\n{indent}".join(lines)

    def _split(self, node: ast.AST, indent: str) -> str | None:
        """Return an expression at its outermost operators on several lines; None if it has none."""
        match node:
            case ast.BoolOp(op=sign, values=values):
                parts = [("" if not number else f"{SIGNS[type(sign)]} ", each) for number, each in enumerate(values)]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                parts = [("", body), ("if ", test), ("else ", orelse)]
            case ast.Compare(left=left, ops=signs, comparators=others):
                parts = [
                    ("", left),
                    *((f"{SIGNS[type(sign)]} ", each) for sign, each in zip(signs, others, strict=True)),
                ]
            case ast.BinOp():
                parts = _operands(node)
            case _:
                return None
        return f"\n{indent}".join(f"{sign}{self._after(each, indent, len(sign) - 1)}" for sign, each in parts)


def _operands(node: ast.BinOp) -> list[tuple[str, ast.AST]]:
    """Return the operands of one rank, each with its operator before it."""
    left = node.left
    rank = isinstance(node.op, ast.Add | ast.Sub)
    same = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add | ast.Sub) == rank
    first = _operands(left) if same and isinstance(left, ast.BinOp) else [("", left)]
    return [*first, (f"{SIGNS[type(node.op)]} ", node.right)]


def _has_brackets(node: ast.AST) -> bool:
    """True if an expression can be broken within its own brackets."""
    match node:
        case ast.Call(args=args, keywords=keywords):
            return bool(args or keywords)
        case ast.List(elts=items) | ast.Set(elts=items):
            return bool(items)
        case ast.Dict(keys=keys):
            return bool(keys)
        case ast.ListComp() | ast.Subscript():
            return True
        case _:
            return False


def _offset(source: bytes, node: ast.AST) -> int:
    return getattr(node, "col_offset", 0)
