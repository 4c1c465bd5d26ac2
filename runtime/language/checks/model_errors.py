"""Converts pydantic's errors to diagnostics in the words of the file language."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from nodes import errors as nodes_errors
from nodes import registry
from nodes.base import Leaf, Node, Retry
from nodes.part import Part
from nodes.registry import NodeType
from nodes.targets import ROLES, Target
from nodes.template import kind_of
from nodes.values import Json
from runtime.language import words
from runtime.language.diagnostics import Diagnostic
from runtime.language.node_tree import IDENTIFYING, Anatomy
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


def explain(error: ValidationError, anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    grouped: dict[tuple[Path, bool], list[Error]] = {}
    missing: dict[Path, list[str]] = {}
    for each in error.errors(include_url=False):
        place = located(each["loc"], anatomy.clean)
        if _of_guess(anatomy, anatomy.written(place), each["type"]):
            continue
        if each["type"] == "missing":
            missing.setdefault(place[:-1], []).append(str(place[-1]))
        else:
            # The alternatives of a union fail at one place: report them as one mistake.
            grouped.setdefault((place, each["type"] in WANTED), []).append(each)
    places = {place for place, _is_type in grouped}
    unknown = {place[:-1] for (place, _is_type), each in grouped.items() if each[0]["type"] == "extra_forbidden"}
    found = [
        _Mismatch(anatomy.written(path), errors, anatomy, document).diagnostic(missing.get(path[:-1], ()))
        for (path, is_type), errors in grouped.items()
        # A mistake further inside shows which alternative of a union is meant.
        if not (is_type and any(path == each[: len(path)] != each for each in places))
    ]
    for owner, names in missing.items():
        # Beside an unknown field they are named there.
        if owner not in unknown:
            path = (*anatomy.written(owner), names[0])
            found.append(_Mismatch(path, [{"type": "missing", "input": None}], anatomy, document).missing(names))
    return found


def _of_guess(anatomy: Anatomy, path: Path, kind: str) -> bool:
    """Return True for a mistake that may be one only because the field, or the kind of its node, is guessed."""
    if kind in ("missing", "extra_forbidden") and anatomy.is_guess(path[:-1]):
        return path[-1] not in IDENTIFYING
    owner = next(path[:size] for size in range(len(path), -1, -1) if path[:size] in anatomy.parts)
    return path[: len(owner) + 1] in anatomy.misspelt


def misspelt(anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    nothing: list[Error] = [{"type": "", "input": None}]
    found = [
        _Mismatch(path, nothing, anatomy, document).unknown_field(meant, stands_for=path in anatomy.strangers)
        for path, meant in anatomy.misspelt.items()
    ]
    for path, (field, value, meant) in anatomy.mistaken.items():
        fix = _habit(str(value)) or f"did you mean `{meant}`?"
        found.append(document.problem("unknown-choice", f"there is no {field} `{value}`", path, fix))
    return found


def located(loc: tuple[str | int, ...], data: Json) -> Path:
    """Convert pydantic's location to a path in the file: drop the names of alternatives and validators."""
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


EXAMPLES: Mapping[type[Part], str] = {
    Target: "write what finds it, such as `{css: …}`, `{text: …}` or `{role: button, name: …}`",
    Retry: "such as `retry: {attempts: 3, delay: 1}`, with `on: [verify-failed]` also after the action",
}


