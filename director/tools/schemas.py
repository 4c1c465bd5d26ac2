"""What the tools of a session are given: strict schemas, in which every field must be there, and one that may be left out is null."""

from __future__ import annotations

from nodes.values import Json
from runtime.messages.messages import Tool

TEXT: dict[str, Json] = {"type": "string"}
PERHAPS: dict[str, Json] = {"type": ["string", "null"]}
NUMBER: dict[str, Json] = {"type": ["integer", "null"]}


def of(schema: dict[str, Json], description: str) -> dict[str, Json]:
    """The same, with what a model is told of it."""
    return {**schema, "description": description}


REASON = of(TEXT, "Why, in a sentence.")


def fields(properties: dict[str, dict[str, Json]]) -> dict[str, Json]:
    """A map that has just these fields."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list[Json](properties),
        "additionalProperties": False,
    }


def each(items: dict[str, Json]) -> dict[str, Json]:
    """A list of these."""
    return {"type": "array", "items": items}


def tool(name: str, description: str, properties: dict[str, dict[str, Json]]) -> Tool:
    """A tool as a model is offered it."""
    return Tool(name, description, fields(properties))
