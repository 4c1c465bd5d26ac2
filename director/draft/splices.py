"""A text assembled from parts of others. Mistakes in it are reported at the place where the part was written."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from nodes.errors import ModelError
from runtime.language.diagnostics import Diagnostic, Mark, Source

_BLANK = re.compile(r"[ \t]*")
_LINE = re.compile(r"\bline ([0-9]+)(?:, column ([0-9]+))?")
"""A reference in a help text to another place of the same text."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cut:
    """A part of a patched text."""

    text: str
    source: Source
    start: int
    stop: int
    """Range in ``source``. If its length differs from that of the text, mistakes are reported for the whole range."""


@dataclasses.dataclass(frozen=True, slots=True)
class Splice:
    """Replaces a range of a text by other parts."""

    start: int
    stop: int
    cuts: Sequence[Cut] = ()


def unsuited(what: str) -> ModelError:
    """Return the error of a text whose notation cannot be edited there."""
    return ModelError(
        "edit-not-possible",
        f"{what}, so this cannot be done in the text as it is written",
        fix="do it in several calls, or write the whole container anew: `update_node` with its id and its text",
    )


def cut(source: Source, start: int, stop: int) -> Cut:
    """Return a part as it is in its text."""
    return Cut(source.text[start:stop], source, start, stop)


def put(text: str, source: Source, at: int) -> Cut:
    """Return generated text, such as indentation; mistakes in it are reported at an offset of ``source``."""
    return Cut(text, source, at, at)


class Patched:
    """The patched text, with a mapping back to its sources."""

    def __init__(self, cuts: Iterable[Cut]) -> None:
        self._cuts = [each for each in cuts if each.text]
        self._starts = list(itertools.accumulate((len(each.text) for each in self._cuts), initial=0))
        self.text = "".join(each.text for each in self._cuts)

    def back(self, problem: Diagnostic) -> Diagnostic:
        """Return the same mistake at its place in the source text; places named in its help are mapped too."""
        if problem.mark is None or not self._cuts:
            return problem
        source, mark = self._origin(problem.mark.start, problem.mark.stop)
        lines = _Lines(self.text)
        help = tuple(
            _LINE.sub(lambda found: self._named(lines, int(found[1]), found[2], source), each) for each in problem.help
        )
        return dataclasses.replace(problem, file=source.name, mark=mark, source=source.line(mark.line), help=help)

    def _origin(self, start: int, stop: int) -> tuple[Source, Mark]:
        number = min(bisect.bisect_right(self._starts, start), len(self._cuts)) - 1
        each, at = self._cuts[number], start - self._starts[number]
        if each.stop - each.start != len(each.text):
            return each.source, each.source.mark(each.start, each.stop)
        first = each.start + at
        return each.source, each.source.mark(first, min(first + stop - start, each.stop))

    def _named(self, lines: _Lines, number: int, column: str | None, here: Source) -> str:
        if number > len(lines.starts):
            return f"line {number}"
        start = lines.starts[number - 1]
        at = start + int(column) - 1 if column else _after_blanks(self.text, start)
        source, mark = self._origin(at, at + 1)
        behind = f", column {mark.column}" if column else ""
        return f"line {mark.line}{behind}" if source is here else f"line {mark.line}{behind} of {source.name}"


class _Lines:
    def __init__(self, text: str) -> None:
        self.starts = [0, *(found.end() for found in Source.BREAKS.finditer(text))]


def _after_blanks(text: str, start: int) -> int:
    found = _BLANK.match(text, start)
    return found.end() if found is not None else start


def spliced(source: Source, splices: Sequence[Splice]) -> Patched:
    """Apply every splice to ``source``, those at one place in their order. Raises ModelError ``edit-not-possible`` if two overlap."""
    cuts: list[Cut] = []
    at = 0
    for each in sorted(splices, key=lambda splice: (splice.start, splice.stop)):
        if each.start < at:
            raise unsuited("these changes touch the same words")
        cuts += [cut(source, at, each.start), *each.cuts]
        at = each.stop
    return Patched([*cuts, cut(source, at, len(source.text))])


def newline(text: str) -> str:
    """Return the line end of a text, by its first line."""
    found = Source.BREAKS.search(text)
    return found[0] if found is not None else "\n"


def ended(text: str) -> str:
    """Return a text whose last line ends. Otherwise appended text could change its last value."""
    return text if text.endswith(("\n", "\r")) else text + newline(text)


def shifted(source: Source, start: int, stop: int, by: int, end: str) -> Iterator[Cut]:
    """Return the range with every line but the first indented, or dedented as far as it has blanks; lines end with ``end``.

    Blank lines move with the others: within a multi-line text they may count.
    """
    at = start
    for found in Source.BREAKS.finditer(source.text, start, stop):
        yield cut(source, at, found.start())
        yield Cut(end, source, found.start(), found.end())
        at = found.end()
        if by > 0:
            if at < stop and source.text[at] not in "\r\n":
                yield put(" " * by, source, at)
        else:
            blanks = len(source.text[at:stop]) - len(source.text[at:stop].lstrip(" "))
            at += min(-by, blanks)
    yield cut(source, at, stop)
