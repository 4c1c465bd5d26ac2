"""The field ``output``: its forms, its strict schema for the model, and the value read from the answer."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from nodes.part import Part
from nodes.schema.output import Mismatch, Output, OutputField
from nodes.values import normalise

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
TEXTS = st.text(max_size=8).map(normalise).filter(lambda text: "{{" not in text)

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "integer": st.integers(-(2**60), 2**60),
    "number": st.floats(-1e9, 1e9, allow_nan=False) | st.integers(-1000, 1000),
    "string": TEXTS,
}


def words() -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    """A type name, with values that fit it."""

    def build(word: str, unknown: bool, many: bool, none: bool) -> tuple[str, st.SearchStrategy[Any]]:
        values = PRIMITIVES[word] | st.none() if unknown else PRIMITIVES[word]
        name = word + "?" * unknown
        if many:
            values, name = st.lists(values, max_size=3), name + "[]"
            if none:
                values, name = values | st.none(), name + "?"
        return name, values

    return st.builds(build, st.sampled_from(list(PRIMITIVES)), st.booleans(), st.booleans(), st.booleans())


def choices() -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    """A list of texts, with values that fit it."""
    return st.lists(TEXTS, min_size=1, max_size=4, unique=True).map(lambda texts: (texts, st.sampled_from(texts)))


def spelt(inner: st.SearchStrategy[Any], fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A field in its long form, with values that fit it."""

    def build(pair: Any, kind: str, optional: bool, description: str | None) -> tuple[Any, st.SearchStrategy[Any]]:
        form, values = pair
        if kind == "items":
            values = st.lists(values, max_size=3)
        found = {kind: form}
        if optional:
            found, values = found | {"optional": True}, values | st.none()
        return found | ({"description": description} if description is not None else {}), values

    texts = st.none() | st.sampled_from(["what it is", ""])
    return (
        st.builds(build, inner, st.just("items"), st.booleans(), texts)
        | st.builds(build, fields, st.just("fields"), st.booleans(), texts)
        | st.builds(build, words(), st.just("type"), st.booleans(), texts)
        | st.builds(build, choices(), st.just("choices"), st.booleans(), texts)
    )


def maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A map of fields, with values that fit it."""

    def build(pairs: dict[str, tuple[Any, st.SearchStrategy[Any]]]) -> tuple[Any, st.SearchStrategy[Any]]:
        fields = {name: form for name, (form, _values) in pairs.items()}
        return fields, st.fixed_dictionaries({name: values for name, (_form, values) in pairs.items()})

    return st.dictionaries(NAMES.filter(lambda name: name != "json_schema"), inner, min_size=1, max_size=4).map(build)


FIELDS = st.recursive(words() | choices(), lambda inner: spelt(inner, maps(inner)), max_leaves=6)
FORMS = words() | choices() | maps(FIELDS)


def wire(output: Output, value: Any) -> str:
    """The answer of a model that means ``value``."""
    return json.dumps({"value": value} if output.wrapped else value)


@given(FORMS, st.data())
def test_a_fitting_answer_is_read_back_unchanged(drawn: Any, data: st.DataObject) -> None:
    """Any value that fits an output is allowed by its schema, and is read back unchanged, including its types."""
    form, values = drawn
    output, value = Output.of(form), data.draw(values)
    assert jsonschema.Draft202012Validator(output.schema()).is_valid(json.loads(wire(output, value)))
    assert json.dumps(output.read(wire(output, value)), sort_keys=True) == json.dumps(value, sort_keys=True)


ALLOWED = {
    "object": {"type", "properties", "required", "additionalProperties", "description", "$defs"},
    "array": {"type", "items", "description"},
}


def page_errors(schema: Any, defs: Any) -> Iterator[str]:
    """The problems that a server finds in a strict schema, by its published rules and independent of the code."""
    if not isinstance(schema, dict):
        yield f"{schema!r} is no map"
    elif "$ref" in schema:
        yield from [] if list(schema) == ["$ref"] and schema["$ref"][8:] in defs else [f"bad reference {schema}"]
    elif "anyOf" in schema:
        yield from [] if schema.keys() <= {"anyOf", "description"} else [f"beside anyOf: {schema}"]
        for each in schema["anyOf"]:
            yield from page_errors(each, defs)
    else:
        yield from page_errors_of_type(schema, defs)


def page_errors_of_type(schema: Any, defs: Any) -> Iterator[str]:
    """The problems of a schema that names its type."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if len(kinds) > 1 and {"object", "array"} & set(kinds):
        yield f"several types at once: {schema}"
    if not set(kinds) <= {"string", "number", "integer", "boolean", "null", "object", "array"}:
        yield f"no type: {schema}"
    if not schema.keys() <= (ALLOWED.get(str(kinds[0])) or {"type", "enum", "description"}):
        yield f"keywords that are not taken: {schema}"
    if kinds == ["array"]:
        yield from page_errors(schema.get("items"), defs)
    if kinds == ["object"]:
        if schema.get("additionalProperties") is not False:
            yield f"open map: {schema}"
        if schema.get("required") != list(schema.get("properties", {})):
            yield f"not all required, in their order: {schema}"
        for each in schema.get("properties", {}).values():
            yield from page_errors(each, defs)


