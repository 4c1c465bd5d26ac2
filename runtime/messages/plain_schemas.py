"""Schemas for servers that do not enforce them: as strict as the model must be, in fewer tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodes.values import Json

NULL = "null"


def plain(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a schema in the strict form as a plain one: what may be null may be left out instead."""
    return {name: _plain(name, each) for name, each in _optional(dict(schema)).items()}


def _plain(name: str, value: Any) -> Json:
    if name == "enum":
        return [each for each in value if each is not None]
    if name == "type" and isinstance(value, list):
        kinds: list[Json] = [each for each in value if each != NULL]
        return kinds[0] if len(kinds) == 1 else kinds
    if name == "properties":
        return {key: plain(each) for key, each in value.items()}
    return plain(value) if name == "items" and isinstance(value, dict) else value


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    schema.pop("additionalProperties", None)
    fields, required = schema.get("properties", {}), schema.pop("required", [])
    required = [name for name in required if not may_be_null(fields[name])]
    return {**schema, "required": required} if required else schema


def may_be_null(field: Mapping[str, Any]) -> bool:
    """True if a property is nullable by its type."""
    kinds = field.get("type")
    return kinds == NULL or (isinstance(kinds, list) and NULL in kinds)
