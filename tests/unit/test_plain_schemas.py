"""The schema of a tool for a server that does not enforce it."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.messages import plain_schemas

KIND = st.sampled_from(["string", "integer", "boolean"])
FIELD = st.one_of(KIND.map(lambda kind: {"type": kind}), KIND.map(lambda kind: {"type": [kind, "null"]}))
VALUES = {"string": "a", "integer": 1, "boolean": True}


def strict(fields: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


@given(st.dictionaries(st.sampled_from("abcdef"), FIELD), st.sets(st.sampled_from("abcdef")))
def test_a_plain_schema_takes_what_the_strict_one_takes_with_nulls_left_out(
    fields: dict[str, dict[str, Any]], out: set[str]
) -> None:
    """Arguments fit the plain schema exactly if they fit the strict one once null stands for each nullable one that is missing."""
    whole = {
        name: VALUES[field["type"] if isinstance(field["type"], str) else field["type"][0]]
        for name, field in fields.items()
    }
    said = {name: value for name, value in whole.items() if name not in out}
    filled = {**{name: None for name, field in fields.items() if plain_schemas.may_be_null(field)}, **said}
    fits, wanted = (
        jsonschema.Draft202012Validator(each).is_valid(value)
        for each, value in ((plain_schemas.plain(strict(fields)), said), (strict(fields), filled))
    )
    assert fits == wanted


def test_a_plain_schema_names_no_null_at_any_depth() -> None:
    """What may be null loses the null, and is not required: in objects within lists too, and among the choices."""
    status = {"type": ["string", "null"], "enum": ["open", None]}
    tasks = {"type": "array", "items": strict({"id": {"type": "string"}, "status": status})}
    task = {"id": {"type": "string"}, "status": {"type": "string", "enum": ["open"]}}
    item = {"type": "object", "properties": task, "required": ["id"]}
    assert plain_schemas.plain(strict({"tasks": tasks, "note": {"type": ["string", "null"]}})) == {
        "type": "object",
        "properties": {"tasks": {"type": "array", "items": item}, "note": {"type": "string"}},
        "required": ["tasks"],
    }


@pytest.mark.parametrize("schema", [{"type": "object"}, {"anyOf": [{"type": "null"}, {"type": "string"}]}])
def test_a_schema_without_nullable_fields_stays_as_it_is(schema: dict[str, Any]) -> None:
    """Nothing is taken from a schema that has no fields, or none that is nullable by its type."""
    assert plain_schemas.plain(schema) == schema