class _Mismatch:
    """One invalid place, with pydantic's errors about it."""

    def __init__(self, path: Path, errors: list[Error], anatomy: Anatomy, document: Document) -> None:
        self.path = path
        self.errors = errors
        self.anatomy = anatomy
        self.document = document
        self.error = errors[0]
        self.value: Json = self.error["input"]
        last = path[-1] if path else None
        item = f"item {last + 1} of `{_last_name(path)}`" if isinstance(last, int) else f"`{last}`"
        self.field = item if path else "the file"

    def diagnostic(self, missing: Sequence[str] = ()) -> Diagnostic:
        """Return the diagnostic; ``missing`` are the fields that its part lacks."""
        kind = self.error["type"]
        if kind == "extra_forbidden":
            return self.unknown_field(None, missing)
        if kind == "choice":
            choices, word = self.error["ctx"]["choices"], str(self.error["ctx"]["name"])
            help = nodes_errors.did_you_mean(word, choices, _choices(choices))
            return self.say("unknown-choice", str(self.error["msg"]), _variant(word) or _habit(word) or help)
        if kind == "literal_error":
            return self._literal()
        if kind in WANTED or len(self.errors) > 1:
            return self._wrong_type()
        return self.say(*self._other())

    def say(self, code: str, message: str, *help: str | None, key: bool = False) -> Diagnostic:
        return self.document.problem(code, message, self.path, *help, key=key)

    def unknown_field(self, meant: str | None, missing: Sequence[str] = (), *, stands_for: bool = False) -> Diagnostic:
        key = str(self.path[-1])
        owner = self.path[:-1]
        model = self.anatomy.parts.get(owner)
        fields = _fields(model) if model else []
        what = self._what(owner, model)
        if (habit := words.of_field(model, key, fields)) is not None:
            needs = f"{what} needs {_listed(missing)}" if len(missing) > 1 else None
            return self.say("unknown-field", f"`{key}` is not a field of {what}", habit, needs, key=True)
        elsewhere = self._elsewhere(key, model)
        return self.say(
            "unknown-field",
            f"`{key}` is not a field of {what}",
            elsewhere,
            f"did you mean `{meant}`?" if meant and not stands_for and not elsewhere else None,
            f"{what} needs `{meant}`: did you mean that?" if meant and stands_for else None,
            f"{what} needs {_listed(missing)}: did you mean one of them?" if missing else None,
            "merge keys are not part of YAML 1.2: write the fields out" if key == "<<" else None,
            f"{what} takes {', '.join(fields)}" if fields and not meant else None,
            key=True,
        )

    def _what(self, owner: Path, model: type[Part] | None) -> str:
        if not owner:
            return model.called if model is not None else Part.called
        if model is not None and issubclass(model, Node):
            kind = registry.type_of(model)
            return f"`{kind.label(model)}`" if kind else "a node"
        last = _last_name(owner)
        return f"`{last}`" if isinstance(owner[-1], str) else f"an item of `{last}`"

    def _elsewhere(self, key: str, model: type[Part] | None) -> str | None:
        if model is None or not issubclass(model, Node):
            return None
        kind = registry.type_of(model)
        owners = (_owners(key, [kind]) if kind else []) or _owners(key, registry.node_types().values())
        more = " and others" if len(owners) > 4 else ""
        return f"it is a field of {', '.join(f'`{each}`' for each in owners[:4])}{more}" if owners else None

    def missing(self, names: Sequence[str]) -> Diagnostic:
        """Return the diagnostic of one or several fields that a part lacks."""
        key = str(self.path[-1])
        owner = self.path[:-1]
        model = self.anatomy.parts.get(owner)
        mark = self.document.mark(owner) or self.document.mark(())
        help: str | None = None
        if key == "type":
            help = self._said_otherwise(owner) or _choices(registry.node_types())
        elif key in ("action", "query") and model is not None and issubclass(model, Node):
            kind = registry.node_types().get(str(model.model_fields["type"].default))
            help = self._said_otherwise(owner) or (_choices(kind.variants) if kind else None)
        elif model is not None and (field := _field(model, key)):
            help = (field.description or "").split("\n")[0].rstrip(".")
        return self.document.source.diagnostic(
            "missing-field",
            f"{self._what(owner, model)} needs {_listed(names)}",
            mark,
            label=f"{_listed(names)} {'is' if len(names) == 1 else 'are'} missing",
            help=[help] if len(names) == 1 else [],
        )

    def _said_otherwise(self, owner: Path) -> str | None:
        """Return the fix if a node without its ``action`` or ``query`` has the other one of both, or says it by an unknown field."""
        node = next((each for each in self.anatomy.every_unit() if each.path == owner), None)
        fields = (*IDENTIFYING[1:], *self.anatomy.unknown.get(owner, ()))
        said = [word for field in fields if node is not None and (word := node.text(field))]
        return next((fix for word in said if (fix := _variant(word))), None)

    def _literal(self) -> Diagnostic:
        field = self.path[-1]
        model = self.anatomy.parts.get(self.path[:-1])
        choices = _literals(model, str(field)) if model is not None else []
        if self.path == ("version",):
            message = f"version {self.value!r} of the file language is not known"
            return self.say("unknown-version", message, "this RunOps reads `version: 1`")
        wanted = ", ".join(f"`{_yaml(each)}`" for each in choices) or str(self.error.get("ctx", {}).get("expected", ""))
        given, fix = kind_of(self.value), f"it is one of {wanted}"
        if isinstance(self.value, str):
            given = f"`{self.value}`"
            texts = [each for each in choices if isinstance(each, str)]
            fix = nodes_errors.did_you_mean(self.value, texts, fix)
        return self.say("unknown-choice", f"{self.field} cannot be {given}", fix)

    def _wrong_type(self) -> Diagnostic:
        wanted = list(dict.fromkeys(WANTED[each["type"]] for each in self.errors if each["type"] in WANTED))
        value, kinds = self.value, {each["type"] for each in self.errors}
        help: str | None = None
        if "string_type" in kinds and isinstance(value, bool | int | float):
            help = f'write it in quotes: "{_yaml(value)}"'
        elif isinstance(value, str) and "bool_type" in kinds:
            known = ("true", "false", "yes", "no", "on", "off")
            help = "write `true` or `false`, without quotes" if value.lower() in known else None
        elif isinstance(value, str) and kinds & {"int_type", "float_type"}:
            number = value.replace(".", "", 1).lstrip("-").isdigit()
            help = "write the number without quotes" if number else None
            meant = words.amount(value) if help is None else None
            help = f"write the number alone: `{meant}`" if meant is not None else help
        elif isinstance(value, dict) and kinds & {"list_type", "block"}:
            help = "a list has a `-` before each item"
        elif isinstance(value, str) and kinds == {"list_type"}:
            help = f"write it as a list: `[{value}]`" if value else None
        elif example := self._example():
            help = example
        given = "left empty" if value is None else kind_of(value)
        return self.say("wrong-type", f"{self.field} must be {' or '.join(wanted)}, and is {given}", help)

    def _example(self) -> str | None:
        """Return how the part is written that the place wants, if something else is there."""
        model = self.anatomy.parts.get(self.path[:-1])
        field = _field(model, str(self.path[-1])) if model is not None else None
        wanted = (field.annotation, *typing.get_args(field.annotation)) if field is not None else ()
        return next((example for part, example in EXAMPLES.items() if part in wanted), None)

    def _other(self) -> tuple[str, str, str | None]:
        kind, context = self.error["type"], self.error.get("ctx", {})
        if kind in BOUNDS:
            at_least_one = context.get("min_length") == 1
            bound = "must not be empty" if at_least_one else BOUNDS[kind].format(**context)
            return "out-of-bounds", f"{self.field} {bound}", None
        if kind == "string_pattern_mismatch":
            pattern = str(context.get("pattern"))
            if "A-Za-z_" in pattern:
                fix = "a name has letters, digits and `_`, and does not begin with a digit"
                return "bad-name", f"`{self.value}` is no name", fix
            return "bad-text", f"{self.field} is not written as it must be", f"it must match {pattern}"
        message = str(self.error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
        if message.endswith("is not an ARIA role"):
            return "unknown-choice", message, nodes_errors.did_you_mean(str(self.value), ROLES)
        # Models use `needed` if one of several fields is required.
        return "missing-field" if kind == "needed" else "invalid", message, None


BOUNDS = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "has more than {max_length} characters",
    "string_too_short": "has fewer than {min_length} characters",
    "too_short": "needs at least {min_length} items",
    "too_long": "takes at most {max_length} items",
    "finite_number": "must be a finite number",
}


