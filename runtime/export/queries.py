"""Readings of pages as plain Playwright, and computed values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.base import Leaf
from nodes.browser_query import reads, rows
from nodes.context import Context
from nodes.targets import Target
from nodes.template import Template
from nodes.transform import Transform
from runtime.export import expressions, locators
from runtime.export.code import NotCarried
from runtime.export.layout import STEP, literal, quoted
from runtime.export.step import Body, Step, Value, check


def typed(body: Body, kind: str, code: str) -> str:
    return code if kind == "text" else f"{body.need('integer' if kind == 'integer' else 'number')}({code})"


def _text(body: Body, node: reads.Text) -> Value:
    step = Step(body, node)
    return typed(body, node.as_, f"{body.need('text_of')}({step.reach(node.target, 30)})")


def _value(body: Body, node: reads.Value) -> Value:
    step = Step(body, node)
    return typed(body, node.as_, f"{step.reach(node.target, 30)}.input_value()")


def _seen(node: Any, found: str) -> str:
    if isinstance(node.hidden, Template):
        raise NotCarried("a computed `hidden`")
    return found if node.hidden else f"{found}{locators.SEEN}"


def _exists(body: Body, node: reads.Exists) -> Value:
    return f"{_seen(node, Step(body, node).reach(node.target, 40))}.count() > 0"


def _count(body: Body, node: reads.Count) -> Value:
    return f"{_seen(node, Step(body, node).reach(node.target, 40))}.count()"


def _box(body: Body, node: reads.Box) -> Value:
    if node.of is not None:
        raise NotCarried("a place in another element")
    return f"{Step(body, node).reach(node.target, 30)}.bounding_box()"


def _attribute(body: Body, node: reads.Attribute) -> Value:
    return f"{Step(body, node).reach(node.target, 40)}.get_attribute({quoted(node.attribute)})"


def _state(body: Body, node: reads.State) -> Value:
    found = body.local("found")
    body.line(f"{found} = {Step(body, node).find(node.target)}")
    states = ("visible", "enabled", "checked", "editable")
    return f"{{{', '.join(f'{quoted(each)}: {found}.is_{each}()' for each in states)}}}"


def _url(body: Body, node: reads.Url) -> Value:
    return f"{body.page_of(node.tab)}.url"


def _title(body: Body, node: reads.Title) -> Value:
    return f"{body.page_of(node.tab)}.title()"


def _assert(body: Body, node: reads.Assert) -> Value:
    for rule in node.rules:
        check(body, node, rule, body.page_of(node.tab))
    return None


def _extract(body: Body, node: rows.Extract) -> Value:
    if node.scroll is not None:
        raise NotCarried("it reads a list by scrolling")
    step = Step(body, node)
    found = _rows(step, node.target, node.min)
    fields_of = [f"{quoted(name)}: {_field(body, field)}" for name, field in node.fields.items()]
    return _page_by_page(step, f"[{{{', '.join(fields_of)}}} for row in {found}{locators.SEEN}.all()]")


def _page_by_page(step: Step, code: str) -> str:
    """Return the code that reads the pages after the first too, if the list has a link to them."""
    body, node = step.body, step.node
    if node.next is None:
        return code
    read, following = body.local("read"), step.find(node.next)
    body.blank()
    body.line(f"def {read}({body.bound(code)}):")
    body.depth += 1
    body.line(f"return {code}")
    body.depth -= 1
    body.blank()
    return f"{body.need('read_pages')}({read}, {following}, {quoted(node.key)})"


def _rows(step: Step, target: Target, least: int) -> str:
    """Return the way to rows, after as many of them are there as are wanted."""
    if not least:
        return step.reach(target, len(f"{STEP}for row in {locators.SEEN}.all()"))
    step.body.need("expect")
    rows_ = step.body.local("rows")
    step.assign(rows_, locators.Locators(step.body).of(step.page, target))
    which = f"{rows_}.first" if least == 1 else f"{rows_}.nth({least - 1})"
    step.body.line(f"expect({which}).to_be_visible({''.join(step.limit)})")
    return rows_


def _field(body: Body, field: rows.FieldOf) -> str:
    found = "row"
    if field.css is not None:
        found = f"row.locator({expressions.of(field.css, body)})"
    if field.nth is not None:
        found += {0: ".first", -1: ".last"}.get(field.nth, f".nth({field.nth})")
    if field.attribute is not None:
        if field.optional:
            code = f"{body.need('attribute_if_any')}({found}, {quoted(field.attribute)})"
        else:
            code = f"{found}.get_attribute({quoted(field.attribute)})"
    else:
        code = f"{body.need('text_if_any' if field.optional else 'text_of')}({found})"
    if field.type == "text":
        return code
    value = typed(body, field.type, "text" if field.optional else code)
    return f"{value} if (text := {code}) else None" if field.optional else value


def _table(body: Body, node: rows.Table) -> Value:
    if node.scroll is not None:
        raise NotCarried("it reads a list by scrolling")
    step = Step(body, node)
    around = step.reach(node.target, 60)
    if node.min:
        body.need("expect")
        body.line(f'expect({around}.locator("tbody tr").nth({node.min - 1})).to_be_visible()')
    read = f"{body.need('read_table')}({around})"
    if node.columns is None:
        return _page_by_page(step, read)
    parts: list[str] = []
    for name, column in node.columns.items():
        cell = f"{body.need('cell')}(row, {literal(column.header)})"
        parts.append(f"{quoted(name)}: {typed(body, column.type, cell)}")
    return _page_by_page(step, f"[{{{', '.join(parts)}}} for row in {read}]")


def _transform(body: Body, node: Transform) -> Value:
    if node.sql is not None:
        raise NotCarried("it is SQL")
    if node.python is not None:
        raise NotCarried(f"it calls the Python function `{node.python}`")
    code = expressions.of(node.expr if node.fields is None else node.fields, body)
    if node.save_as is None:
        return code
    path = f"{body.need('tmp_path')} / {expressions.of(node.save_as, body)}"
    return f"{body.need('save')}({path}, {code})"


def _context(body: Body, node: Context) -> Value:
    if node.ask:
        raise NotCarried("it asks a person")
    for name, value in node.set.items():
        body.set_variable(name, expressions.of(value, body))
    return expressions.of(node.set, body)


QUERIES: dict[type[Leaf], Callable[[Any, Any], Value]] = {
    reads.Text: _text,
    reads.Value: _value,
    reads.Exists: _exists,
    reads.Count: _count,
    reads.Box: _box,
    reads.Attribute: _attribute,
    reads.State: _state,
    reads.Url: _url,
    reads.Title: _title,
    reads.Assert: _assert,
    rows.Extract: _extract,
    rows.Table: _table,
    Transform: _transform,
    Context: _context,
}
