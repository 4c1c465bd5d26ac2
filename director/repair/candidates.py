"""What an element might be called by now: elements of the page, ranked by how much they have of what was meant. Pure.

What was meant is told by the target that finds nothing any more, by what the step does, and by what the step is called. An element that shares no word with
any of that may be it all the same, but nobody can tell; nor where another one is called nearly as much alike. Such a fix is never more than a guess (``named``).
Where a link leads tells nothing of what it is called.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from nodes.targets import Target
from runtime.browser.elements.targets import FIELDS

LEAST = 0.2
"""The score below which an element is no candidate."""

ALIKE = 0.75
"""How alike the spelling of two words must be, to count as the same word."""

SHARES = 0.5
"""How much of a name must be the same, to count as called alike."""

SAME = 0.9
"""How much of a name must be the same where the role is another one."""

CLEARLY = 0.2
"""By how much more of its name an element must share than every other one of its role in the same place."""

LIGHT = 0.3
"""What an empty word counts beside a telling one."""

PRESSED = frozenset(
    {
        "button",
        "link",
        "menuitem",
        "tab",
        "option",
        "checkbox",
        "radio",
        "switch",
        "treeitem",
        "clickable",
        "cell",
        "img",
    }
)
"""Roles of what is clicked."""

ROLES: Mapping[str, frozenset[str]] = {
    "click": PRESSED,
    "dblclick": PRESSED,
    "download": PRESSED,
    "fill": frozenset({"textbox", "searchbox", "combobox", "spinbutton", "editable"}),
    "type": frozenset({"textbox", "searchbox", "combobox", "spinbutton", "editable"}),
    "check": frozenset({"checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio", "option"}),
    "uncheck": frozenset({"checkbox", "switch", "menuitemcheckbox"}),
    "select": frozenset({"combobox", "listbox"}),
    "value": FIELDS,
}
"""Which roles an action can do anything with; for any other action all of them."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(
    r"""[#.]([A-Za-z][\w-]*)|\[\s*(?:id|name|class|data-[\w-]+|aria-label)\s*[*^$~|]?=\s*["']?([^"'\]]+)"""
)

