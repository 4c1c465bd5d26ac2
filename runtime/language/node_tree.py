"""Node tree of a workflow file as written: its nodes, blocks and references, each with its place.

A misspelt field is read as the intended one, so one mistake does not hide others.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from nodes import errors, registry
from nodes.base import Block, Confirm, Leaf, Node
from nodes.part import Part
from nodes.template import Ref, to_text
from nodes.values import Json
from runtime.language.expressions.references import holds_reference
from runtime.language.yaml_text import Path

FREE_TEXT = frozenset({"name", "description"})  # fields without references that may have any text
IDENTIFYING = ("type", "action", "query")  # fields that identify a node
BLOCK = typing.get_args(Block)[1]  # marker of a field that contains nodes


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """Content that a field accepts: references, nodes, or parts that may contain them."""

    ref: Ref | None = None
    block: bool | None = False
    part: type[Part] | None = None
    item: Shape | None = None
    value: Shape | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceSite:
    path: Path
    text: str
    ref: Ref | None  # kind of references that the place takes; None if it takes none
    field: str  # field of the node (or of the workflow) that contains it


@dataclasses.dataclass(slots=True)
class NodeSource:
    path: Path
    data: dict[str, Json]  # its fields, with corrected names
    model: type[Node] | None  # its model, or the likely one; None if unknown
    slots: list[ReferenceSite] = dataclasses.field(default_factory=list)
    """References in its own fields, in the order of the file; without those in its blocks and its ``confirm``."""
    blocks: list[tuple[Path, list[NodeSource]]] = dataclasses.field(default_factory=list)
    """Its blocks, each with the path of its list of nodes."""
    confirm: list[NodeSource] = dataclasses.field(default_factory=list)
    done: list[ReferenceSite] = dataclasses.field(default_factory=list)
    """References in its ``confirm``, outside its nodes."""

    @property
    def id(self) -> str | None:
        return self.text("id")

    def text(self, field: str) -> str | None:
        value = self.data.get(field)
        return value if isinstance(value, str) and value else None

    @property
    def type(self) -> str:
        return self.text("type") or "node"

    def slot(self, field: str) -> ReferenceSite | None:
        """Return the reference that is directly in a field, not in a list or map of it."""
        return next((each for each in self.slots if each.field == field and len(each.path) == len(self.path) + 1), None)


class Anatomy:
    def __init__(self, data: Mapping[str, Json], model: type[Part]) -> None:
        self.slots: list[ReferenceSite] = []  # references of the workflow's own fields
        self.units: list[NodeSource] = []
        self.parts: dict[Path, type[Part]] = {}  # model of each map of the file, if known
        self.misspelt: dict[Path, str] = {}
        """Intended field of each misspelt one, and of each that stands for a missing one."""
        self.strangers: set[Path] = set()
        """Fields that stand for the one missing field of their part, however they are spelt; they are among ``misspelt`` too."""
        self.unknown: dict[Path, list[str]] = {}  # unknown fields of a part without an intended one
        self.mistaken: dict[Path, tuple[str, str, str]] = {}
        """Misspelt types, actions and queries by path: the field, the word as written, the intended word."""
        self._written: dict[Path, str] = {}  # key as written, by the path of the intended field
        self.clean: dict[str, Json] = self._part(data, model, (), None)
        """Intended data, for the models to check: without ``x-…`` keys where field names are expected."""

    def every_unit(self) -> Iterator[NodeSource]:
        """Yield all nodes, parents first; includes blocks and ``confirm``."""
        pending = list(reversed(self.units))
        while pending:
            unit = pending.pop()
            yield unit
            inner = [each for _path, block in unit.blocks for each in block] + unit.confirm
            pending += reversed(inner)

    def every_slot(self) -> Iterator[ReferenceSite]:
        yield from self.slots
        for unit in self.every_unit():
            yield from unit.slots
            yield from unit.done

    def written(self, path: Path) -> Path:
        """Return the path in the file of ``path`` in ``clean``."""
        found: Path = ()
        for step in path:
            found = (*found, self._written.get((*found, str(step)), step))
        return found

    def _part(
        self, data: Mapping[str, Json], model: type[Part], path: Path, unit: NodeSource | None
    ) -> dict[str, Json]:
        self.parts[path] = model
        fields = {(field.alias or name): name for name, field in model.model_fields.items()}
        meant = self._meant(data, model, path)
        clean: dict[str, Json] = {}
        for key, value in data.items():
            if key.startswith("x-"):
                continue
            name = fields.get(meant.get(key, key))
            if name is None:
                clean[key] = value
                continue
            field = model.model_fields[name].alias or name
            home = field
            if unit is not None and len(path) > len(unit.path):
                # A field of one of the node's parts counts as the node's field that contains the part.
                outer = path[: len(unit.path) + 1]
                home = self.misspelt.get(outer, str(outer[-1]))
            inside = self._value(value, shape_of(model, name), (*path, key), unit, home)
            clean[field] = self._choice(model, field, inside, (*path, key))
        return clean

    def _choice(self, model: type[Part], field: str, value: Json, path: Path) -> Json:
        if not issubclass(model, Node) or not isinstance(value, str):
            return value
        kinds, kind = registry.node_types(), registry.type_of(model)
        choices: Mapping[str, Any] = kinds if field == "type" else kind.variants if kind and field == kind.field else {}
        if not choices or value in choices:
            return value
        close = kind.name if kind is not None and field == "type" else errors.near(value, choices)
        if close is None:
            return value
        self.mistaken[path] = (field, value, close)
        return close

    def is_guess(self, owner: Path) -> bool:
        """Return True if it is only a guess what a node is: then it may have other fields."""
        return any((*owner, field) in self.mistaken for field in IDENTIFYING)

    def _meant(self, data: Mapping[str, Json], model: type[Part], path: Path) -> dict[str, str]:
        """Return the intended field of each misspelt one; of an unknown node only those of ``IDENTIFYING``."""
        fields = {field.alias or name for name, field in model.model_fields.items()}
        kind = registry.type_of(model) if issubclass(model, Node) else None
        is_known = not issubclass(model, Node) or (kind is not None and model in kind.models)
        found: dict[str, str] = {}
        strange: list[str] = []
        for key in data:
            if key in fields or key.startswith("x-"):
                continue
            given = {*data, *found.values()}
            free = [field for field in fields if field not in given and (is_known or field in IDENTIFYING)]
            lacking = [field for field in model.lacking(given) if field in free]
            if close := _spelt_like(key, sorted(free), lacking):
                found[key] = close
            else:
                strange.append(key)
        lacking = model.lacking({*data, *found.values()})
        if is_known and len(strange) == len(lacking) == 1:
            found[strange[0]] = lacking[0]
            self.strangers.add((*path, strange[0]))
        elif strange:
            self.unknown[path] = strange
        for key, close in found.items():
            self.misspelt[*path, key] = close
            self._written[*path, close] = key
        return found

    def _value(self, value: Json, shape: Shape, path: Path, unit: NodeSource | None, field: str) -> Json:
        if shape.ref is not None:
            self._texts(value, shape.ref, path, unit, field)
        elif shape.block and isinstance(value, list):
            return self._block(value, path, unit)
        elif isinstance(value, dict) and shape.part is not None:
            return self._part(value, shape.part, path, unit)
        elif isinstance(value, dict) and shape.value is not None:
            return {key: self._value(item, shape.value, (*path, key), unit, field) for key, item in value.items()}
        elif isinstance(value, list) and shape.item is not None:
            return [self._value(item, shape.item, (*path, index), unit, field) for index, item in enumerate(value)]
        elif isinstance(value, str) and field not in FREE_TEXT:
            # A text in place of a map is its short form, such as the selector of a field.
            self._texts(value, Ref(to_text) if shape.part is not None else None, path, unit, field)
        return value

    def _texts(self, value: Json, ref: Ref | None, path: Path, unit: NodeSource | None, field: str) -> None:
        if isinstance(value, str):
            if holds_reference(value):
                home = self.slots if unit is None else unit.done if field == "confirm" else unit.slots
                home.append(ReferenceSite(path, value, ref, field))
        elif isinstance(value, dict):
            for key, item in value.items():
                self._texts(item, ref, (*path, key), unit, field)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._texts(item, ref, (*path, index), unit, field)

    def _block(self, value: list[Json], path: Path, owner: NodeSource | None) -> list[Json]:
        units: list[NodeSource] = []
        clean = [self._unit(item, (*path, index), units) for index, item in enumerate(value)]
        if owner is None:
            self.units = units
        elif self.parts.get(path[:-1]) is Confirm:
            owner.confirm = units
        else:
            owner.blocks.append((path, units))
        return clean

    def _unit(self, item: Json, path: Path, units: list[NodeSource]) -> Json:
        if not isinstance(item, dict):
            return item
        model = model_of(item)
        unit = NodeSource(path, item, model)
        units.append(unit)
        clean = self._part(item, model or Leaf, path, unit)
        read = {block for block, _units in unit.blocks}
        for key in ("nodes", "otherwise"):
            # The owner of these nodes is unknown. They are read so that their ids are known.
            if isinstance(value := unit.data.get(key), list) and (*path, key) not in read:
                clean[key] = self._block(value, (*path, key), unit)
        unit.data = clean
        return clean


def model_of(data: Mapping[str, Json]) -> type[Node] | None:
    """Return the model of a node by its ``type`` and ``action`` or ``query``, or the most similar one."""
    kinds = registry.node_types()
    word = _entry(data, "type")
    kind = kinds.get(word) if isinstance(word, str) else None
    if kind is None and isinstance(word, str):
        # What it does tells more than the spelling of its type.
        kind = next((each for each in kinds.values() if _does(data, each)), None)
        kind = kind or kinds.get(_near(word, kinds))
    if kind is None:
        return None
    if kind.field is None:
        return kind.base
    return kind.variants.get(_near(_entry(data, kind.field), kind.variants)) or kind.base


def _does(data: Mapping[str, Json], kind: registry.NodeType) -> bool:
    """True if the node names a variant of this type."""
    named = data.get(kind.field) if kind.field else None
    return isinstance(named, str) and named in kind.variants


def _spelt_like(key: str, free: Collection[str], lacking: Collection[str]) -> str | None:
    """Return the field that ``key`` is a misspelling or a longer or shorter form of, preferably one that is lacking."""
    if close := errors.near(key, lacking):
        return close
    # Beside a field that is lacking, a word must be nearly another one to be taken for that.
    if close := next(iter(difflib.get_close_matches(key, free, n=1, cutoff=0.8 if lacking else 0.6)), None):
        return close
    return next((each for each in lacking or free if _is_form(key, each)), None)


def _is_form(one: str, other: str) -> bool:
    """Return True if a word is a longer form of the other, such as ``expression`` and ``expr``."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and long.startswith(short)


