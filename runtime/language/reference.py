"""Reference of the file language, generated from the docstrings of models and filters."""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import re
import sys
import types
import typing
from typing import Any

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from nodes import errors, registry
from nodes.base import Block, Confirm, Container, Leaf, Node, Retry
from nodes.errors import UsageError
from nodes.part import Part
from nodes.rules import Rule
from nodes.targets import Target
from nodes.template import Ref
from nodes.values import Json
from runtime.browser import options
from runtime.language import examples, inputs, workflow
from runtime.language.expressions import builtins, filters

PARTS: dict[str, type[Part]] = {
    "step": Leaf,
    "container": Container,
    "target": Target,
    "rule": Rule,
    "retry": Retry,
    "confirm": Confirm,
    "file": workflow.Workflow,
    "input": inputs.Input,
    "test": examples.WorkflowTest,
    "expected": examples.Expected,
    "browser": options.BrowserOptions,
    "overlay": options.Overlay,
}
"""Entries besides node types: common fields of steps and containers, parts used in their fields, and the file itself."""

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str  # accepted values, in words
    required: bool
    default: Json  # None if there is no default, or if leaving the field out has a separate meaning
    text: str
    references: bool
    secrets: bool

    @property
    def notes(self) -> list[str]:
        notes = [self.kind]
        if self.required:
            notes.append("required")
        if self.default is not None and self.default != "":
            written = str(self.default).lower() if isinstance(self.default, bool) else self.default
            notes.append(f"default `{written}`")
        if self.secrets:
            notes.append("takes references and secrets")
        elif self.references:
            notes.append("takes references")
        return notes


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    name: str
    text: str
    kinds: tuple[str, ...] = ()  # names of its kinds (actions, queries), if it has several


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """Reference of a node type, of one of its kinds, or of a part."""

    name: str
    text: str  # an empty line separates paragraphs
    value: str | None  # sentence about its value; None if the text describes it or there is none
    effect: str | None
    fields: list[Field]  # its own fields; for a type with several kinds, the fields of all kinds
    around: str | None  # `step` or `container`: the part whose fields it also has
    kinds: list[Entry]
    parts: list[Entry]  # parts used in its fields that have no separate entry

    def as_json(self) -> dict[str, Json]:
        return dataclasses.asdict(self)


def summaries() -> list[Summary]:
    return [
        Summary(kind.name, sentence(_documented(kind.base)), tuple(kind.variants))
        for kind in registry.node_types().values()
    ]


def entry(name: str, kind: str | None = None) -> Entry:
    """Return the entry of a name: ``iterate``, ``browser_action`` (with its actions), ``click``, ``browser_action.click``, ``target``.

    ``kind`` is one of its kinds, such as ``click`` of ``browser_action``. Raises UsageError ``unknown-node``.
    """
    if kind is not None:
        name = f"{name}.{kind}"
    types_ = registry.node_types()
    if name in PARTS:
        return _entry(name, PARTS[name])
    variants = {f"{each.name}.{variant}": model for each in types_.values() for variant, model in each.variants.items()}
    if name in types_:
        whole = _entry(name, types_[name].base)
        kinds = [_entry(each, model) for each, model in variants.items() if each.startswith(f"{name}.")]
        return dataclasses.replace(whole, effect=None, kinds=kinds) if types_[name].field is not None else whole
    found = [each for each in variants if name in (each, each.rpartition(".")[2])]
    if len(found) == 1:
        return _entry(found[0], variants[found[0]])
    if found:
        fix = " or ".join(f"runops nodes show {each}" for each in found)
        raise UsageError("unknown-node", f"`{name}` is the name of {len(found)} kinds of node", fix=fix)
    known = [*types_, *PARTS, *variants]
    close = errors.near(name, known) or errors.near(
        name.rpartition(".")[2], [each.rpartition(".")[2] for each in known]
    )
    fix = f"did you mean `{close}`?" if close else f"there are {', '.join([*types_, *PARTS])}"
    raise UsageError("unknown-node", f"there is no node type `{name}`", fix=fix)


def _entry(name: str, model: type[Part]) -> Entry:
    around = next((each for each in (Leaf, Container) if issubclass(model, each) and model is not each), None)
    common = around.model_fields if around else {"type": None} if issubclass(model, Node) else {}
    own = {
        each: field for each, field in model.model_fields.items() if each not in common or (each == "type" and around)
    }
    text, value = _without_value(_documented(model))
    return Entry(
        name=name,
        text=text,
        value=value,
        effect=model.effect_default if issubclass(model, Leaf) and around else None,
        fields=sorted((_field(*each) for each in own.items()), key=lambda each: not each.required),
        around=None if around is None else "step" if around is Leaf else "container",
        kinds=[],
        parts=[_entry(_word(each), each) for each in _parts(*(field.annotation for field in own.values()))],
    )