_EMPTY = """
the a an of to and or for in on at by with this that all my your is it
button link field input box btn submit form click press open go
"""
EMPTY = frozenset(_EMPTY.split())
"""Words that tell nothing of what an element is for, or only what kind it is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Meant:
    """What the step looked for."""

    said: str
    """What a person would call it; empty where the target says nothing of that."""
    marks: str
    """What the document would call it: ids, classes, test ids."""
    hints: str
    """What the step is called, and what it is described as."""
    role: str
    action: str
    anchor: str = ""
    """Text of the row or card in which it must stand."""

    @classmethod
    def of(cls, target: Target, action: str, hints: str = "") -> Meant:
        """What is meant by a target, values filled in, of a step that does ``action``."""
        said = target.name or target.label or target.text or target.placeholder or target.title or target.alt or ""
        marks = [target.test_id or "", *_marks(target.css or ""), *_marks(target.xpath or "")]
        within = target.within
        anchor = (within.has_text or "") if within is not None else ""
        return cls(said, " ".join(filter(None, marks)), hints, target.role or "", action, anchor)


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """An element of the page as it is now."""

    ref: str
    role: str
    name: str
    texts: Sequence[str] = ()
    """What else a person might call it: labels, placeholder, title, text."""
    marks: Sequence[str] = ()
    """Its id, test id, name in the form, classes."""
    around: str = ""
    """What the row or card says that it stands in."""


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """How much an element has of what was meant."""

    seen: Seen
    worth: float
    """From 0 to 1."""
    own: float
    """How much of its name, or of what the document calls it, is the same."""
    words: frozenset[str]
    """Of what was meant, the words that it shares."""
    kin: bool
    """Whether its role is the one that was meant."""
    why: str

    @property
    def shares(self) -> bool:
        """Whether it is called, in whole or in part, as what was meant."""
        return self.own >= SHARES


def ranked(meant: Meant, seen: Iterable[Seen]) -> list[Score]:
    """The elements that may be what was meant, the likeliest first."""
    scores = [score for each in seen if (score := scored(meant, each)) is not None]
    return sorted(scores, key=lambda score: -score.worth)


def named(score: Score, others: Iterable[Score]) -> bool:
    """Whether its name alone tells that it is what was meant: it is the old one but for a little, and no other one of its role in the same place comes near.

    One that has kept another word of the old name comes near, too: `Open orders` may be `Orders` by now, and it may be `Open`.
    """
    if not score.shares or (not score.kin and score.own < SAME):
        return False
    return not any(
        other.own > score.own - CLEARLY or not other.words <= score.words
        for other in others
        if other is not score and other.seen.role == score.seen.role
    )


def scored(meant: Meant, seen: Seen) -> Score | None:
    """How much an element has of what was meant; None where it cannot be it, or has nothing of it."""
    able = ROLES.get(meant.action)
    if able is not None and seen.role not in able:
        return None
    if meant.anchor and not stands_in(meant.anchor, seen.around):
        return None
    called = [seen.name, *seen.texts]
    same_name = max((alike(meant.said, each) for each in called), default=0.0) if meant.said else 0.0
    same_mark = max((alike(meant.marks, each) for each in [*seen.marks, *called]), default=0.0) if meant.marks else 0.0
    hinted = max((alike(meant.hints, each) for each in [*called, *seen.marks]), default=0.0) if meant.hints else 0.0
    # What the document calls it tells as much of an element as its name does, where the name is another one.
    by_name = max((alike(meant.said, each) for each in seen.marks), default=0.0) * 0.9 if meant.said else 0.0
    own = max(same_name, same_mark, by_name)
    kin = not meant.role or meant.role == seen.role
    anchored = 1.0 if meant.anchor else 0.0
    worth = 0.6 * own + 0.2 * (1.0 if kin else 0.5) + 0.1 * hinted + 0.1 * anchored
    if worth < LEAST:
        return None
    has = [word for each in [*called, *seen.marks] for word in words(each)]
    shared = frozenset(each for each in words(meant.said or meant.marks) if any(_same(each, word) for word in has))
    return Score(
        seen, round(worth, 3), round(own, 3), shared, kin, _why(meant, seen, max(same_name, same_mark), own, hinted)
    )


def _why(meant: Meant, seen: Seen, name: float, own: float, hinted: float) -> str:
    reasons: list[str] = []
    if name >= SHARES:
        reasons.append("it is called alike")
    elif own >= SHARES:
        reasons.append("the document calls it alike")
    elif hinted >= SHARES:
        reasons.append("it is called as the step is")
    if meant.role and meant.role == seen.role:
        reasons.append(f"it is a {seen.role}, too")
    if meant.anchor:
        reasons.append("it stands in the same row")
    return ", ".join(reasons) or "it is the like of it"


def words(text: str) -> list[str]:
    """The words of a text, in small letters; of an id the parts it is made of."""
    return [each.casefold() for each in _WORD.findall(_CAMEL.sub(" ", text).replace("_", " "))]


def alike(one: str, other: str) -> float:
    """How much of what two texts say is the same, from 0 to 1: words that they share, or one long word spelt alike."""
    first, second = words(one), words(other)
    if not first or not second:
        return 0.0
    if first == second:
        return 1.0
    return round((_part(first, second) + _part(second, first)) / 2, 3)


def _part(some: Sequence[str], others: Sequence[str]) -> float:
    """How much of some words stands among others; an empty word counts little."""
    weights = [LIGHT if each in EMPTY else 1.0 for each in some]
    kept = sum(weight for each, weight in zip(some, weights, strict=True) if any(_same(each, word) for word in others))
    return kept / sum(weights)


_SYNONYMS = """
sign log, delete remove erase, cart basket bag, search find, edit change modify, save store, mail email, phone telephone, username user login,
ok confirm, next continue, add create new, send submit, pay buy purchase checkout, close dismiss, cancel abort, first given, last family surname
"""
SYNONYMS = [frozenset(each.split()) for each in _SYNONYMS.split(",")]
"""Words that sites take for one another."""


def _same(one: str, other: str) -> bool:
    if one == other or any(one in each and other in each for each in SYNONYMS):
        return True
    if min(len(one), len(other)) < 4:
        return False
    # `pay` is in `payments` and no other way of saying `pay`; `order` and `orders` are.
    # The matcher may come to another ratio the other way round.
    first, second = sorted((one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() >= ALIKE and one[:2] == other[:2]


def _marks(selector: str) -> list[str]:
    """The ids, classes and attribute values of a selector."""
    return [first or second for first, second in _MARK.findall(selector)]


def stands_in(text: str, around: str) -> bool:
    """Whether ``text`` stands in what is around an element, as whole words."""
    return re.search(rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)", " ".join(around.split())) is not None


def selectors(css: str, known: Sequence[str]) -> list[str]:
    """The selector with each id, class or test id that the page does not have put right: by the one of ``known`` that is called most alike.

    ``known`` are those that the page has, as they are written in a selector: ``#orders``, ``.row``, ``[data-testid="pay"]``.
    """
    found: list[str] = [css]
    changed = False
    for mark in dict.fromkeys(re.findall(r"[#.][A-Za-z][\w-]*|\[data-testid=[^\]]+\]", css)):
        if _plain(mark) in map(_plain, known):
            continue
        kind = mark[0]
        close = sorted((each for each in known if each[0] == kind), key=lambda each: -alike(mark, each))[:2]
        near = [each for each in close if alike(mark, each) >= 0.5]
        if not near:
            return _unwrapped(css)
        found = [each.replace(mark, other) for each in found for other in near]
        changed = True
    return [*(found if changed else []), *_unwrapped(css)]


def near_marks(test_id: str, known: Sequence[str]) -> list[str]:
    """The test ids among ``known`` that are called most alike."""
    ids = [each[len('[data-testid="') : -2] for each in known if each.startswith("[")]
    return sorted((each for each in ids if alike(test_id, each) >= 0.5), key=lambda each: -alike(test_id, each))[:2]


def _unwrapped(css: str) -> list[str]:
    """The selector with something allowed between what stood right within each other."""
    loose = re.sub(r"\s*>\s*", " ", css)
    return [loose] if loose != css else []


def _plain(mark: str) -> str:
    return mark.replace('"', "").replace("'", "")
