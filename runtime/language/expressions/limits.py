"""Size limits for results of expressions: a short expression can otherwise use all memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nodes.template import kind_of
from nodes.values import DEEPEST, Json, NotJson, normalise

LARGEST_TEXT = 1 << 20  # characters
LARGEST_LIST = 100_000  # items of a list or map
LARGEST_NUMBER = 1024  # bits of a whole number
HEAVIEST = 8 << 20  # characters and items of a value in total


class Unusable(ValueError):
    """An expression cannot use a value; the message is for the author."""


def check_text(length: int) -> int:
    if length > LARGEST_TEXT:
        raise Unusable(f"the result would have more than {LARGEST_TEXT} characters")
    return length


def check_items(count: int) -> int:
    if count > LARGEST_LIST:
        raise Unusable(f"the result would have more than {LARGEST_LIST} items")
    return count


def check_weight(value: object, left: int = HEAVIEST, depth: int = 0) -> int:
    """Return ``left`` minus a value's weight; a shared part counts each time. Raises Unusable below 0 and for deep nesting."""
    left -= len(value) + 1 if isinstance(value, str) else 1
    items: Iterable[object] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, Mapping):
        left -= sum(len(key) if isinstance(key, str) else 1 for key in value)
        items = value.values()
    for item in items:
        if depth > DEEPEST:
            raise Unusable(f"the result nests deeper than {DEEPEST} levels")
        left = check_weight(item, left, depth + 1)
    if left < 0:
        raise Unusable(f"the result would have more than {HEAVIEST} characters and items")
    return left


def gathered(items: Iterable[Any]) -> list[Any]:
    """Return the items as a list; raises Unusable before it becomes too long or too heavy."""
    found: list[Any] = []
    left = HEAVIEST
    for item in items:
        left = check_weight(item, left, 1)
        check_items(len(found) + 1)
        found.append(item)
    return found


def settle(result: object, *, weigh: bool) -> Json:
    """Convert a filter's result to plain data: iterators to lists, marked-up strings to text. Raises Unusable if it is too large."""
    if isinstance(result, str):
        check_text(len(result))
        return str.__str__(result)
    if isinstance(result, int):
        return check_number(result)
    if isinstance(result, list | tuple | Mapping):
        if weigh:
            check_items(len(result))
            check_weight(result)
        return result
    if isinstance(result, Iterable) and not hasattr(result, "_fail_with_undefined_error"):
        return gathered(result)
    return result


def check_number(value: int) -> int:
    if value.bit_length() > LARGEST_NUMBER:
        raise Unusable("the result is too large a number")
    return value


NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"}

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {sign: getattr(operator, name) for sign, name in NAMES.items()}


def operate(sign: str, left: Any, right: Any) -> Any:
    """Return ``left sign right``. Numbers take every operator, texts and lists ``+``, and ``*`` with a whole number."""
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _calculate(sign, left, right)
    if sign == "+" and isinstance(left, str) and isinstance(right, str):
        check_text(len(left) + len(right))
    elif sign == "+" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
        check_items(len(left) + len(right))
        return [*left, *right]
    elif sign == "*" and isinstance(right, int) and isinstance(left, str | list):
        (check_text if isinstance(left, str) else check_items)(len(left) * max(right, 0))
    elif sign == "*" and isinstance(left, int) and isinstance(right, str | list):
        return operate("*", right, left)
    else:
        joins = sign == "+" and isinstance(left, str) != isinstance(right, str)
        hint = " (`~` joins anything to a text)" if joins else ""
        raise Unusable(f"`{sign}` does not work on {shown(left)} and {shown(right)}{hint}")
    return OPERATORS[sign](left, right)


def _calculate(sign: str, left: float, right: float) -> Any:
    try:
        if sign == "**" and isinstance(left, int) and (left.bit_length() - 1) * right > LARGEST_NUMBER:
            raise OverflowError
        result = OPERATORS[sign](left, right)
    except ZeroDivisionError:
        raise Unusable("division by zero") from None
    except OverflowError:
        raise Unusable("the result is too large a number") from None
    if isinstance(result, complex):
        raise Unusable("the result is not a real number")
    return check_number(result) if isinstance(result, int) else result


def shown(value: object) -> str:
    """Show a value in a message: numbers and short texts in full, else the kind. Nothing is cut: half a secret cannot be masked."""
    if isinstance(value, bool | int | float):
        return str(value) if len(str(value)) <= 40 else "a number"
    if isinstance(value, str) and len(value) <= 60:
        return f'the text "{value}"'
    try:
        return kind_of(normalise(value))
    except NotJson:
        return "a value that is not JSON"
