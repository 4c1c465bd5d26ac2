"""Finds a target for an element that a model points at: semantic if possible, and proved to match only that element."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from nodes.errors import SiteError
from nodes.targets import ROLES, Target
from runtime.browser.elements.facts import Area, Facts
from runtime.observation import tree

FIELDS = frozenset(
    {"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider", "checkbox", "radio", "switch"}
)
"""Roles that people know by their label."""

SAID_BY_TEXT = frozenset({"generic", "none", "presentation", "paragraph", "text", "cell", "listitem"} | tree.SPOTS)
"""Roles that do not tell an element's purpose."""

_CONTENT = frozenset({"definition", "term", "gridcell", "rowheader", "strong", "emphasis", "time", "code", "status"})
READ = (SAID_BY_TEXT - tree.SPOTS) | _CONTENT
"""Roles of content to be read: its text changes, so it is no way to find it."""

HOLDERS = frozenset({"row", "listitem", "article"})
"""Roles of parts that hold others: their name is all of their content, so a text in them tells better which it is."""

PRESSED = frozenset({"button", "link", "menuitem", "tab", "option", "clickable"})
"""Roles of what one presses."""

MOST_ROW_TEXTS = 6  # most texts of a row that are tried to identify it
MOST_PART_TEXTS = 4  # most texts of a card or part that are tried
PLAIN_ID = re.compile(r"[A-Za-z][A-Za-z_-]{1,40}")  # an id that a person wrote: generated ones contain digits

FIELD_NAME = re.compile(r"[A-Za-z][\w.:\[\]-]{1,60}")
"""Name that a field is submitted under. The server reads it, so its digits are stable, as in `lines-0-quantity`."""

ADDRESS = re.compile(r"[/?.][\w/?.=&%+~,:@-]{0,80}")
"""Address of a link on the same site, as written, that may identify it."""

LONGEST = 80  # most characters of a text that identifies an element

_COUNTED = re.compile(
    r"(no|none|nothing|empty|[\W\d_]*\d+[\W\d_]*)\b( .*)?"
    r"|.*\b(ago|today|yesterday|tomorrow)\b.*"
    r"|.*\b\d+ (of|items?|entries|results?|rows?|more|left|new|comments?|views?|(second|minute|hour|day|week|month)s?)\b.*",
    re.IGNORECASE,
)
"""Counts and times: `No items in collection`, `3 items`, `Page 2 of 9`."""

_CODE = re.compile(r"(?=(?:\D*\d){3})[\w-]+")
"""Number that identifies things, as `1001` and `INV-204`. It has at least three digits, because fewer may be a count."""

_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
_TIME = re.compile(
    rf"\d{{1,2}}:\d\d|\d{{4}}-\d\d-\d\d|\d{{1,2}}([./])\d{{1,2}}\1\d{{2,4}}|\b{_MONTH}\.? \d{{1,2}}\b|\b\d{{1,2}}\.? {_MONTH}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    re.IGNORECASE,
)
"""Dates and times: `2026-11-27`, `23:22`, `Nov 27 2026, 23:22:33`."""
_WORD = re.compile(r"[^\W\d_]{4}")

_BADGE = re.compile(r"\s*[(\[]\d[\d.,]*\+?[)\]]$")  # count after a name, as in `Load (3)`
_COUNT = re.compile(
    r"\d{1,2}\+?|\d[\d.,]*[.,+k]\w*"
)  # count that is a thing of its own in what one presses, as in `Done 9`
ID, SENT = "its id", "the name under which it is sent"
OWN = 97  # worth of an id or name, if the element is to be found by more than what people see
CAPTION = 70  # worth of a caption or part that was asked for
POOR_ANCHOR = 0.6  # factor for the worth of a way whose text is a count, because a count changes


