"""Describes an action in words for a person: its target, its values, its items and its page."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping

from pydantic import ValidationError

from director.effects import effects
from director.effects.requests import EffectRequest, one_line
from nodes.base import Leaf
from nodes.targets import WAYS, Target
from nodes.template import to_text
from nodes.values import Json
from runtime.context import briefs

MOST_READ = 8
VALUES = ("value", "files")
_YES, _ONCE = "whenever it comes up again", "this once (out of its order, it is asked for each time)"

_INPUT = re.compile(r"\{\{ *inputs\.(\w+) *\}\}")

_KINDS = {"label": "field ", "placeholder": "field ", "text": "", "alt": "picture ", "title": "", "test_id": "test id "}

_NOT_SHOWN = frozenset({"id", "type", "action", "query", "description", "target", "effect"})


def lines_of(action: EffectRequest, page: Json) -> list[str]:
    """Return an action as lines. Texts that may come from a page are quoted; references to inputs are resolved."""
    lines = [f"  what   {one_line(done(action.leaf))}"]
    lines += [f"  {name:<6} {_plainly(value)}" for name, value in sorted(_fields(action.leaf).items())]
    lines += [f"  page   {one_line(page)}"] if page else []
    lines += [f"  after  {each}" for each in steps(action)]
    lines += [f"  within {name}: {_plainly(value)}" for name, value in action.around.items()]
    lines = [filled(each, action.inputs) for each in lines]
    lines += [f"  with   {name} = {one_line(value)}" for name, value in action.inputs.items()]
    lines += [f"  with   {name} = {one_line(value)} (set by hand)" for name, value in action.pins.items()]
    lines += [f"  from   {name}: {_read(value)}" for name, value in list(action.nodes.items())[:MOST_READ]]
    lines.append(f"  step   {briefs.ours(action.path)}")
    return lines


def choices(*, once: bool = False) -> list[str]:
    """Return the meaning of each answer, a line each; ``once`` where a yes is for this time only."""
    return [
        f"  yes: just this is done, {_ONCE if once else _YES}. no: it is held: found, and not done.",
        "  hold all: nothing that changes the site is done from here on, also what was allowed before; you are not asked again.",
    ]


def filled(text: str, inputs: Mapping[str, Json]) -> str:
    def value(found: re.Match[str]) -> str:
        given = inputs.get(found[1])
        return one_line(to_text(given)) if isinstance(given, str | int | float) else found[0]

    return _INPUT.sub(value, text)


def element(target: Target) -> str:
    """Return a target in words: ``button "Pay" in row with "1007"``."""
    if target.any_of:
        words = " or else ".join(map(element, target.any_of))
    elif target.role is not None:
        words = target.role if target.name is None else f"{target.role} {_quoted(target.name)}"
    else:
        way = next(way for way in WAYS if getattr(target, way) is not None)
        said = str(getattr(target, way))
        words = f"{_KINDS[way]}{_quoted(said)}" if way in _KINDS else f"{way} {said}"
    words += f" with {_quoted(target.has_text)}" if target.has_text is not None else ""
    words += f", number {target.nth} from 0" if target.nth is not None else ""
    words += f" in {element(target.within)}" if target.within is not None else ""
    return f"{words} in the frame {' > '.join(target.frames)}" if target.frame is not None else words


def _plainly(value: Json) -> str:
    return one_line(_plain(value) if isinstance(value, dict | list) else value)


def _plain(value: Json) -> str:
    if isinstance(value, dict):
        if (target := _target(value)) is not None:
            return element(target)
        return ", ".join(f"{name}: {_plain(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _target(value: Json) -> Target | None:
    with contextlib.suppress(ValidationError):
        return Target.model_validate(value) if isinstance(value, dict) and set(value) & set(WAYS) else None
    return None


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def done(leaf: Leaf) -> str:
    target, said = getattr(leaf, "target", None), leaf.summary()
    return said.replace(str(target), element(target), 1) if isinstance(target, Target) else said


def _read(value: Json) -> str:
    said: dict[str, Json] = value if isinstance(value, dict) else {}
    does = str(said.get("query") or said.get("action") or said.get("type"))
    target = _target(said.get("target"))
    words = [f"{does} {element(target)}" if target is not None else does]
    words += [f"{name}: {_plain(each)}" for name, each in said.items() if name not in _NOT_SHOWN]
    return one_line("; ".join(words))


def _fields(leaf: Leaf) -> dict[str, Json]:
    said: dict[str, Json] = leaf.model_dump(mode="json", by_alias=True, exclude_defaults=True, warnings=False)
    left_out = {*effects.NO_ACTION_OF_AGENT, "id", "type", "action", "target", "goal", "effect"}
    if effects.repeats(leaf):
        left_out.remove("retry")
    fields = {name: each for name, each in said.items() if name not in left_out and not name.startswith("x-")}
    if leaf.asks == "agent":
        fields["goal"] = said.get("goal")
        fields["tools"] = ", ".join(getattr(leaf, "tools", ()))
    return fields


def steps(action: EffectRequest) -> list[str]:
    """Return the actions before this one, a line each; only the last ``MOST_READ`` if there are more."""
    lines: list[str] = []
    for each in action.steps:
        values = [getattr(each, name, None) for name in VALUES]
        given = [f" {json.dumps(value, ensure_ascii=False)}" for value in values if value is not None]
        summary = done(each) if isinstance(each, Leaf) else f"use {getattr(each, 'use', '')}"
        lines.append(one_line(f"{summary}{''.join(given)}"))
    return lines if len(lines) <= MOST_READ else [f"… ({len(lines) - MOST_READ} more)", *lines[-MOST_READ:]]
