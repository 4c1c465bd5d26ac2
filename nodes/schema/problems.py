"""Checks the JSON Schemas that authors write, and reports each mistake at its place.

The dialect is draft 2020-12. Every statement of a schema must be enforced. So an unknown keyword, which JSON Schema would ignore, is a
mistake here, and so is a reference that leads out of the file.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    found = [problem for path, each in parts(schema) for problem in _problems(each, path, schema.get("$defs"))]
    return found or list(_other(schema)) or list(_circles(schema)) or list(_rests(schema))


def parts(schema: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield the schema and every schema in it, each with its place."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for key, value in cast("dict[str, Json]", schema).items():
        if key in ONES:
            yield from parts(value, (*path, key))
        elif (key in MAPS and isinstance(value, dict)) or (key in LISTS and isinstance(value, list)):
            inner: Any = value.items() if isinstance(value, dict) else enumerate(value)
            for step, each in inner:
                yield from parts(each, (*path, key, step))


def maps(schema: Json) -> list[tuple[Path, dict[str, Json]]]:
    """Return the schema and every schema in it, each with its place, except for true and false."""
    return [(path, each) for path, each in parts(schema) if isinstance(each, dict)]


def reached(names: Iterable[str], further: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the names, and those to which they lead, directly or not."""
    found, pending = set[str](), list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += further(name)
    return found


def types(schema: Mapping[str, Json]) -> list[str]:
    said: Json = schema.get("type", [])
    return [said] if isinstance(said, str) else said


def _problems(schema: Json, path: Path, defs: Json) -> Iterator[Problem]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield Problem(path, "a schema is a map")
        return
    for key, value in cast("dict[str, Json]", schema).items():
        place = (*path, key)
        if key not in KNOWN and not key.startswith("x-"):
            yield _unknown(key, place)
        elif key == "type":
            yield from _types(value, place)
        elif key == "$ref":
            yield from _reference(value, place, defs)
        elif key == "$defs" and path:
            yield Problem(place, "`$defs` belongs to the top of the schema only: move it there")
        elif key == "format" and value not in FORMATS:
            known = ", ".join(sorted(FORMATS))
            yield Problem(place, f"the format `{value}` is not checked: take one of {known}, or a `pattern`")
        elif key == "pattern":
            yield from _pattern(value, place)
        elif key == "patternProperties" and isinstance(value, dict):
            for pattern in cast("dict[str, Json]", value):
                yield from _pattern(pattern, (*place, pattern))


def _unknown(key: str, place: Path) -> Problem:
    if key in INSTEAD:
        return Problem(place, f"`{key}` cannot be used: {INSTEAD[key]}")
    close = near(key, sorted(KNOWN))
    fix = f"did you mean `{close}`?" if close else "take it out, or begin its name with `x-`"
    return Problem(place, f"`{key}` is no keyword of JSON Schema: {fix}")


def _pattern(pattern: Json, place: Path) -> Iterator[Problem]:
    try:
        if isinstance(pattern, str):
            regex.compiled(pattern)
    except regex.PatternRefused as error:
        yield Problem(place, str(error))


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
        yield Problem(place, f"`$defs` has no `{found[1]}`")


def _other(schema: dict[str, Json]) -> Iterator[Problem]:
    from jsonschema import Draft202012Validator, exceptions

    # With its own format checker the library also compiles the patterns. Its stubs declare only half.
    judge: Any = Draft202012Validator
    whole = judge(judge.META_SCHEMA, format_checker=judge.FORMAT_CHECKER)
    error: Any = cast("Any", exceptions).best_match(whole.iter_errors(schema))
    if error is not None:
        yield Problem(tuple(error.absolute_path), f"it is no JSON Schema: {error.message}")


def _circles(schema: dict[str, Json]) -> Iterator[Problem]:
    """Yield definitions that refer to themselves for the same value: no value could ever be checked against them."""
    defs: dict[str, Json] = schema.get("$defs", {})
    same = {name: set(_same_value(each)) for name, each in defs.items()}
    for name in defs:
        if name in reached(same[name], same.__getitem__):
            yield Problem(("$defs", name), f"`{name}` refers to itself: say what it is")


def _rests(schema: dict[str, Json]) -> Iterator[Problem]:
    every = maps(schema)
    place = next((path for path, each in every if "unevaluatedProperties" in each), None)
    if place is not None and any("patternProperties" in each for _path, each in every):
        yield Problem(
            (*place, "unevaluatedProperties"),
            "`unevaluatedProperties` cannot be used with `patternProperties`: write `additionalProperties`",
        )


def _same_value(schema: Json) -> Iterator[str]:
    """Yield the names of definitions that apply to the schema's own value, not to a part of it."""
    if not isinstance(schema, dict):
        return
    words: dict[str, Json] = schema
    if "$ref" in words:
        yield named(words["$ref"])
    dependent: dict[str, Json] = words.get("dependentSchemas", {})
    whole: list[Json] = [*words.get("anyOf", ()), *words.get("allOf", ()), *dependent.values()]
    for each in (*whole, *(words.get(key) for key in ("not", "if", "then", "else"))):
        yield from _same_value(each)


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


def _checks(check: Callable[[str], object], value: object) -> bool:
    return not isinstance(value, str) or bool(check(value))


def _is_address(text: str) -> bool:
    address = urllib.parse.urlsplit(text)
    return bool(address.scheme) and bool(address.netloc or address.path) and not re.search(r"\s", text)


FORMATS: dict[str, Callable[[str], object]] = {
    "date": lambda text: re.fullmatch(r"\d{4}-\d\d-\d\d", text) and dt.date.fromisoformat(text),
    "date-time": lambda text: "T" in text.upper() and dt.datetime.fromisoformat(text).tzinfo,
    "email": re.compile(r"[^@\s]+@[^@\s]+").fullmatch,
    "time": lambda text: re.match(r"\d\d:\d\d:\d\d", text) and str(dt.time.fromisoformat(text)),
    "uri": _is_address,
    "uuid": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch,
}
"""The check of each format; it rejects a text by a false value or a ValueError."""