class Pointed(Protocol):
    @property
    def facts(self) -> Facts: ...

    async def places(self, target: Target) -> tuple[int, int]:
        """Return the number of elements that match the target now and the index of this one, from 0; -1 if it is none of them."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """A way to find an element, not proved yet."""

    fields: dict[str, Any]  # fields of a target
    worth: int  # score of up to 100: how well it expresses the purpose, and how likely it still matches tomorrow
    why: str  # property that finds the element, in words
    whole: int = 2  # what it loses of its worth if only the whole text finds the element


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
    way: Way
    target: Target
    count: int  # number of elements that match
    index: int  # index of the element among these, from 0

    @property
    def alone(self) -> bool:
        return self.count == 1


async def matches(pointed: Pointed, found: Iterable[Way]) -> AsyncGenerator[Match]:
    """Yield the targets of these ways that match the element now. A target that matches only the element is the last of its way."""
    for way in found:
        for target in forms(way.fields):
            count, index = await pointed.places(target)
            if index >= 0:
                yield Match(way, target, count, index)
            if (count, index) == (1, 0):
                break


async def target_of(pointed: Pointed, role: str, name: str, usable: Callable[[str], bool]) -> Target:
    """Return the first target that matches only this element now: by its name, then within its row, last by its index.

    ``role`` and ``name`` are as assistive programs see them. Uses only ``usable`` texts. Raises SiteError ``no-target``.
    """
    alone = ways(pointed.facts, role, name, usable)
    counted: list[Way] = []
    async for match in matches(pointed, ranked([*alone, *anchored(alone, pointed.facts, usable)])):
        if match.alone:
            return match.target
        counted.append(dataclasses.replace(match.way, fields={**match.way.fields, "nth": match.index}))
    async for match in matches(pointed, counted):
        if match.alone:
            return match.target
    raise SiteError(
        "no-target",
        f"no target matches the {role or pointed.facts.tag} and nothing else",
        fix="take another element that leads to the same",
    )


def ways(facts: Facts, role: str, name: str, usable: Callable[[str], bool]) -> list[Way]:
    """Return the ways to find the element by itself, the best first. Uses only ``usable`` texts."""
    return ranked([each for each in _ways(facts, role, name) if all(map(usable, _texts(each.fields)))])


def ranked(found: Sequence[Way]) -> list[Way]:
    return sorted(found, key=lambda way: -way.worth)


def _ways(facts: Facts, role: str, name: str) -> Iterator[Way]:
    frame = {} if not facts.frames else {"frame": facts.frames[0] if len(facts.frames) == 1 else list(facts.frames)}
    for way in [*_said(facts, role, name), *_written(facts, role, name)]:
        yield dataclasses.replace(way, fields={**way.fields, **frame})


def _said(facts: Facts, role: str, name: str) -> Iterator[Way]:
    if facts.inside is not None and is_part(facts, role):
        yield from _itself(facts.inside, role)
    if role in FIELDS:
        if name and any(name in each and name != each for each in facts.labels):
            # A label around a list also contains the texts of its options.
            yield Way({"label": name}, 96, "its label")
        for each in facts.labels:
            yield Way({"label": each}, 95, "its label")
    yield from _named(role, name, facts) if _speaks(role) else ()
    for field in ("placeholder", "alt", "title"):
        if 0 < len(said := getattr(facts, field)) <= LONGEST:
            yield Way({field: said}, 80, f"its {field}")
    if role not in FIELDS and facts.text and not (_speaks(role) and 0 < len(name) <= LONGEST):
        worth, why = (30, "the very text that it says now") if role in READ else (70, "its text")
        yield Way({"text": facts.text}, worth, why)


def _named(role: str, name: str, facts: Facts) -> Iterator[Way]:
    if len(name) > LONGEST:
        # The first words of a long name suffice: a name matches as a part.
        for most in (LONGEST // 2, LONGEST):
            begins = name[: most + 1].rpartition(" ")[0] or name[:most]
            yield Way({"role": role, "name": begins}, 92, "its role and how its name begins")
    elif name and role in HOLDERS:
        yield Way({"role": role, "name": name}, 40, "all that it says")
    elif name:
        stem = _stem(name, facts)
        if stem != name:
            yield Way({"role": role, "name": stem}, 94, "its role and name without what counts")
        # What is called by several texts is called otherwise when one of them changes.
        whole = 40 if any(each.text != name and each.text in name for each in facts.parts) else 2
        yield Way({"role": role, "name": name}, 94 if stem == name else 80, "its role and name", whole)


def _stem(name: str, facts: Facts) -> str:
    """Return the name without a count at its end."""
    for count in (each.text for each in facts.parts if _COUNT.fullmatch(each.text)):
        if name.endswith(f" {count}"):
            return name[: -len(count) - 1].rstrip(" ·:-–")
    return _BADGE.sub("", name) or name


def is_part(facts: Facts, role: str) -> bool:
    """Return True for a row, and for a card or part that says several things: what says only one is a value, known by what is around it."""
    if facts.inside is None or len(facts.inside.texts) < 2:
        return role in HOLDERS
    return role in HOLDERS or role == "generic" or (role == "clickable" and facts.inside.card)


def _itself(area: Area, role: str) -> Iterator[Way]:
    """Yield the ways to find a row or card by a text in it."""
    for text in _telling(area.texts) if role in HOLDERS else ():
        yield Way({"role": role, "has_text": text}, _holding(text, 90, 84), "a text in it")
    if role not in HOLDERS or area.card:
        for fields, worth, why in _holds(area, None):
            yield Way(fields, worth, why.replace("the card that", "a card that"))


def _written(facts: Facts, role: str, name: str) -> Iterator[Way]:
    if facts.test_id:
        yield Way({"test_id": facts.test_id}, 90, "its test id")
    if PLAIN_ID.fullmatch(facts.id):
        yield Way({"css": f"#{facts.id}"}, 66, ID)
    if (FIELD_NAME if role in FIELDS else PLAIN_ID).fullmatch(facts.name):
        # The number or hotkey in a name that people see is another one tomorrow.
        worth = OWN if _BADGE.search(name) and PLAIN_ID.fullmatch(facts.name) else 64
        yield Way({"css": f'{facts.tag}[name="{facts.name}"]'}, worth, SENT)
    if (role in FIELDS and not (name or facts.labels)) or role in READ:
        for caption in facts.beside:
            yield Way({"css": caption.css}, 56, "the text beside it")
    if role in PRESSED or is_part(facts, role):
        for part in facts.parts:
            if part.text != name:
                yield Way({"css": part.css}, _holding(part.text, 63, 60), "the whole text of a part of it")
    yield from _marked(facts, name)
    if _speaks(role):
        yield Way({"role": role}, 45, "its role alone")
    elif facts.tag:
        yield Way({"css": facts.tag}, 20, "its tag alone")


def _marked(facts: Facts, name: str) -> Iterator[Way]:
    for css, worth, why in ((facts.hint, 62, "its icon or its tooltip"), (facts.drawn, 44, "the lines of its icon")):
        if css and not name:
            yield Way({"css": css}, worth, why)
    for css in facts.data:
        yield Way({"css": css}, 69, "its data attribute")
    if ADDRESS.fullmatch(facts.link):
        yield Way({"css": f'a[href="{facts.link}"]'}, 55, "where it leads")
    for css in facts.classes:
        yield Way({"css": css}, 50, "its class")


def _speaks(role: str) -> bool:
    """Return True if a target accepts the role and the role tells the element's purpose."""
    return role in ROLES and role not in SAID_BY_TEXT


