"""Texts with references: ``{{ order.number }}``.

A field with references is declared with ``Ref[...]`` (or one of the named kinds below). When a file is parsed, a string with ``{{`` in such
a field becomes a ``Template`` and is checked like code. When the step runs, the engine replaces it by the value, coerced to the field's
kind. So ``run`` sees the declared type and never a template.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from nodes.values import Json, NotJson, as_text

OPENING = "{{"


class Template(str):
    """A string of the workflow file with at least one ``{{ expression }}``."""

    __slots__ = ()


class Unfit(ValueError):
    """A rendered value does not fit its field; the message names both."""


Coerce = Callable[[Json], Json]


def to_text(value: Json) -> str:
    """Return text as it is, numbers and booleans as JSON; lists, maps and null do not fit."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise Unfit(f"is a {kind_of(value)}, and a text is wanted")
    try:
        return as_text(value)
    except NotJson as error:
        raise Unfit("is null, and a text is wanted") from error


def to_integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise Unfit(f"is {kind_of(value)}, and a whole number is wanted")
    return int(value)


def to_number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(f"is {kind_of(value)}, and a number is wanted")
    return value


def to_condition(value: Json) -> bool:
    """Return true or false; null, zero and empty values are false. Text does not fit: "false" would be true."""
    if isinstance(value, str):
        raise Unfit("is text, and true or false is wanted (compare it: `== '…'`)")
    return bool(value)


def to_list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise Unfit(f"is {kind_of(value)}, and a list is wanted")
    return value


def to_json(value: Json) -> Json:
    return value


def kind_of(value: Json) -> str:
    """Return the word for a value's kind in messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "a map"


@dataclasses.dataclass(frozen=True, slots=True)
class Ref:
    """Marks a field that accepts references. ``coerce`` converts the rendered value; ``secret`` allows ``secrets.X`` in it."""

    coerce: Coerce
    secret: bool = False
    literal: bool = True
    """True if the field may also have a plain value, without a reference."""
    item: Coerce | None = None
    """Conversion of a reference within a list in the field, if it differs from ``coerce``."""

    def inside(self) -> Ref:
        """Return the marker for references within a list or map in the field."""
        return self if self.item is None else dataclasses.replace(self, coerce=self.item, item=None)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        deep = self.coerce is to_json
        literal = self.literal

        def wrap(value: Any, inner: core_schema.ValidatorFunctionWrapHandler) -> Any:
            if isinstance(value, str) and OPENING in value:
                return Template(value)
            if not literal:
                raise ValueError('must be a reference, like "{{ name }}"')
            if deep:
                return _mark(value)
            plain = inner(value)
            return _mark(plain) if isinstance(plain, list) else plain

        def written(value: Any, inner: core_schema.SerializerFunctionWrapHandler) -> Any:
            return str(value) if isinstance(value, Template) else inner(value)

        return core_schema.no_info_wrap_validator_function(
            wrap, handler(source), serialization=core_schema.wrap_serializer_function_ser_schema(written)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        reference: JsonSchemaValue = {"type": "string", "pattern": r"\{\{"}
        if not self.literal:
            return reference
        inner = handler(schema)
        if self.coerce is to_json or (inner.get("type") == "string" and "enum" not in inner):
            return inner
        return {"anyOf": [inner, reference]}


def _mark(value: Json) -> Json:
    if isinstance(value, str):
        return Template(value) if OPENING in value else value
    if isinstance(value, list):
        return [_mark(item) for item in value]
    if isinstance(value, dict):
        return {key: _mark(item) for key, item in value.items()}
    return value


Text = Annotated[str, Ref(to_text)]
SecretText = Annotated[str, Ref(to_text, secret=True)]
Integer = Annotated[int, Ref(to_integer)]
Number = Annotated[float, Ref(to_number)]
Condition = Annotated[bool, Ref(to_condition)]
JsonValue = Annotated[Json, Ref(to_json)]
ListValue = Annotated[list[Json], Ref(to_list, item=to_json)]
