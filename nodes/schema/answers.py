"""Converts the text of an answer to its value: parses it, undoes the strict form, and checks it against its JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from nodes.schema import problems as schema_problems
from nodes.schema import regex, validator
from nodes.schema.strict import VALUE
from nodes.values import LARGEST_INTEGER, Json, NotJson, normalise

if TYPE_CHECKING:
    from jsonschema import ValidationError

FENCE = "```"
OPENING = re.compile(r"```[A-Za-z0-9]*[ \t]*\r?\n")
"""The line that opens a fenced block."""

MOST = 20
"""Limit of the problems reported at once."""

LONGEST = 120
"""Limit of a value or of a requirement in a problem, in characters."""

KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a map",
    "string": "text",
}
"""Words for JSON Schema's types."""


class Mismatch(ValueError):
    """An answer that does not fit the request: ``problems`` are one line each, with the place in the answer (``$.items[2].total``)."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read(text: str, meant: dict[str, Json], *, wrapped: bool, fill: bool) -> Json:
    """Return the value in an answer's text, which fits ``meant``. Raises Mismatch.

    The text is JSON, alone or in one fenced block. ``wrapped``: the value is the field ``value`` of a map; the value without that map is
    accepted too. ``fill``: missing fields that may be null are null.
    """
    answer = _parsed(text)
    place = "$"
    if wrapped and isinstance(answer, dict):
        if answer.keys() != {VALUE}:
            raise Mismatch((f'$: must be a map with the field "{VALUE}" and no other',))
        answer, place = answer[VALUE], f"$.{VALUE}"
    value, problems = compared(answer, meant, fill=fill, place=place)
    lines = list(dict.fromkeys(line for _path, line in problems))
    if len(lines) > MOST:
        lines[MOST:] = [f"and {len(lines) - MOST} more problems like these"]
    if lines:
        raise Mismatch(tuple(lines))
    return value


def compared(
    value: Json, meant: dict[str, Json], *, fill: bool, place: str = "$"
) -> tuple[Json, list[tuple[tuple[str | int, ...], str]]]:
    """Return the settled value, and each deviation from ``meant`` as its path and a line that begins with ``place``."""
    fit = _Fit(meant, fill)
    try:
        settled = fit.settled(value, meant)
        return settled, fit.problems(settled, place)
    except regex.PatternRefused as error:
        return value, [((), f"{place}: {error}")]


def place_of(path: Sequence[str | int]) -> str:
    """Return a path in an answer as text: ``$.items[2].total``."""
    return "$" + "".join(map(_step, path))


def _parsed(text: str) -> Json:
    try:
        found = json.loads(
            _unfenced(text), parse_constant=_no_number, parse_int=_integer, object_pairs_hook=_without_repeats
        )
        return normalise(found)
    except Mismatch:
        raise
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at line {error.lineno} column {error.colno}"
        raise Mismatch((f"$: the answer is no JSON: {problem if text.strip() else 'it is empty'}",)) from None
    except RecursionError:
        raise Mismatch(("$: the answer nests too deeply",)) from None
    except NotJson as error:
        raise Mismatch((f"$: {error}",)) from None
    except ValueError as error:
        raise Mismatch((f"$: the answer is no JSON: {error}",)) from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _unfenced(text: str) -> str:
    """Return the content of the fenced block that the text is, else the text."""
    inner = text.strip()
    opening = OPENING.match(inner)
    if opening is None or not inner.endswith(FENCE) or len(inner) < opening.end() + len(FENCE):
        return text
    return inner[opening.end() : -len(FENCE)]


def _integer(digits: str) -> int:
    # More digits are not even parsed: a larger number would change when it is read again.
    if len(digits) > len(str(-LARGEST_INTEGER)) or abs(int(digits)) > LARGEST_INTEGER:
        raise Mismatch(
            (f"$: the number {_cut(digits, LONGEST)} is too large to be stored: write it as text, or smaller",)
        )
    return int(digits)


def _without_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in pairs:
        if name in found:
            raise Mismatch((f"$: the field {short(name)} is twice in one map, and only one of them can be meant",))
        found[name] = value
    return found


class _Fit:
    def __init__(self, schema: dict[str, Json], fill: bool) -> None:
        self._defs: dict[str, Json] = schema.get("$defs", {})
        self._schema = schema
        self._fill = fill
        self._validator = validator.Validator(schema)
        # Keys are ids. Each entry keeps its value and its schema alive, so that no other objects get the same ids.
        self._settled: dict[tuple[int, int], tuple[Json, Json, Json]] = {}

    def settled(self, value: Json, schema: Json) -> Json:
        """Undo the changes of the strict form: a null for a missing field is removed, and 3.0 is 3 for whole numbers.

        Each part of the value is settled once for each part of the schema, however many forms lead to it.
        """
        key = id(value), id(schema)
        if key not in self._settled:
            self._settled[key] = value, schema, self._settle(value, schema)
        return self._settled[key][2]

    def _settle(self, value: Json, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return value
        said: dict[str, Json] = schema
        if "$ref" in said:
            value = self.settled(value, self._defs[schema_problems.named(said["$ref"])])
        for each in said.get("allOf", ()):
            value = self.settled(value, each)
        if "anyOf" in said:
            value = self._settled_form(value, said["anyOf"])
        if isinstance(value, dict):
            return self._settled_map(value, said)
        if isinstance(value, list):
            first: list[Json] = said.get("prefixItems", [])
            rest: Json = said.get("items", True)
            return [
                self.settled(each, first[index] if index < len(first) else rest) for index, each in enumerate(value)
            ]
        return _whole(value, said)

    def _settled_form(self, value: Json, branches: list[Json]) -> Json:
        for each in branches:
            settled = self.settled(value, each)
            if self._validator.takes(settled, each):
                return settled
        return value

    def _settled_map(self, value: dict[str, Json], schema: dict[str, Json]) -> dict[str, Json]:
        properties: dict[str, Json] = schema.get("properties", {})
        found: dict[str, Json] = {}
        for name, each in properties.items():
            if name not in value:
                if self._fill and self._validator.takes(None, each):
                    found[name] = None
            elif value[name] is not None or name in schema.get("required", ()) or self._validator.takes(None, each):
                found[name] = self.settled(value[name], each)
        other = schema.get("additionalProperties", True)
        return found | {name: self.settled(each, other) for name, each in value.items() if name not in properties}

    def problems(self, value: Json, place: str) -> list[tuple[tuple[str | int, ...], str]]:
        errors = self._validator.errors(value, self._schema)
        return [(tuple(error.absolute_path), line) for error in errors for line in self._lines(error, place)]

    def _lines(self, error: ValidationError, place: str) -> list[str]:
        here = place + "".join(map(_step, error.absolute_path))
        wanted: Any = error.validator_value
        value: Any = error.instance
        match error.validator:
            case "type":
                kinds = " or ".join(KINDS[each] for each in ([wanted] if isinstance(wanted, str) else wanted))
                inexact = "integer" in wanted and isinstance(value, float) and value.is_integer()
                digits = ", with all its digits" if inexact else ""
                return [f"{here}: is {_kind(value)}, and {kinds} is wanted{digits}"]
            case "enum" | "const":
                choices = ", ".join(short(each) for each in (wanted if error.validator == "enum" else [wanted]))
                return [f"{here}: is {short(value)}, and one of these is wanted: {_cut(choices, LONGEST * 5)}"]
            case "required":
                return [f"{here}{_step(each)}: is missing" for each in wanted if each not in value]
            case "additionalProperties" if wanted is False:
                extra = self._validator.unnamed(value, cast("dict[str, Json]", error.schema))
                return [f"{here}{_step(each)}: is not asked for" for each in extra]
            case _:
                return [f"{here}: is {short(value)}, which does not fit {error.validator}: {short(wanted)}"]


def _whole(value: Json, schema: dict[str, Json]) -> Json:
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else types
    meant = "integer" in types and "number" not in types and isinstance(value, float)
    return int(value) if meant and value.is_integer() and abs(value) < validator.EXACT else value


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step, ensure_ascii=False)}]"


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return json.dumps(value)
    return "a list" if isinstance(value, list) else "a map" if isinstance(value, dict) else "text"


def short(value: Json) -> str:
    return _cut(json.dumps(value, ensure_ascii=False), LONGEST)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
