"""Checks values against a JSON Schema, in time at most proportional to the value and the schema.

The library `jsonschema` is correct, but its time has no bound. With recursive definitions each level of a value doubles the checks for each
possible form, and unique items are compared pairwise. Here each definition is checked once per value, and only the nearest of several forms
is reported. Unique items are compared by a hash of their content, and all patterns share one time limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from nodes.schema import problems, regex
from nodes.values import Json

if TYPE_CHECKING:
    from jsonschema import ValidationError

EXACT = 2**53
"""From here on a float cannot represent every whole number: the written number may have been its neighbour."""


class Validator:
    """Checks values against one schema of an author and its parts. Checked values must not change."""

    def __init__(self, schema: dict[str, Json]) -> None:
        from jsonschema import Draft202012Validator, validators

        base: Any = Draft202012Validator
        self._defs: dict[str, Json] = schema.get("$defs", {})
        self._kind: Any = cast("Any", validators).extend(
            base,
            {
                "$ref": self._reference,
                "anyOf": _any_of,
                "uniqueItems": _unique,
                "pattern": self._pattern,
                "patternProperties": self._named_by_pattern,
                "additionalProperties": self._additional,
            },
            type_checker=base.TYPE_CHECKER.redefine("integer", _is_whole),
        )
        # Keys are ids. Each entry keeps its value alive, so that no other value gets the same id.
        self._found: dict[tuple[str, int], tuple[Json, tuple[ValidationError, ...]]] = {}
        self._taken: dict[tuple[int, int], tuple[Json, Json, bool]] = {}
        self._seconds = regex.SECONDS

    def takes(self, value: Json, schema: Json) -> bool:
        """Return whether the value fits a part of the schema. Raises PatternRefused if that takes too long."""
        key = id(value), id(schema)
        if key not in self._taken:
            self._taken[key] = value, schema, next(self.errors(value, schema), None) is None
        return self._taken[key][2]

    def errors(self, value: Json, schema: Json) -> Iterator[ValidationError]:
        """Yield the errors, each with its place in the value; of alternative forms only those of the nearest.

        Raises PatternRefused if the patterns of the schema take too long: then it is unknown whether the value fits.
        """
        whole = {**schema, "$defs": self._defs} if isinstance(schema, dict) else schema
        yield from self._kind(whole, format_checker=problems.checker()).iter_errors(value)

    def _reference(self, validator: Any, reference: str, value: Json, _schema: Json) -> Iterator[ValidationError]:
        key = reference, id(value)
        if key not in self._found:
            found = validator.descend(value, self._defs[problems.named(reference)])
            self._found[key] = value, tuple(map(_alone, found))
        # Yield copies, because the caller writes its own place into each error.
        yield from map(_alone, self._found[key][1])

    def _pattern(self, _validator: Any, pattern: str, value: Json, _schema: Json) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        if isinstance(value, str) and not self._matches(pattern, value):
            yield ValidationError("it does not fit the pattern")

    def _named_by_pattern(
        self, validator: Any, named: dict[str, Json], value: Json, _schema: Json
    ) -> Iterator[ValidationError]:
        if isinstance(value, dict):
            for pattern, schema in named.items():
                for name, each in value.items():
                    if self._matches(pattern, name):
                        yield from validator.descend(each, schema, path=name)

    def _additional(self, validator: Any, wanted: Json, value: Json, schema: Json) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        extra = self.unnamed(value, schema) if isinstance(value, dict) else []
        if wanted is False and extra:
            yield ValidationError("fields are not asked for")
        elif isinstance(wanted, dict):
            for name in extra:
                yield from validator.descend(value[name], wanted, path=name)

    def unnamed(self, value: dict[str, Json], schema: dict[str, Json]) -> list[str]:
        named: dict[str, Json] = schema.get("patternProperties", {})
        known: dict[str, Json] = schema.get("properties", {})
        return [
            each for each in value if each not in known and not any(self._matches(pattern, each) for pattern in named)
        ]

    def _matches(self, pattern: str, text: str) -> bool:
        if self._seconds <= 0:
            raise regex.PatternRefused(f"{pattern!r} and other patterns take too long on this value")
        before = time.process_time()
        found = next(regex.matches(pattern, text, self._seconds), None)
        self._seconds -= time.process_time() - before
        return found is not None


def _alone(error: ValidationError) -> ValidationError:
    copy: Any = type(error).create_from(error)
    copy.parent = None
    return copy


def _any_of(validator: Any, forms: list[Json], value: Json, _schema: Json) -> Iterable[ValidationError]:
    from jsonschema import ValidationError

    every: list[list[ValidationError]] = []
    for form in forms:
        found = list(validator.descend(value, form))
        if not found:
            return []
        every.append(found)
    every.sort(key=_distance)
    if len(every) == 1 or _distance(every[0]) < _distance(every[1]):
        return every[0]
    return [ValidationError("it fits no form, and is as near to one as to another")]


def _distance(errors: list[ValidationError]) -> tuple[bool, int, int]:
    """Return the distance from a form: whether the type differs, how many fields indicate another form, and the number of errors."""
    here = [each for each in errors if not each.path]
    other = [each for each in errors if len(each.path) == 1 and each.validator in ("const", "enum")]
    return any(each.validator in ("type", "const", "enum") for each in here), len(other), len(errors)


def _unique(_validator: Any, wanted: bool, value: Json, _schema: Json) -> Iterable[ValidationError]:
    from jsonschema import ValidationError

    if wanted and isinstance(value, list) and len(set(map(_held, cast("list[Json]", value)))) < len(value):
        return [ValidationError("two items are the same")]
    return []


def _held(value: Json) -> object:
    """Return a key that is equal exactly for values that JSON Schema treats as equal: 1 is 1.0, and true is not 1."""
    if isinstance(value, list):
        return "list", tuple(map(_held, cast("list[Json]", value)))
    if isinstance(value, dict):
        return "map", frozenset((name, _held(each)) for name, each in cast("dict[str, Json]", value).items())
    return (isinstance(value, bool), value)


def _is_whole(_checker: Any, value: Json) -> bool:
    if isinstance(value, float):
        return value.is_integer() and abs(value) < EXACT
    return isinstance(value, int) and not isinstance(value, bool)
