"""Translates the filters of expressions to Python."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jinja2 import nodes

from runtime.export.code import Code, Each, NotCarried, bare, escaped, keys
from runtime.export.layout import quoted

if TYPE_CHECKING:
    from runtime.export.expressions import Translation

Given = Mapping[str, nodes.Expr]
OnList = Callable[["Translation", Code, list[nodes.Expr], Given], Code]
OnValue = Callable[["Translation", str, list[nodes.Expr], Given], str]


def _length(to: Translation, value: Code, _args: list[nodes.Expr], _given: Given) -> str:
    return f"len({to.plain(value)})"


def _sum(to: Translation, value: Code, args: list[nodes.Expr], given: Given) -> str:
    if len(args) > 1 or "start" in given:
        raise NotCarried("the filter `sum` with a `start`")
    return to.called("sum", to.attribute(value, args, given))


def _joined(to: Translation, value: Code, args: list[nodes.Expr], given: Given) -> str:
    separator = to.argument(args, given, 0, "separator") or '""'
    each = to.attribute(value, args[1:], given)
    grown = each if isinstance(each, Each) else to.each_of(each)
    return f"{separator}.join({dataclasses.replace(grown, element=f'str({grown.element})').inside()})"


def _sorted(to: Translation, value: Code, args: list[nodes.Expr], given: Given) -> str:
    if len(args) > 1 or given.keys() - {"attribute", "reverse"}:
        raise NotCarried("the filter `sort` with these arguments")
    more = ""
    if (wanted := given.get("attribute")) is not None:
        if not isinstance(wanted, nodes.Const) or "." in str(wanted.value):
            raise NotCarried("the filter `sort` by a part of an attribute")
        more += f", {quoted(str(wanted.value))}"
    if (turned := to.argument(args, given, 0, "reverse")) is not None:
        more += f", reverse={turned}"
    return f"{to.need('ordered')}({to.plain(value)}{more})"


def _extreme(name: str) -> OnList:
    def translate(to: Translation, value: Code, _args: list[nodes.Expr], given: Given) -> str:
        wanted = given.get("attribute")
        more = f", key=lambda each: each{keys(wanted)}" if wanted is not None else ""
        return to.called(name, value, more)

    return translate


def _unique(to: Translation, value: Code, args: list[nodes.Expr], given: Given) -> str:
    wanted = given.get("attribute")
    if args or given.keys() - {"attribute"} or (isinstance(wanted, nodes.Const) and "." in str(wanted.value)):
        raise NotCarried("the filter `unique` with these arguments")
    more = f", {quoted(str(wanted.value))}" if isinstance(wanted, nodes.Const) else ""
    return f"{to.need('unique')}({to.plain(value)}{more})"


def _flat(to: Translation, value: Code, _args: list[nodes.Expr], _given: Given) -> str:
    return f"[item for part in {to.plain(value)} for item in part]"


def _groups(to: Translation, value: Code, args: list[nodes.Expr], given: Given) -> str:
    if len(args) != 1 or given:
        raise NotCarried("the filter `groupby` with these arguments")
    return f"{to.need('groups')}({to.plain(value)}, {to.code(args[0])})"


ON_LISTS: dict[str, OnList] = {
    "length": _length,
    "count": _length,
    "list": lambda to, value, _args, _given: value,
    "map": lambda to, value, args, given: to.mapped(value, args, given),
    "selectattr": lambda to, value, args, _given: to.selected(value, args, attribute=True, negated=False),
    "rejectattr": lambda to, value, args, _given: to.selected(value, args, attribute=True, negated=True),
    "select": lambda to, value, args, _given: to.selected(value, args, attribute=False, negated=False),
    "reject": lambda to, value, args, _given: to.selected(value, args, attribute=False, negated=True),
    "sum": _sum,
    "join": _joined,
    "sort": _sorted,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "unique": _unique,
    "flatten": _flat,
    "groupby": _groups,
    "first": lambda to, value, _args, _given: to.item(to.plain(value), "0"),
    "last": lambda to, value, _args, _given: f"{to.plain(value)}[-1]",
    "reverse": lambda to, value, _args, _given: f"{to.plain(value)}[::-1]",
}


def _method(name: str, *, most: int = 0) -> OnValue:
    def translate(to: Translation, code: str, args: list[nodes.Expr], given: Given) -> str:
        if given or len(args) > most:
            raise NotCarried(f"the filter `{name}` with these arguments")
        return f"{code}.{name}({', '.join(to.code(each) for each in args)})"

    return translate


def _replaced(to: Translation, code: str, args: list[nodes.Expr], _given: Given) -> str:
    return f"{code}.replace({', '.join(to.code(each) for each in args)})"


def _rounded(to: Translation, code: str, args: list[nodes.Expr], given: Given) -> str:
    if "method" in given or len(args) > 1:
        raise NotCarried("the filter `round` with a method")
    precision = to.argument(args, given, 0, "precision")
    return f"round({bare(code)}{f', {precision}' if precision is not None else ', 0'})"


def _simple(code: str) -> OnValue:
    """Translate a filter without arguments; ``code`` has the value in place of ``{}``."""

    def translate(to: Translation, value: str, args: list[nodes.Expr], given: Given) -> str:
        if args or given:
            raise NotCarried("a filter with these arguments")
        for module in ("json", "hashlib", "quote"):
            if re.search(rf"\b{module}\b", code):
                to.need(module)
        return code.replace("{}", bare(value) if "({}" in code else value)

    return translate


def _number(to: Translation, code: str, args: list[nodes.Expr], given: Given) -> str:
    if args or given:
        raise NotCarried("the filter `number` with another decimal mark")
    return f"{to.need('number')}({bare(code)})"


def _regex(to: Translation, code: str, args: list[nodes.Expr], given: Given) -> str:
    group = to.argument(args, given, 1, "group")
    more = f", {group}" if group is not None else ""
    return f"{to.need('first_match')}({to.pattern(args[0])}, {bare(code)}{more})"


def _regex_all(to: Translation, code: str, args: list[nodes.Expr], _given: Given) -> str:
    to.need("re")
    found = f"re.findall({to.pattern(args[0])}, {bare(code)})"
    pattern = args[0].value if isinstance(args[0], nodes.Const) else None
    if not isinstance(pattern, str):
        raise NotCarried("a computed pattern of `regex_all`")
    return f"[list(groups) for groups in {found}]" if re.compile(pattern).groups > 1 else found


def _regex_replace(to: Translation, code: str, args: list[nodes.Expr], _given: Given) -> str:
    to.need("re")
    if len(args) > 2:
        raise NotCarried("the filter `regex_replace` with a count")
    return f"re.sub({to.pattern(args[0])}, {to.pattern(args[1])}, {bare(code)})"


_SPEC = re.compile(r"%(?:%|(?P<spec>[-+0 ]*\d*(?:\.\d+)?)(?P<kind>[sdf]))")


def _formatted(to: Translation, code: str, args: list[nodes.Expr], given: Given) -> str:
    """Translate ``'%.2f' | format(total)`` to an f-string."""
    pattern = ast.literal_eval(code) if code[:1] in "\"'" else None
    if pattern is None or given or len(args) != sum(each["kind"] is not None for each in _SPEC.finditer(pattern)):
        raise NotCarried("the filter `format` with these arguments")
    values, end, body = iter(args), 0, ""
    for found in _SPEC.finditer(pattern):
        body += escaped(pattern[end : found.start()], '"').replace("{", "{{").replace("}", "}}")
        end = found.end()
        if found["kind"] is None:
            body += "%"
            continue
        value = to.code(next(values))
        if '"' in value and "'" in value:
            raise NotCarried("the filter `format` with these arguments")
        spec = found["spec"] + ("" if found["kind"] == "s" else found["kind"])
        body += f"{{{value.replace(chr(34), chr(39))}{f':{spec}' if spec else ''}}}"
    return f'f"{body}{escaped(pattern[end:], chr(34))}"'


def _absolute(to: Translation, code: str, args: list[nodes.Expr], given: Given) -> str:
    to.need("urljoin")
    return f"urljoin({to.argument(args, given, 0, 'base')}, {bare(code)})"


def _range(to: Translation, code: str, args: list[nodes.Expr], given: Given) -> str:
    start, step = to.argument(args, given, 0, "start"), to.argument(args, given, 1, "step")
    before = f"{start or 0}, " if start or step else ""
    return f"list(range({before}{bare(code)}{f', {step}' if step else ''}))"


ON_VALUES: dict[str, OnValue] = {
    "upper": _method("upper"),
    "lower": _method("lower"),
    "capitalize": _method("capitalize"),
    "title": _method("title"),
    "trim": _method("strip", most=1),
    "split": _method("split", most=2),
    "center": _method("center", most=1),
    "replace": _replaced,
    "round": _rounded,
    "abs": _simple("abs({})"),
    "int": _simple("int({})"),
    "float": _simple("float({})"),
    "string": _simple("str({})"),
    "keys": _simple("list({})"),
    "values": _simple("list({}.values())"),
    "items": _simple("[list(pair) for pair in {}.items()]"),
    "json": _simple("json.dumps({}, ensure_ascii=False)"),
    "from_json": _simple("json.loads({})"),
    "urlencode": _simple("quote({})"),
    "wordcount": _simple("len({}.split())"),
    "number": _number,
    "regex": _regex,
    "regex_all": _regex_all,
    "regex_replace": _regex_replace,
    "format": _formatted,
    "absolute": _absolute,
    "range": _range,
}