def all_page_errors(schema: dict[str, Any]) -> list[str]:
    """All problems of a schema and its definitions."""
    defs = schema.get("$defs", {})
    root = [] if schema.get("type") == "object" else ["the root is no map"]
    return root + [each for part in (schema, *defs.values()) for each in page_errors(part, defs)]


@given(FORMS)
def test_every_short_form_has_a_strict_schema(form: Any) -> None:
    """Servers accept the schema of every short form up to a size as strict; its fields have the order of the file."""
    output = Output.of(form[0])
    assert output.strict
    assert all_page_errors(output.schema()) == []
    if not output.wrapped:
        assert list(output.schema()["properties"]) == list(form[0])


def described(schema: Any) -> Iterator[str]:
    """Every description in a schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            yield schema["description"]
        for each in schema.values():
            yield from described(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from described(each)


def test_the_meaning_of_a_field_is_shown_to_the_model() -> None:
    """The schema has all descriptions, also that of an optional map; constraints beyond the type are described in words."""
    output = Output.of(
        {
            "total": {"type": "number", "description": "In euro."},
            "buyer": {"fields": {"name": "string"}, "optional": True, "description": "Who pays."},
        }
    )
    assert list(described(output.schema())) == ["In euro.", "Who pays."]
    narrow = Output.of({"json_schema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}}})
    assert list(described(narrow.schema())) == ["Must fit: minimum 3"]
    assert all_page_errors(narrow.schema()) == []


TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        "size": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Size"}]},
    },
    "required": ["name"],
}
RECURSIVE = {
    "json_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": "#/$defs/Tree",
        "$defs": {
            "Tree": TREE,
            "Size": {"type": "object", "properties": {"w": {"type": "number"}}, "required": ["w"]},
            "Unused": {"type": "object"},
        },
    }
}


def full(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree in strict form, with null for each missing field."""
    return tree | {
        "kids": [full(each) for each in tree["kids"]] if "kids" in tree else None,
        "size": tree.get("size"),
    }


TREES = st.recursive(
    st.fixed_dictionaries({"name": st.from_regex("[a-z]{1,4}", fullmatch=True)}),
    lambda inner: st.fixed_dictionaries(
        {"name": st.from_regex("[a-z]{1,4}", fullmatch=True)},
        optional={
            "kids": st.lists(inner, max_size=2),
            "size": st.integers(0, 9) | st.floats(0, 9).map(lambda width: {"w": width}),
        },
    ),
    max_leaves=5,
)


@given(TREES)
def test_an_optional_field_that_is_null_is_removed_again(tree: dict[str, Any]) -> None:
    """The strict form requires every field; a null in a field that the author's schema does not require is removed again."""
    output = Output.of(RECURSIVE)
    assert output.strict
    answer = {"value": full(tree)}
    assert jsonschema.Draft202012Validator(output.schema()).is_valid(answer)
    assert output.read(json.dumps(answer)) == tree


