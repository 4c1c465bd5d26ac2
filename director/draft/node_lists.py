"""Lists of nodes as they are written: each item with its comments, in lines or in brackets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from director.draft import layout, lines
from director.draft import splices as draft_splices
from director.draft.splices import Cut, Splice
from nodes.values import Json
from runtime.language import writer, yaml_text
from runtime.language.diagnostics import Source

_DASH = re.compile(r"([ ]*)-[ \t]+")
_DASH_ALONE = re.compile(r"([ ]*)-[ \t]*(?:#.*)?")

INDENT = 2
"""Indentation of a newly written list, relative to its key."""


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One item of a list, in its text."""

    source: Source
    data: Json
    flow: bool
    """True if it is written in braces."""
    start: int
    stop: int
    """Range of its content: after the dash, without a comment."""
    column: int
    """Column of its content."""
    dash: int = 0
    """Column of the list; for an item without a list, the column of its content."""
    head: int = 0
    """Start of the comments above it, else of its own line."""
    own: int = 0
    """Start of the line with its dash."""
    behind: int = 0
    """End including the comment on its last line."""
    tail: int = 0
    """End of its last line, including the comments below it that are indented further than its list."""

    def in_lines(self, dash: int, end: str) -> list[Cut]:
        """Return it as a list item at column ``dash``, with its comments, without a final line break."""
        cuts: list[Cut] = []
        if self.head < self.own:
            above = self.source.text[self.head : self.own].rstrip("\r\n")
            start = self.head + len(above) - len(above.lstrip(" "))
            cuts.append(draft_splices.put(" " * dash, self.source, start))
            cuts += draft_splices.shifted(self.source, start, self.head + len(above), dash - self.dash, end)
            cuts.append(draft_splices.put(end, self.source, start))
        cuts.append(draft_splices.put(f"{' ' * dash}- ", self.source, self.start))
        return [*cuts, *draft_splices.shifted(self.source, self.start, self.tail, dash + 2 - self.column, end)]

    def in_brackets(self) -> Cut:
        """Return it as an item of a list in brackets, without its comments."""
        if self.flow:
            return draft_splices.cut(self.source, self.start, self.stop)
        return Cut(writer.inline(self.data), self.source, self.start, self.stop)


