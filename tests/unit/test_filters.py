"""Filters: their results, and their errors."""

import contextlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import AuthorError
from runtime.language import reference
from runtime.language.expressions import builtins, filters, references
from tests.expressions import Clock, value_of

LANGUAGE = Path(__file__).parents[2] / "docs" / "references.md"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (r"'Order 12-34' | regex('\\d+')", "12"),
        (r"'Order 12-34' | regex('(\\d+)-(\\d+)', 2)", "34"),
        (r"'Order 12-34' | regex('(?P<a>\\d+)-', 'a')", "12"),
        (r"'Order' | regex('\\d+')", None),
        (r"'a1b22' | regex_all('\\d+')", ["1", "22"]),
        (r"'a1b22' | regex_all('[a-z](\\d+)')", ["1", "22"]),
        (r"'a1b22' | regex_all('([a-z])(\\d+)')", [["a", "1"], ["b", "22"]]),
        (r"'a1b22' | regex_replace('([a-z])(\\d+)', '\\2\\1')", "1a22b"),
        (r"'aaa' | regex_replace('a', 'b', 2)", "bba"),
        (r"'ab' | regex_replace('', '-')", "-a-b-"),
        (r"'Order 12-34' | match('(\\d+)-(\\d+)')", ["12", "34"]),
        (r"'Order 12' | match('(?P<what>\\w+) (?P<number>\\d+)')", {"what": "Order", "number": "12"}),
        (r"'Order' | match('\\d+')", None),
        (r"'Order 12' is match('\\d')", True),
        (r"['a1', 'b'] | select('match', '\\d')", ["a1"]),
        ("'a, b, c' | split(', ')", ["a", "b", "c"]),
        ("' two  words ' | split", ["two", "words"]),
        ("'a=b=c' | split('=', 1)", ["a", "b=c"]),
        ("['a', 'b'] | index('b')", 1),
        ("['a', 'b'] | index('c')", None),
        ("'a, b' | index('b')", 3),
        ("'/orders/7' | absolute('http://a.test/orders?page=2')", "http://a.test/orders/7"),
        ("'?page=3' | absolute('http://a.test/orders?page=2')", "http://a.test/orders?page=3"),
        ("'https://b.test/' | absolute('http://a.test')", "https://b.test/"),
        ("3 | range", [0, 1, 2]),
        ("7 | range(1, 2)", [1, 3, 5]),
        ("0 | range(2, -1)", [2, 1]),
        ("'1,234.50 €' | number", 1234.5),
        ("'1.234,50 €' | number(',')", 1234.5),
        ("12 | number", 12),
        ("'12' | int", 12),
        ("'12.7' | int", 12),
        ("'x' | int(0)", 0),
        ("'1.5' | float", 1.5),
        ("2.567 | round(1)", 2.6),
        ("'2026-01-31' | date('%d.%m.%Y')", "31.01.2026"),
        ("'31.12.2026' | date(parse='%d.%m.%Y')", "2026-12-31"),
        ("'31.12.2026 14:30' | date(parse='%d.%m.%Y %H:%M')", "2026-12-31T14:30:00"),
        ("'31.12.2026' | date('%Y/%m', '%d.%m.%Y')", "2026/12"),
        ("now() | date('%H:%M')", "03:00"),
        ("{'b': [1, 'ü']} | json", '{"b": [1, "ü"]}'),
        ("'[1, {\"a\": null}]' | from_json", [1, {"a": None}]),
        ("{'b': 1, 'a': 2} | keys", ["b", "a"]),
        ("{'b': 1, 'a': 2} | values", [1, 2]),
        ("{'b': 1, 'a': 2} | items", [["b", 1], ["a", 2]]),
        ("[1, 2] | zip(['a', 'b'], [true, false])", [[1, "a", True], [2, "b", False]]),
        ("[1, 2, 3] | chunk(2)", [[1, 2], [3]]),
        ("[[1, [2]], [], [3]] | flatten", [1, [2], 3]),
        ("[{'a': 1, 'b': 'x, y'}, {'c': null}] | csv", 'a,b,c\r\n1,"x, y",\r\n,,\r\n'),
        ("[{'a': 1.5, 'b': 'x'}] | csv(';')", "a;b\r\n1.5;x\r\n"),
        ("'a;b\r\n1;\"x;y\"\r\n' | from_csv(';')", [{"a": "1", "b": "x;y"}]),
        ("'' | from_csv", []),
        ("[1, 2, 3] | batch(2, 0)", [[1, 2], [3, 0]]),
        ("[1, 2, 3] | slice(2)", [[1, 2], [3]]),
        ("'Größe (cm)' | slug", "grosse-cm"),
        ("'abc' | sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("[true, 1.5, 'x'] | join(', ')", "true, 1.5, x"),
        ("[{'a': 1}, {'a': 2}] | join('+', 'a')", "1+2"),
        ("[{'a': 1}, {'a': 2}] | sum('a')", 3),
        ("[[1], [2]] | sum(start=[])", [1, 2]),
        ("[{'a': 1}, {'a': 2}] | map(attribute='a')", [1, 2]),
        ("['a', 'b'] | map('upper')", ["A", "B"]),
        ("[1, 2, 3] | select('odd')", [1, 3]),
        ("[{'a': 1}, {'a': 2}] | selectattr('a', '>', 1)", [{"a": 2}]),
        (
            "[{'a': 1}, {'a': 2}] | groupby('a')",
            [{"grouper": 1, "list": [{"a": 1}]}, {"grouper": 2, "list": [{"a": 2}]}],
        ),
        ("[3, 1, 2] | sort", [1, 2, 3]),
        ("[1, 1, 2] | unique", [1, 2]),
        ("'abc' | reverse", "cba"),
        ("[1, 2] | reverse", [2, 1]),
        ("true | string", "true"),
        ("'<a>' | escape", "&lt;a&gt;"),
        ("('<' | escape) ~ '<'", "&lt;<"),
        ("'a b' | urlencode", "a%20b"),
        ("'%05.2f|%s' | format(1.5, 'x')", "01.50|x"),
        ("'a' | center(3)", " a "),
        ("'a\nb' | indent(2)", "a\n  b"),
        ("'aXbX' | replace('X', '-', 1)", "a-bX"),
        ("'one two' | wordwrap(3)", "one\ntwo"),
        ("[] | first | default('none')", "none"),
        ("1 is text", False),
        ("{} is map", True),
        ("[] is list", True),
        ("null is null", True),
    ],
)
def test_examples(expression: str, value: Any) -> None:
    """Each filter and test returns the documented value, as plain data of the right type."""
    given = value_of(expression)
    assert given == value
    assert type(given) is type(value)


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("null | upper", "works on text, not on null"),
        ("[1] | trim", "works on text"),
        ("'x' | int", "is not a whole number"),
        ("'nan' | float", "nan"),
        ("'12 of 34' | number", "more than one number"),
        ("'x' | date", "ISO 8601"),
        ("'x' | date('%Q')", "not a pattern for dates"),
        ("'x' | from_json", "from_json"),
        ("'NaN' | from_json", "NaN is not JSON"),
        ("'x' | keys", "works on a map"),
        ("[1] | zip([1, 2])", "one length"),
        ("[1] | chunk(0)", "at least 1"),
        ("[1] | flatten", "works on a list"),
        ("[1] | csv", "list of maps"),
        ("[] | csv('x')", "separator"),
        ("'a,b\n1' | from_csv", "line 2 has 1 cells"),
        ("'a,a\n1,2' | from_csv", "`a` twice"),
        ("'a\n\"x' | from_csv", "line 2 is no CSV"),
        ("'x' | regex('(')", "not a pattern"),
        ("'x' | regex('x', 3)", "no such group"),
        ("[1, 'a'] | sort", "sort"),
        ("[1, null] | join", "null"),
        ("'a' | round", "round"),
        ("5 | length", "length"),
        ("'x' | format(1)", "format"),
        ("['a'] | sum", "`+` does not work"),
    ],
)
def test_a_value_of_the_wrong_type_is_an_expression_error(expression: str, part: str) -> None:
    """The error describes the problem in our words, not Python's."""
    with pytest.raises(AuthorError) as caught:
        value_of(expression)
    assert caught.value.code == "expression-failed"
    assert part in caught.value.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(builtins.FILTERS)), json_values, st.lists(json_values, max_size=2))
