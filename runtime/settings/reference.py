"""Reference of the settings, from their model: what each takes, its default, its variable, its flag, and the docstring below it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import os
import types
import typing
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from nodes.budgets import Budget
from nodes.errors import UsageError, did_you_mean
from nodes.values import Json
from runtime.settings import settings
from runtime.settings.prices import Price
from runtime.settings.settings import Settings
from runtime.settings.shares import Shares

WORDS: dict[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "path"}
IN_WORDS = {"budget": "budget", "prices": "map of models to prices", "window_shares": "shares"}


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    name: str
    takes: str  # accepted values, in words
    default: Json  # None if there is none, or if leaving it out has a separate meaning
    text: str  # in Markdown; a page of the documentation is named as docs/PAGE.md

    @property
    def variable(self) -> str:
        return f"{settings.PREFIX}{self.name}".upper()

    @property
    def flag(self) -> str | None:
        return settings.FLAGS.get(self.name)


def every() -> list[Setting]:
    """Return all settings, in the order of their model."""
    texts = _texts()
    return [
        Setting(name, _takes(name, field.annotation), _default(name), texts[name])
        for name, field in Settings.model_fields.items()
    ]


def find(name: str) -> Setting:
    """Return a setting by its name or its variable. Raises UsageError ``unknown-setting``."""
    plain = name.strip().removeprefix(settings.PREFIX).lower().replace("-", "_")
    found = next((each for each in every() if each.name == plain), None)
    if found is None:
        fix = did_you_mean(plain, Settings.model_fields, "`runops config` lists them")
        raise UsageError("unknown-setting", f"there is no setting `{name}`", fix=fix)
    return found


@functools.cache
def _texts() -> dict[str, str]:
    """Return the docstring below each field."""
    (model,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(model, ast.ClassDef)
    found: dict[str, str] = {}
    for each, after in itertools.pairwise([*model.body, ast.Pass()]):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found[each.target.id] = " ".join(str(said).split()).replace("``", "`")
    return found


def _takes(name: str, annotation: Any) -> str:
    if name in IN_WORDS:
        return IN_WORDS[name]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _takes(name, arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_takes(name, each) for each in arguments if each is not types.NoneType)
    if origin is typing.Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    return "list of texts" if origin is tuple else WORDS[annotation]


def _default(name: str) -> Json:
    default = Settings.model_fields[name].default
    return None if default is PydanticUndefined else as_json(default)


def as_json(value: Any) -> Json:
    """Return a value of a setting as it is written in pyproject.toml."""
    match value:
        case Path():
            return str(value)
        case tuple():
            return [as_json(each) for each in value]
        case dict():
            return {name: as_json(each) for name, each in value.items()}
        case Budget():
            return str(value)
        case Shares():
            return ",".join(f"{name}={share}" for name, share in value)
        case Price():
            return {name: float(amount) for name, amount in value if amount is not None}
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def in_ci(name: str, value: Any) -> bool:
    """True if the default of a command is another one because ``CI`` is set."""
    default = Settings.model_fields[name].default
    return bool(os.environ.get("CI")) and default is not PydanticUndefined and value != default
