"""Changes between two observations of a tab."""

from __future__ import annotations

import re
from collections import Counter

from runtime.observation.folding import bounded
from runtime.observation.lines import NAME_MOST, TEXT_MOST, chosen, is_noise, labels, line_of, quoted, row_text, text_of
from runtime.observation.tree import FIELDS, ROWS, URGENT, Node, inner

_ROW_MOST = 60
GONE_NAMED = 2  # most lines that are gone and are named; of more, the number is shown
ROW_HOLDS = 300  # characters shown of elements to act on in a new row; for more, a new observation is needed
_URGENT, _ERROR, _ACTING, _HEADING, _ROW, _TEXT = range(6)
_CUT = "… {} more changes: look()"
_REF = re.compile(r' \[ref=\w+\](?: to "(?:[^"\\]|\\.)*")?')
"""Distinguishes a line from others with the same text: its ref, and the address of a link."""


def changes(before: Node, after: Node, budget: int, most: int = 0) -> str:
    """Describe the changes, most important first, in at most ``budget`` characters; an empty text if there are none.

    What one can act on is not cut: for it the text may have up to ``most`` characters. Elements are matched by ref, else by
    their line: a reloaded document has other refs, and that is no change.
    """
    old, new = _Content(before), _Content(after)
    ranked: list[tuple[int, str]] = []
    for ref, now in new.refs.items():
        earlier = old.refs.get(ref)
        if earlier is None:
            continue
        was, is_now = line_of(earlier, address=False), line_of(now, address=False)
        if was != is_now:
            ranked.append((_ERROR if now.error else _ACTING, f"changed: {is_now} (was: {_was(earlier, now)})"))
            old.take(earlier)
            new.take(now)
    ranked += [(_ROW, f"new: {each}") for each in new.take_rows(old, acting=True)]
    gone = old.take_rows(new)
    came, went = new.counts - old.counts, old.counts - new.counts
    ranked += [(_rank(new.lines[key]), f"new: {_times(new.lines[key], number)}") for key, number in came.items()]
    ranked.sort(key=lambda each: each[0])
    gone += [_times(old.lines[key], number) for key, number in went.items()]
    last = _gone(gone, len(gone) - len(went) + went.total())
    shown = [line for _rank, line in ranked]
    rest = _CUT.format(f"{len(shown):,}")
    size = sum(len(line) + 1 for rank, line in ranked if rank <= _ACTING) + len(rest) + len(last) + 1
    room = max(budget, min(most, size)) - (len(last) + 1 if last else 0)
    return "\n".join(filter(None, (bounded(shown, room, _CUT) if shown else "", last)))


def _times(line: str, number: int) -> str:
    return f"{line} ({number} times)" if number > 1 else line


def _gone(lines: list[str], number: int) -> str:
    """Return one line for all that is gone: a model seldom needs to know more of it than how much."""
    if len(lines) <= GONE_NAMED:
        return f"gone: {', '.join(lines)}" if lines else ""
    return f"gone: {number:,} elements"


class _Content:
    """Comparable content of a page: elements to act on, headings, alerts, texts."""

    def __init__(self, root: Node) -> None:
        self.refs: dict[str, Node] = {}
        self.counts: Counter[str] = Counter()  # count of each line, without refs
        self.lines: dict[str, str] = {}  # the last such line, with its ref and row
        self.rows: list[tuple[str, Node]] = []
        self._labels = labels(root)
        for node in root.walk():
            if node.role in ROWS and not node.acting and node.children:
                self.rows.append((row_text(node), node))
            if (node.acting or node.reach) and node.ref is not None:
                self.refs[node.ref] = node
            if line := self._line(node):
                key = _REF.sub("", line)
                self.counts[key] += 1
                row = "" if node.acting else _row(node)
                self.lines[key] = f"{line} in {row}" if row else line

    def take(self, node: Node) -> None:
        if line := self._line(node):
            self.counts[_REF.sub("", line)] -= 1

    def _line(self, node: Node) -> str:
        return "" if id(node) in self._labels else _line(node)

    def take_rows(self, other: _Content, *, acting: bool = False) -> list[str]:
        """Describe the rows missing on the other page, one a line, and leave out their content. With ``acting``, add elements to act on."""
        there = {text for text, _row in other.rows}
        taken: list[str] = []
        done: set[int] = set()
        for text, row in self.rows:
            if text in there or id(row) in done:
                continue
            within = list(row.walk())
            if any(each.ref in other.refs for each in within):
                # This is the same row with a change in it.
                continue
            holds = ", ".join(line_of(each) for each in within if acting and each.acting and each.ref is not None)
            holds = f" with {holds}" if 0 < len(holds) <= ROW_HOLDS else ""
            taken.append(f"{row.role} {quoted(text, NAME_MOST)}{holds}")
            done.update(map(id, within))
            for node in within:
                self.take(node)
        return taken


def _line(node: Node) -> str:
    if node.role in URGENT:
        return f"{node.role} {quoted(inner(node, TEXT_MOST), TEXT_MOST)}"
    if node.as_caption or any(each.role == "definition" and each.caption for each in node.above()):
        return line_of(node) if node.acting else ""
    if node.acting or node.reach or node.role == "heading" or (node.role == "definition" and node.caption):
        return line_of(node)
    said = node.text or ("" if node.children else node.name)
    if (
        not said
        or is_noise(said)
        or node.role == "option"
        or any(each.acting and said in each.name for each in node.above())
    ):
        return ""
    return text_of(node)


def _row(node: Node) -> str:
    for above in node.above():
        if above.role in ROWS:
            return f"row {quoted(row_text(above), _ROW_MOST)}"
    return ""


def _rank(line: str) -> int:
    role = line.split(" ", 1)[0]
    if role in URGENT:
        return _URGENT
    if " error: " in line or "(invalid)" in line:
        return _ERROR
    if "[ref=" in line:
        return _ACTING
    return _HEADING if role == "heading" else _TEXT


def _was(earlier: Node, now: Node) -> str:
    if (before := chosen(earlier)) != chosen(now):
        return ", ".join(quoted(each, NAME_MOST) for each in before) or "nothing chosen"
    if earlier.text != now.text and earlier.role in FIELDS:
        return quoted(earlier.text, NAME_MOST)
    if earlier.states != now.states:
        return ", ".join(earlier.states) or f"not {', '.join(now.states)}"
    if earlier.name != now.name:
        return quoted(earlier.name, NAME_MOST)
    if earlier.error != now.error:
        return f"error: {quoted(earlier.error, NAME_MOST)}" if earlier.error else "without error"
    return line_of(earlier)