def _last_name(path: Path) -> str:
    return next((each for each in reversed(path) if isinstance(each, str)), "")


def _owners(key: str, kinds: Iterable[NodeType]) -> list[str]:
    return [kind.label(model) for kind in kinds for model in kind.models if key in _fields(model)]


def _fields(model: type[Part]) -> list[str]:
    envelope = Leaf.model_fields if issubclass(model, Leaf) else Node.model_fields if issubclass(model, Node) else {}
    names = sorted(model.model_fields, key=lambda name: name in envelope)
    return [model.model_fields[name].alias or name for name in names]


def _field(model: type[Part], key: str) -> FieldInfo | None:
    return next((field for name, field in model.model_fields.items() if (field.alias or name) == key), None)


def _literals(model: type[Part], field: str) -> list[Any]:
    declared = _field(model, field)
    found: list[Any] = []
    pending: list[Any] = [declared.annotation] if declared else []
    while pending:
        annotation = pending.pop(0)
        if typing.get_origin(annotation) is typing.Literal:
            found += typing.get_args(annotation)
        else:
            pending += typing.get_args(annotation)
    return found


def _variant(word: str) -> str | None:
    """Return how a node is written that does what the word says."""
    for kind in registry.node_types().values():
        if kind.field is not None and word in kind.variants:
            return f"write `type: {kind.name}` and `{kind.field}: {word}`"
    return None


def _habit(word: str) -> str | None:
    """Return how a node is written for which another tool has this word."""
    meant = words.CHOICES.get(word.casefold())
    if meant is None or " " in meant:
        return meant
    return _variant(meant) or f"write `type: {meant}`"


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{each}`" for each in names]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))


def _choices(names: Iterable[object]) -> str:
    return f"there are {', '.join(map(str, names))}"


def _yaml(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