def anchored(
    alone: Sequence[Way], facts: Facts, usable: Callable[[str], bool], anchor: str | None = None
) -> Iterator[Way]:
    """Yield the ways ``alone``, each within a part of the page around the element, nearest parts first.

    ``anchor`` is the text to find the part by. A way by the element's own name or caption counts too if that is ``anchor``.
    """
    if anchor is not None:
        yield from _called(alone, facts, anchor)
    # A text that was asked for is as good as a name.
    nameless = 68 if anchor is None else 84
    for around, worth, why in _around(facts, anchor):
        if not all(map(usable, _texts(around))):
            continue
        for way in alone:
            inside = {key: value for key, value in way.fields.items() if key != "frame"}
            outside = {**around, "frame": way.fields["frame"]} if "frame" in way.fields else around
            # The row or part identifies a field without a name.
            bare = way.fields.get("role") in FIELDS and "name" not in way.fields
            alone_worth = nameless if bare else way.worth
            yield Way({**inside, "within": outside}, alone_worth * worth // 100, f"{way.why} in {why}", way.whole)


def _called(alone: Sequence[Way], facts: Facts, anchor: str) -> Iterator[Way]:
    """Yield the ways by the element's own name, its caption or a text in it, if that is ``anchor``."""
    meant = _plain(anchor)
    captions = {each.css for each in (*facts.beside, *facts.parts) if _plain(each.text) == meant}
    # In a row or card the anchor tells which one is meant.
    single = not facts.rows and not any(each.card for each in facts.areas)
    for way in alone:
        said = [way.fields.get(each) for each in ("name", "label", "text", "placeholder", "title", "alt")]
        if single and (way.why == ID or (way.why == SENT and PLAIN_ID.fullmatch(facts.name))):
            yield dataclasses.replace(way, worth=OWN)
        elif "has_text" in way.fields:
            yield dataclasses.replace(way, fields={**way.fields, "has_text": anchor})
        elif way.fields.get("css") in captions:
            yield dataclasses.replace(way, worth=max(way.worth, CAPTION))
        elif any(each is not None and _plain(each) == meant for each in said):
            yield way


def _plain(text: str) -> str:
    """Return a text as spoken: without a colon or star after a caption."""
    return " ".join(text.split()).strip(" :*").casefold()


def _around(facts: Facts, anchor: str | None) -> Iterator[tuple[dict[str, Any], int, str]]:
    """Yield the parts of the page around the element as targets, with the percentage of a way's worth that remains within each."""
    for row in facts.rows:
        for text in _telling(row.texts) if anchor is None else [anchor]:
            yield {"role": row.role, "has_text": text}, _holding(text, 96, 90), f"the {row.role} that says so"
    for area in facts.areas:
        yield from _holds(area, anchor)
        named = {"role": area.role, **({"name": area.name} if area.name else {})}
        if area.role and anchor in (None, area.name):
            yield named, 93 if area.name else 82, f"the {area.role}{' of that name' if area.name else ''}"
        elif area.role:
            yield {**named, "has_text": anchor}, 90, f"the {area.role} that says so"
        if area.heading is not None and anchor in (None, area.heading.text):
            for css in [*area.css, *([area.tag] if area.tag != "div" else [])]:
                yield {"css": css, "has_text": area.heading.text}, 85, "the part with that heading"
            yield {"css": area.heading.css}, 75, "the part with that heading"


def _holds(area: Area, anchor: str | None) -> Iterator[tuple[dict[str, Any], int, str]]:
    """Yield a part of the page as targets by a text in it: a card best, a part that nothing names by the way down to the text."""
    asked = 0 if anchor is None else 6
    code, words, what = (88, 82, "card") if area.card else (80 + asked, 74 + asked, "part")
    for css in area.css if area.texts else ():
        for text in _telling(area.texts)[:MOST_PART_TEXTS] if anchor is None else [anchor]:
            yield {"css": css, "has_text": text}, _holding(text, code, words), f"the {what} that says so"
    for each in area.says:
        if anchor is None or _plain(anchor) in _plain(each.text):
            yield {"css": each.css}, _holding(each.text, 72 + asked, 68 + asked), "the part that says so"


def _telling(said: Sequence[str]) -> list[str]:
    """Sort the texts of a row by how well they identify it: a number identifies longer than words do, and a count changes."""
    return sorted(said[:MOST_ROW_TEXTS], key=lambda text: -_holding(text, 2, 1))


def _holding(text: str, code: int, words: int) -> int:
    """Return how well a text will identify a row: ``code`` for an identifying number, ``words`` for words, less for a count."""
    if is_time(text) or (_COUNTED.fullmatch(text) and not _CODE.fullmatch(text)):
        return int(words * POOR_ANCHOR)
    return code if _CODE.fullmatch(text) else words


def is_time(text: str) -> bool:
    """Return True for a date or time with no other word beside it: what happened then is not known by it."""
    return _TIME.search(text) is not None and not _WORD.search(_TIME.sub("", text))


def forms(way: dict[str, Any]) -> Iterator[Target]:
    """Yield the way as a target, then as one that matches the whole text only."""
    exact = "test_id" not in way and "css" not in way and set(way) != {"role"}
    for each in (way, {**way, "exact": True}) if exact else (way,):
        try:
            yield Target.model_validate(each)
        except ValidationError:
            # No target accepts this role or frame of the page.
            continue


def _texts(way: dict[str, Any]) -> Iterator[str]:
    for value in way.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from value
