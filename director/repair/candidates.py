"""Ranks the elements of a page by similarity to the one that a target was meant to find. Pure.

The meaning comes from the target that finds nothing any more, and from the step's action and name. If an element shares no word with these,
or another element has a similar name, the fix is only a guess (``named``). The address of a link does not count.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from nodes.targets import Target
from runtime.browser.elements.targets import FIELDS

LEAST = 0.2
ALIKE = 0.75
SHARES = 0.5  # least common part of two names that count as alike
SAME = 0.9
CLEARLY = 0.2  # least lead in the common part of the name over every other element of the same role
LIGHT = 0.3
_PRESSED = "button link menuitem tab option checkbox radio switch treeitem clickable cell img"
_TYPED = "textbox searchbox combobox spinbutton editable"
ROLES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("click", "dblclick", "download"), frozenset(_PRESSED.split())),
    **dict.fromkeys(("fill", "type"), frozenset(_TYPED.split())),
    "check": frozenset(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio", "option"]),
    "uncheck": frozenset(["checkbox", "switch", "menuitemcheckbox"]),
    "select": frozenset(("combobox", "listbox")),
    "value": FIELDS,
}
"""Roles that an action can use; other actions can use all."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(
    r"""[#.]([A-Za-z][\w-]*)|\[\s*(?:id|name|class|data-[\w-]+|aria-label)\s*[*^$~|]?=\s*["']?([^"'\]]+)"""
)

_EMPTY = """
the a an of to and or for in on at by with this that all my your is it
button link field input box btn submit form click press open go
"""
EMPTY = frozenset(_EMPTY.split())  # words that say nothing about an element's purpose


@dataclasses.dataclass(frozen=True, slots=True)
class Meant:
    said: str  # its visible name; empty if the target has none
    marks: str  # its names in the document: ids, classes, test ids
    hints: str  # the step's name and description
    role: str
    action: str
    anchor: str = ""  # text of the row or card that must contain it

    @classmethod
    def of(cls, target: Target, action: str, hints: str = "") -> Meant:
        """Return the meaning of a target with resolved references, in a step that does ``action``."""
        said = target.name or target.label or target.text or target.placeholder or target.title or target.alt or ""
        marks = [target.test_id or "", *_marks(target.css or ""), *_marks(target.xpath or "")]
        within = target.within
        anchor = (within.has_text or "") if within is not None else ""
        return cls(said, " ".join(filter(None, marks)), hints, target.role or "", action, anchor)


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    ref: str
    role: str
    name: str
    texts: Sequence[str] = ()  # other visible names: labels, placeholder, title, text
    marks: Sequence[str] = ()
    around: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """Similarity of an element to the one that was meant."""

    seen: Seen
    worth: float
    own: float  # the common part of its name, or of its names in the document
    words: frozenset[str]  # the words of the meaning that it shares
    kin: bool
    why: str

    @property
    def shares(self) -> bool:
        """True if at least half of its name is the one that was meant."""
        return self.own >= SHARES


def ranked(meant: Meant, seen: Iterable[Seen]) -> list[Score]:
    scores = [score for each in seen if (score := scored(meant, each)) is not None]
    return sorted(scores, key=lambda score: -score.worth)


def named(score: Score, others: Iterable[Score]) -> bool:
    """Return whether the name alone identifies the element: it is like the old one, and no other element of its role is close.

    An element with another word of the old name is close, too: `Open orders` may now be `Orders` or `Open`.
    """
    if not score.shares or (not score.kin and score.own < SAME):
        return False
    return not any(
        other.own > score.own - CLEARLY or not other.words <= score.words
        for other in others
        if other is not score and other.seen.role == score.seen.role
    )