class Items:
    """A list of nodes in a text. Raises ModelError ``edit-not-possible`` if its notation cannot be edited."""

    def __init__(self, document: yaml_text.Document, path: yaml_text.Path) -> None:
        """``path`` is that of a list with at least one item."""
        self.source, self.path = document.source, path
        self._document = document
        data: Any = lines.data_at(document.data, path)
        opening = layout.opening(document, path)
        if opening == "*":
            raise draft_splices.unsuited("the nodes stand there as an alias")
        self.flow = opening == "["
        """True if it is written in brackets."""
        self.all: list[Item] = []
        key = document.keys.get(path)
        floor = key.stop if key is not None else 0
        for number, value in enumerate(data):
            item = _item(document, (*path, number), value)
            if not self.flow:
                item = _in_lines(item, floor)
                floor = item.tail
            self.all.append(item)

    @property
    def _spaced(self) -> bool:
        return len(self.all) > 1 and all(lines.is_blank(self._gap(number)) for number in range(1, len(self.all)))

    def _gap(self, number: int) -> str:
        """Return the lines between an item and the one before."""
        at = lines.after(self.source.text, self.all[number - 1].tail)
        return self.source.text[at : self.all[number].head]

    def gaps(self) -> list[str]:
        """Return the text between its items, if they are written in lines."""
        return [self._gap(number) for number in range(1, len(self.all))]

    def inserted(self, at: int, new: Sequence[Item], gaps: Sequence[str] = ()) -> list[Splice]:
        """Insert ``new`` before item ``at``; the length means the end. ``gaps`` are the lines above each new item but the first."""
        if not self.flow:
            return [self._in_lines(at, new, gaps)]
        owner = layout.opening(self._document, self.path[:-1]) if self.path else ""
        mark = self._document.values[self.path]
        if not all(each.flow for each in new) and owner != "{" and self.path and self.source.text[mark.start] == "[":
            return [self._unfolded(at, new)]
        cuts: list[Cut] = []
        place = self.all[at - 1].stop if at else self.all[0].start
        between = self._between()
        for each in new:
            comma = draft_splices.put(between, self.source, place)
            cuts += [comma, each.in_brackets()] if at else [each.in_brackets(), comma]
        return [Splice(place, place, cuts)]

    def _between(self) -> str:
        if len(self.all) > 1:
            found = self.source.text[self.all[0].stop : self.all[1].start]
            if found.strip() == ",":
                return found
        return ", "

    def _in_lines(self, at: int, new: Sequence[Item], gaps: Sequence[str]) -> Splice:
        end = draft_splices.newline(self.source.text)
        dash = self.all[0].dash
        empty = end if self._spaced else ""
        text = self.source.text
        place = self.all[at - 1].tail if at else lines.end_before(text, self.all[0].head)
        cuts: list[Cut] = []
        for number, each in enumerate(new):
            gap = gaps[number - 1] if number and number <= len(gaps) else empty
            above = _gap_lines(gap, dash - each.dash, end) if number or at else ""
            cuts += [draft_splices.put(f"{end}{above}", self.source, place), *each.in_lines(dash, end)]
        if not at:
            cuts.append(draft_splices.put(empty, self.source, place))
        return Splice(place, place, cuts)

    def _unfolded(self, at: int, new: Sequence[Item]) -> Splice:
        """Rewrite the list in lines, because a node of several lines is added."""
        end = draft_splices.newline(self.source.text)
        mark = self._document.values[self.path]
        dash = self._document.keys[self.path].column - 1 + INDENT
        # A comment after the brackets moves to the key: after the last node it could be read as a part of its text.
        stop = lines.behind(self.source.text, mark.stop)
        behind = self.source.text[mark.stop : stop].rstrip()
        cuts = [draft_splices.cut(self.source, mark.stop, mark.stop + len(behind))]
        for each in [*self.all[:at], *new, *self.all[at:]]:
            own = dataclasses.replace(each, tail=each.stop, head=each.own) if each.source is self.source else each
            cuts += [draft_splices.put(end, self.source, mark.start), *own.in_lines(dash, end)]
        return Splice(len(self.source.text[: mark.start].rstrip(" \t")), stop, cuts)

    def replaced(self, number: int, new: Item) -> list[Splice]:
        """Replace an item. The comments above it stay if the new one has none."""
        old = self.all[number]
        if self.flow:
            return [Splice(old.start, old.stop, [new.in_brackets()])]
        text, end = self.source.text, draft_splices.newline(self.source.text)
        cuts = new.in_lines(old.dash, end)
        if old.tail > old.behind and new.tail == new.behind:
            # The comments below the old one stay, and no text above may absorb them.
            start = lines.after(text, old.behind)
            deep = len(text[start : old.tail]) - len(text[start : old.tail].lstrip(" "))
            by = min(0, old.dash + 2 - deep)
            cuts += [draft_splices.put(end + " " * (deep + by), self.source, start)]
            cuts += draft_splices.shifted(self.source, start + deep, old.tail, by, end)
        return [Splice(old.head if new.head < new.own else old.own, old.tail, cuts)]

    def without(self, numbers: Sequence[int]) -> list[Splice]:
        """Remove these items; at least one stays. Empty lines on both sides become one."""
        gone = set(numbers)
        splices: list[Splice] = []
        first = 0
        while first < len(self.all):
            if first not in gone:
                first += 1
                continue
            last = first
            while last + 1 in gone:
                last += 1
            splices.append(self._run_in_brackets(first, last) if self.flow else self._run_in_lines(first, last))
            first = last + 1
        return [each for splice in splices for each in self._with_free_comments(splice)]

    def _run_in_brackets(self, first: int, last: int) -> Splice:
        if last + 1 < len(self.all):
            return Splice(self.all[first].start, self.all[last + 1].start)
        return Splice(self.all[first - 1].stop, self.all[last].stop)

    def _run_in_lines(self, first: int, last: int) -> Splice:
        text = self.source.text
        start, stop = self.all[first].head, lines.after(text, self.all[last].tail)
        before = self._gap(first) if first else ""
        behind = self._gap(last + 1) if last + 1 < len(self.all) else None
        apart = behind is None or lines.begins_blank(behind)
        if first and apart:
            start -= lines.blank_at_end(before)
        elif not first and behind is not None and lines.is_blank(behind):
            stop += len(behind)
        # Cuts from line end to line end, so that text inserted after the last item stays.
        return Splice(lines.end_before(text, start), lines.end_before(text, stop))

    def _with_free_comments(self, splice: Splice) -> list[Splice]:
        """Keep the text between items that belongs to none of them."""
        if self.flow:
            return [splice]
        kept: list[Splice] = []
        text, at = self.source.text, splice.start
        for number in range(1, len(self.all)):
            begins, ends = lines.after(text, self.all[number - 1].tail), self.all[number].head
            if splice.start < begins and ends < splice.stop and text[begins:ends].strip():
                kept.append(Splice(at, lines.end_before(text, begins)))
                at = lines.end_before(text, ends)
        return [*kept, Splice(at, splice.stop)]

    def ordered(self, order: Sequence[int]) -> list[Splice]:
        """Reorder its items. The text between them stays where it is."""
        splices: list[Splice] = []
        for place, number in zip(self.all, order, strict=True):
            item = self.all[number]
            if item is place:
                continue
            here = (place.start, place.stop) if self.flow else (place.head, place.tail)
            there = (item.start, item.stop) if self.flow else (item.head, item.tail)
            splices.append(Splice(*here, [draft_splices.cut(self.source, *there)]))
        return splices


