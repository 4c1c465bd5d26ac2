"""Filters and tests of expressions by name: Jinja's pure ones and our own.

Every result is plain data of bounded size: no iterators, no marked-up strings.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

import jinja2
from jinja2 import filters as jinja_filters
from jinja2 import tests as jinja_tests

from nodes.values import Json, NotJson
from runtime.language.expressions import filters, limits
from runtime.language.expressions.filters import OWN, Filter
from runtime.language.expressions.limits import Unusable

ON_TEXT = ("capitalize", "lower", "striptags", "title", "trim", "truncate", "upper", "wordcount")
"""Jinja's filters that convert any value to text: here only text and numbers, so that null never becomes "None"."""

KEPT = (
    *ON_TEXT,
    *("abs", "count", "d", "default", "dictsort", "filesizeformat", "first", "last", "length", "list", "map", "max"),
    *("min", "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "unique", "urlencode"),
)
"""Jinja's pure filters, unchanged except for limits."""

PASSING = frozenset({"count", "d", "default", "first", "last", "length", "max", "min"})
"""Filters that create no new data, so their results need no size check."""

INSTEAD = {  # fixes for filters of Jinja that are missing here
    "attr": "write `x.key` or `x['key']`",
    "forceescape": "use `escape`",
    "pprint": "use `json`",
    "random": "a resumed run could not repeat it",
    "safe": "nothing is escaped here: leave it out",
    "tojson": "use `json`",
    "urlize": "it makes HTML, which nothing here reads",
    "xmlattr": "it makes HTML, which nothing here reads",
}

WITH_PATTERN = frozenset({"match", "regex", "regex_all", "regex_replace"})
"""Filters and tests whose first argument is a pattern."""

CONCATENATE = "~"  # filter that implements the operator `~`; no file can write this name


def _bounded(name: str, function: Filter) -> Filter:
    """Wrap a filter: convert its errors to Unusable, and its result to plain data of bounded size."""
    position = 1 if hasattr(function, "jinja_pass_arg") else 0
    on_text = name in ON_TEXT
    passing = name in PASSING

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            if on_text:
                limits.check_text(len(filters.text_of(args[position], name)))
            result = function(*args, **named)
            return result if passing and not isinstance(result, Iterable) else limits.settle(result, weigh=not passing)
        except (Unusable, jinja2.UndefinedError):
            raise
        except NotJson as error:
            raise Unusable(f"`{name}`: {error}") from None
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, jinja2.TemplateError) as error:
            given = args[position] if len(args) > position else None
            raise Unusable(f"`{name}` does not work on {limits.shown(given)}: {error}") from None

    return call


FILTERS: dict[str, Filter] = {
    name: _bounded(name, function)
    for name, function in sorted({**{name: jinja_filters.FILTERS[name] for name in KEPT}, **OWN}.items())
}


def _is_list(value: Json) -> bool:
    return isinstance(value, list | tuple)


OWN_TESTS = {
    "null": jinja_tests.test_none,
    "text": jinja_tests.test_string,
    "list": _is_list,
    "map": jinja_tests.test_mapping,
    "match": filters.is_match,
}
NO_TESTS = {"callable", "escaped", "filter", "test", "iterable"}
TESTS: dict[str, Callable[..., bool]] = {
    **{name: test for name, test in jinja_tests.TESTS.items() if name not in NO_TESTS},
    **OWN_TESTS,
}


def signature(name: str) -> inspect.Signature:
    whole = inspect.signature(OWN.get(name) or jinja_filters.FILTERS[name])
    hidden = 2 if hasattr(FILTERS[name], "jinja_pass_arg") else 1
    return whole.replace(parameters=list(whole.parameters.values())[hidden:], return_annotation=inspect.Signature.empty)


def usage(name: str) -> str:
    """Return a filter as written, with its parameters: ``date(format=null, parse=null)``."""
    takes = [
        f"{each}" if each.default is inspect.Parameter.empty else f"{each.name}={json.dumps(each.default)}"
        for each in (part.replace(annotation=inspect.Parameter.empty) for part in signature(name).parameters.values())
    ]
    return f"{name}({', '.join(takes)})" if takes else name