def _entry(data: Mapping[str, Json], key: str) -> Json:
    return data[key] if key in data else data.get(errors.near(key, data) or key)


def _near(word: Json, choices: Mapping[str, Any]) -> str:
    if not isinstance(word, str):
        return ""
    return word if word in choices else errors.near(word, choices) or ""


def texts_for_secrets(part: Part, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the texts of all fields that take secrets: what is typed, or sent to a site."""
    for name, field in type(part).model_fields.items():
        yield from _texts_for_secrets(getattr(part, name), shape_of(type(part), name), (*path, field.alias or name))


def _texts_for_secrets(value: Any, shape: Shape, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Part):
        yield from texts_for_secrets(value, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts_for_secrets(item, shape.value or shape, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts_for_secrets(item, shape.item or shape, (*path, index))
    elif value is not None and shape.ref is not None and shape.ref.secret:
        yield path, str(value)


@functools.cache
def shape_of(model: type[Part], name: str) -> Shape:
    field = model.model_fields[name]
    return _shape(field.annotation, tuple(field.metadata))


def _shape(annotation: Any, metadata: tuple[Any, ...]) -> Shape:
    for each in metadata:
        if isinstance(each, Ref):
            return Shape(ref=each)
        if each is BLOCK:
            return Shape(block=True)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _shape(arguments[0], arguments[1:])
    if origin in (typing.Union, types.UnionType):
        shapes = [_shape(each, ()) for each in arguments]
        names = [field.name for field in dataclasses.fields(Shape)]
        return Shape(**{name: next(filter(None, (getattr(each, name) for each in shapes)), None) for name in names})
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return Shape(part=annotation)
    if origin is list:
        return Shape(item=_shape(arguments[0], ()))
    if origin is dict:
        return Shape(value=_shape(arguments[1], ()))
    return Shape()
