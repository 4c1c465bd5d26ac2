"""What of a page matters to an instruction: chosen by its words, in no time and without a model. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from runtime.observation.observation import Observation

MOST = 1_500
"""Characters of what is chosen."""

EVERYTHING = 200_000
"""Characters of a page that are looked through."""

NEW_LINE = "\n"

_WORD = re.compile(r"\w+")

_EMPTY = frozenset(
    _WORD.findall(
        "the and for are any all that this there with where what which whether from into does not its has have can see look find show tell page list"
        " how many much who when will would should could about also only one"
    )
)
"""Words that say nothing of what is looked for."""

_KINDS = {
    "field": ("textbox", "searchbox", "combobox", "listbox", "spinbutton", "checkbox", "radio", "slider", "switch"),
    "input": ("textbox", "searchbox", "combobox", "spinbutton", "checkbox", "radio"),
    "form": ("textbox", "searchbox", "combobox", "listbox", "spinbutton", "checkbox", "radio", "button"),
    "dropdown": ("combobox", "listbox"),
    "select": ("combobox", "listbox"),
    "menu": ("menu", "menuitem", "navigation"),
    "table": ("table", "row", "columnheader"),
    "column": ("columnheader", "row"),
    "error": ("alert", "status"),
    "message": ("alert", "status", "dialog"),
    "tab": ("tab", "tablist"),
}
"""Words for kinds of elements, with their roles; a role is a word for itself."""

_LOUD = ("alert", "dialog", "alertdialog")
"""Roles that are told whatever was asked."""

HANDED_ON = 0.4
"""What of it a line hands on to what stands in it, and a heading to what stands below it."""

LEAST = 0.3
"""What a line must count to be told, beside the one that counts most: what stands in that one is told."""

KIND, ALWAYS = 0.2, 0.3
"""What it counts to be of a kind that was asked for, or to be loud; a word that stands nowhere else counts 1."""


def chosen(view: Observation, instruction: str, most: int = MOST, known: Collection[str] = ()) -> str:
    """The lines of the page in which the words of the instruction stand, those around them that say where that is, and what the page calls out.

    A page that has room is told whole, but for a frame that is ``known`` and says none of the words; of one on which none of them stands, how it begins.
    """
    whole = _without(view.render(most), view.render(most, known=known), wanted(instruction))
    head, *lines = view.render(EVERYTHING).split("\n")
    if len(head) + sum(len(each) + 1 for each in lines) <= most:
        return whole
    scores = _scores(lines, wanted(instruction))
    if not scores:
        return f"{head}\n(none of the words stands on the page; it begins so)\n{view.render(most - 60).partition(NEW_LINE)[2]}"
    least = max(scores.values()) * LEAST
    scores = {number: score for number, score in scores.items() if score >= least}
    taken: set[int] = set()
    left = most - len(head) - 40
    for number in sorted(scores, key=lambda each: (-scores[each], each)):
        more = {number, *_above(lines, number)} - taken
        size = sum(len(lines[each]) + 1 for each in more)
        if size <= left:
            taken |= more
            left -= size
    left_out = sum(1 for each in scores if each not in taken)
    shown = [head, *(lines[each] for each in sorted(taken))]
    return "\n".join([*shown, *([f"… {left_out} more lines fit"] if left_out else [])])


def _without(whole: str, folded: str, words: frozenset[str]) -> str:
    """The page with what is known of it folded, where that says none of the words."""
    left_out = {*whole.split("\n")} - {*folded.split("\n")}
    said = {_stem(each.casefold()) for line in left_out for each in _WORD.findall(line)}
    return whole if words & said else folded


def wanted(instruction: str) -> frozenset[str]:
    """The words of an instruction that say what is looked for, without their endings."""
    words = (each.casefold() for each in _WORD.findall(instruction))
    return frozenset(_stem(each) for each in words if each not in _EMPTY and (len(each) > 2 or each.isdigit()))


def _stem(word: str) -> str:
    """A word without what makes it plural; ``orders`` and ``order`` are one."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _scores(lines: Sequence[str], words: frozenset[str]) -> dict[int, float]:
    """How much each line matters, those left out that do not. A word that stands in few lines tells more than one that stands in many."""
    said = [[_stem(each.casefold()) for each in _WORD.findall(line)] for line in lines]
    standing = Counter(word for each in said for word in words.intersection(each))
    kinds = {role for word in words for role in _KINDS.get(word, ())}
    scores: dict[int, float] = {}
    within: list[tuple[int, float]] = []
    """The containers around a line, each with its depth and what it hands on to what is in it."""
    headed, found = 0.0, False
    for number, line in enumerate(lines):
        role, depth = said[number][0] if said[number] else "", _depth(line)
        while within and within[-1][0] >= depth:
            within.pop()
        own = sum(1 / standing[word] for word in words.intersection(said[number]))
        own += KIND if role in kinds else 0
        loud = ALWAYS if role in _LOUD else 0.0
        if role == "heading":
            headed = own * HANDED_ON
        inherited = max(headed, within[-1][1] if within else 0.0)
        found = found or own > 0
        score = own + loud + (inherited if role != "heading" else 0.0)
        if score:
            scores[number] = score
        within.append((depth, max(own, inherited) * HANDED_ON))
    return scores if found else {}


def _above(lines: Sequence[str], number: int) -> Iterator[int]:
    """The lines within which a line stands."""
    depth = _depth(lines[number])
    for each in range(number - 1, -1, -1):
        if (found := _depth(lines[each])) < depth:
            yield each
            depth = found
        if not depth:
            return


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
