"""Long stretches of pages that a model was shown on any page: the grid, list or table beside what a page is about. Shown again they take three lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from runtime.observation.page_frame import bare
from runtime.observation.tree import FIELDS, URGENT

LEAST = 300  # least characters of a stretch that is left out; less saves too little for what is asked for again
SHOWN = 2  # first lines of a stretch that are shown: what it is, and what it begins with

_LEFT_OUT = re.compile(r"^\s*… \d+ lines as before$", re.MULTILINE)
_ROLE = re.compile(r"\w+")
_KEPT = FIELDS | URGENT
"""Roles of lines that are shown each time: what is filled in, and what a page tells."""


class Stretches:
    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str] | None, int] = {}  # neighbouring lines, with the characters shown until then

    def note(self, text: str, now: int) -> None:
        """Record the lines of a text that end after ``now`` characters."""
        self._pairs |= dict.fromkeys(_pairs(text.split("\n")), now)

    def without_known(self, text: str, since: int) -> str:
        """Return a page with one line in place of the rest of each long stretch whose lines were shown as neighbours since then."""
        lines = text.split("\n")
        known = [pair is not None and self._pairs.get(pair, since - 1) >= since for pair in _pairs(lines)]
        left: list[str] = []
        at = 0
        for run in _runs(known):
            rest = lines[run.start + SHOWN : run.stop]
            if sum(map(len, rest)) < LEAST:
                continue
            margin = rest[0][: len(rest[0]) - len(rest[0].lstrip())]
            left += [*lines[at : run.start + SHOWN], f"{margin}… {len(rest)} lines as before"]
            at = run.stop
        return "\n".join([*left, *lines[at:]])


def are_left_out(text: str) -> bool:
    """Return True if the text says of a stretch that it was shown before."""
    return _LEFT_OUT.search(text) is not None


def _pairs(lines: Sequence[str]) -> list[tuple[str, str] | None]:
    """Return each two neighbours without refs and margins; None if one of them is shown each time."""
    return [
        None if _stays(one) or _stays(other) else (bare(one), bare(other)) for one, other in itertools.pairwise(lines)
    ]


def _stays(line: str) -> bool:
    role = _ROLE.match(line.strip())
    return role[0] in _KEPT if role is not None else not line.strip().startswith('"')


def _runs(known: Sequence[bool]) -> Iterator[range]:
    """Yield the places of lines that are all neighbours as before."""
    first = 0
    for number, each in enumerate([*known, False]):
        if not each:
            yield range(first, number + 1)
            first = number + 1
