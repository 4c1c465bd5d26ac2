"""The strict form of a JSON Schema: the part of the language that servers can enforce.

Every map is closed and all its fields are required; a missing value is null instead. Keywords that only narrow a type (a pattern, a minimum)
go into the description, because not every server accepts them. The answer is checked for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from nodes.schema.problems import NARROWING, NOTES, maps, named, reached, types
from nodes.values import Json

VALUE = "value"
"""The field for a value that is no map."""

DEEPEST = 10
"""Limit of the levels of maps."""

MOST_FIELDS = 5_000
MOST_CHOICES = 1_000
MOST_CHARACTERS = 120_000
"""Limit of the characters in names of fields and definitions and in choices, together."""

MANY_CHOICES = 250
MOST_CHARACTERS_OF_MANY = 15_000
"""Limit of the characters in the choices of one list of more than MANY_CHOICES."""

CONTAINERS = ("object", "array")

OF_TYPE = {"object": frozenset({"properties", "required", "additionalProperties"}), "array": frozenset({"items"})}
"""Keywords of each type, besides those that narrow it."""


class _NotStrict(Exception):
    """The strict form cannot express the schema."""


def rooted(schema: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of a map whose only field fits ``schema``."""
    inner = {key: each for key, each in schema.items() if key not in ("$defs", "$schema")}
    found: dict[str, Json] = {
        "type": "object",
        "properties": {VALUE: inner},
        "required": [VALUE],
        "additionalProperties": False,
    }
    return found | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def form(schema: dict[str, Json]) -> dict[str, Json] | None:
    """Return the strict form of a schema of a map, its fields in the same order. None if it has none, or it is larger than servers accept."""
    defs: dict[str, Json] = schema.get("$defs", {})
    try:
        found = _form({key: each for key, each in schema.items() if key != "$defs"})
        names = reached(_references(found), lambda name: _references(defs[name]))
        used = {name: _form(each) for name, each in defs.items() if name in names}
    except _NotStrict:
        return None
    if used:
        found["$defs"] = used
    return found if _fits(found) else None


def _form(schema: Json) -> dict[str, Json]:
    if isinstance(schema, bool):
        raise _NotStrict
    said = {key for key in schema if key not in NOTES and not key.startswith("x-")} - {"$schema"}
    if "$ref" in said or "anyOf" in said:
        return _alternatives(schema, said)
    if "enum" in said or "const" in said:
        return _choices(schema, said)
    types = _types(schema)
    if not types:
        raise _NotStrict
    allowed = NARROWING.union({"type"}, *(OF_TYPE.get(each, ()) for each in types))
    if not said <= allowed:
        raise _NotStrict
    if len(types) == 1 or not set(types) & set(CONTAINERS):
        return _described(schema, _one(schema, types))
    plain = [each for each in types if each not in CONTAINERS]
    branches = [[each] for each in types if each in CONTAINERS] + ([plain] if plain else [])
    return _described(schema, {"anyOf": [_one(schema, each) for each in branches]})


def _types(schema: dict[str, Json]) -> list[str]:
    return types(schema) or [each for each, words in OF_TYPE.items() if words & schema.keys()]


def _one(schema: dict[str, Json], types: list[str]) -> dict[str, Json]:
    if types == ["object"]:
        return _map(schema)
    if types == ["array"]:
        if "items" not in schema:
            raise _NotStrict
        return {"type": "array", "items": _form(schema["items"])}
    return {"type": types[0] if len(types) == 1 else types}


