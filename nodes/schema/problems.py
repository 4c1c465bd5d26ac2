"""Checks the JSON Schemas that authors write, and reports each mistake at its place.

The dialect is draft 2020-12. Every statement of a schema must be enforced: an unknown keyword, which JSON Schema would ignore, is a mistake
here, and so is a reference that leads out of the file.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from nodes.errors import near
from nodes.schema import regex
from nodes.values import Json

if TYPE_CHECKING:
    import jsonschema

Path = tuple[str | int, ...]

LARGEST = 100_000
"""Limit of a schema as JSON, in characters."""

MAPS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Keywords that hold a map of schemas."""

LISTS = frozenset({"anyOf", "allOf", "prefixItems"})
"""Keywords that hold a list of schemas."""

ONES = frozenset(
    {
        *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords that hold one schema."""

NARROWING = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    }
)
"""Keywords that only narrow a type."""

NOTES = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"})
"""Keywords that check nothing."""

PLAIN = frozenset(
    {"type", "enum", "const", "required", "minContains", "maxContains", "dependentRequired", "$ref", "$schema"}
)

KNOWN = MAPS | LISTS | ONES | NARROWING | NOTES | PLAIN

INSTEAD = {
    "oneOf": "write `anyOf`: models are not held to `oneOf`",
    "definitions": "write `$defs`",
    "dependencies": "write `dependentRequired` or `dependentSchemas`",
    "nullable": 'write `type: [string, "null"]`',
    "additionalItems": "write `items` beside `prefixItems`",
    "$id": "references go by `#/$defs/NAME` only",
    "$anchor": "references go by `#/$defs/NAME` only",
    "$dynamicRef": "write `$ref`",
    "$dynamicAnchor": "references go by `#/$defs/NAME` only",
}
"""Replacements for keywords of other dialects, and for keywords that cannot be enforced."""

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

REF = re.compile(r"#/\$defs/([A-Za-z0-9_.-]+)")


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file: its place, the message, and the fix."""

    path: Path
    text: str
    choices: tuple[str, ...] = ()
    """The words allowed there."""


def problems(schema: dict[str, Json]) -> list[Problem]:
    if len(json.dumps(schema)) > LARGEST:
        return [Problem((), f"the schema has more than {LARGEST:,} characters: ask for less at once")]
    defs = schema.get("$defs")
    return list(_problems(schema, (), defs)) or list(_other(schema)) or list(_circles(schema)) or list(_rests(schema))


def _problems(schema: Json, path: Path, defs: Json) -> Iterator[Problem]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield Problem(path, "a schema is a map")
        return
    words: dict[str, Json] = schema
    for key, value in words.items():
        place = (*path, key)
        if key not in KNOWN and not key.startswith("x-"):
            yield _unknown(key, place)
        elif key == "type":
            yield from _types(value, place)
        elif key == "$ref":
            yield from _reference(value, place, defs)
        elif key == "$defs" and path:
            yield Problem(place, "`$defs` stands at the top of the schema only: move it there")
        elif key == "format" and value not in checker().checkers:
            known = ", ".join(sorted(checker().checkers))
            yield Problem(place, f"the format `{value}` is not checked: take one of {known}, or a `pattern`")
        else:
            yield from _patterns(key, value, place)
            for inner, each in _inside(key, value):
                yield from _problems(each, (*place, *inner), defs)


def _inside(key: str, value: Json) -> Iterator[tuple[Path, Json]]:
    if key in ONES:
        yield (), value
    elif key in MAPS and isinstance(value, dict):
        yield from (((name,), each) for name, each in value.items())
    elif key in LISTS and isinstance(value, list):
        yield from (((index,), each) for index, each in enumerate(value))


def _unknown(key: str, place: Path) -> Problem:
    if key in INSTEAD:
        return Problem(place, f"`{key}` cannot be used: {INSTEAD[key]}")
    close = near(key, sorted(KNOWN))
    fix = f"did you mean `{close}`?" if close else "take it out, or begin its name with `x-`"
    return Problem(place, f"`{key}` is no keyword of JSON Schema: {fix}")


def _patterns(key: str, value: Json, place: Path) -> Iterator[Problem]:
    found: list[tuple[Json, Path]] = [(value, place)] if key == "pattern" else []
    if key == "patternProperties" and isinstance(value, dict):
        found = [(name, (*place, name)) for name in cast("dict[str, Json]", value)]
    for pattern, where in found:
        try:
            if isinstance(pattern, str):
                regex.compiled(pattern)
        except regex.PatternRefused as error:
            yield Problem(where, str(error))


def _types(value: Json, place: Path) -> Iterator[Problem]:
    listed = value if isinstance(value, list) else [value]
    for index, each in enumerate(listed):
        if each not in TYPES:
            where = (*place, index) if isinstance(value, list) else place
            close = near(each, TYPES) if isinstance(each, str) else None
            written = "null" if each is None else each
            fix = 'write "null" in quotes' if each is None else f"did you mean `{close}`?" if close else "take another"
            yield Problem(where, f"`{written}` is no type: {fix}", TYPES)


def _reference(value: Json, place: Path, defs: Json) -> Iterator[Problem]:
    found = REF.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        yield Problem(
            place, f"the reference `{value}` leads elsewhere: put the schema under `$defs`, as `#/$defs/NAME`"
        )
    elif not isinstance(defs, dict) or found[1] not in defs:
        yield Problem(place, f"nothing stands under `$defs` by the name `{found[1]}`")


def _other(schema: dict[str, Json]) -> Iterator[Problem]:
    from jsonschema import Draft202012Validator, exceptions

    # Its own format checker tries the patterns too. Its stubs declare only half.
    judge: Any = Draft202012Validator
    whole = judge(judge.META_SCHEMA, format_checker=judge.FORMAT_CHECKER)
    error: Any = cast("Any", exceptions).best_match(whole.iter_errors(schema))
    if error is not None:
        yield Problem(tuple(error.absolute_path), f"it is no JSON Schema: {error.message}")


def _circles(schema: dict[str, Json]) -> Iterator[Problem]:
    """Yield circular references with nothing between, against which no value could ever be checked."""
    defs: dict[str, Json] = schema.get("$defs", {})
    same = {name: set(_stands_for(each)) for name, each in defs.items()}
    for name in defs:
        reached, pending = set[str](), list(same[name])
        while pending:
            each = pending.pop()
            if each not in reached:
                reached.add(each)
                pending += same[each]
        if name in reached:
            yield Problem(("$defs", name), f"`{name}` stands for itself: say what it is")


def _rests(schema: dict[str, Json]) -> Iterator[Problem]:
    words = dict(_words(schema, ()))
    place = next((place for place, word in words.items() if word == "unevaluatedProperties"), None)
    if place is not None and "patternProperties" in words.values():
        yield Problem(
            place, "`unevaluatedProperties` cannot be used with `patternProperties`: write `additionalProperties`"
        )


def _words(schema: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(schema, dict):
        for key, value in cast("dict[str, Json]", schema).items():
            yield (*path, key), key
            for inner, each in _inside(key, value):
                yield from _words(each, (*path, key, *inner))


def _stands_for(schema: Json) -> Iterator[str]:
    """Yield the names that apply to the same value as the schema itself, not only to a part of it."""
    if not isinstance(schema, dict):
        return
    words: dict[str, Json] = schema
    if "$ref" in words:
        yield named(words["$ref"])
    dependent: dict[str, Json] = words.get("dependentSchemas", {})
    whole: list[Json] = [*words.get("anyOf", ()), *words.get("allOf", ()), *dependent.values()]
    for each in (*whole, *(words.get(key) for key in ("not", "if", "then", "else"))):
        yield from _stands_for(each)


def named(reference: str) -> str:
    """Return the name under ``$defs`` to which a reference leads."""
    return reference.removeprefix("#/$defs/")


@functools.cache
def checker() -> jsonschema.FormatChecker:
    import jsonschema

    found = jsonschema.FormatChecker(formats=())
    found.checkers = {}
    for name, check in FORMATS.items():
        found.checks(name, raises=ValueError)(functools.partial(_checks, check))
    return found


def _checks(check: Callable[[str], bool], value: object) -> bool:
    return not isinstance(value, str) or check(value)


def _moment(text: str) -> bool:
    found = dt.datetime.fromisoformat(text)
    return found.tzinfo is not None and "T" in text.upper()


def _email(text: str) -> bool:
    return re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None


def _address(text: str) -> bool:
    parts = urllib.parse.urlsplit(text)
    return bool(parts.scheme) and bool(parts.netloc or parts.path) and not re.search(r"\s", text)


def _uuid(text: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None


def _date(text: str) -> bool:
    dt.date.fromisoformat(text)
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None


def _time(text: str) -> bool:
    dt.time.fromisoformat(text)
    return re.match(r"\d\d:\d\d:\d\d", text) is not None


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "date-time": _moment,
    "email": _email,
    "time": _time,
    "uri": _address,
    "uuid": _uuid,
}
"""The check of each format; it rejects a text by False or by a ValueError."""