def scored(meant: Meant, seen: Seen) -> Score | None:
    able = ROLES.get(meant.action)
    if (able is not None and seen.role not in able) or (meant.anchor and not is_in(meant.anchor, seen.around)):
        return None
    called, marks = [seen.name, *seen.texts], seen.marks
    name, mark = _best(meant.said, called), _best(meant.marks, [*marks, *called])
    hinted = _best(meant.hints, [*called, *marks])
    # An id or class like the visible name counts nearly as much as the name itself.
    own = max(name, mark, _best(meant.said, marks) * 0.9)
    kin = not meant.role or meant.role == seen.role
    worth = 0.6 * own + (0.2 if kin else 0.1) + 0.1 * hinted + (0.1 if meant.anchor else 0.0)
    if worth < LEAST:
        return None
    has = [word for each in [*called, *marks] for word in words(each)]
    shared = frozenset(each for each in words(meant.said or meant.marks) if any(_same(each, word) for word in has))
    reasons = [
        "it has a similar name" if max(name, mark) >= SHARES else "",
        "the document gives it a similar name" if own >= SHARES > max(name, mark) else "",
        "its name is like that of the step" if hinted >= SHARES > own else "",
        f"it is a {seen.role}, too" if meant.role and kin else "",
        "it is in the same row" if meant.anchor else "",
    ]
    why = ", ".join(filter(None, reasons)) or "it is similar"
    return Score(seen, round(worth, 3), round(own, 3), shared, kin, why)


def _best(meant: str, texts: Iterable[str]) -> float:
    return max((alike(meant, each) for each in texts), default=0.0) if meant else 0.0


def words(text: str) -> list[str]:
    return [each.casefold() for each in _WORD.findall(_CAMEL.sub(" ", text).replace("_", " "))]


def alike(one: str, other: str) -> float:
    """Return the similarity of two texts, from 0 to 1: common words, or one long word with similar spelling."""
    first, second = words(one), words(other)
    if not first or not second:
        return 0.0
    if first == second:
        return 1.0
    return round((_part(first, second) + _part(second, first)) / 2, 3)


def _part(some: Sequence[str], others: Sequence[str]) -> float:
    """Return the share of ``some`` words that occur in ``others``; words without information count little."""
    weights = [LIGHT if each in EMPTY else 1.0 for each in some]
    kept = sum(weight for each, weight in zip(some, weights, strict=True) if any(_same(each, word) for word in others))
    return kept / sum(weights)


_SYNONYMS = """
sign log, delete remove erase, cart basket bag, search find, edit change modify, save store, mail email, phone telephone, username user login,
ok confirm, next continue, add create new, send submit, pay buy purchase checkout, close dismiss, cancel abort, first given, last family surname
"""
SYNONYMS = [frozenset(each.split()) for each in _SYNONYMS.split(",")]


def _same(one: str, other: str) -> bool:
    if one == other or any(one in each and other in each for each in SYNONYMS):
        return True
    if min(len(one), len(other)) < 4:
        return False
    # `order` and `orders` are the same word, `pay` and `payments` are not. Sorted, as the ratio may depend on the order of arguments.
    first, second = sorted((one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() >= ALIKE and one[:2] == other[:2]


def _marks(selector: str) -> list[str]:
    return [first or second for first, second in _MARK.findall(selector)]


def is_in(text: str, around: str) -> bool:
    """Return whether the text around an element contains ``text``, as whole words."""
    return re.search(rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)", " ".join(around.split())) is not None


def selectors(css: str, known: Sequence[str]) -> list[str]:
    """Return the selector with each missing id, class or test id replaced by the most similar one of ``known``.

    ``known`` are those of the page, as written in a selector: ``#orders``, ``.row``, ``[data-testid="pay"]``.
    """
    # The selector is also tried with descendants in place of direct children.
    loose = re.sub(r"\s*>\s*", " ", css)
    relaxed = [loose] if loose != css else []
    found: list[str] = [css]
    for mark in dict.fromkeys(re.findall(r"[#.][A-Za-z][\w-]*|\[data-testid=[^\]]+\]", css)):
        if _plain(mark) in map(_plain, known):
            continue
        kind = mark[0]
        close = sorted((each for each in known if each[0] == kind), key=lambda each: -alike(mark, each))[:2]
        near = [each for each in close if alike(mark, each) >= 0.5]
        if not near:
            return relaxed
        found = [each.replace(mark, other) for each in found for other in near]
    return [*(found if found != [css] else []), *relaxed]


def near_marks(test_id: str, known: Sequence[str]) -> list[str]:
    ids = [each[len('[data-testid="') : -2] for each in known if each.startswith("[")]
    return sorted((each for each in ids if alike(test_id, each) >= 0.5), key=lambda each: -alike(test_id, each))[:2]


def _plain(mark: str) -> str:
    return mark.replace('"', "").replace("'", "")
