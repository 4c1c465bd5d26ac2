"""Changes between two observations of a tab."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence

from runtime.observation.folding import LONG_RUN, Fold, bounded, many
from runtime.observation.lines import (
    NAME_MOST,
    ROWS_SHOWN,
    TEXT_MOST,
    chosen,
    is_noise,
    items,
    labels,
    line_of,
    name_of,
    quoted,
    row_text,
    text_of,
)
from runtime.observation.tree import DIALOGS, FIELDS, ROWS, URGENT, Node, folded, inner

_ROW_MOST = 60
GONE_NAMED = 2  # most lines that are gone and are named; of more, the number is shown
ROW_HOLDS = 300  # most characters of elements to act on that are shown on the line of a new row
OUTLINE = 1_200  # characters of a new row with more of them, such as an article in a drawer
OUTLINES = 2  # most new rows that are shown so
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
        if was != is_now and _says_only_what_it_holds(earlier, now):
            old.take(earlier)
            new.take(now)
        elif was != is_now:
            ranked.append((_ERROR if now.error else _ACTING, f"changed: {is_now} (was: {_was(earlier, now)})"))
            old.take(earlier)
            new.take(now)
    ranked += [(_ROW, each) for each in _changed_rows(old, new)]
    rows = _rows(new, min(OUTLINE, max(budget, most) // 2))
    ranked += [(_ACTING if "[ref=" in each else _ROW, f"new: {each}") for each in rows]
    gone = [_called(row) for row in old.take_rows()]
    came, went = new.beside(old), old.beside(new)
    ranked += [(_rank(new.lines[key]), f"new: {_times(new.lines[key], number)}") for key, number in came.items()]
    ranked.sort(key=lambda each: each[0])
    gone += [_times(old.lines[key], number) for key, number in went.items()]
    last = _gone(gone, len(gone) - len(went) + went.total(), budget // 2)
    shown = [line for _rank, line in ranked]
    rest = _CUT.format(f"{len(shown):,}")
    size = sum(len(line) + 1 for rank, line in ranked if rank <= _ACTING) + len(rest) + len(last) + 1
    room = max(budget, min(most, size)) - (len(last) + 1 if last else 0)
    return "\n".join(filter(None, (bounded(shown, room, _CUT) if shown else "", last)))


def _times(line: str, number: int) -> str:
    return f"{line} ({number} times)" if number > 1 else line


def _gone(lines: list[str], number: int, most: int) -> str:
    """Return one line for all that is gone: a model seldom needs to know more of it than how much."""
    named = f"gone: {', '.join(lines)}" if lines else ""
    return named if len(lines) <= GONE_NAMED and len(named) <= most else f"gone: {many(number, 'element')}"


class _Content:
    """Comparable content of a page: elements to act on, headings, alerts, texts."""

    def __init__(self, root: Node) -> None:
        self.refs: dict[str, Node] = {}
        self.counts: Counter[str] = Counter()  # count of each line, without refs
        self.lines: dict[str, str] = {}  # the last such line, with its ref and row
        self.rows: list[tuple[str, Node]] = []
        self.behind: set[str] = set()  # the words of what is behind a modal dialog: that it is there is no change
        self._words: dict[str, str] = {}  # the words of each line
        self._labels = labels(root)
        for node in root.walk():
            if node.behind:
                self.behind.add(_words(node))
                continue
            if node.role in ROWS and not node.acting and node.children:
                self.rows.append((row_text(node), node))
            if (node.acting or node.reach) and node.ref is not None:
                self.refs[node.ref] = node
            if line := self._line(node):
                key = _REF.sub("", line)
                self.counts[key] += 1
                self._words[key] = _words(node)
                row = "" if node.acting else _row(node)
                self.lines[key] = f"{line} in {row}" if row else line

    def take(self, node: Node) -> None:
        if line := self._line(node):
            self.counts[_REF.sub("", line)] -= 1

    def beside(self, other: _Content) -> Counter[str]:
        """Return the counts of the lines that the other page has less often, in front of a dialog or behind it."""
        more = self.counts - other.counts
        return Counter({key: number for key, number in more.items() if self._words[key] not in other.behind})

    def _line(self, node: Node) -> str:
        return "" if id(node) in self._labels else _line(node)

    def take_rows(self) -> list[Node]:
        """Return the outermost rows left, and leave out their content."""
        taken: list[Node] = []
        done: set[int] = set()
        for _text, row in self.rows:
            if id(row) in done:
                continue
            taken.append(row)
            within = list(row.walk())
            done.update(map(id, within))
            for node in within:
                self.take(node)
        return taken

    def texts(self, row: Node, told: set[int]) -> dict[str, list[Node]]:
        """Return the texts in a row that are not ``told``, by their lines, each with its nodes."""
        found: dict[str, list[Node]] = {}
        for node in row.walk():
            if id(node) not in told and not (node.acting or node.reach) and (line := self._line(node)):
                found.setdefault(line, []).append(node)
        return found


def _called(row: Node) -> str:
    return f"{row.role} {quoted(row_text(row), NAME_MOST)}"


def _rows(new: _Content, longest: int) -> list[str]:
    """Describe the new rows with what one can act on; of a long run the first three, and how to see the others.

    A row that holds much is shown as the page shows it, in ``longest`` characters; of several only the first two.
    """
    told: list[str] = []
    outlines = 0
    for _place, run in itertools.groupby(new.take_rows(), lambda row: (row.role, id(row.parent))):
        rows = list(run)
        lines: list[str] = []
        for row in rows:
            holds = ", ".join(line_of(each) for each in row.walk() if each.acting and each.ref is not None)
            outline = ""
            if len(holds) > ROW_HOLDS and outlines < OUTLINES:
                outline = Fold(items(row), 0).shown(longest)
                outlines += 1
            lines.append(outline or f"{_called(row)}{f' with {holds}' if 0 < len(holds) <= ROW_HOLDS else ''}")
        if len(rows) > ROWS_SHOWN and sum(map(len, lines)) > LONG_RUN:
            around = next((each.ref for each in rows[0].above() if each.ref is not None), None)
            way = f"look(ref={around})" if around is not None else "look()"
            lines[2:] = [f"{lines[2]}\n… {many(len(rows) - 3, rows[0].role)} more: {way}"]
        told += lines
    return told


def _changed_rows(old: _Content, new: _Content) -> list[str]:
    """Describe the rows in which a text changed, and leave out these texts and rows, the innermost first."""
    there = {text for text, _row in old.rows} & {text for text, _row in new.rows}
    for content in (old, new):
        content.rows = [(text, row) for text, row in content.rows if text not in there]
    told: list[str] = []
    done: set[int] = set()
    for row, earlier in reversed(_pairs(old.rows, new.rows)):
        was, now = old.texts(earlier, done), new.texts(row, done)
        came = [line for line in now if line not in was]
        went = [line for line in was if line not in now]
        for content, nodes in (
            (new, [node for line in came for node in now[line]]),
            (old, [node for line in went for node in was[line]]),
        ):
            for each in nodes:
                content.take(each)
                done.add(id(each))
        if came or went:
            told.append(_changed_row(row, came, went))
        done.update((id(row), id(earlier)))
    for content, other in ((old, new), (new, old)):
        # One that holds what was there before is the same in another place.
        content.rows = [
            (text, row)
            for text, row in content.rows
            if id(row) not in done and _words(row) not in other.behind
            if not any(each.ref in other.refs for each in row.walk())
        ]
    return told[::-1]


def _pairs(old: Sequence[tuple[str, Node]], new: Sequence[tuple[str, Node]]) -> list[tuple[Node, Node]]:
    """Pair each row with its earlier self: by the refs in it; if all are new, by what it begins with and half of its texts."""
    by_ref: dict[tuple[str, str], Node] = {}
    by_text: dict[tuple[str, str], list[tuple[Node, Counter[str]]]] = {}
    for _text, row in old:
        by_ref |= {(row.role, each.ref): row for each in row.walk() if each.ref is not None and _nearest(each, row)}
        if parts := _parts(row):
            by_text.setdefault((row.role, parts[0]), []).append((row, Counter(parts)))
    pairs: list[tuple[Node, Node]] = []
    used: set[int] = set()
    for _text, row in new:
        refs = ((row.role, each.ref) for each in row.walk() if each.ref is not None and _nearest(each, row))
        found = next((by_ref[ref] for ref in refs if ref in by_ref), None)
        if found is None and (parts := _parts(row)):
            alike = ((each, others) for each, others in by_text.get((row.role, parts[0]), []) if id(each) not in used)
            found = next((each for each, others in alike if _is_most(others & Counter(parts), others, parts)), None)
        if found is not None and id(found) not in used:
            used.add(id(found))
            pairs.append((row, found))
    return pairs


def _is_most(common: Counter[str], one: Counter[str], other: Sequence[str]) -> bool:
    return 2 * common.total() >= max(one.total(), len(other))


def _nearest(node: Node, row: Node) -> bool:
    """Return True if no other row stands between a node and the row."""
    return node is row or next(each for each in node.above() if each is row or each.role == row.role) is row


def _parts(row: Node) -> list[str]:
    return inner(row, between="\n").split("\n") if row.children else []


def _changed_row(row: Node, came: Sequence[str], went: Sequence[str]) -> str:
    text = row_text(row)
    now = f" now {_brief(came)}" if came and len(text) > NAME_MOST else ""
    was = f" (was: {_brief(went)})" if went else ""
    return f"changed: {row.role} {quoted(text, NAME_MOST)}{now}{was}"


def _brief(lines: Sequence[str]) -> str:
    shown = [quoted(json.loads(each), NAME_MOST) if each.startswith('"') else each for each in lines[:GONE_NAMED]]
    return ", ".join(shown + ([f"… {len(lines) - GONE_NAMED} more"] if len(lines) > GONE_NAMED else []))


def _says_only_what_it_holds(earlier: Node, now: Node) -> bool:
    """Return True for an element called by its content, in which something else to act on is reported by itself."""
    if earlier.name or now.name or (earlier.role, earlier.states, earlier.error) != (now.role, now.states, now.error):
        return False
    return all(any(each.acting for each in node.walk() if each is not node) for node in (earlier, now))


def _words(node: Node) -> str:
    return folded(node.name or inner(node, TEXT_MOST))


def _line(node: Node) -> str:
    if node.role in DIALOGS and any(each.acting for each in node.walk()):
        # What it holds is reported by itself.
        head = next((name_of(each) for each in node.walk() if each.role == "heading"), "")
        return f"{node.role} {quoted(head or node.name, NAME_MOST)}"
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
