"""Inputs of a workflow: their declarations in the file, and their values for a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from nodes import errors
from nodes.errors import UsageError
from nodes.part import Part
from nodes.template import kind_of
from nodes.values import Json, NotJson, normalise
from runtime.display.text import cut
from runtime.language.yaml_text import plain

LONGEST = 40  # columns of a value in an error

Kind = Literal["string", "number", "integer", "boolean", "list", "map"]

WORDS: dict[Kind, str] = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "list": "a list",
    "map": "a map",
}


class Input(Part):
    """One input."""

    type: Kind
    """``string``, ``number``, ``integer``, ``boolean``, ``list`` or ``map``."""
    default: Json = None
    """Value if none is given. Without a default the input is required."""
    description: str | None = None
    """Meaning of the input, in your words."""

    @property
    def required(self) -> bool:
        return "default" not in self.model_fields_set

    @model_validator(mode="after")
    def _default_fits(self) -> Input:
        if self.default is not None and not fits(self.default, self.type):
            raise ValueError(f"the default is {kind_of(self.default)}, and the type is `{self.type}`")
        return self


def fits(value: Json, kind: Kind) -> bool:
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int)
    wanted = {"string": str, "number": (int, float), "list": list, "map": dict}[kind]
    return isinstance(value, wanted)


def mismatch(declared: Input, value: Json) -> str | None:
    """Describe why an input cannot take a value; None if it can. Null is valid if it is the default."""
    if fits(value, declared.type) or (value is None and declared.default is None and not declared.required):
        return None
    return f"must be {WORDS[declared.type]}, and is {kind_of(value)}"


def typed(values: Mapping[str, Json]) -> str:
    """Return inputs as command-line options, each after a space; empty if there are none."""
    pairs = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in values.items()]
    return "".join(f" -i {shlex.quote(each)}" for each in pairs)


def check(declared: Mapping[str, Input], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the value of every declared input. Reads text for another type as a YAML scalar; for a list or map, as JSON.

    Raises UsageError: ``unknown-input``, ``missing-input``, ``input-type``.
    """
    for name in given:
        if name not in declared:
            known = [f"{each} ({field.type}{', needed' if field.required else ''})" for each, field in declared.items()]
            fix = errors.did_you_mean(name, declared, f"it has {', '.join(known) or 'none'}")
            raise UsageError("unknown-input", f"the workflow has no input `{name}`", fix=fix)
    missing = [name for name, field in declared.items() if field.required and name not in given]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        message = f"the workflow needs {'the input' if len(missing) == 1 else 'the inputs'} {listed}"
        raise UsageError("missing-input", message, fix=" ".join(f"-i {name}=…" for name in missing))
    return {
        name: read(name, field, given[name]) if name in given else field.default for name, field in declared.items()
    }


def read(name: str, field: Input, value: Json) -> Json:
    """Return the value that an input has of a given one. Raises UsageError ``input-type``."""
    try:
        value = normalise(value)
    except NotJson as error:
        raise UsageError("input-type", f"the input `{name}` is no JSON value: {error}") from None
    found = _from_text(value, field.type) if isinstance(value, str) else value
    if found is not None and fits(found, field.type):
        return found
    what = json.dumps(cut(value, LONGEST), ensure_ascii=False) if isinstance(value, str) else kind_of(value)
    fix = f"for example `-i {name}={EXAMPLES.get(field.type, '…')}`"
    raise UsageError("input-type", f"the input `{name}` must be {WORDS[field.type]}, and {what} is not", fix=fix)


def as_declared(declared: Mapping[str, Input], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the given values as ``check`` reads them; those that do not fit, or have no declaration, as they are."""

    def converted(name: str, value: Json) -> Json:
        if name not in declared or not isinstance(value, str):
            return value
        found = _from_text(value, declared[name].type)
        return found if fits(found, declared[name].type) else value

    return {name: converted(name, value) for name, value in given.items()}


def _from_text(text: str, kind: Kind) -> Json:
    if kind == "string":
        return text
    if kind in ("list", "map"):
        try:
            return normalise(json.loads(text))
        except (ValueError, RecursionError):
            return None
    value = plain(text.strip())
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def likely(text: str) -> Kind | None:
    """Return the type other than text as which a text can be read; None if there is none."""
    kinds: tuple[Kind, ...] = ("integer", "number", "boolean", "list", "map")
    return next((kind for kind in kinds if fits(_from_text(text, kind), kind)), None)


EXAMPLES = {"number": "12.5", "integer": "12", "boolean": "true", "list": """'["a", "b"]'""", "map": """'{"a": 1}'"""}
