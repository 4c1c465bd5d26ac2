"""The answer requested from a model that reads a page: its form, and the values in it.

In the requested form every single value may be null, whatever ``output`` declares, because the page may lack it. With refs each comes with
the ref of its element. The answer is decoded here, and checked against ``output``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from nodes.schema import answers, strict
from nodes.schema.output import Output
from nodes.schema.problems import NARROWING, NOTES, named, types
from nodes.values import Json

Path = tuple[str | int, ...]

VALUE, REF = "value", "ref"  # the fields of a value that is requested with its ref
SINGLE = frozenset({"string", "number", "integer", "boolean", "null"})  # the types of values without parts
OF_SINGLE = NARROWING | NOTES | {"type", "enum"}  # keywords for a single value

INSIDE = ("properties", "patternProperties", "$defs")
BELOW = ("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems")
LISTED = ("anyOf", "prefixItems")  # keywords that hold schemas: in a map, alone, in a list

WORDS = OF_SINGLE.union(INSIDE, BELOW, LISTED, ("$ref", "$schema", "required"))
"""Keywords that refs allow: with these alone a schema tells beforehand where its single values are."""


class NoRefs(ValueError):
    """The form does not tell where its single values are, so they cannot come with refs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """A single value in an answer."""

    path: Path  # its path in the `output`
    value: Json
    ref: str | None = None

    @property
    def place(self) -> str:
        return answers.place_of(self.path)


def form(output: Output, *, refs: bool) -> Output:
    """Return the form requested from the model. Raises NoRefs if ``refs`` are impossible."""
    return Output(output.said, _form(output.meant, refs), output.short)


def _form(schema: Json, refs: bool) -> Json:
    if not isinstance(schema, dict):
        if refs:
            raise NoRefs
        return schema
    said: dict[str, Json] = schema
    if "const" in said:
        # Fixed values are the author's, and distinguish the forms of a choice.
        return said
    if _is_single(said):
        return _single(said, refs)
    if refs and not all(each in WORDS or each.startswith("x-") for each in said):
        raise NoRefs
    found = dict(said)
    for key in said.keys() & {*INSIDE, *BELOW, *LISTED}:
        inner = said[key]
        if key in INSIDE:
            found[key] = {name: _form(each, refs) for name, each in inner.items()}
        elif key in LISTED:
            found[key] = [_form(each, refs) for each in inner]
        elif not isinstance(inner, bool):
            found[key] = _form(inner, refs)
    if refs and not _says_values(said):
        raise NoRefs
    return found


def _is_single(schema: dict[str, Json]) -> bool:
    kinds = types(schema) or strict.types_of(schema.get("enum", ()))
    return bool(kinds) and SINGLE.issuperset(kinds)


def _single(schema: dict[str, Json], refs: bool) -> dict[str, Json]:
    if all(each in OF_SINGLE or each.startswith("x-") for each in schema):
        inner = strict.nullable(schema if "type" in schema else {**schema, "type": strict.types_of(schema["enum"])})
    else:
        inner: dict[str, Json] = {"anyOf": [schema, {"type": "null"}]}
    if not refs:
        return inner
    return {
        "type": "object",
        "properties": {VALUE: inner, REF: {"type": ["string", "null"]}},
        "required": [VALUE, REF],
        "additionalProperties": False,
    }


def _says_values(schema: dict[str, Json]) -> bool:
    if "$ref" in schema or "anyOf" in schema:
        return True
    kinds = set(types(schema)) - {"null"}
    return (
        bool(types(schema))
        and not kinds & SINGLE
        and ("object" not in kinds or bool(schema.get("properties")))
        and ("array" not in kinds or "items" in schema)
        and schema.get("additionalProperties", False) is False
    )


def values(answer: Json, *, refs: bool) -> tuple[Json, list[Value]]:
    """Return the answer without refs, and its single values."""
    found: list[Value] = []
    return _without_refs(answer, (), found, refs), found


def _without_refs(answer: Json, path: Path, found: list[Value], refs: bool) -> Json:
    # If the author's own map has these two fields, their values are such maps, not single values.
    if refs and isinstance(answer, dict) and answer.keys() == {VALUE, REF}:
        value, ref = answer[VALUE], answer[REF]
        if not isinstance(value, dict | list) and (ref is None or isinstance(ref, str)):
            found.append(Value(path, value, ref))
            return value
    if isinstance(answer, dict):
        return {name: _without_refs(each, (*path, name), found, refs) for name, each in answer.items()}
    if isinstance(answer, list):
        return [_without_refs(each, (*path, index), found, refs) for index, each in enumerate(answer)]
    found.append(Value(path, answer))
    return answer


def missing(plain: Json, output: Output) -> tuple[Json, list[Path]]:
    """Return the value as ``output`` declares it, and the paths of nulls that ``output`` does not allow.

    Raises Mismatch for any other deviation.
    """
    settled, problems = answers.compared(plain, output.meant, fill=output.short)
    nulls = [each.path for each in values(settled, refs=False)[1] if each.value is None]
    found: dict[Path, None] = {}
    for place, text in problems:
        below = [each for each in nulls if each[: len(place)] == place]
        if not below:
            raise answers.Mismatch((text,))
        found.update(dict.fromkeys(below))
    return settled, list(found)


def is_choice(value: Json, path: Path, output: Output) -> bool:
    """Return whether the value is one of the author's choices, so that the page need not contain it."""
    defs: dict[str, Json] = output.meant.get("$defs", {})
    here: list[dict[str, Json]] = list(_same(output.meant, defs))
    for step in path:
        here = [each for schema in here for below in _below(schema, step) for each in _same(below, defs)]
    return any(value in each.get("enum", ()) or ("const" in each and each["const"] == value) for each in here)


def _same(schema: Json, defs: dict[str, Json]) -> Iterator[dict[str, Json]]:
    if not isinstance(schema, dict):
        return
    words: dict[str, Json] = schema
    yield words
    further: list[Json] = [*words.get("anyOf", ()), *words.get("allOf", ())]
    if "$ref" in words:
        further.append(defs[named(words["$ref"])])
    for each in further:
        yield from _same(each, defs)


def _below(schema: dict[str, Json], step: str | int) -> Iterator[Json]:
    if isinstance(step, str):
        properties: dict[str, Json] = schema.get("properties", {})
        yield properties[step] if step in properties else schema.get("additionalProperties")
        return
    first: list[Json] = schema.get("prefixItems", [])
    yield first[step] if step < len(first) else schema.get("items")


def with_refs(plain: Json, found: dict[Path, dict[str, Json]], path: Path = ()) -> Json:
    """Return ``plain`` with each single value replaced by the one in ``found`` for its path."""
    if path in found:
        return found[path]
    if isinstance(plain, dict):
        return {name: with_refs(each, found, (*path, name)) for name, each in plain.items()}
    if isinstance(plain, list):
        return [with_refs(each, found, (*path, index)) for index, each in enumerate(plain)]
    return {VALUE: plain, REF: None, "seen": None}
