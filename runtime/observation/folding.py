"""Fits lines into a budget of characters: folds the rest into lines with counts and the call that shows it.

All lines are put in one order: by importance, each after its parents. A budget shows as many from the first as fit.
So more budget never shows less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from runtime.observation.lines import Item, is_region
from runtime.observation.tree import ASIDE, DIALOGS, URGENT

Counts = Counter[str]

_ALERT, _DIALOG, _REGION, _HEADING, _ACTING, _TEXT, _RUN = range(7)
_SHOWN_KINDS = 4
_PLURALS = {"combobox": "comboboxes", "listbox": "listboxes", "checkbox": "checkboxes", "textbox": "textboxes",
    "searchbox": "searchboxes", "switch": "switches", "search": "searches", "canvas": "canvases"}  # fmt: skip


def kind_of(item: Item) -> str:
    return "text" if item.line.startswith('"') else item.line.split(" ", 1)[0]


def many(number: int, kind: str) -> str:
    return f"{number:,} {kind if number == 1 else _PLURALS.get(kind, f'{kind}s')}"


def counted(counts: Counts) -> str:
    """Summarize counts: the most frequent kinds by name."""
    ordered = sorted(counts.items(), key=lambda each: (each[0] == "text", -each[1], each[0]))
    words = [many(number, kind) for kind, number in ordered[:_SHOWN_KINDS]]
    if rest := sum(number for _kind, number in ordered[_SHOWN_KINDS:]):
        words.append(f"{rest:,} others")
    return ", ".join(words)


class Fold:
    """Lines of a page that can be folded into any budget."""

    def __init__(self, top: Item) -> None:
        self.top = top
        self._all = list(top.walk())
        self._counts: dict[int, Counts] = {}
        nothing: Counts = Counter()
        for item in reversed(self._all):
            counts: Counts = Counter() if item.children else nothing
            for child in item.children:
                counts[kind_of(child)] += 1
                counts.update(self._counts[id(child)])
            self._counts[id(item)] = counts
        self._order, self._whole = self._ordered()

    def shown(self, budget: int) -> str:
        """Return the lines that fit into ``budget`` characters; an empty text if there are none, or not even one fits."""
        hidden = {id(self.top): Counter(self._counts[id(self.top)])}
        size = (self.top.size if self.top.line else 0) + self._fold_size(self.top, hidden)
        best = 0 if size <= budget else -1
        for number, item in enumerate(self._order, start=1):
            above = item.parent
            assert above is not None
            size -= self._fold_size(above, hidden)
            left = hidden[id(above)]
            left.subtract(self._counts[id(item)])
            left[kind_of(item)] -= 1
            hidden[id(item)] = Counter(self._counts[id(item)])
            size += self._fold_size(above, hidden) + item.size + self._fold_size(item, hidden)
            if size <= budget and number in self._whole:
                best = number
            # Folds that disappear free space again, but never this much.
            if size > 2 * budget + 1000:
                break
        return "" if best < 0 else self._text({id(self.top), *map(id, self._order[:best])})

    def _text(self, shown: set[int]) -> str:
        lines: list[str] = []
        open_: list[Item | str] = [self.top]
        while open_:
            each = open_.pop()
            if isinstance(each, str):
                lines.append(each)
                continue
            if each.line:
                lines.append(" " * (2 * each.depth) + each.line)
            under: list[Item | str] = []
            hidden: Counts = Counter()
            place = 0
            for child in each.children:
                if id(child) in shown:
                    under.append(child)
                    continue
                place = place if hidden else len(under)
                hidden[kind_of(child)] += 1
                hidden.update(self._counts[id(child)])
            if hidden:
                under.insert(place, self._fold_line(each, hidden))
            open_.extend(reversed(under))
        return "\n".join(lines)

    def _fold_line(self, item: Item, hidden: Counts) -> str:
        depth = item.depth + (1 if item.line else 0)
        return " " * (2 * depth) + f"… {counted(+hidden)}: {_way(item)}"

    def _fold_size(self, item: Item, hidden: dict[int, Counts]) -> int:
        left = +hidden[id(item)]
        return len(self._fold_line(item, left)) + 1 if left else 0

    def _ordered(self) -> tuple[list[Item], set[int]]:
        """Return all lines in order of importance, and the numbers of lines after which the output may stop."""
        places = {id(item): place for place, item in enumerate(self._all)}
        ranked: list[tuple[tuple[int, int, int], Item]] = []
        runs: dict[int, int] = {}
        aside: dict[int, int] = {id(self.top): 0}
        dialog: dict[int, bool] = {id(self.top): False}
        for item in self._all[1:]:
            assert item.parent is not None
            runs[id(item)] = item.run or runs.get(id(item.parent), 0)
            aside[id(item)] = 1 if item.node.role in ASIDE else aside[id(item.parent)]
            dialog[id(item)] = dialog[id(item.parent)] or item.node.role in DIALOGS
            group = _group(item, in_dialog=dialog[id(item.parent)])
            # The middle of a run comes last, except for alerts, and one run after the other.
            run = runs[id(item)]
            if run and group > _ALERT:
                ranked.append(((_RUN, run, places[id(item)]), item))
            else:
                ranked.append(((group, aside[id(item)], places[id(item)]), item))
        ranked.sort(key=lambda each: each[0])
        order: list[Item] = []
        done = {id(self.top)}
        whole: set[int] = set()
        for number, (key, item) in enumerate(ranked):
            chain = [item]
            while id(chain[-1]) not in done:
                above = chain[-1].parent
                assert above is not None
                chain.append(above)
            for each in reversed(chain[:-1]):
                done.add(id(each))
                order.append(each)
            after = ranked[number + 1][0] if number + 1 < len(ranked) else None
            # A run is shown folded or whole; the run that is observed itself, row by row.
            among = key[0] == _RUN and after is not None and after[:2] == key[:2]
            if not among or (item.parent is self.top and self.top.line):
                whole.add(len(order))
        return order, whole


def _group(item: Item, *, in_dialog: bool) -> int:
    if item.node.role in URGENT or item.node.error or "invalid" in item.node.states:
        return _ALERT
    if in_dialog:
        return _DIALOG
    if item.node.role == "heading":
        return _HEADING
    if is_region(item):
        return _REGION
    return _ACTING if item.node.acting else _TEXT


def _way(item: Item) -> str:
    above: Item | None = item
    while above is not None:
        if above.node.ref is not None and above.line:
            return f"look(ref={above.node.ref})"
        above = above.parent
    return "find(role=…, name=…)"


def bounded(lines: Sequence[str], budget: int, rest: str) -> str:
    """Return the lines that fit into ``budget`` characters, and one with the number of the others, formatted with ``rest``."""
    size = sum(len(line) + 1 for line in lines) - 1
    if size <= budget:
        return "\n".join(lines)
    room = budget - len(rest.format(f"{len(lines):,}"))
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, rest.format(f"{len(lines) - len(kept):,}")])