def test_an_authors_schema_in_strict_form() -> None:
    """References, alternatives and used definitions are kept, unused definitions are left out, and the author's schema stays unchanged."""
    before = copy.deepcopy(RECURSIVE)
    schema = Output.of(RECURSIVE).schema()
    assert all_page_errors(schema) == []
    assert sorted(schema["$defs"]) == ["Size", "Tree"]
    assert before == RECURSIVE


NOT_STRICT: dict[str, Any] = {
    "an open map": {"type": "object"},
    "a map of anything": {"type": "object", "additionalProperties": {"type": "string"}},
    "names by pattern": {"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"^x": True}},
    "any value": {"type": "object", "properties": {"a": True}},
    "no type": {"type": "object", "properties": {"a": {"description": "anything"}}},
    "a list of anything": {"type": "array"},
    "allOf": {"allOf": [{"type": "string"}]},
    "not": {"type": "string", "not": {"const": "a"}},
    "if": {"type": "integer", "if": {"minimum": 1}, "then": {"maximum": 5}},
    "a demand on what is no field": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
    "1,001 choices": {"enum": [f"{each}" for each in range(1001)]},
}


@pytest.mark.parametrize("name", NOT_STRICT)
def test_a_schema_without_a_strict_form_is_sent_as_it_is(name: str) -> None:
    """A schema without a strict form is sent unchanged inside a map, and the answer is checked against it."""
    output = Output.of({"json_schema": NOT_STRICT[name]})
    assert not output.strict
    assert output.schema()["type"] == "object"
    inner = output.schema()["properties"]["value"] if output.wrapped else output.schema()
    assert inner == NOT_STRICT[name]


TOO_LARGE: dict[str, Any] = {
    "5,001 fields": {f"a{each}": "string" for each in range(5001)},
    "names of 128,000 characters": {f"a{each:063}": "string" for each in range(2000)},
    "300 choices of 60 characters": [f"{each:060}" for each in range(300)],
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_form_larger_than_servers_take_is_not_strict(name: str) -> None:
    """A form too large for servers is not strict; the answer is checked all the same."""
    assert not Output.of(TOO_LARGE[name]).strict
    assert Output.of(TOO_LARGE[name][:2] if isinstance(TOO_LARGE[name], list) else {"a1": "string"}).strict


def deep(levels: int) -> dict[str, Any]:
    """A schema of maps, so many levels deep."""
    found: dict[str, Any] = {"type": "string"}
    for _level in range(levels):
        found = {"type": "object", "properties": {"a": found}, "required": ["a"]}
    return found


def test_levels_that_servers_take() -> None:
    """Ten nested maps have a strict form, eleven have none; a reference counts as deep as it is written."""
    assert Output.of({"json_schema": deep(10)}).strict
    assert not Output.of({"json_schema": deep(11)}).strict
    by_name = {**deep(6), "$defs": {"A": deep(5)}}
    by_name["properties"]["a"]["properties"]["b"] = {"$ref": "#/$defs/A"}
    assert Output.of({"json_schema": by_name}).strict
    by_name["$defs"]["A"] = deep(9)
    assert not Output.of({"json_schema": by_name}).strict


ANSWERS: list[tuple[Any, str, Any]] = [
    ("integer", '{"value": 3.0}', 3),
    ("number", '{"value": 3.0}', 3.0),
    ("integer[]?", '{"value": [1.0, 2]}', [1, 2]),
    ("boolean", "true", True),
    ("string[]", ' ["a"] ', ["a"]),
    ("string", '```json\n{"value": "a ```b``` c"}\n```', "a ```b``` c"),
    ("boolean", '\n```\r\n{"value": false}\r\n```\n', False),
    ({"a": "string", "b": "string?"}, '{"a": "x"}', {"a": "x", "b": None}),
    ({"b": "integer", "a": "string"}, '{"a": "x", "b": 1.0}', {"b": 1, "a": "x"}),
    ("string", '{"value": "\\ud800"}', "\ufffd"),
    ({"json_schema": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}, '{"value": 4.0}', 4),
    ({"json_schema": {"anyOf": [{"type": "integer"}, {"type": "number"}]}}, '{"value": 1e20}', 1e20),
    ("integer", '{"value": 9007199254740991.0}', 2**53 - 1),
    ("integer", '{"value": -9223372036854775807}', -(2**63) + 1),
    (
        {"json_schema": {"type": "array", "uniqueItems": True}},
        '{"value": [1, true, "1", [1], [true]]}',
        [1, True, "1", [1], [True]],
    ),
    ({"json_schema": {"type": "array", "prefixItems": [{"type": "integer"}]}}, '{"value": [4.0, 4.0]}', [4, 4.0]),
]


@pytest.mark.parametrize(("form", "text", "value"), ANSWERS)
def test_answers_that_are_accepted(form: Any, text: str, value: Any) -> None:
    """A fence, a bare value, 3.0 for 3 and a missing nullable field are accepted without another request."""
    found = Output.of(form).read(text)
    assert json.dumps(found) == json.dumps(value)


MISMATCHES: list[tuple[Any, str, list[str]]] = [
    ("boolean", "", ["$: the answer is no JSON: it is empty"]),
    ("boolean", "yes", ["$: the answer is no JSON: Expecting value at line 1 column 1"]),
    ("boolean", 'Sure:\n```json\n{"value": true}\n```', ["$: the answer is no JSON: Expecting value at line 1 column 1"]),
    ("number", '{"value": NaN}', ["$: the answer is no JSON: NaN is no number"]),
    ("number", '{"value": 1e999}', ["$: inf is not a JSON number"]),
    ("boolean", "[" * 100_000, ["$: the answer nests too deeply"]),
    ("boolean", '{"answer": true}', ['$: must be a map with the field "value" and no other']),
    ("boolean", '{"value": "true"}', ["$.value: is text, and true or false is wanted"]),
    ("integer", '{"value": "3"}', ["$.value: is text, and a whole number is wanted"]),
    ("integer", '{"value": 3.5}', ["$.value: is 3.5, and a whole number is wanted"]),
    ("integer", '{"value": true}', ["$.value: is true, and a whole number is wanted"]),
    ("string", '{"value": null}', ["$.value: is null, and text is wanted"]),
    ("string?", '{"value": 1}', ["$.value: is 1, and text or null is wanted"]),
    ({"wish": ["refund", "other"]}, '{"wish": "refund", "wish": "other"}', ['$: the field "wish" is twice in one map, and only one of them can be meant']),
    ("integer", '{"value": 1, "value": 2}', ['$: the field "value" is twice in one map, and only one of them can be meant']),
    ("integer", '{"value": 1e20}', ["$.value: is 1e+20, and a whole number is wanted, with all its digits"]),
    ("integer", '{"value": 9007199254740993.0}', ["$.value: is 9007199254740992.0, and a whole number is wanted, with all its digits"]),
    ("string", '{"value": 4.0}', ["$.value: is 4.0, and text is wanted"]),
    ({"json_schema": {"type": ["integer", "string"]}}, '{"value": 9223372036854775808}', ["$: the number 9223372036854775808 is too large to be stored: write it as text, or smaller"]),
    ("integer", '{"value": -' + "9" * 5000 + "}", ["$: the number -" + "9" * 119 + "… is too large to be stored: write it as text, or smaller"]),
    ({"json_schema": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, '{"value": "x"}', ['$.value: is "x", which does not fit anyOf: [{"type": "integer"}, {"type": "null"}]']),
    ({"json_schema": {"type": "array", "uniqueItems": True}}, '{"value": [{"a": 1}, {"a": 1.0}]}', ['$.value: is [{"a": 1}, {"a": 1.0}], which does not fit uniqueItems: true']),
    (["a", "b"], '{"value": "c"}', ['$.value: is "c", and one of these is wanted: "a", "b"']),
    ({"a": "string", "b": "integer"}, '{"c": 1}', ["$.a: is missing", "$.b: is missing", "$.c: is not asked for"]),
    (
        {"items": {"items": {"fields": {"total": "number", "kind": ["x", "y"]}}}},
        '{"items": [{"total": 1, "kind": "x"}, {"total": 2, "kind": "x"}, {"total": "3", "kind": "z"}]}',
        [
            "$.items[2].total: is text, and a number is wanted",
            '$.items[2].kind: is "z", and one of these is wanted: "x", "y"',
        ],
    ),
    ({"json_schema": TREE | {"properties": {"name": {"type": "string", "pattern": "^a"}}}}, '{"name": "b"}', ['$.name: is "b", which does not fit pattern: "^a"']),
    ({"json_schema": {"type": "string", "format": "date-time"}}, '{"value": "2026-01-01"}', ['$.value: is "2026-01-01", which does not fit format: "date-time"']),
    (RECURSIVE, '{"value": {"name": "a", "size": {"w": "1"}}}', ["$.value.size.w: is text, and a number is wanted"]),
    ({"json_schema": {"type": "object", "additionalProperties": {"type": "null"}}}, '{"a b": 1}', ['$["a b"]: is 1, and null is wanted']),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text", "problems"), MISMATCHES)
def test_answers_that_do_not_fit(form: Any, text: str, problems: list[str]) -> None:
    """Every problem is reported with its place in the answer, in words that a model can act on."""
    with pytest.raises(Mismatch) as caught:
        Output.of(form).read(text)
    assert list(caught.value.problems) == problems


def test_many_problems_are_reported_in_few_lines() -> None:
    """Neither a long list of problems nor a long text makes a long request."""
    with pytest.raises(Mismatch) as caught:
        Output.of("integer[]").read(json.dumps({"value": ["x"] * 50}))
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1] == "and 30 more problems like these"
    with pytest.raises(Mismatch) as caught:
        Output.of(["a"]).read(json.dumps({"value": "b" * 10_000}))
    assert len(str(caught.value)) < 300


MISTAKES: list[tuple[Any, tuple[Any, ...], str]] = [
    (None, (), "this is left empty"),
    (5, (), "this is a number"),
    ("bolean", (), "did you mean `boolean`?"),
    ("string[][]", (), "a list of lists is written with `items`"),
    ("refund, delivery", (), "write a list of them"),
    ([], (), "nothing to choose from"),
    ([1], (0,), "put it in quotes"),
    (["a", "a"], (1,), "is listed twice"),
    ({}, (), "there are no fields"),
    ({"a b": "string"}, ("a b",), "is no name"),
    ({"a": {"type": "string", "desciption": "x"}}, ("a", "desciption"), "did you mean `description`?"),
    ({"a": {"b": "string"}}, ("a", "b"), "put the fields of a map under `fields`"),
    ({"a": {"optional": True}}, ("a",), "nothing says what the field is"),
    ({"a": {"type": "string", "optional": "yes"}}, ("a", "optional"), "true or false"),
    ({"a": {"items": "string", "fields": {}}}, ("a",), "exclude each other"),
    ({"a": {"type": "string", "items": "string"}}, ("a", "type"), "leave `type` out"),
    ({"a": {"fields": "string"}}, ("a", "fields"), "is a map of names to forms"),
    ({"a": ["{{ x }}"]}, ("a", 0), "takes no references"),
    ({"a": "{{ x }}"}, ("a",), "takes no references"),
    ({"json_schema": {"oneOf": [{"type": "string"}]}}, ("json_schema", "oneOf"), "write `anyOf`"),
    ({"json_schema": {"properties": {"a": {"oneOf": []}}}}, ("json_schema", "properties", "a", "oneOf"), "write `anyOf`"),
    ({"json_schema": {"definitions": {}}}, ("json_schema", "definitions"), "write `$defs`"),
    ({"json_schema": {"requierd": ["a"]}}, ("json_schema", "requierd"), "did you mean `required`?"),
    ({"json_schema": {"type": "strng"}}, ("json_schema", "type"), "did you mean `string`?"),
    ({"json_schema": {"type": ["string", None]}}, ("json_schema", "type", 1), 'write "null" in quotes'),
    ({"json_schema": {"pattern": "("}}, ("json_schema", "pattern"), "is not a pattern"),
    ({"json_schema": {"pattern": "a" * 1001}}, ("json_schema", "pattern"), "at most 1000 characters"),
    ({"json_schema": {"patternProperties": {"\\p{L}": True}}}, ("json_schema", "patternProperties", "\\p{L}"), "is not a pattern"),
    ({"json_schema": {"patternProperties": {"a": True}, "anyOf": [{"unevaluatedProperties": False}]}}, ("json_schema", "anyOf", 0, "unevaluatedProperties"), "write `additionalProperties`"),
    ({"json_schema": {"required": "a"}}, ("json_schema", "required"), "no JSON Schema"),
    ({"json_schema": {"format": "hostname"}}, ("json_schema", "format"), "is not checked"),
    ({"json_schema": {"items": {"$ref": "https://schemas.test/a"}}}, ("json_schema", "items", "$ref"), "leads elsewhere"),
    ({"json_schema": {"$ref": "#"}}, ("json_schema", "$ref"), "leads elsewhere"),
    ({"json_schema": {"$ref": "#/$defs/A"}}, ("json_schema", "$ref"), "`$defs` has no `A`"),
    ({"json_schema": {"$ref": "#/$defs/A/items", "$defs": {"A": True}}}, ("json_schema", "$ref"), "leads elsewhere"),
    ({"json_schema": {"items": {"$defs": {}}}}, ("json_schema", "items", "$defs"), "to the top"),
    ({"json_schema": {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}}}}, ("json_schema", "$defs", "A"), "refers to itself"),
    ({"json_schema": {"enum": ["x" * 60_000, "y" * 60_000]}}, ("json_schema",), "more than 100,000 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "place", "text"), MISTAKES)
def test_mistakes_in_the_file(form: Any, place: tuple[Any, ...], text: str) -> None:
    """Every mistake is found when the file is read, at its place, with its fix."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(OutputField).validate_python(form)
    errors = caught.value.errors()
    assert [each for each in errors if each["loc"] == place and text in each["msg"]], errors


def test_all_mistakes_are_reported_at_once() -> None:
    """One reading of the file reports the mistakes of all fields."""
    with pytest.raises(ValidationError) as caught:
        Output.of({"a": "strng", "b": {"choices": []}, "c": {"fields": {"d": "integr"}}, "e": {"choises": ["x"]}})
    places = [("a",), ("b", "choices"), ("c", "fields", "d"), ("e", "choises")]
    assert [each["loc"] for each in caught.value.errors()] == places


class _Asks(Part):
    output: OutputField


@given(FORMS)
def test_a_node_keeps_the_form_of_the_file(form: Any) -> None:
    """The field is serialized as it was read, so fingerprint and log have the author's words."""
    assert _Asks.model_validate({"output": form[0]}).model_dump(mode="json") == {"output": form[0]}


@given(FORMS)
def test_editors_accept_every_form(form: Any) -> None:
    """The JSON Schema of the field accepts every form that the field accepts."""
    schema = TypeAdapter(OutputField).json_schema()
    jsonschema.Draft202012Validator(schema).validate(form[0])


@pytest.mark.parametrize("form", [5, "bolean", [], [1], {}, {"a": {"b": "string"}}, {"a": {"type": "strin"}}])
def test_editors_mark_mistakes(form: Any) -> None:
    """The JSON Schema of the field refuses the common mistakes."""
    assert not jsonschema.Draft202012Validator(TypeAdapter(OutputField).json_schema()).is_valid(form)
