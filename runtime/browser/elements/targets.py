"""From an element that a model points at to a target that a file can hold: semantic first, and proved to be that element and no other."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from nodes.errors import SiteError
from nodes.targets import ROLES, Target
from runtime.browser.elements.facts import Facts

FIELDS = frozenset(
    {"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider", "checkbox", "radio", "switch"}
)
"""Roles that people know by their label."""

SAID_BY_TEXT = frozenset(
    {"generic", "none", "presentation", "clickable", "editable", "paragraph", "text", "cell", "listitem"}
)
"""Roles that say nothing of what an element is for."""

READ = (SAID_BY_TEXT - {"clickable", "editable"}) | {
    "definition",
    "term",
    "gridcell",
    "rowheader",
    "strong",
    "emphasis",
    "time",
    "code",
}
"""Roles of what is there to be read: its text is what changes, and not what it is found by."""

MOST_ROW_TEXTS = 6
"""Texts of a row that are tried as what tells it from the others."""

PLAIN_ID = re.compile(r"[A-Za-z][A-Za-z_-]{1,40}")
"""An id that a person wrote: those that a program makes hold digits."""

FIELD_NAME = re.compile(r"[A-Za-z][\w.:\[\]-]{1,60}")
"""The name under which a field is sent: the server reads it, so the digits in it stay what they are, as in `lines-0-quantity`."""

ADDRESS = re.compile(r"[/?.][\w/?.=&%+~,:@-]{1,80}")
"""An address of a link by which it may be found: one of the same site, as it is written."""

LONGEST = 80
"""Characters of a text by which an element is found."""

_COUNTED = re.compile(
    r"(no|none|nothing|empty|[\W\d_]*\d+[\W\d_]*)\b( .*)?"
    r"|.*\b(ago|today|yesterday|tomorrow)\b.*"
    r"|.*\b\d+ (of|items?|entries|results?|rows?|more|left|new|comments?|views?|(second|minute|hour|day|week|month)s?)\b.*",
    re.IGNORECASE,
)
"""What counts something or tells a time: `No items in collection`, `3 items`, `Page 2 of 9`."""

_CODE = re.compile(r"(?=(?:\D*\d){3})[\w-]+")
"""A number that tells things apart, as `1001` and `INV-204`: with three digits at least, since one with fewer may count something."""

_BADGE = re.compile(r"\s*[(\[]\d[\d.,]*\+?[)\]]$")
"""What counts something behind a name, as in `Load (3)`."""

POOR_ANCHOR = 0.6
"""What is left of the worth of a way by a text that counts something, and changes."""


class Pointed(Protocol):
    """An element of the page as it is now."""

    @property
    def facts(self) -> Facts:
        """What the document says of it."""
        ...

    async def places(self, target: Target) -> tuple[int, int]:
        """How many elements match the target now, and which of them it is, from 0; -1 where it is none of them."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """A way of finding an element, not proved yet."""

    fields: dict[str, Any]
    """Of a target."""
    worth: int
    """How well it says what is meant, and how likely it is to hold tomorrow: 100 at best."""
    why: str
    """What it finds the element by."""


async def target_of(pointed: Pointed, role: str, name: str, usable: Callable[[str], bool]) -> Target:
    """The first target that matches the element and nothing else now: by what it is called, then within its row, at last by its place among its like.

    ``role`` and ``name`` are as assistive programs see them. No text that is not ``usable`` stands in it. Raises SiteError ``no-target``.
    """
    alone = ways(pointed.facts, role, name, usable)
    counted: list[dict[str, Any]] = []
    for way in ranked([*alone, *anchored(alone, pointed.facts, usable)]):
        for target in forms(way.fields):
            count, index = await pointed.places(target)
            if (count, index) == (1, 0):
                return target
            if index >= 0:
                counted.append({**way.fields, "nth": index})
    for fields in counted:
        for target in forms(fields):
            if await pointed.places(target) == (1, 0):
                return target
    raise SiteError(
        "no-target",
        f"no target matches the {role or pointed.facts.tag} and nothing else",
        fix="take another element that leads to the same",
    )


def ways(facts: Facts, role: str, name: str, usable: Callable[[str], bool]) -> list[Way]:
    """The ways of finding the element by itself, the most telling first. No text that is not ``usable`` stands in them."""
    return ranked([each for each in _ways(facts, role, name) if all(map(usable, _texts(each.fields)))])


def ranked(found: Sequence[Way]) -> list[Way]:
    """The ways, the best first."""
    return sorted(found, key=lambda way: -way.worth)


def _ways(facts: Facts, role: str, name: str) -> Iterator[Way]:
    frame = {} if not facts.frames else {"frame": facts.frames[0] if len(facts.frames) == 1 else list(facts.frames)}
    for way in [*_said(facts, role, name), *_written(facts, role, name)]:
        yield dataclasses.replace(way, fields={**way.fields, **frame})


def _said(facts: Facts, role: str, name: str) -> Iterator[Way]:
    """By what a person calls it."""
    named = _speaks(role) and 0 < len(name) <= LONGEST
    if role in FIELDS:
        if name and any(name in each and name != each for each in facts.labels):
            # A label around a list holds the words of its options too.
            yield Way({"label": name}, 96, "its label")
        for each in facts.labels:
            yield Way({"label": each}, 95, "its label")
    if named:
        yield Way({"role": role, "name": name}, 94, "its role and name")
        if (stem := _BADGE.sub("", name)) and stem != name:
            yield Way({"role": role, "name": stem}, 93, "its role and name without what counts")
    for field in ("placeholder", "alt", "title"):
        if 0 < len(said := getattr(facts, field)) <= LONGEST:
            yield Way({field: said}, 80, f"its {field}")
    if role not in FIELDS and facts.text and not named:
        worth, why = (30, "the very text that it says now") if role in READ else (70, "its text")
        yield Way({"text": facts.text}, worth, why)


def _written(facts: Facts, role: str, name: str) -> Iterator[Way]:
    """By how the document is written."""
    if facts.test_id:
        yield Way({"test_id": facts.test_id}, 90, "its test id")
    if PLAIN_ID.fullmatch(facts.id):
        yield Way({"css": f"#{facts.id}"}, 66, "its id")
    if (FIELD_NAME if role in FIELDS else PLAIN_ID).fullmatch(facts.name):
        yield Way({"css": f'{facts.tag}[name="{facts.name}"]'}, 64, "the name under which it is sent")
    if (role in FIELDS and not (name or facts.labels)) or role in READ:
        for caption in facts.beside:
            yield Way({"css": caption.css}, 56, "the text beside it")
    for css in facts.data:
        yield Way({"css": css}, 69, "its data attribute")
    if ADDRESS.fullmatch(facts.link):
        yield Way({"css": f'a[href="{facts.link}"]'}, 55, "where it leads")
    for css in facts.classes:
        yield Way({"css": css}, 50, "its class")
    if _speaks(role):
        yield Way({"role": role}, 45, "its role alone")
    elif facts.tag:
        yield Way({"css": facts.tag}, 20, "its tag alone")


def _speaks(role: str) -> bool:
    """Whether the role is one that a target can take, and says what the element is for."""
    return role in ROLES and role not in SAID_BY_TEXT


def anchored(
    alone: Sequence[Way], facts: Facts, usable: Callable[[str], bool], anchor: str | None = None
) -> Iterator[Way]:
    """The ways ``alone``, each within a part of the page that holds the element, nearest parts first.

    That is a row or a card, told from the others by what it says, or something with a name or a heading. ``anchor`` is the text by which it is to be found:
    then also what is called so itself, or stands beside that text or behind that term.
    """
    if anchor is not None:
        yield from _called(alone, facts, anchor)
    for around, worth, why in _around(facts, anchor):
        if not all(map(usable, _texts(around))):
            continue
        for way in alone:
            inside = {key: value for key, value in way.fields.items() if key != "frame"}
            outside = {**around, "frame": way.fields["frame"]} if "frame" in way.fields else around
            # A field that is called nothing is known by what its row or part says.
            alone_worth = 68 if way.fields.get("role") in FIELDS and "name" not in way.fields else way.worth
            yield Way({**inside, "within": outside}, alone_worth * worth // 100, f"{way.why} in {why}")


def _called(alone: Sequence[Way], facts: Facts, anchor: str) -> Iterator[Way]:
    """The ways by what the element itself is called, or by its caption, where that is ``anchor``."""
    meant = _plain(anchor)
    captions = {each.css for each in facts.beside if _plain(each.text) == meant}
    for way in alone:
        said = [way.fields.get(each) for each in ("name", "label", "text", "placeholder", "title", "alt")]
        if way.fields.get("css") in captions or any(each is not None and _plain(each) == meant for each in said):
            yield way


def _plain(text: str) -> str:
    """A text as one says it: without the colon or the star behind a caption."""
    return " ".join(text.split()).strip(" :*").casefold()


def _around(facts: Facts, anchor: str | None) -> Iterator[tuple[dict[str, Any], int, str]]:
    """The parts of the page around the element as targets, with what being within them leaves of a way's worth, in percent."""
    for row in facts.rows:
        for text in _telling(row.texts) if anchor is None else [anchor]:
            yield {"role": row.role, "has_text": text}, _holding(text, 96, 90), f"the {row.role} that says so"
    for area in facts.areas:
        for css in area.css if area.texts else ():
            for text in _telling(area.texts) if anchor is None else [anchor]:
                yield {"css": css, "has_text": text}, _holding(text, 88, 82), "the card that says so"
        named = {"role": area.role, **({"name": area.name} if area.name else {})}
        if area.role and anchor in (None, area.name):
            yield named, 93, f"the {area.role} of that name"
        elif area.role:
            yield {**named, "has_text": anchor}, 90, f"the {area.role} that says so"
        if area.heading is not None and anchor in (None, area.heading.text):
            for css in [*area.css, *([area.tag] if area.tag != "div" else [])]:
                yield {"css": css, "has_text": area.heading.text}, 85, "the part with that heading"
            yield {"css": area.heading.css}, 75, "the part with that heading"


def _telling(said: Sequence[str]) -> list[str]:
    """The texts of a row, those by which it is best known first: numbers tell rows apart for longer than words do, and what counts changes."""
    return sorted(said[:MOST_ROW_TEXTS], key=lambda text: -_holding(text, 2, 1))


def _holding(text: str, code: int, words: int) -> int:
    """How well a text tells which row is meant tomorrow: ``code`` for a number of its own, ``words`` for words, less for what counts."""
    if _CODE.fullmatch(text):
        return code
    return words if not _COUNTED.fullmatch(text) else int(words * POOR_ANCHOR)


def forms(way: dict[str, Any]) -> Iterator[Target]:
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
