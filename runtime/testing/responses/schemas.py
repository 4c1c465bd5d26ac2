"""The API's rules for a strict JSON Schema. The API answers any other schema with a 400 that names the place."""

from __future__ import annotations

from typing import Any

from nodes.values import Json

MOST_PROPERTIES = 5000
DEEPEST = 10  # levels of objects and lists
MOST_CHOICES = 1000  # values in all `enum` of a schema

_WORDS = frozenset({
    "$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "definitions", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required",
    "title", "type",
})  # fmt: skip
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})


class SchemaError(ValueError):
    """A refused schema, with the API's message; one with a place begins with ``In context=``."""


def check(schema: Json) -> None:
    root: dict[str, Json] = schema if isinstance(schema, dict) else {}
    if root.get("type") != "object":
        raise SchemaError(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{root.get('type')}\"'.")
    if "anyOf" in root:
        raise SchemaError("schema must have type 'object' and not have 'anyOf' at the top level.")
    _Walk(root).visit(root, (), 1)


class _Walk:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.properties = 0
        self.choices = 0

    def visit(self, given: Json, place: tuple[str, ...], depth: int) -> None:
        if not isinstance(given, dict):
            raise SchemaError(f"In context={place}, {given!r} is not of type 'object', 'boolean'.")
        schema: dict[str, Any] = given
        self._words(schema, place)
        if "$ref" in schema:
            return self._reference(schema, place)
        if not schema.keys() & {"type", "anyOf"}:
            raise SchemaError(f"In context={place}, schema must have a 'type' key.")
        if depth > DEEPEST:
            raise SchemaError(f"In context={place}, schema exceeds {DEEPEST} levels of nesting.")
        kinds = schema.get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "object" in kinds:
            self._object(schema, place)
        if "array" in kinds and "items" not in schema:
            raise SchemaError(f"In context={place}, array schema missing items.")
        return self._below(schema, place, depth)

    def _words(self, schema: dict[str, Any], place: tuple[str, ...]) -> None:
        for word in sorted(schema.keys() - _WORDS):
            raise SchemaError(f"In context={place}, '{word}' is not permitted.")
        if (form := schema.get("format")) is not None and form not in _FORMATS:
            raise SchemaError(f"In context={place}, '{form}' is not a valid format.")
        self.choices += len(schema.get("enum", ()))
        if self.choices > MOST_CHOICES:
            raise SchemaError(f"In context={place}, schema exceeds {MOST_CHOICES} enum values.")

    def _reference(self, schema: dict[str, Any], place: tuple[str, ...]) -> None:
        if more := sorted(schema.keys() - {"$ref"}):
            raise SchemaError(f"In context={place}, $ref cannot have keywords {{{', '.join(map(repr, more))}}}.")
        target: Json = self.root
        for step in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
            if step:
                target = target[step] if isinstance(target, dict) and step in target else None
        if target is None or not str(schema["$ref"]).startswith("#"):
            raise SchemaError(f"In context={place}, reference to component '{schema['$ref']}' which was not found.")

    def _object(self, schema: dict[str, Any], place: tuple[str, ...]) -> None:
        if schema.get("additionalProperties") is not False:
            raise SchemaError(f"In context={place}, 'additionalProperties' is required to be supplied and to be false.")
        names = list(schema.get("properties", {}))
        required = schema.get("required", [])
        begin = f"In context={place}, 'required' is required to be supplied and to be an array including every key in properties."
        for name in names:
            if name not in required:
                raise SchemaError(f"{begin} Missing '{name}'.")
        for name in required:
            if name not in names:
                raise SchemaError(f"{begin} Extra required key '{name}' supplied.")
        self.properties += len(names)
        if self.properties > MOST_PROPERTIES:
            raise SchemaError(f"In context={place}, schema exceeds {MOST_PROPERTIES} object properties.")

    def _below(self, schema: dict[str, Any], place: tuple[str, ...], depth: int) -> None:
        for word in ("properties", "$defs", "definitions"):
            for name, child in schema.get(word, {}).items():
                self.visit(child, (*place, word, name), 1 if word != "properties" else depth + 1)
        if "items" in schema:
            self.visit(schema["items"], (*place, "items"), depth + 1)
        for number, child in enumerate(schema.get("anyOf", ())):
            self.visit(child, (*place, "anyOf", str(number)), depth)
