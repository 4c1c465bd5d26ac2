"""The field ``output`` of a model node: the form of the answer, in a short form or as a JSON Schema.

In either form an ``Output`` has one JSON Schema that the *value* fits. If that is not an object, the value is sent in one (``{"value":
…}``), because servers require an object at the root.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Any, LiteralString

from pydantic import BeforeValidator, GetCoreSchemaHandler, ValidationError, WithJsonSchema
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from nodes.errors import near
from nodes.schema import answers, problems
from nodes.schema import strict as schema_strict
from nodes.schema.answers import Mismatch
from nodes.schema.problems import Problem
from nodes.template import OPENING, kind_of
from nodes.values import Json

__all__ = ["Mismatch", "Output", "OutputField"]

WORDS = ("boolean", "integer", "number", "string")
"""The primitives, in JSON Schema's words."""

WORD = re.compile(rf"({'|'.join(WORDS)})(\?)?(\[\](\?)?)?")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

SPELT = {"type", "description", "choices", "optional", "items", "fields"}
"""Keys of a field in its long form."""

WHOLE = "json_schema"
"""Key of an author's JSON Schema."""

FORMS = (
    "`boolean`, `integer`, `number` or `string`, with `[]` for a list and `?` for what may be unknown; "
    "a list of texts to choose from; a map of fields; or `json_schema`"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """Form of a model's answer. ``said`` is the field in the file, ``meant`` the JSON Schema that the value fits."""

    said: Json
    meant: dict[str, Json]
    short: bool
    """True for a short form: then a field that may be null and is missing in the answer is null."""

    @classmethod
    def of(cls, said: Json) -> Output:
        """Parse the output in a file. Raises pydantic's ValidationError with every mistake and its place."""
        found = _Reader()
        # With more keys, or a value that is no map, `json_schema` is the name of a field.
        whole = isinstance(said, dict) and list(said) == [WHOLE] and isinstance(said[WHOLE], dict)
        found.no_references(said, ())
        if whole:
            meant = said[WHOLE]
            found.problems += [Problem((WHOLE, *each.path), each.text) for each in problems.problems(meant)]
        else:
            meant = found.form(said, (), inside=False)
        if found.problems:
            raise ValidationError.from_exception_data("output", [_detail(each, said) for each in found.problems])
        return cls(said, meant, short=not whole)

    @property
    def wrapped(self) -> bool:
        return self.meant.get("type") != "object"

    @property
    def strict(self) -> bool:
        """True if ``schema`` is in the strict form, which a server enforces. Otherwise the model is asked for it, and the answer is checked here."""
        return _wire(self)[1]

    def schema(self) -> dict[str, Json]:
        """Return the JSON Schema of the answer's text, with an object at the root: strict if possible, else as the author wrote it."""
        return _wire(self)[0]

    def read(self, text: str) -> Json:
        """Return the value in an answer's text. Raises Mismatch with every problem and its place, for the model."""
        return answers.read(text, self.meant, wrapped=self.wrapped, fill=self.short)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(
            cls, serialization=core_schema.plain_serializer_function_ser_schema(lambda output: output.said)
        )


def _wire(output: Output) -> tuple[dict[str, Json], bool]:
    rooted = schema_strict.rooted(output.meant) if output.wrapped else output.meant
    found = schema_strict.form(rooted)
    plain = {key: value for key, value in rooted.items() if key != "$schema"}
    return (plain, False) if found is None else (found, True)


def _detail(problem: Problem, said: Json) -> InitErrorDetails:
    here: Any = said
    for step in problem.path:
        here = here[step]
    # Braces in a message are literal: nothing is inserted.
    text: Any = "{text}"
    kind: LiteralString = "choice" if problem.choices else "output"
    context: dict[str, Any] = {"text": problem.text, "choices": list(problem.choices)}
    return {"type": PydanticCustomError(kind, text, context), "loc": problem.path, "input": here}


class _Reader:
    """Converts the short forms, mistakes included, into JSON Schema."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def form(self, said: Json, path: problems.Path, *, inside: bool) -> dict[str, Json]:
        """Return the schema of one form. A map ``inside`` another form is a field in its long form; any other is a map of fields."""
        if isinstance(said, str):
            return self._word(said, path)
        if isinstance(said, list):
            return self._choices(said, path)
        if isinstance(said, dict):
            return self._spelt(said, path) if inside else self._fields(said, path)
        return self._wrong(path, f"an output is {FORMS}; this is {'left empty' if said is None else kind_of(said)}")

    def _wrong(self, path: problems.Path, text: str, choices: tuple[str, ...] = ()) -> dict[str, Json]:
        self.problems.append(Problem(path, text, choices))
        return {}

    def _word(self, said: str, path: problems.Path) -> dict[str, Json]:
        found = WORD.fullmatch(said)
        if found is None:
            if OPENING in said:
                return {}  # reported as a reference
            close = near(said.rstrip("[]?"), WORDS)
            fix = "to choose from texts, write a list of them"
            if close:
                fix = f"did you mean `{close}`?" if close not in said else "a list of lists is written with `items`"
            return self._wrong(path, f"`{said}` is no kind of value: {fix}", WORDS)
        word, unknown, many, no_list = found.groups()
        one: dict[str, Json] = {"type": [word, "null"] if unknown else word}
        if not many:
            return one
        return {"type": ["array", "null"] if no_list else "array", "items": one}

    def _choices(self, said: list[Json], path: problems.Path) -> dict[str, Json]:
        if not said:
            return self._wrong(path, "there is nothing to choose from: write at least one text into the list")
        for index, each in enumerate(said):
            if not isinstance(each, str):
                self._wrong((*path, index), f"a choice is a text, and this is {kind_of(each)}: put it in quotes")
            elif each in said[:index]:
                self._wrong((*path, index), f'"{each}" is listed twice: remove one')
        return {"type": "string", "enum": said}

    def _fields(self, said: dict[str, Json], path: problems.Path) -> dict[str, Json]:
        if not said:
            self._wrong(path, "there are no fields: write at least one, `name: string`")
        properties: dict[str, Json] = {}
        for name, each in said.items():
            if not NAME.fullmatch(name):
                self._wrong((*path, name), f"`{name}` is no name: letters, digits and `_`, at most 64")
            properties[name] = self.form(each, (*path, name), inside=True)
        # A field that may be null may also be missing: servers that do not enforce schemas omit it.
        needed = [name for name, each in properties.items() if "null" not in problems.types(each)]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    def _spelt(self, said: dict[str, Json], path: problems.Path) -> dict[str, Json]:
        for key in said:
            if key not in SPELT:
                close = near(key, sorted(SPELT))
                fix = f"did you mean `{close}`?" if close else "put the fields of a map under `fields`"
                self._wrong((*path, key), f"`{key}` is no word for a field: {fix}")
        schema = dict(self._base(said, path))
        description, optional = said.get("description"), said.get("optional", False)
        if "description" in said:
            if isinstance(description, str):
                schema["description"] = description
            else:
                self._wrong((*path, "description"), f"`description` is text, and this is {kind_of(description)}")
        if not isinstance(optional, bool):
            self._wrong((*path, "optional"), f"`optional` is true or false, and this is {kind_of(optional)}")
        elif optional and schema:
            schema = _nullable(schema)
        return schema

    def _base(self, said: dict[str, Json], path: problems.Path) -> dict[str, Json]:
        """Return the schema of ``type``, ``choices``, ``items`` or ``fields``: only one of them, except for a redundant type."""
        given = [key for key in ("choices", "items", "fields") if key in said]
        kind = said.get("type")
        if len(given) > 1:
            return self._wrong(path, f"{' and '.join(f'`{each}`' for each in given)} exclude each other: leave one out")
        if not given:
            if "type" in said:
                if isinstance(kind, str):
                    return self._word(kind, (*path, "type"))
                return self._wrong((*path, "type"), f"`type` is one of {', '.join(WORDS)}, and this is {kind_of(kind)}")
            # A misspelt type is already reported.
            lost = said.keys() <= SPELT
            text = "nothing says what the field is: write `type`, `choices`, `items` or `fields`"
            return self._wrong(path, text) if lost else {}
        wanted = {"choices": "string", "items": "list", "fields": "map"}[given[0]]
        if "type" in said and kind != wanted:
            return self._wrong(
                (*path, "type"), f"what has `{given[0]}` is a {wanted}: leave `type` out, or write `{wanted}`"
            )
        inner, place = said[given[0]], (*path, given[0])
        if given[0] == "items":
            return {"type": "array", "items": self.form(inner, place, inside=True)}
        if not isinstance(inner, list if given[0] == "choices" else dict):
            what = "a list of texts" if given[0] == "choices" else "a map of names to forms"
            return self._wrong(place, f"`{given[0]}` is {what}, and this is {kind_of(inner)}")
        return self.form(inner, place, inside=False)

    def no_references(self, said: Json, path: problems.Path) -> None:
        """Reject references: an output must be known before a run, so that the file can be checked."""
        if isinstance(said, str) and OPENING in said:
            self._wrong(path, "`output` takes no references: write what it is; values belong into `input`")
        items = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
        for key, each in items:
            self.no_references(each, (*path, key))


def _nullable(schema: dict[str, Json]) -> dict[str, Json]:
    types = problems.types(schema)
    if "null" in types:
        return schema
    found = {**schema, "type": [*types, "null"]}
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    return found


def _parsed(value: Any) -> Any:
    return value if isinstance(value, Output) else Output.of(value)


_WORD_SCHEMA: dict[str, Json] = {"type": "string", "pattern": f"^{WORD.pattern}$"}
_CHOICES_SCHEMA: dict[str, Json] = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}

_FIELD_SCHEMA: dict[str, Json] = {"anyOf": [_WORD_SCHEMA, _CHOICES_SCHEMA, {"type": "object"}]}
_SPELT_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "type": {"anyOf": [_WORD_SCHEMA, {"enum": ["list", "map"]}], "description": "What the field holds."},
        "description": {"type": "string", "description": "What the field means; the model sees it."},
        "choices": {**_CHOICES_SCHEMA, "description": "The texts it is one of."},
        "optional": {"type": "boolean", "description": "Whether it is null where it is not known."},
        "items": {**_FIELD_SCHEMA, "description": "What each item of the list is."},
        "fields": {"type": "object", "additionalProperties": _FIELD_SCHEMA, "description": "The fields of the map."},
    },
    "additionalProperties": False,
}

OUTPUT_SCHEMA: dict[str, Json] = {
    "anyOf": [
        _WORD_SCHEMA,
        _CHOICES_SCHEMA,
        {
            "type": "object",
            "properties": {WHOLE: {"type": "object", "description": "A JSON Schema of your own."}},
            "required": [WHOLE],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [_WORD_SCHEMA, _CHOICES_SCHEMA, _SPELT_SCHEMA]},
        },
    ]
}
"""The field in the JSON Schema of workflow files, for editors."""

OutputField = Annotated[
    Output,
    BeforeValidator(_parsed, json_schema_input_type=str | list[str] | dict[str, Any]),
    WithJsonSchema(OUTPUT_SCHEMA),
]
"""The field as a node declares it: ``output: OutputField``."""
