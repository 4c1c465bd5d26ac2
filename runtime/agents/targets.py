"""From an element that a model points at to a target that a file can hold: semantic first, and proved to be that element and no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pydantic import ValidationError

from nodes.errors import SiteError
from nodes.targets import ROLES, Target
from runtime.browser.refs import Facts, Row

FIELDS = frozenset(
    {"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider", "checkbox", "radio", "switch"}
)
"""Roles that people know by their label."""

SAID_BY_TEXT = frozenset(
    {"generic", "none", "presentation", "clickable", "editable", "paragraph", "text", "cell", "listitem"}
)
"""Roles that say nothing of what an element is for."""

MOST_ROW_TEXTS = 6
"""Texts of a row that are tried as what tells it from the others."""

PLAIN_ID = re.compile(r"[A-Za-z][A-Za-z_-]{1,40}")
"""An id that a person wrote: those that a program makes hold digits."""

FIELD_NAME = re.compile(r"[A-Za-z][\w.:\[\]-]{1,60}")
"""The name under which a field is sent: the server reads it, so the digits in it stay what they are, as in `lines-0-quantity`."""

LONGEST = 80
"""Characters of a text by which an element is found."""


class Pointed(Protocol):
    """An element of the page as it is now."""

    @property
    def facts(self) -> Facts:
        """What the document says of it."""
        ...

    async def places(self, target: Target) -> tuple[int, int]:
        """How many elements match the target now, and which of them it is, from 0; -1 where it is none of them."""
        ...


async def target_of(pointed: Pointed, role: str, name: str, usable: Callable[[str], bool]) -> Target:
    """The first target that matches the element and nothing else now: by what it is called, then within its row, at last by its place among its like.

    ``role`` and ``name`` are as assistive programs see them. No text that is not ``usable`` stands in it. Raises SiteError ``no-target``.
    """
    ways = [way for way in _ways(pointed.facts, role, name) if all(map(usable, _texts(way)))]
    counted: list[dict[str, Any]] = []
    for way in [*ways, *_in_rows(ways, pointed.facts, usable)]:
        for target in _forms(way):
            count, index = await pointed.places(target)
            if (count, index) == (1, 0):
                return target
            if index >= 0:
                counted.append({**way, "nth": index})
    for way in counted:
        for target in _forms(way):
            if await pointed.places(target) == (1, 0):
                return target
    raise SiteError(
        "no-target",
        f"no target matches the {role or pointed.facts.tag} and nothing else",
        mend="take another element that leads to the same",
    )


def _ways(facts: Facts, role: str, name: str) -> Iterator[dict[str, Any]]:
    """The ways of finding the element by itself, the most telling first."""
    frame = {} if not facts.frames else {"frame": facts.frames[0] if len(facts.frames) == 1 else list(facts.frames)}
    named = role in ROLES and role not in SAID_BY_TEXT and 0 < len(name) <= LONGEST
    if role in FIELDS:
        if name and any(name in each and name != each for each in facts.labels):
            # A label around a list holds the words of its options too.
            yield {"label": name, **frame}
        yield from ({"label": each, **frame} for each in facts.labels)
    if named:
        yield {"role": role, "name": name, **frame}
    if facts.test_id:
        yield {"test_id": facts.test_id, **frame}
    for field in ("placeholder", "alt", "title"):
        if 0 < len(said := getattr(facts, field)) <= LONGEST:
            yield {field: said, **frame}
    if role not in FIELDS and facts.text and not named:
        yield {"text": facts.text, **frame}
    if PLAIN_ID.fullmatch(facts.id):
        yield {"css": f"#{facts.id}", **frame}
    if (FIELD_NAME if role in FIELDS else PLAIN_ID).fullmatch(facts.name):
        yield {"css": f'{facts.tag}[name="{facts.name}"]', **frame}
    if role in ROLES and role not in SAID_BY_TEXT:
        yield {"role": role, **frame}
    elif facts.tag:
        yield {"css": facts.tag, **frame}


def _in_rows(ways: list[dict[str, Any]], facts: Facts, usable: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    """The same ways, each within the row that holds the element, told from the others by what it says."""
    for row in facts.rows:
        for text in _telling(row):
            if not usable(text):
                continue
            around = {"role": row.role, "has_text": text}
            for way in ways:
                inside = {key: value for key, value in way.items() if key != "frame"}
                if "frame" in way:
                    around = {**around, "frame": way["frame"]}
                yield {**inside, "within": around}


def _telling(row: Row) -> list[str]:
    """The texts of a row, those with a number in them first: numbers tell rows apart for longer than words do."""
    texts = row.texts[:MOST_ROW_TEXTS]
    plain_number = [each for each in texts if re.fullmatch(r"[\w-]*\d[\w-]*", each)]
    return [*plain_number, *(each for each in texts if each not in plain_number)]


def _forms(way: dict[str, Any]) -> Iterator[Target]:
    """The way as a target, and then with the whole text only."""
    exact = "test_id" not in way and "css" not in way and set(way) != {"role"}
    for each in (way, {**way, "exact": True}) if exact else (way,):
        try:
            yield Target.model_validate(each)
        except ValidationError:
            # The page calls a role or a frame what no target can.
            continue


def _texts(way: dict[str, Any]) -> Iterator[str]:
    for value in way.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from value