def test_each_filter_returns_json_or_an_author_error(name: str, value: Any, arguments: list[Any]) -> None:
    """For any arguments a filter returns plain data or an error for the author, never a Python exception."""
    known = {f"a{index}": each for index, each in enumerate(arguments)}
    text = f"{{{{ x | {name}({', '.join(known)}) }}}}"
    try:
        compiled = references.compile(text)
    except references.ReferenceInvalid:
        return
    with contextlib.suppress(AuthorError):
        given = compiled.render({"x": value, **known}, Clock())
        assert json.loads(json.dumps(given, allow_nan=False)) == given


@pytest.mark.parametrize("use", ["| regex", "| regex_all", "| regex_replace", "| match", "is match"])
def test_an_escape_that_was_read_too_early_is_refused(use: str) -> None:
    """A control character in a pattern was meant as an escape of it: the error says how to write that, so that it is the escape."""
    with pytest.raises(references.ReferenceInvalid) as caught:
        references.compile(f"{{{{ 'a b' {use}('\\bb', '') }}}}".replace("is match('\\bb', '')", "is match('\\bb')"))
    assert "`\\b` was meant" in str(caught.value)
    assert "`\\\\b` if the text of the file is in single quotes" in str(caught.value.fix)


@pytest.mark.parametrize("name", sorted(filters.OWN))
def test_every_filter_of_ours_is_documented(name: str) -> None:
    """The docstring of a filter is its documentation, and begins with a sentence."""
    assert re.match(r"[A-Z].*[.;:]", inspect.cleandoc(filters.OWN[name].__doc__ or ""), re.DOTALL)


