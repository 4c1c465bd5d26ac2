"""Reads what is written by habit as the only thing that it can mean.

A file of a person keeps its mistakes, which are reported. What a model gives for an edit is read so, and it is told what was made of it.
"""

from __future__ import annotations

import copy
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from nodes import registry
from nodes.base import Retry
from nodes.part import Part
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.language import sql_params, words, writer
from runtime.language.checks import model_errors
from runtime.language.node_tree import IDENTIFYING, Anatomy
from runtime.language.workflow import Workflow
from runtime.language.yaml_text import Path

STATES = ("enabled", "checked")  # kinds of rules whose value is true or false
ROUNDS = 4  # a reading may show what else is written by habit
LONGEST = 60  # limit of a value in a sentence, in characters

_SELECTOR = re.compile(r"[#.\[][A-Za-z_-]|.*(?:\[[\w-]+[~|^$*]?=| > )")
_ONLY = re.compile(r"'([^']+)'")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
IN_MILLISECONDS = 5000  # a time limit from here on, of half seconds, is in milliseconds: no step takes an hour


class _Change(NamedTuple):
    path: Path
    key: str | None  # the key that it becomes; None: it is left out
    value: Json
    why: str = ""


def read(data: dict[str, Json]) -> tuple[dict[str, Json], list[str]]:
    """Return a file or a part of its head as it can only be meant, and a sentence for each reading. As it is, if it is then no valid one."""
    now, said = copy.deepcopy(data), list[str]()
    for _round in range(ROUNDS):
        anatomy = Anatomy(now, Workflow)
        errors = _errors(anatomy, lacks_nodes="nodes" not in data)
        # What stands alone in a head is no list of nodes.
        changes = {
            each.path: each for each in _changes(now, anatomy, errors) if (each.key, len(each.path)) != ("nodes", 1)
        }
        if not changes:
            return (data, []) if errors or anatomy.misspelt or anatomy.mistaken else (now, said)
        for change in sorted(changes.values(), key=lambda each: len(each.path), reverse=True):
            owner = _at(now, change.path[:-1])
            if isinstance(owner, list) or (change.key, change.value) not in owner.items():
                said.append(_said(now, change))
                _apply(now, change)
    return data, []


def _errors(anatomy: Anatomy, *, lacks_nodes: bool) -> list[Mapping[str, Any]]:
    try:
        Workflow.model_validate(anatomy.clean)
    except ValidationError as error:
        every = error.errors(include_url=False)
        return [each for each in every if not (lacks_nodes and each["loc"] == ("nodes",))]
    return []


def _changes(data: Json, anatomy: Anatomy, errors: list[Mapping[str, Any]]) -> Iterator[_Change]:
    for owner, keys in _unknown(anatomy).items():
        for key in keys:
            yield from _renamed(owner, key, _at(data, owner), anatomy)
    for path, (field, word, _close) in anatomy.mistaken.items():
        yield from _chosen(path, field, word)
    for unit in anatomy.every_unit():
        limit = unit.data.get("timeout")
        if isinstance(limit, int) and limit >= IN_MILLISECONDS and limit % 500 == 0:
            yield _Change((*unit.path, "timeout"), "timeout", words.number(limit / 1000), "it is in seconds")
    yield from _without_references(data, anatomy)
    for each in errors:
        path = anatomy.written(model_errors.located(each["loc"], anatomy.clean))
        if each["type"] == "choice" and path:
            yield from _chosen(path, str(path[-1]), str(each["ctx"]["name"]))
        elif each["type"] == "missing" and path and path[-1] == "type":
            unit = _at(data, path[:-1])
            yield from _chosen((*path[:-1], "action"), "action", str(unit.get("action") or unit.get("query")))
        elif each["type"] == "value_error" and anatomy.parts.get(path) is Rule:
            yield from _state_of(path, each["input"])
        elif each["type"] == "needless":
            yield _Change((*path, each["ctx"]["field"]), None, None, str(each["msg"]))
        elif path and (meant := _typed(each, anatomy.parts.get(path[:-1]), path[-1])) is not None:
            yield _Change(path, str(path[-1]), meant)


def _without_references(data: Json, anatomy: Anatomy) -> Iterator[_Change]:
    for path in [anatomy.written(each.path) for each in anatomy.every_slot() if each.field == "sql" and not each.ref]:
        params = _at(data, path[:-1]).get("params") or {}
        found = sql_params.read(_at(data, path), params) if isinstance(params, dict) else None
        if found is not None:
            yield _Change(path, str(path[-1]), found.sql, "it takes no references")
            if found.params != params:
                yield _Change((*path[:-1], "params"), "params", found.params)


