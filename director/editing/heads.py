"""The head of a draft: everything but its nodes. Begun from what the person wishes, and changed key by key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from director.workshop import Wish
from nodes.template import OPENING
from nodes.values import Json
from runtime.browser.origins import origin
from runtime.language import writing

BASE = "base_url"
"""The input that says where the site is."""

LONGEST_NAME = 60
"""Characters of a name that is made from a goal."""

_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")


def begun(wish: Wish) -> str:
    """The head of a new draft, as text: all of it is what the person has said.

    Name and purpose come from the goal; the site's origin is the input ``base_url``; the other inputs have the values that were given as their defaults; the
    secrets stand there by name; and what may be opened are the origins that the inputs name.
    """
    inputs = {**({BASE: _input(at)} if (at := _origin(wish)) else {}), **_inputs(wish.inputs)}
    addresses = [name for name, each in inputs.items() if origin(str(each.get("default", "")))]
    data: dict[str, Json] = {"version": 1, "name": name_of(wish.goal)}
    if wish.goal.strip():
        data["description"] = " ".join(wish.goal.split())
    # An input a line: these are what a person looks for in the head.
    lines = ["inputs:", *(f"  {name}: {writing.inline(each)}" for name, each in inputs.items())] if inputs else []
    behind: dict[str, Json] = {}
    if wish.secrets:
        behind["secrets"] = list[Json](wish.secrets)
    if addresses:
        behind["allowed_origins"] = [f"{{{{ inputs.{name} }}}}" for name in addresses]
    return "".join([writing.text(data), *(f"{line}\n" for line in lines), writing.text(behind) if behind else ""])


def name_of(goal: str) -> str:
    """A goal's first sentence, cut behind a word."""
    sentence = _SENTENCE.split(goal.strip(), maxsplit=1)[0].strip().rstrip(".!?:;,")
    if len(sentence) <= LONGEST_NAME:
        return sentence or "Draft"
    return f"{sentence[: LONGEST_NAME - 1].rsplit(' ', 1)[0]}…"


def _origin(wish: Wish) -> str | None:
    return origin(wish.url) if wish.url is not None else None


def _inputs(given: Mapping[str, Json]) -> dict[str, dict[str, Any]]:
    return {name: _input(value) for name, value in given.items()}


def _input(value: Json) -> dict[str, Any]:
    """An input that takes such a value, and has it as its default."""
    kind = _kind(value)
    # A default is no field for references: what looks like one must be given with each run.
    if value is None or (isinstance(value, str) and OPENING in value):
        return {"type": kind}
    return {"type": kind, "default": value}


def _kind(value: Json) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "list"
        case dict():
            return "map"
        case _:
            return "string"
