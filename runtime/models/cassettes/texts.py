"""Texts as a cassette shows them: JSON as JSON, lines as lines, so that people can review them; nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator

from nodes.values import Json

STYLES: dict[str, dict[str, Any]] = {
    "json": {},
    "json_indented": {"indent": 2},
    "json_tight": {"separators": (",", ":")},
}
"""The ways of writing JSON that can be told from each other, each by the key under which its value is shown."""


def shown(text: str) -> Json:
    """The text as a cassette shows it: ``{"json": …}`` (or another of STYLES) for a list or map, a list of lines for several lines, else the text."""
    value = _value(text)
    for style in STYLES if value is not None else ():
        if _written(value, style) == text:
            return {style: value}
    return text.split("\n") if "\n" in text else text


def hidden(form: Json) -> str:
    """The text that is shown so."""
    if isinstance(form, dict):
        [(style, value)] = form.items()
        return _written(value, style)
    return "\n".join(form) if isinstance(form, list) else form


def all_of(value: Any) -> Iterator[str]:
    """Every text in a piece of a cassette, also those that are shown as something else, and those within a text that is JSON itself."""
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
    """The list or map that the text is as JSON; None where it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Json, style: str) -> str:
    return json.dumps(value, ensure_ascii=False, **STYLES[style])


def _checked(form: Any) -> Json:
    lines = isinstance(form, list) and len(form) > 1 and all(isinstance(each, str) for each in form)
    value = isinstance(form, dict) and len(form) == 1 and next(iter(form)) in STYLES
    if not (isinstance(form, str) or lines or value):
        raise ValueError(f"a text is a text, a list of lines, or one of {', '.join(STYLES)} with a value")
    return form


Shown = Annotated[Any, AfterValidator(_checked)]
"""A text as a cassette shows it."""