def _state_of(path: Path, rule: Mapping[str, Json]) -> Iterator[_Change]:
    """Yield the state and the target beside it, for which `enabled: {role: button}` stands."""
    for state in STATES:
        if isinstance(rule.get(state), dict) and "target" not in rule:
            yield _Change((*path, "target"), "target", rule[state])
            yield _Change((*path, state), state, True)


def _unknown(anatomy: Anatomy) -> dict[Path, list[str]]:
    found = {owner: [*keys] for owner, keys in anatomy.unknown.items()}
    for path in anatomy.misspelt:
        found.setdefault(path[:-1], []).append(str(path[-1]))
    return found


def _renamed(owner: Path, key: str, part: Json, anatomy: Anatomy) -> Iterator[_Change]:
    model = anatomy.parts[owner]
    fields = {field.alias or name for name, field in model.model_fields.items()}
    meant = words.meant(model, key, fields)
    if meant is None and (*owner, key) in anatomy.strangers:
        meant = anatomy.misspelt[*owner, key]
    if meant is None or " " in meant or not isinstance(part, dict) or meant in part:
        return
    value = part[key]
    if meant == "target" and isinstance(value, str):
        value = {"xpath" if value.startswith("//") else "css": value}
    yield _Change((*owner, key), meant, value)


def _chosen(path: Path, field: str, word: str) -> Iterator[_Change]:
    """Yield how a node is written that does what the word of another tool says."""
    meant, kinds = words.CHOICES.get(word.casefold(), word), registry.node_types()
    if field == "type" and meant in kinds:
        yield _Change(path, "type", meant)
    for kind in kinds.values():
        if kind.field is not None and meant in kind.variants:
            if field != "type":
                yield _Change(path, kind.field, meant)
            yield _Change((*path[:-1], "type"), "type", kind.name)
            if field == "type":
                yield _Change((*path[:-1], kind.field), kind.field, meant)


def _typed(error: Mapping[str, Any], model: type[Part] | None, key: str | int) -> Json:
    """Return a value as one of the wanted type; None if it can be read in no way or in several."""
    kind, value = error["type"], error["input"]
    if kind == "literal_error" and value and (only := _ONLY.fullmatch(error["ctx"]["expected"])):
        return only[1]
    if kind == "string_type" and isinstance(value, bool | int):
        return writer.inline(value)
    if isinstance(value, str) and kind in ("int_type", "float_type"):
        return words.amount(value)
    if isinstance(value, str) and kind == "bool_type":
        return _TRUTHS.get(value.lower())
    if kind == "list_type" and value and isinstance(value, str | dict):
        return [value]
    if kind in ("model_type", "model_attributes_type") and model is not None:
        return _instead_of_map(
            value, [model.model_fields[str(key)].annotation] if str(key) in model.model_fields else []
        )
    return None


def _instead_of_map(value: Json, annotations: list[Any]) -> Json:
    for each in annotations:
        annotations += typing.get_args(each)
    if isinstance(value, int) and Retry in annotations:
        return {"attempts": value}
    if isinstance(value, str) and Target in annotations and _SELECTOR.match(value):
        return {"css": value}
    return None


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _apply(data: Json, change: _Change) -> None:
    owner, step = _at(data, change.path[:-1]), change.path[-1]
    if not isinstance(owner, dict):
        owner[step] = change.value
        return
    entries = [*owner.items(), *([] if step in owner else [(step, None)])]
    owner.clear()
    for key, value in entries:
        if key != step:
            owner[key] = value
        elif change.key is not None:
            owner[change.key] = change.value


def _said(data: Json, change: _Change) -> str:
    path, owner = change.path, _at(data, change.path[:-1])
    named = next(str(each) for each in reversed(path) if isinstance(each, str))
    now = f"`{change.key if isinstance(path[-1], str) else named}: {_short(change.value)}`"
    if change.key is None:
        what = f"`{named}` is left out"
    elif isinstance(owner, dict) and named not in owner:
        what = f"{now} is added"
    else:
        what = f"`{named}: {_short(owner[path[-1]])}` is read as {now}"
    owners = (_at(data, path[:size]) for size in range(len(path) - 1, 0, -1))
    node = next((name for each in owners if (name := _id(each))), None)
    return f"{f'`{node}`: ' if node else ''}{what}{f': {change.why}' if change.why else ''}"


def _id(part: Any) -> Json:
    is_node = isinstance(part, dict) and any(field in part for field in IDENTIFYING)
    return part["id"] if is_node and "id" in part else None


def _short(value: Json) -> str:
    text = writer.inline(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
