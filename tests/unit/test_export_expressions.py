"""Expressions of workflows in Python: the same value, or none at all."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.export.code import NotCarried
from tests import exported, expressions
from tests.unit import test_filters

MARKS: list[pytest.Mark] = vars(test_filters.test_examples)["pytestmark"]
EXAMPLES: list[tuple[str, Any]] = MARKS[0].args[1]

VALUES: dict[str, Any] = {
    "order": {"number": "1001", "total": 12.5, "lines": [{"sku": "A", "n": 2}, {"sku": "B", "n": 1}], "note": None},
    "orders": [
        {"number": "3", "total": 5, "paid": True, "by": {"name": "Ada"}},
        {"number": "1", "total": 9.5, "paid": False, "by": {"name": "Bo"}},
        {"number": "3", "total": 7, "paid": True, "by": {"name": "Cy"}},
    ],
    "said": 'He said "it\'s {5}"\\n',
    "name": "Ada",
    "empty": [],
    "words": ["b", "a", "B"],
    "n": 7,
    "nothing": None,
    "yes": True,
}

TEXTS = [
    "{{ order.number }}",
    "{{ order['lines'][0].sku }}{{ order.lines[-1].sku }}",
    "{{ order.lines[0:1] }}",
    "Order {{ order.number }}: {{ order.total }} of {{ n }}",
    "{literal} {{ name }} \"quoted\" {{ order['number'] }}",
    'it\'s "both" {{ order.number }} {{ name }}',
    "back\\slash {{ order.number }}\nand a line",
    "{{ said }}",
    "{{ '{{' }} {{ name }}",
    "{{ 1 + 2 * 3 - n // 2 % 3 }}",
    "{{ (1 + 2) * 3 ** 2 / 2 }}",
    "{{ -(n - 10) }}{{ -n }}",
    "{{ n > 3 and not (n == 7) or yes }}",
    "{{ not yes }}",
    "{{ not n in [1, 2] }}",
    "{{ n not in [7] }}",
    "{{ 1 < n <= 7 }}",
    "{{ nothing == none }}{{ yes != false }}",
    "{{ nothing is none }}",
    "{{ order.note is not none }}",
    "{{ 'a' if n > 3 else 'b' if n > 2 else 'c' }}",
    "{{ ('a' if n > 8 else 'b') ~ '-' ~ n ~ order.number }}",
    "{{ nothing | default('x', true) }}{{ name | default('x') }}",
    "{{ order.missing | default('x') }}",
    "{{ order.note | default('x', true) }}",
    "{{ order.missing is defined }}{{ order.note is defined }}",
    "{{ orders | length }}",
    "{{ orders | map(attribute='total') | sum }}",
    "{{ orders | sum(attribute='total') | round(2) }}",
    "{{ (orders | sum(attribute='total')) / 2 }}",
    "{{ orders | selectattr('paid') | map(attribute='number') | list }}",
    "{{ orders | rejectattr('paid') | map(attribute='number') | list }}",
    "{{ orders | selectattr('total', 'gt', n) | map(attribute='by.name') | join(', ') }}",
    "{{ orders | rejectattr('total', '>=', 7) | list }}",
    "{{ orders | selectattr('number', 'in', ['3']) | list | length }}",
    "{{ orders | selectattr('paid') | selectattr('total', '<', 6) | list }}",
    "{{ (orders | selectattr('paid') | list)[0].number }}",
    "{{ orders | map(attribute='by') | map(attribute='name') | list }}",
    "{{ orders | unique(attribute='number') | list }}",
    "{{ orders | sort(attribute='total', reverse=true) | map(attribute='total') | list }}",
    "{{ orders | groupby('number') | map(attribute='grouper') | list }}",
    "{{ orders | max(attribute='total') }}",
    "{{ orders | map(attribute='total') | max }}",
    "{{ (orders | first).by.name }}{{ (orders | last).total }}",
    "{{ orders | map(attribute='note', default='-') | list }}",
    "{{ words | map('upper') | list }}",
    "{{ words | select('equalto', 'a') | list }}",
    "{{ words | sort }}",
    "{{ words | unique | list }}",
    "{{ words | reverse | list }}",
    "{{ [n, n + 1] | sum }}",
    "{{ {'a': n, 'b': [name]} }}",
    "{{ name | upper | lower | trim }}",
    "{{ name | replace('A', 'E') | length }}",
    "{{ '%.2f' | format(order.total) }}",
    "{{ '%s: %d %%' | format(name, n) }}",
    "{{ order.number | int + 1 }}",
    "{{ order | json }}",
    "{{ order | keys }}",
    "{{ order | items | length }}",
    "{{ n is odd and n is number and name is string }}",
    "{{ name is match('^A') and name is not match('^B') }}",
    "{{ order.lines | map(attribute='n') | map('string') | join('+') }}",
    "{{ n | string ~ 'x' }}",
    "{{ orders | selectattr('by.name', 'equalto', 'Bo') | map(attribute='number') | first }}",
    "{{ true and yes }}",
    "{{ yes }}",
    "yes: {{ yes }}",
    "list: {{ words }}",
]
KNOWN = {"yes: {{ yes }}", "list: {{ words }}", "{{ [true, 1.5, 'x'] | join(', ') }}", "{{ true | string }}"}
"""Truth values and lists as text, which Python writes otherwise: docs/export.md says so."""


@pytest.mark.parametrize("expression", [expression for expression, _value in EXAMPLES])
def test_each_filter_has_the_same_value_in_python_or_is_left_out(expression: str) -> None:
    """A documented use of a filter or test gives the same value, of the same type; or fails; or raises NotCarried."""
    text = f"{{{{ {expression} }}}}"
    try:
        found = exported.value_of(text)
    except (NotCarried, ValueError):
        return
    wanted = expressions.render(text)
    assert text in KNOWN or (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_has_the_same_value_in_python(text: str) -> None:
    """Names, operators, conditions, filters and texts give the same value, of the same type."""
    wanted, found = expressions.render(text, **VALUES), exported.value_of(text, **VALUES)
    assert text in KNOWN or (found, type(found)) == (wanted, type(wanted))