def test_the_manual_lists_the_filters_as_they_are() -> None:
    """The table in the manual equals the generated one (`python -m runtime.language.reference FILE`)."""
    page = LANGUAGE.read_text(encoding="utf-8")
    assert reference.with_filters(page) == page


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "mark", "value"),
        [
            ("1,234.50 €", ".", 1234.5),
            ("1.234,50 €", ",", 1234.5),
            ("1 234 567", ".", 1234567),
            ("1'234.5", ".", 1234.5),
            ("− 5 €", ".", -5),
            ("$.50", ".", 0.5),
            ("No.5", ".", 5),
            ("5 pieces.", ".", 5),
            ("007", ".", 7),
            ("0.10", ".", 0.1),
        ],
    )
    def test_the_number_in_a_text(self, text: str, mark: str, value: Any) -> None:
        """Digit groups, signs, currencies and spaces do not matter."""
        assert value_of("x | number(m)", x=text, m=mark) == value

    @pytest.mark.parametrize("text", ["12 34", "1,23", "1.2.3", "1,234,56", "5-3", "", "no", "1e5", ",5"])
    def test_an_ambiguous_number_is_refused(self, text: str) -> None:
        """An ambiguous number is an error rather than a wrong value."""
        with pytest.raises(AuthorError, match="number"):
            value_of("x | number", x=text)

    @given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9))
    def test_a_written_amount_is_read_back(self, amount: Any) -> None:
        """An amount with digit groups, in English or German form, is read as that amount."""
        english = f"{amount:,}"
        assert value_of("x | number", x=english) == float(amount)
        german = english.translate(str.maketrans(",.", ".,"))
        assert value_of("x | number(',')", x=german) == float(amount)
