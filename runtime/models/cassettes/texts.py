"""Lossless display forms of texts in a cassette, for review: JSON as JSON, several lines as a list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator

from nodes.values import Json

STYLES: dict[str, dict[str, Any]] = {
    "json": {},
    "json_indented": {"indent": 2},
    "json_tight": {"separators": (",", ":")},
}
"""JSON styles that are kept, by the key of their values in a cassette."""


def shown(text: str) -> Json:
    """Return a cassette's form of a text: ``{"json": …}`` (or another of STYLES) for a list or map, a list of lines, else the text."""
    value = _value(text)
    for style in STYLES if value is not None else ():
        if _written(value, style) == text:
            return {style: value}
    return text.split("\n") if "\n" in text else text


def hidden(form: Any) -> str:
    """Return the text of a cassette's form. Raises ValueError where it is no such form."""
    match form:
        case str():
            return form
        case list() if len(form) > 1 and all(isinstance(each, str) for each in form):
            return "\n".join(form)
        case dict() if len(form) == 1 and next(iter(form)) in STYLES:
            [(style, value)] = form.items()
            return _written(value, style)
        case _:
            raise ValueError(f"a text is a text, a list of lines, or one of {', '.join(STYLES)} with a value")


def all_of(value: Any) -> Iterator[str]:
    """Yield every text in a part of a cassette, with the originals of display forms and the texts within JSON texts."""
    if isinstance(value, str):
        yield value
        yield from all_of(_value(value))
    elif isinstance(value, list):
        if value and all(isinstance(each, str) for each in value):
            yield "\n".join(value)
        for each in value:
            yield from all_of(each)
    elif isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in STYLES:
            yield hidden(value)
        for name, each in value.items():
            yield name
            yield from all_of(each)


def _value(text: str) -> Json:
    """Parse a list or map from JSON; None where the text is neither."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Json, style: str) -> str:
    return json.dumps(value, ensure_ascii=False, **STYLES[style])


Shown = Annotated[str, BeforeValidator(hidden)]
