"""Converts pydantic's errors to diagnostics in the words of the file language."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from nodes import errors as nodes_errors
from nodes import registry
from nodes.base import Leaf, Node
from nodes.part import Part
from nodes.targets import ROLES
from nodes.template import kind_of
from nodes.values import Json
from runtime.language.diagnostics import Diagnostic
from runtime.language.node_tree import Anatomy
from runtime.language.yaml_text import Document, Path

Error = Mapping[str, Any]

WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "none_required": "empty",
    "block": "a list of nodes",
    "node": "a node: a map with `id`, `type` and what it does",
}
"""Expected value for each of pydantic's type errors."""


def explain(error: ValidationError, anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    """Return one diagnostic for each mistake."""
    grouped: dict[tuple[Path, bool], list[Error]] = {}
    for each in error.errors(include_url=False):
        # Alternatives fail together at one place: they are one mistake.
        grouped.setdefault((located(each["loc"], anatomy.clean), each["type"] in WANTED), []).append(each)
    return [
        _Mismatch(anatomy.written(path), errors, anatomy, document).diagnostic()
        for (path, _type), errors in grouped.items()
    ]


def misspelt(anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    """Return one diagnostic for each misspelt field, type, action and query with a likely meaning."""
    nothing: list[Error] = [{"type": "", "input": None}]
    fields = [
        _Mismatch(path, nothing, anatomy, document).unknown_field(meant) for path, meant in anatomy.misspelt.items()
    ]
    values = [
        _Mismatch(path, nothing, anatomy, document).say(
            "unknown-choice", f"there is no {field} `{value}`", f"did you mean `{meant}`?"
        )
        for path, (field, value, meant) in anatomy.mistaken.items()
    ]
    return fields + values


def located(loc: tuple[str | int, ...], data: Json) -> Path:
    """Return the path in the file for a location of pydantic, which also names alternatives and validators."""
    path: list[str | int] = []
    here = data
    for number, step in enumerate(loc):
        known: Mapping[Any, Json] = (
            here if isinstance(here, dict) else dict(enumerate(here)) if isinstance(here, list) else {}
        )
        if step in known:
            here = known[step]
            path.append(step)
        elif number == len(loc) - 1 and isinstance(here, dict):
            path.append(step)  # a field that is missing
    return tuple(path)


class _Mismatch:
    """One invalid place, with pydantic's errors about it."""

    def __init__(self, path: Path, errors: list[Error], anatomy: Anatomy, document: Document) -> None:
        self.path = path
        self.errors = errors
        self.anatomy = anatomy
        self.document = document
        self.error = errors[0]
        self.value: Json = self.error["input"]
        self.field = self._field()

    def _field(self) -> str:
        """Return the place in words: the field, or the item of a list."""
        if not self.path:
            return "the file"
        last = self.path[-1]
        return (
            f"`{last}`"
            if isinstance(last, str)
            else f"item {last + 1} of `{next((each for each in reversed(self.path) if isinstance(each, str)), '')}`"
        )

    def diagnostic(self) -> Diagnostic:
        """Return the mistake."""
        kind = self.error["type"]
        if kind == "extra_forbidden":
            return self.unknown_field(None)
        if kind == "missing":
            return self._missing()
        if kind == "choice":
            return self.say("unknown-choice", str(self.error["msg"]), _choices(self.error["ctx"]["choices"]))
        if kind == "literal_error":
            return self._literal()
        if kind in WANTED or len(self.errors) > 1:
            return self._wrong_type()
        return self.say(*self._plainly())

    def say(self, code: str, message: str, *help: str | None, key: bool = False, label: str = "") -> Diagnostic:
        """Create a diagnostic at the place, or at its key."""
        return self.document.source.diagnostic(
            code, message, self.document.mark(self.path, key=key), label=label, help=help
        )

    def unknown_field(self, meant: str | None) -> Diagnostic:
        """Report an unknown field; ``meant`` is the likely intended one."""
        key = str(self.path[-1])
        owner = self.path[:-1]
        model = self.anatomy.parts.get(owner)
        fields = _fields(model) if model else []
        what = self._what(owner, model)
        elsewhere = self._elsewhere(key, model)
        return self.say(
            "unknown-field",
            f"`{key}` is not a field of {what}",
            elsewhere,
            f"did you mean `{meant}`?" if meant and not elsewhere else None,
            "merge keys are not part of YAML 1.2: write the fields out" if key == "<<" else None,
            f"{what} takes {', '.join(fields)}" if fields and not meant else None,
            key=True,
        )

    def _what(self, owner: Path, model: type[Part] | None) -> str:
        if not owner:
            return "a workflow"
        if model is not None and issubclass(model, Node):
            name = _name_of(model)
            return f"`{name}`" if name else "a node"
        last = next((each for each in reversed(owner) if isinstance(each, str)), "")
        return f"`{last}`" if isinstance(owner[-1], str) else f"an item of `{last}`"

    def _elsewhere(self, key: str, model: type[Part] | None) -> str | None:
        """Return a sentence about other nodes that have the field."""
        if model is None or not issubclass(model, Node):
            return None
        owners = [_name_of(each) for each in _siblings(model) if key in _fields(each)]
        if not owners:
            owners = [_name_of(each) for each in _all_models() if key in _fields(each)]
        if not owners:
            return None
        return f"it is a field of {', '.join(f'`{each}`' for each in owners[:4])}{' and others' if len(owners) > 4 else ''}"

    def _missing(self) -> Diagnostic:
        key = str(self.path[-1])
        owner = self.path[:-1]
        model = self.anatomy.parts.get(owner)
        mark = self.document.mark(owner) or self.document.mark(())
        help = _choices(registry.node_types()) if key == "type" else None
        if key in ("action", "query") and model is not None and issubclass(model, Node):
            kind = registry.node_types().get(str(model.model_fields["type"].default))
            help = _choices(kind.variants) if kind else None
        elif model is not None and (name := _python_name(model, key)):
            help = _first_sentence(model.model_fields[name].description)
        return self.document.source.diagnostic(
            "missing-field", f"{self._what(owner, model)} needs `{key}`", mark, label=f"`{key}` is missing", help=[help]
        )

    def _literal(self) -> Diagnostic:
        field = self.path[-1]
        model = self.anatomy.parts.get(self.path[:-1])
        choices = _literals(model, str(field)) if model is not None else []
        if not self.path[:-1] and field == "version":
            return self.say(
                "unknown-version",
                f"version {self.value!r} of the file language is not known",
                "this RunOps reads `version: 1`",
            )
        wanted = ", ".join(f"`{_yaml(each)}`" for each in choices) or str(self.error.get("ctx", {}).get("expected", ""))
        close = (
            nodes_errors.near(self.value, [each for each in choices if isinstance(each, str)])
            if isinstance(self.value, str)
            else None
        )
        given = f"`{self.value}`" if isinstance(self.value, str) else kind_of(self.value)
        return self.say(
            "unknown-choice",
            f"{self.field} cannot be {given}",
            f"did you mean `{close}`?" if close else f"it is one of {wanted}",
        )

    def _wrong_type(self) -> Diagnostic:
        wanted = list(dict.fromkeys(WANTED[each["type"]] for each in self.errors if each["type"] in WANTED))
        value, kinds = self.value, {each["type"] for each in self.errors}
        help: str | None = None
        if "string_type" in kinds and isinstance(value, bool | int | float):
            help = f'write it in quotes: "{_yaml(value)}"'
        elif isinstance(value, str) and kinds & {"int_type", "float_type", "bool_type"}:
            help = _unquoted(value, kinds)
        elif isinstance(value, dict) and kinds & {"list_type", "block"}:
            help = "a list has a `-` before each item"
        given = "left empty" if value is None else kind_of(value)
        return self.say("wrong-type", f"{self.field} must be {' or '.join(wanted)}, and is {given}", help)

    def _plainly(self) -> tuple[str, str, str | None]:
        """Return code, message and help for the remaining errors: bounds, patterns, and the models' own rules."""
        kind, context = self.error["type"], self.error.get("ctx", {})
        build = BOUNDS.get(kind)
        if build is not None:
            return "out-of-bounds", f"{self.field} {build(context)}", None
        if kind == "string_pattern_mismatch":
            return "bad-name" if "A-Za-z_" in str(context.get("pattern")) else "bad-text", *self._pattern(
                str(context.get("pattern"))
            )
        message = str(self.error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
        if message.endswith("is not an ARIA role"):
            close = nodes_errors.near(str(self.value), ROLES)
            return "unknown-choice", message, f"did you mean `{close}`?" if close else None
        # Models use `needed` if one of several fields is required.
        return "missing-field" if kind == "needed" else "invalid", message, None

    def _pattern(self, pattern: str) -> tuple[str, str | None]:
        if "A-Za-z_" in pattern:
            return f"`{self.value}` is no name", "a name has letters, digits and `_`, and begins with no digit"
        return f"{self.field} is not written as it must be", f"it must match {pattern}"


BOUNDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda ctx: f"must be greater than {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']}",
    "less_than": lambda ctx: f"must be less than {ctx['lt']}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']}",
    "string_too_long": lambda ctx: f"has more than {ctx['max_length']} characters",
    "string_too_short": lambda ctx: (
        "must not be empty" if ctx["min_length"] == 1 else f"has fewer than {ctx['min_length']} characters"
    ),
    "too_short": lambda ctx: (
        "must not be empty" if ctx["min_length"] == 1 else f"needs at least {ctx['min_length']} items"
    ),
    "too_long": lambda ctx: f"takes at most {ctx['max_length']} items",
    "finite_number": lambda ctx: "must be a finite number",
}
"""Message for each of pydantic's errors of bounds."""


def _name_of(model: type[Node]) -> str:
    """Return the usual name of a node model: ``browser_action click`` for a kind, ``iterate`` for a type."""
    for kind in registry.node_types().values():
        if kind.base is model:
            return kind.name
        for variant, each in kind.variants.items():
            if each is model:
                return f"{kind.name} {variant}"
    return ""


def _siblings(model: type[Node]) -> list[type[Node]]:
    for kind in registry.node_types().values():
        if model in kind.models or kind.base is model:
            return [each for each in kind.models if each is not model]
    return []


def _all_models() -> Iterator[type[Node]]:
    for kind in registry.node_types().values():
        yield from kind.models


def _fields(model: type[Part]) -> list[str]:
    """Return the fields of a model by their names in files, the common fields of all nodes last."""
    envelope = Leaf.model_fields if issubclass(model, Leaf) else Node.model_fields if issubclass(model, Node) else {}
    names = sorted(model.model_fields, key=lambda name: name in envelope)
    return [model.model_fields[name].alias or name for name in names]


def _python_name(model: type[Part], key: str) -> str | None:
    return next((name for name, field in model.model_fields.items() if (field.alias or name) == key), None)


def _literals(model: type[Part], field: str) -> list[Any]:
    name = _python_name(model, field)
    found: list[Any] = []
    pending: list[Any] = [model.model_fields[name].annotation] if name else []
    while pending:
        annotation = pending.pop(0)
        if typing.get_origin(annotation) is typing.Literal:
            found += typing.get_args(annotation)
        else:
            pending += typing.get_args(annotation)
    return found


def _choices(names: Any) -> str:
    return f"there are {', '.join(str(each) for each in names)}"


def _first_sentence(text: str | None) -> str | None:
    return text.split("\n")[0].rstrip(".") if text else None


def _unquoted(value: str, kinds: set[str]) -> str | None:
    if "bool_type" in kinds:
        return (
            "write `true` or `false`, without quotes"
            if value.lower() in ("true", "false", "yes", "no", "on", "off")
            else None
        )
    digits = value.replace(".", "", 1).lstrip("-")
    return "write the number without quotes" if digits.isdigit() else None


def _yaml(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
