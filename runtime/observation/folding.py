"""Fits lines into a budget of characters: folds the rest into lines with counts and the call that shows it.

All lines are put in one order: by importance, each after its parents. A budget shows as many from the first as fit.
So more budget never shows less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from runtime.observation.lines import Item, is_region
from runtime.observation.tree import ASIDE, DIALOGS, TABLES, URGENT, Node

Counts = Counter[str]
_Key = tuple[int, str]  # of the lines for what is hidden: the item above by identity, and the call that shows it

_ALERT, _DIALOG, _REGION, _HEADING, _ACTING, _TEXT, _RUN = range(7)
_SHOWN_KINDS = 4
EVERY_ROW = 10**9
LONG_RUN = (
    1_500  # characters of the middle of a run from which on it stays folded in a page for a goal, and among changes
)
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

    def __init__(self, top: Item, longest: int = EVERY_ROW) -> None:
        """``longest`` is how many characters the middle of a run may have to be shown."""
        self.top = top
        self._longest = longest
        self._all = list(top.walk())
        self._counts: dict[int, Counts] = {}
        nothing: Counts = Counter()
        for item in reversed(self._all):
            counts: Counts = Counter() if item.children else nothing
            for child in item.children:
                counts[kind_of(child)] += 1
                counts.update(self._counts[id(child)])
            self._counts[id(item)] = counts
        self._around = _arounds(self._all)
        self._ways: dict[tuple[int, int], str] = {}
        self._order, self._whole = self._ordered()

    def shown(self, budget: int) -> str:
        """Return the lines that fit into ``budget`` characters; an empty text if there are none, or not even one fits."""
        hidden = self._under(self.top)
        size = (self.top.size if self.top.line else 0) + _size(self.top, hidden)
        best = 0 if size <= budget else -1
        for number, item in enumerate(self._order, start=1):
            above = item.parent
            assert above is not None
            way = self._way(above, item.run)
            left = hidden[(id(above), way)]
            size -= _fold_size(above, way, left)
            left.subtract(self._counts[id(item)])
            left[kind_of(item)] -= 1
            size += _fold_size(above, way, left)
            under = self._under(item)
            hidden |= under
            size += item.size + _size(item, under)
            if size <= budget and number in self._whole:
                best = number
            # Folds that disappear free space again, but never this much.
            if size > 2 * budget + 1000:
                break
        return "" if best < 0 else self._text({id(self.top), *map(id, self._order[:best])})

    def _under(self, item: Item, shown: Collection[int] = ()) -> dict[_Key, Counts]:
        """Return the counts of what is in an item and not shown, in the order of the page."""
        found: dict[_Key, Counts] = {}
        for child in item.children:
            if id(child) not in shown:
                counts = found.setdefault((id(item), self._way(item, child.run)), Counter())
                counts[kind_of(child)] += 1
                counts.update(self._counts[id(child)])
        return found

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
            hidden = self._under(each, shown)
            for child in each.children:
                if id(child) in shown:
                    under.append(child)
                elif (left := hidden.pop((id(each), way := self._way(each, child.run)), None)) is not None:
                    under.append(_fold_line(each, way, left))
            open_.extend(reversed(under))
        return "\n".join(lines)

    def _way(self, item: Item, run: int) -> str:
        """Return the call that shows what is hidden in an item: of a run what is around it, else the item or what is above it."""
        if (way := self._ways.get((id(item), run))) is not None:
            return way
        around = self._around.get(run) if item.node.role not in TABLES else None
        above: Item | None = item
        while around is None and above is not None:
            around = above.node if above.line and above.node.ref is not None else None
            above = above.parent
        # What is looked at itself shows no more.
        way = "find(role=…, name=…)" if around in (None, self.top.node) else f"look(ref={around.ref})"
        self._ways[id(item), run] = way
        return way

    def _ordered(self) -> tuple[list[Item], set[int]]:
        """Return all lines in order of importance, and the numbers of lines after which the output may stop."""
        places = {id(item): place for place, item in enumerate(self._all)}
        ranked: list[tuple[tuple[int, int, int], Item]] = []
        runs: dict[int, int] = {}
        aside: dict[int, int] = {id(self.top): 0}
        dialog: dict[int, bool] = {id(self.top): False}
        sizes: Counter[int] = Counter()
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
                sizes[run] += item.size
            else:
                ranked.append(((group, aside[id(item)], places[id(item)]), item))
        ranked = [each for each in ranked if each[0][0] != _RUN or sizes[each[0][1]] <= self._longest]
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


def _fold_line(item: Item, way: str, hidden: Counts) -> str:
    depth = item.depth + (1 if item.line else 0)
    return " " * (2 * depth) + f"… {counted(+hidden)}: {way}"


def _fold_size(item: Item, way: str, hidden: Counts) -> int:
    left = +hidden
    return len(_fold_line(item, way, left)) + 1 if left else 0


def _size(item: Item, hidden: Mapping[_Key, Counts]) -> int:
    return sum(_fold_size(item, way, left) for (_above, way), left in hidden.items())


def _arounds(every: Sequence[Item]) -> dict[int, Node]:
    """Return the nearest element with a ref around each run."""
    runs: dict[int, list[Item]] = {}
    for item in every:
        if item.run:
            runs.setdefault(item.run, []).append(item)
    found: dict[int, Node] = {}
    for run, each in runs.items():
        above = {id(node) for node in each[-1].node.above()}
        around = next((node for node in each[0].node.above() if id(node) in above and node.ref is not None), None)
        if around is not None:
            found[run] = around
    return found


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
