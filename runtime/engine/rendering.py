"""Rendering of a leaf: every reference becomes a value that fits its field.

The fields with references are found once per node. A step then costs one render for each of them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import math
import time
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from nodes.base import Confirm, Leaf, Node
from nodes.errors import AuthorError
from nodes.part import Part
from nodes.template import Coerce, Ref, Template, Unfit, to_json
from nodes.values import Json
from runtime.language.expressions.limits import Unusable
from runtime.language.expressions.references import Clock, Compiled

ENVELOPE = frozenset(
    {"id", "type", "description", "when", "on_error", "timeout", "retry", "effect", "after_crash", "confirm"}
)
"""Fields of a leaf that are not among the arguments of its call."""


Place = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Placeholder:
    place: Place
    named: Place  # place by the names of the file: `as` where the model has `as_`
    text: Template
    coerce: Coerce
    secret: bool

    @property
    def field(self) -> str:
        return ".".join(str(part) for part in self.named)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    node: Leaf
    placeholders: tuple[Placeholder, ...]
    args: dict[str, Json]


def plan(node: Leaf) -> Plan:
    placeholders = tuple(_placeholders(node, (), (), ENVELOPE))
    args = node.model_dump(mode="json", exclude_unset=True, by_alias=True, exclude=set(ENVELOPE))
    return Plan(node, placeholders, args)


def literal(node: Leaf) -> Plan:
    """Return the plan of a leaf whose fields are values, even if they look like templates: nothing in it is rendered."""
    return dataclasses.replace(plan(node), placeholders=())


def _placeholders(part: Part, place: Place, named: Place, skip: frozenset[str] = frozenset()) -> Iterator[Placeholder]:
    for name in part.model_fields_set - skip:
        value = getattr(part, name)
        alias = type(part).model_fields[name].alias or name
        if not isinstance(value, Node | Confirm):
            yield from _placeholders_in(value, (*place, name), (*named, alias), _ref_of(type(part), name))


def _placeholders_in(value: Any, place: Place, named: Place, ref: Ref | None) -> Iterator[Placeholder]:
    if isinstance(value, Template):
        yield Placeholder(place, named, value, ref.coerce if ref else to_json, bool(ref and ref.secret))
    elif isinstance(value, Part) and not isinstance(value, Node):
        yield from _placeholders(value, place, named)
    elif isinstance(value, dict | list):
        within = ref.inside() if ref else None
        items: Any = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _placeholders_in(item, (*place, key), (*named, key), within)


@functools.cache
def _ref_of(model: type[BaseModel], name: str) -> Ref | None:
    field = model.model_fields[name]
    return next((each for each in field.metadata if isinstance(each, Ref)), None) or _ref_in(field.annotation)


def _ref_in(annotation: Any) -> Ref | None:
    for each in getattr(annotation, "__metadata__", ()):
        if isinstance(each, Ref):
            return each
    found = (_ref_in(argument) for argument in typing.get_args(annotation))
    return next((each for each in found if each is not None), None)


def render_deep(value: Json, templates: Mapping[str, Compiled], values: Mapping[str, Json], clock: Clock) -> Json:
    if isinstance(value, Template):
        return templates[value].render(values, clock)
    if isinstance(value, dict):
        return {key: render_deep(item, templates, values, clock) for key, item in value.items()}
    if isinstance(value, list):
        return [render_deep(item, templates, values, clock) for item in value]
    return value


def coerce_field(part: Part, field: str, value: Json) -> Json:
    ref = _ref_of(type(part), field)
    return fit(value, ref.coerce if ref else to_json, field.removesuffix("_"))


def fit(value: Json, coerce: Coerce, field: str) -> Json:
    """Return ``value`` coerced. Raises AuthorError ``value-mismatch``, naming the field."""
    try:
        return coerce(value)
    except Unfit as unfit:
        raise AuthorError(
            "value-mismatch",
            f"`{field}` {unfit}",
            fix=f"give `{field}` a value of that kind; filters turn one into another (`number`, `from_json`, `list`, `json`)",
            evidence={"field": field},
        ) from None


def filled(part: Part, templates: Mapping[str, Compiled], values: Mapping[str, Json], clock: Clock) -> Any:
    """Return ``part`` with all its references replaced by values. Raises AuthorError for a value that does not fit."""
    for placeholder in _placeholders(part, (), ()):
        value = fit(templates[placeholder.text].render(values, clock), placeholder.coerce, placeholder.field)
        part = put(part, placeholder.place, value)
    return part


def put(part: Any, place: Sequence[Any], value: Any) -> Any:
    head, rest = place[0], place[1:]
    if isinstance(part, BaseModel):
        name = typing.cast("str", head)
        inner = put(getattr(part, name), rest, value) if rest else value
        return part.model_copy(update={name: inner})
    copy: Any = list(part) if isinstance(part, list) else dict(part)
    copy[head] = put(part[head], rest, value) if rest else value
    return copy


class RecordedClock:
    def __init__(self, before: list[str], hide: Callable[[str], None] | None = None) -> None:
        """``hide`` is called with each one-time code before it is used; without it there are none."""
        self._before = before
        self._hide = hide
        self.given: list[str] = []
        self.valid = math.inf  # seconds for which the one-time codes are valid

    def now(self) -> str:
        return self._give(lambda: dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))

    def uuid(self) -> str:
        return self._give(lambda: str(uuid.uuid4()))

    def _give(self, make: Callable[[], str]) -> str:
        position = len(self.given)
        value = self._before[position] if position < len(self._before) else make()
        self.given.append(value)
        return value

    def totp(self, secret: str) -> str:
        from runtime.secrets import one_time  # few runs need it

        if self._hide is None:
            raise Unusable("`totp` works where a text is typed: in `value` of `fill`, `type`, `paste` and `dialog`")
        code = one_time.code(secret, time.time())
        self.valid = min(self.valid, code.left)
        self._hide(code.text)
        return code.text
