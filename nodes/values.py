"""Values are JSON. Each value of a step is normalised before it is read, so that a resumed run sees what the first one saw."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import enum
import json
import math
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

Json = Any
"""None, bool, int, float, str, and lists and string-keyed maps of these. (A recursive alias costs pydantic and pyright more than it helps.)"""

LARGEST_INTEGER = 2**63 - 1
"""Larger integers become text: some readers of JSON do not keep them."""

DEEPEST = 64
"""Limit of the nesting of a value."""


class NotJson(ValueError):
    """The value has no JSON form; the message names the part and its place."""


def normalise(value: object) -> Json:
    """Return the JSON form of ``value``.

    Lone surrogates in text, which no file can hold, become U+FFFD. Dates and times become ISO 8601 text. Exact decimals become numbers if a
    float represents them exactly as written, else text. Integers beyond 64 bits become text, bytes base64 text, enums their value, sets
    sorted lists, and any other iterable a list. Raises NotJson for NaN, infinities, map keys that are not text, and objects of other types.
    """
    return _normalise(value, 0)


def _normalise(value: object, depth: int) -> Json:
    # Comparing types with `is` is fast, but a type checker learns nothing from it.
    kind = type(value)
    if kind is str:
        return sound(value)  # type: ignore[arg-type]
    if kind is bool or value is None:
        return value
    if kind is int:
        return value if -LARGEST_INTEGER <= value <= LARGEST_INTEGER else str(value)  # type: ignore[operator]
    if depth > DEEPEST:
        raise NotJson(f"a value nests deeper than {DEEPEST} levels")
    if kind is float:
        return _finite(value)  # type: ignore[arg-type]
    if isinstance(value, Mapping):
        return {_key(key): _normalise(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normalise(item, depth + 1) for item in value]
    return _other(value, depth)


def _other(value: object, depth: int) -> Json:
    if isinstance(value, enum.Enum):
        return _normalise(value.value, depth)
    if isinstance(value, str):
        return sound(str.__str__(value))
    if isinstance(value, int):
        return _normalise(int(value), depth)
    if isinstance(value, float):
        return _finite(float(value))
    if isinstance(value, decimal.Decimal):
        return decimal_to_json(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, set | frozenset):
        return sorted((_normalise(item, depth + 1) for item in value), key=repr)
    if isinstance(value, Iterable):
        return [_normalise(item, depth + 1) for item in value]
    raise NotJson(f"a {type(value).__name__} is not a JSON value")


def decimal_to_json(value: decimal.Decimal) -> Json:
    """Return an integer or float that is exactly the decimal, else its text."""
    if not value.is_finite():
        raise NotJson(f"{value} is not a JSON number")
    if value == value.to_integral_value():
        return _normalise(int(value), 0)
    as_float = float(value)
    return as_float if decimal.Decimal(repr(as_float)) == value else str(value)


def sound(text: str) -> str:
    """Return ``text`` with each lone surrogate, which no file can hold, replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def sound_json(value: Json) -> Json:
    """Return a JSON value whose texts and keys are sound; the same object if they were."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, list):
        made = [sound_json(item) for item in value]
        return made if made != value else value
    if isinstance(value, dict):
        made_map = {sound(key): sound_json(item) for key, item in value.items()}
        return made_map if made_map != value else value
    return value


def _finite(value: float) -> float:
    if math.isfinite(value):
        return value
    raise NotJson(f"{value} is not a JSON number")


def _key(key: object) -> str:
    if isinstance(key, str):
        return sound(str.__str__(key))
    raise NotJson(f"a map key must be text, not {type(key).__name__}")


def as_text(value: Json) -> str:
    """Return a value as it is inserted in a text: text as it is, everything else as JSON.

    Raises NotJson for null: a text with a gap is never intended.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        raise NotJson("null has no text")
    return json.dumps(value, ensure_ascii=False)