def _documented(model: type[Part]) -> str:
    return plain(inspect.cleandoc(model.__doc__ or ""))


VALUE = re.compile(r"\s*\bValue: (?P<value>[^\n].*?\.)(?=\s+[A-Z]|\s*$)", re.DOTALL)


def _without_value(text: str) -> tuple[str, str | None]:
    found = VALUE.search(text)
    if found is None:
        return text, None
    value = " ".join(found["value"].split())
    return (text[: found.start()] + text[found.end() :]).strip(), f"{value[0].upper()}{value[1:]}"


def _parts(*annotations: Any) -> list[type[Part]]:
    found: list[type[Part]] = []
    for each in annotations:
        if not (isinstance(each, type) and issubclass(each, Part)):
            found += _parts(*typing.get_args(each))
        elif each not in PARTS.values():
            found.append(each)
    return list(dict.fromkeys(found))


def _word(model: type[Part]) -> str:
    """Return a part's class name as words: ``FieldOf`` is a ``field``."""
    words = re.findall(r"[A-Z][a-z]*", model.__name__)
    return " ".join(each.lower() for each in words if each != "Of")


def _field(name: str, field: FieldInfo) -> Field:
    literal = typing.get_args(field.annotation) if typing.get_origin(field.annotation) is typing.Literal else ()
    kind = literal if len(literal) == 1 else None
    refs = _refs(field.annotation, field.metadata)
    default = None if field.is_required() or field.default_factory is not None else field.default
    return Field(
        name=field.alias or name,
        kind=f"`{kind[0]}`" if kind else kind_of(field.annotation, tuple(field.metadata)),
        required=field.is_required() or (name == "type" and kind is not None),
        default=default if isinstance(default, str | int | float | bool) and not kind else None,
        text=" ".join(plain(field.description or "").split()),
        references=bool(refs),
        secrets=any(ref.secret for ref in refs),
    )


def kind_of(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    """Describe the accepted values of a field in words of the file language."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if typing.get_args(Block)[1] in metadata:
        return "list of nodes"
    wider = next(
        (each.json_schema_input_type for each in metadata if isinstance(each, BeforeValidator)), PydanticUndefined
    )
    if wider is not PydanticUndefined:
        return kind_of(wider)
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
        return next((name for name, part in PARTS.items() if part is annotation), _word(annotation))
    return WORDS.get(annotation, "any value")


def _refs(annotation: Any, metadata: Any) -> list[Ref]:
    found = [each for each in metadata if isinstance(each, Ref)]
    if typing.get_origin(annotation) is typing.Annotated:
        found += [each for each in typing.get_args(annotation)[1:] if isinstance(each, Ref)]
    for each in typing.get_args(annotation):
        if not isinstance(each, str | Ref):
            found += _refs(each, ())
    return found


def sentence(text: str) -> str:
    return re.split(r"(?<=[.:]) (?=[A-Z])", text.split("\n\n", maxsplit=1)[0].replace("\n", " "))[0]


def plain(text: str) -> str:
    """Return a docstring for people: with single back-quotes."""
    return text.replace("``", "`")


def with_filters(page: str) -> str:
    """Return the page with the table of filters between its marks."""
    lines = ["| filter | what it gives |", "|---|---|"]
    for name, function in sorted(filters.OWN.items()):
        if name != "e":
            text = " ".join(inspect.cleandoc(function.__doc__ or "").split()).replace("|", "\\|")
            lines.append(f"| `{builtins.usage(name)}` | {text} |")
    kept = ", ".join(f"`{name}`" for name in sorted(builtins.KEPT))
    table = "\n".join([*lines, "", f"As in Jinja: {kept}.", ""])
    return re.sub(r"(?<=<!-- filters -->\n).*?(?=<!-- end -->)", lambda _found: table, page, count=1, flags=re.DOTALL)


if __name__ == "__main__":  # python -m runtime.language.reference docs/references.md
    for each in map(pathlib.Path, sys.argv[1:]):
        each.write_text(with_filters(each.read_text(encoding="utf-8")), encoding="utf-8")
