"""Words of a goal or an instruction, and which rows of a long run have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from runtime.observation.lines import Item

RARE = 3  # most rows of a run that one word keeps: a word of many rows distinguishes none
MOST_KEPT = 5  # most rows that are kept of one run

_WORD = re.compile(r"\w+")
_EVERYDAY = frozenset(
    _WORD.findall(
        "the and for are any all that this there with where what which whether from into does not its has have can see look find show tell page list"
        " how many much who when will would should could about also only one"
    )
)


def wanted(text: str) -> frozenset[str]:
    """Return the words of a text that distinguish something."""
    words = (each.casefold() for each in _WORD.findall(text))
    return frozenset(_stem(each) for each in words if each not in _EVERYDAY and (len(each) > 2 or each.isdigit()))


def said(line: str) -> list[str]:
    """Return the words of a line as ``wanted`` has them."""
    return [_stem(each.casefold()) for each in _WORD.findall(line)]


def _stem(word: str) -> str:
    """Return a word in the singular, so that ``orders`` matches ``order``."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def keep(top: Item, words: Collection[str]) -> None:
    """Take the rows with rare words out of the middles of their runs: they are shown like what is in none."""
    runs: dict[int, list[tuple[Item, set[str]]]] = {}
    for item in top.walk():
        if item.run:
            found = {word for each in item.walk() for word in said(each.line)}
            runs.setdefault(item.run, []).append((item, found.intersection(words)))
    for run in runs.values():
        counts = Counter(word for _item, found in run for word in found)
        scores = [(sum(counts[word] <= RARE for word in found), item) for item, found in run]
        for score, item in sorted(scores, key=lambda each: -each[0])[:MOST_KEPT]:
            item.run = 0 if score else item.run
