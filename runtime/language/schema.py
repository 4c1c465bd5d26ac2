"""JSON Schema of workflow files, for editors, generated from the models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from typing_extensions import override

from nodes import registry
from nodes.base import Confirm, Node
from nodes.part import Part
from nodes.registry import NodeType
from nodes.targets import ROLES, Target
from nodes.values import Json
from runtime.language.node_tree import shape_of
from runtime.language.workflow import Workflow

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NODE = {"$ref": "#/$defs/Node"}


class Plain(GenerateJsonSchema):
    """Omits the titles that pydantic derives from names."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def workflow_schema() -> dict[str, Json]:
    """Return the schema, in draft 2020-12. ``type``, and ``action`` or ``query``, select a node's fields, so that editors offer them."""
    types = registry.node_types()
    nodes = [model for kind in types.values() for model in kind.models]
    owners: list[type[Part]] = [Workflow, Confirm, *nodes, *_parts_with_blocks(nodes)]
    names, whole = models_json_schema(
        [(model, "validation") for model in (*owners, Target)],
        ref_template="#/$defs/{model}",
        schema_generator=Plain,
    )
    refs = {model: names[model, "validation"]["$ref"] for model in (*owners, Target)}
    defs: dict[str, Any] = {name: tidied(each) for name, each in whole["$defs"].items()}
    for definition in defs.values():
        if definition.get("additionalProperties") is False:
            definition["patternProperties"] = {"^x-": {}}
    for model in owners:
        _put_blocks(model, defs[_name(refs[model])])
    role = defs[_name(refs[Target])]["properties"]["role"]
    role["anyOf"] = [{"enum": sorted(ROLES)}, {"type": "string", "pattern": r"\{\{"}, {"type": "null"}]
    root = defs.pop(_name(refs[Workflow]))
    defs["Node"] = {
        "type": "object",
        "required": ["id", "type"],
        "properties": {"id": {"type": "string"}, "type": {"enum": list(types), "description": "Node type."}},
        "allOf": [_when("type", name, _type(kind, refs)) for name, kind in types.items()],
    }
    return {"$schema": DIALECT, **root, "title": "RunOps workflow", "$defs": dict(sorted(defs.items()))}


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def tidied(value: Json) -> Json:
    if isinstance(value, list):
        return [tidied(each) for each in value]
    if not isinstance(value, dict):
        return value
    tidy: dict[str, Json] = {key: tidied(each) for key, each in value.items() if (key, each) != ("default", None)}
    description = tidy.get("description")
    if isinstance(description, str):
        paragraphs = description.replace("``", "`").split("\n\n")
        tidy["description"] = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    return tidy


def _put_blocks(model: type[Part], definition: dict[str, Any]) -> None:
    for name, field in model.model_fields.items():
        if shape_of(model, name).block:
            properties, key = definition["properties"], field.alias or name
            about = {each: text for each, text in properties[key].items() if each == "description"}
            properties[key] = {"type": "array", "items": NODE, "minItems": 1, **about}


def _parts_with_blocks(nodes: list[type[Node]]) -> list[type[Part]]:
    found: list[type[Part]] = []
    for model in nodes:
        for name in model.model_fields:
            shape = shape_of(model, name)
            part = (shape.item.part if shape.item else None) or (shape.value.part if shape.value else None)
            if part is not None and any(shape_of(part, each).block for each in part.model_fields) and part not in found:
                found.append(part)
    return found


def _type(kind: NodeType, refs: Mapping[type[Part], str]) -> dict[str, Json]:
    if kind.field is None:
        return {"$ref": refs[kind.base]}
    return {
        "required": [kind.field],
        "properties": {kind.field: {"enum": list(kind.variants)}},
        "allOf": [_when(kind.field, name, {"$ref": refs[model]}) for name, model in kind.variants.items()],
    }


def _when(field: str, value: str, then: Json) -> dict[str, Json]:
    return {"if": {"required": [field], "properties": {field: {"const": value}}}, "then": then}
