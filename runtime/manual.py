"""The reference of the file language, made from the models and filters: their docstrings are the text."""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import re
import sys
import types
import typing
from typing import Any

from pydantic.fields import FieldInfo

from nodes import registry
from nodes.base import Block, Confirm, Container, Leaf, Node, Retry
from nodes.errors import UsageError
from nodes.part import Part
from nodes.registry import NodeType
from nodes.rules import Rule
from nodes.targets import Target
from nodes.template import Ref
from nodes.values import Json
from runtime import filters, vocabulary

PARTS: dict[str, type[Part]] = {"target": Target, "rule": Rule, "retry": Retry, "confirm": Confirm}
"""What several nodes have in common and can be looked up by itself."""

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field of a node or a part."""

    name: str
    kind: str
    """What may stand there, in words."""
    required: bool
    default: Json
    """None where there is none, or where leaving it out means something of its own."""
    text: str
    references: bool
    secrets: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """The reference of a node or a part."""

    name: str
    text: str
    """What it does and what its value is."""
    effect: str | None
    """Its effect class where the file names none; None for what is no step."""
    fields: list[Field]
    envelope: list[Field]
    """What every node of its kind has."""

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        return dataclasses.asdict(self)


def summaries() -> list[tuple[str, str]]:
    """Every node type and variant, each with one sentence."""
    found: list[tuple[str, str]] = []
    for kind in registry.node_types().values():
        if kind.field is None:
            found.append((kind.name, _sentence(kind.base)))
        else:
            found += [(f"{kind.name}.{name}", _sentence(model)) for name, model in kind.variants.items()]
    return found


def entries(name: str) -> list[Entry]:
    """What there is under a name: ``iterate``, ``browser_action`` (each action), ``browser_action.click``, ``click``, ``target``.

    Raises UsageError ``unknown-node`` with the nearest name.
    """
    kinds = registry.node_types()
    if name in PARTS:
        return [_entry(name, PARTS[name])]
    if name in kinds:
        return _of_type(kinds[name])
    found = [
        _entry(f"{kind.name}.{variant}", model)
        for kind in kinds.values()
        for variant, model in kind.variants.items()
        if name in (variant, f"{kind.name}.{variant}")
    ]
    if found:
        return found
    known = [*kinds, *PARTS, *(each for each, _text in summaries())]
    close = registry.near(name, known) or registry.near(name, [each.rpartition(".")[2] for each in known])
    raise UsageError(
        "unknown-node",
        f"there is no node type `{name}`",
        mend=f"did you mean `{close}`?" if close else f"there are {', '.join([*kinds, *PARTS])}",
    )


def _of_type(kind: NodeType) -> list[Entry]:
    if kind.field is None:
        return [_entry(kind.name, kind.base)]
    return [_entry(f"{kind.name}.{name}", model) for name, model in kind.variants.items()]


def _entry(name: str, model: type[Part]) -> Entry:
    around: type[Part] | None = None
    if issubclass(model, Node):
        around = Leaf if issubclass(model, Leaf) else Container
    common = around.model_fields if around else {}
    own = [
        _field(each, model.model_fields[each]) for each in model.model_fields if each not in common or each == "type"
    ]
    envelope = [_field(each, model.model_fields[each]) for each in common if each != "type"]
    return Entry(
        name=name,
        text=plain(inspect.cleandoc(model.__doc__ or "")),
        effect=model.effect_default if issubclass(model, Leaf) else None,
        fields=sorted(own, key=lambda each: not each.required),
        envelope=envelope,
    )


def _field(name: str, field: FieldInfo) -> Field:
    literal = _literal(field.annotation)
    kind = literal if len(literal) == 1 else None
    refs = _refs(field.annotation, field.metadata)
    default = None if field.is_required() or field.default_factory is not None else field.default
    return Field(
        name=field.alias or name,
        kind=f"`{kind[0]}`" if kind else kind_of(field.annotation, tuple(field.metadata)),
        required=field.is_required() or name == "type",
        default=default if isinstance(default, str | int | float | bool) and not kind else None,
        text=plain(field.description or ""),
        references=bool(refs),
        secrets=any(ref.secret for ref in refs),
    )


def kind_of(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    """What may stand in a field, in the words of the file."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if typing.get_args(Block)[1] in metadata:
        return "list of nodes"
    if origin is typing.Annotated:
        return kind_of(arguments[0], arguments[1:])
    if origin in (typing.Union, types.UnionType):
        kinds = [kind_of(each) for each in arguments if each is not types.NoneType]
        return " or ".join(dict.fromkeys(kinds))
    if origin is typing.Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is list:
        return f"list of {kind_of(arguments[0])}" if arguments and arguments[0] is not Any else "list"
    if origin is dict:
        return f"map of names to {kind_of(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return next((name for name, part in PARTS.items() if part is annotation), annotation.__name__.lower())
    return WORDS.get(annotation, "any value")


def _literal(annotation: Any) -> list[Any]:
    return list(typing.get_args(annotation)) if typing.get_origin(annotation) is typing.Literal else []


def _refs(annotation: Any, metadata: Any) -> list[Ref]:
    found = [each for each in metadata if isinstance(each, Ref)]
    if typing.get_origin(annotation) is typing.Annotated:
        found += [each for each in typing.get_args(annotation)[1:] if isinstance(each, Ref)]
    for each in typing.get_args(annotation):
        if not isinstance(each, str | Ref):
            found += _refs(each, ())
    return found


def _sentence(model: type[Part]) -> str:
    first = plain(inspect.cleandoc(model.__doc__ or "")).split("\n\n")[0].split("\n")[0]
    return re.split(r"(?<=[.:]) (?=[A-Z])", first)[0]


def plain(text: str) -> str:
    """A docstring for people: single back-quotes."""
    return text.replace("``", "`")


def filter_table() -> str:
    """Every filter as a table in Markdown: ours by their docstrings, Jinja's by their names."""
    rows = [
        f"| `{vocabulary.usage(name)}` | {_row(function)} |"
        for name, function in sorted(filters.OWN.items())
        if name != "e"
    ]
    kept = ", ".join(f"`{name}`" for name in sorted(vocabulary.KEPT))
    return "\n".join(["| filter | what it gives |", "|---|---|", *rows, "", f"As in Jinja: {kept}."])


def _row(function: Any) -> str:
    return " ".join(inspect.cleandoc(function.__doc__ or "").split()).replace("|", "\\|")


FILTERS = re.compile(r"(?<=<!-- filters -->\n).*?(?=<!-- end -->)", re.DOTALL)


def with_filters(page: str) -> str:
    """A page of the manual with the table of filters put between its marks."""
    return FILTERS.sub(lambda _found: f"{filter_table()}\n", page, count=1)


if __name__ == "__main__":  # python -m runtime.manual docs/workflow-language.md
    for each in map(pathlib.Path, sys.argv[1:]):
        each.write_text(with_filters(each.read_text(encoding="utf-8")), encoding="utf-8")