def alone(document: yaml_text.Document, path: yaml_text.Path) -> Item:
    """Return the single node of a text, which is not an item of a list."""
    item = _item(document, path, lines.data_at(document.data, path))
    text = item.source.text
    own = lines.start_of(text, item.start)
    behind = lines.behind(text, item.stop)
    tail = lines.end_with_comments(text, item.stop, -1)
    return dataclasses.replace(
        item, dash=item.column, own=own, head=lines.comments_above(text, own, item.column, 0), behind=behind, tail=tail
    )


def _item(document: yaml_text.Document, path: yaml_text.Path, value: Json) -> Item:
    mark = document.values[path]
    opening = layout.opening(document, path)
    if opening == "*":
        raise draft_splices.unsuited("a node stands there as an alias")
    stop = layout.end_of(document, path)
    flow = opening == "{" and document.source.text[mark.start] == "{"
    return Item(document.source, value, flow, mark.start, stop, mark.column - 1, 0, mark.start, mark.start, stop, stop)


def _in_lines(item: Item, floor: int) -> Item:
    """Return an item of a list in lines. Text before ``floor`` belongs to something else."""
    text = item.source.text
    own = lines.start_of(text, item.start)
    found = _DASH.fullmatch(text, own, item.start)
    while found is None:
        if own <= floor:
            raise draft_splices.unsuited("the list of nodes is written in no usual way")
        own = lines.start_of(text, lines.end_before(text, own))
        found = _DASH_ALONE.fullmatch(lines.at(text, own) or "")
    dash = len(found[1])
    behind = lines.behind(text, item.stop)
    tail = lines.end_with_comments(text, item.stop, dash)
    head = lines.comments_above(text, own, dash, floor)
    return dataclasses.replace(item, dash=dash, own=own, head=head, behind=behind, tail=tail)


def _gap_lines(gap: str, by: int, end: str) -> str:
    every = Source.BREAKS.split(gap)[:-1]
    return "".join(f"{(' ' * by + line if by >= 0 else line[-by:]) if line.strip() else ''}{end}" for line in every)