def _map(schema: dict[str, Json]) -> dict[str, Json]:
    properties, needed = schema.get("properties", {}), schema.get("required", [])
    closed = schema.get("additionalProperties")
    if closed not in (None, False) or (closed is None and not properties) or not properties.keys() >= set(needed):
        raise _NotStrict
    fields = {name: _form(each) for name, each in properties.items()}
    return {
        "type": "object",
        "properties": {name: each if name in needed else nullable(each) for name, each in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


def _alternatives(schema: dict[str, Json], said: set[str]) -> dict[str, Json]:
    if len(said) != 1:
        raise _NotStrict
    if "$ref" in said:
        # Servers accept nothing next to a reference, not even a description.
        reference: dict[str, Json] = {"$ref": schema["$ref"]}
        return _described(schema, {"anyOf": [reference]}) if "description" in schema else reference
    return _described(schema, {"anyOf": [_form(each) for each in schema["anyOf"]]})


def _choices(schema: dict[str, Json], said: set[str]) -> dict[str, Json]:
    if not said <= NARROWING | {"type", "enum", "const"} or said >= {"enum", "const"}:
        raise _NotStrict
    values: list[Json] = schema["enum"] if "enum" in said else [schema["const"]]
    if any(isinstance(each, dict | list) for each in values):
        raise _NotStrict
    kinds = types_of(values)
    return _described(schema, {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values})


def types_of(values: Iterable[Json]) -> list[str]:
    return list(dict.fromkeys(map(_type_of, values)))


def _type_of(value: Json) -> str:
    kinds = {type(None): "null", bool: "boolean", str: "string", int: "integer", float: "number", list: "array"}
    return kinds.get(type(value), "object")


def nullable(schema: dict[str, Json]) -> dict[str, Json]:
    if "anyOf" in schema:
        if any("null" in _types(each) for each in schema["anyOf"]):
            return schema
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    types = _types(schema)
    if "null" in types:
        return schema
    if "$ref" in schema or set(types) & set(CONTAINERS):
        outer = {key: each for key, each in schema.items() if key == "description"}
        inner = {key: each for key, each in schema.items() if key != "description"}
        return {**outer, "anyOf": [inner, {"type": "null"}]}
    found = {**schema, "type": [*types, "null"]}
    return found | {"enum": [*schema["enum"], None]} if "enum" in schema else found


def _described(schema: dict[str, Json], found: dict[str, Json]) -> dict[str, Json]:
    narrow = ", ".join(
        f"{key} {json.dumps(each, ensure_ascii=False)}" for key, each in schema.items() if key in NARROWING
    )
    texts = [schema.get("description"), f"Must fit: {narrow}" if narrow else None]
    if text := "\n".join(each for each in texts if each):
        return {**found, "description": text}
    return found


def _references(schema: Json) -> Iterator[str]:
    return (named(each["$ref"]) for _path, each in maps(schema) if "$ref" in each)


def _fits(schema: dict[str, Json]) -> bool:
    """Return whether the strict schema is within the limits of servers."""
    defs: dict[str, Json] = schema.get("$defs", {})
    every = [each for _path, each in maps(schema)]
    fields = [name for each in every for name in each.get("properties", ())]
    lists: list[list[Json]] = [each["enum"] for each in every if "enum" in each]
    characters = [sum(len(each) for each in values if isinstance(each, str)) for values in lists]
    return (
        _depth(schema, defs, ()) <= DEEPEST
        and len(fields) <= MOST_FIELDS
        and sum(map(len, lists)) <= MOST_CHOICES
        and sum(map(len, (*defs, *fields))) + sum(characters) <= MOST_CHARACTERS
        and not any(
            len(values) > MANY_CHOICES and size > MOST_CHARACTERS_OF_MANY
            for values, size in zip(lists, characters, strict=True)
        )
    )


def _depth(schema: dict[str, Json], defs: dict[str, Json], within: tuple[str, ...]) -> int:
    """Return the levels of maps, references followed. A recursive schema counts once: its depth is not limited."""
    if "$ref" in schema:
        name = named(schema["$ref"])
        return 0 if name in within else _depth(defs[name], defs, (*within, name))
    properties: dict[str, Json] = schema.get("properties", {})
    inner = (*properties.values(), *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ()))
    return ("properties" in schema) + max((_depth(each, defs, within) for each in inner), default=0)
