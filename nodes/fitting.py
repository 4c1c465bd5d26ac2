"""From the text of an answer to the value: parsed, settled, and checked against its JSON Schema."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from nodes import schemas
from nodes.strictly import VALUE
from nodes.values import LARGEST_INTEGER, Json, NotJson, normalise

if TYPE_CHECKING:
    from jsonschema import ValidationError

FENCE = re.compile(r"\s*```[A-Za-z0-9]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\s*", re.DOTALL)

MOST = 20
"""Problems that are told at once."""

LONGEST = 120
"""Characters of a value, or of what a schema wants, in a problem."""

KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a map",
    "string": "text",
}
"""The words for JSON Schema's types."""


class Misfit(ValueError):
    """An answer that is not what was asked for: ``problems`` are one line each, with the place in the answer (``$.items[2].total``)."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read(text: str, meant: dict[str, Json], *, wrapped: bool, fill: bool) -> Json:
    """The value that an answer's text holds, which fits ``meant``. Raises Misfit.

    The text is JSON, alone or in one fenced block. ``wrapped``: the value stands in a map, as its field ``value``; where it stands there
    alone, without that map, it is taken too. ``fill``: fields that may be null are null where they are missing.
    """
    answer = _parsed(text)
    place = "$"
    if wrapped and isinstance(answer, dict):
        if answer.keys() != {VALUE}:
            raise Misfit((f'$: must be a map with the field "{VALUE}" and no other',))
        answer, place = answer[VALUE], f"$.{VALUE}"
    fit = _Fit(meant, fill)
    value = fit.settled(answer, meant)
    if problems := fit.problems(value, place):
        raise Misfit(problems)
    return value


def _parsed(text: str) -> Json:
    fenced = FENCE.fullmatch(text)
    try:
        return normalise(json.loads(fenced[1] if fenced else text, parse_constant=_no_number))
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at line {error.lineno} column {error.colno}"
        raise Misfit((f"$: the answer is no JSON: {problem if text.strip() else 'it is empty'}",)) from None
    except RecursionError:
        raise Misfit(("$: the answer nests too deeply",)) from None
    except NotJson as error:
        raise Misfit((f"$: {error}",)) from None
    except ValueError as error:
        raise Misfit((f"$: the answer is no JSON: {error}",)) from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


class _Fit:
    """Fits values to one schema."""

    def __init__(self, schema: dict[str, Json], fill: bool) -> None:
        self._defs: dict[str, Json] = schema.get("$defs", {})
        self._schema = schema
        self._fill = fill

    def _validator(self, schema: Json) -> Any:
        import jsonschema

        whole = {**schema, "$defs": self._defs} if isinstance(schema, dict) else schema
        return jsonschema.Draft202012Validator(whole, format_checker=schemas.checker())

    def _takes(self, value: Json, schema: Json) -> bool:
        return self._validator(schema).is_valid(value)

    def settled(self, value: Json, schema: Json) -> Json:
        """The value with what the strict form made of it undone: a null for a missing field is taken out, and 3.0 is 3 where whole numbers are meant."""
        if not isinstance(schema, dict):
            return value
        said: dict[str, Json] = schema
        if "$ref" in said:
            value = self.settled(value, self._defs[schemas.named(said["$ref"])])
        for each in said.get("allOf", ()):
            value = self.settled(value, each)
        if "anyOf" in said:
            value = self._settled_as_one(value, said["anyOf"])
        if isinstance(value, dict):
            return self._settled_map(value, said)
        if isinstance(value, list):
            first: list[Json] = said.get("prefixItems", [])
            rest: Json = said.get("items", True)
            return [
                self.settled(each, first[index] if index < len(first) else rest) for index, each in enumerate(value)
            ]
        return _whole(value, said)

    def _settled_as_one(self, value: Json, branches: list[Json]) -> Json:
        for each in branches:
            settled = self.settled(value, each)
            if self._takes(settled, each):
                return settled
        return value

    def _settled_map(self, value: dict[str, Json], schema: dict[str, Json]) -> dict[str, Json]:
        properties: dict[str, Json] = schema.get("properties", {})
        found: dict[str, Json] = {}
        for name, each in properties.items():
            if name not in value:
                if self._fill and self._takes(None, each):
                    found[name] = None
            elif value[name] is not None or name in schema.get("required", ()) or self._takes(None, each):
                found[name] = self.settled(value[name], each)
        other = schema.get("additionalProperties", True)
        return found | {name: self.settled(each, other) for name, each in value.items() if name not in properties}

    def problems(self, value: Json, place: str) -> tuple[str, ...]:
        """What does not fit, one line each; ``place`` is where the value stands in the answer."""
        found: dict[str, None] = {}
        for error in self._validator(self._schema).iter_errors(value):
            found.update(dict.fromkeys(_lines(error, place)))
        lines = list(found)
        if len(lines) > MOST:
            return (*lines[:MOST], f"and {len(lines) - MOST} more problems like these")
        return tuple(lines)


def _whole(value: Json, schema: dict[str, Json]) -> Json:
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else types
    meant = "integer" in types and "number" not in types and isinstance(value, float)
    return int(value) if meant and value.is_integer() and abs(value) <= LARGEST_INTEGER else value


def _lines(error: ValidationError, place: str) -> list[str]:
    if error.validator == "anyOf":
        return _lines(_nearest(error), place)
    here = place + "".join(_step(each) for each in error.absolute_path)
    wanted: Any = error.validator_value
    value: Any = error.instance
    match error.validator:
        case "type":
            kinds = " or ".join(KINDS[each] for each in ([wanted] if isinstance(wanted, str) else wanted))
            return [f"{here}: is {_kind(value)}, and {kinds} is wanted"]
        case "enum" | "const":
            choices = ", ".join(_short(each) for each in (wanted if error.validator == "enum" else [wanted]))
            return [f"{here}: is {_short(value)}, and one of these is wanted: {_cut(choices, LONGEST * 5)}"]
        case "required":
            return [f"{here}{_step(each)}: is missing" for each in wanted if each not in value]
        case "additionalProperties" if wanted is False:
            schema = cast("dict[str, Json]", error.schema)
            patterns: dict[str, Json] = schema.get("patternProperties", {})
            extra = [each for each in value if each not in schema.get("properties", {})]
            extra = [each for each in extra if not any(re.search(pattern, each) for pattern in patterns)]
            return [f"{here}{_step(each)}: is not asked for" for each in extra]
        case _:
            return [f"{here}: is {_short(value)}, which does not fit {error.validator}: {_short(wanted)}"]


def _nearest(error: ValidationError) -> ValidationError:
    """Of several forms that do not fit, what is wrong with the one that the value comes nearest to."""
    from jsonschema import exceptions

    found: ValidationError = cast("Any", exceptions).best_match([error])
    return found


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step, ensure_ascii=False)}]"


def _kind(value: Json) -> str:
    """What a value is: a number as itself, else the word for its kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return json.dumps(value)
    return "a list" if isinstance(value, list) else "a map" if isinstance(value, dict) else "text"


def _short(value: Json) -> str:
    return _cut(json.dumps(value, ensure_ascii=False), LONGEST)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
