"""Plans the runs of the bench: their inputs, and how to reach the page for the first node. Nothing is opened or run here."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from director.bench.node_map import NodeMap, NodePlace, Read, Selection, written
from director.bench.records import FreshnessCheck, Lineage, MissingRecord
from director.bench.results import Results
from director.effects import effects
from nodes.errors import ModelError
from nodes.iterate import Iterate
from nodes.ports import Item
from nodes.values import Json
from runtime.runs import excerpt

From = Literal["before", "live", "fresh"]
"""Start of a run: the page as it is right before the first node, the current page, or a new browser."""

MOST_NAMES = 5


@dataclasses.dataclass(slots=True)
class Start:
    redo: list[NodePlace] = dataclasses.field(default_factory=list[NodePlace])
    """Nodes to repeat first; each is safe to repeat."""
    fresh: bool = False
    state: Path | None = None
    lineage: Lineage = ()  # the nodes that changed the page with which the run begins
    how: str = ""
    other_page: bool = False  # True if the page may differ from the one that the draft reaches


class Planner:
    def __init__(self, freshness: FreshnessCheck, results: Results, requested: Mapping[str, str]) -> None:
        self._freshness, self._places = freshness, freshness.places
        self._results, self._requested = results, requested

    def plan(self, ids: Sequence[str], begin: From, live: Lineage | str) -> tuple[Start, excerpt.Excerpt]:
        """Return the start and the excerpt for one run of these nodes. ``live``: lineage of the current page, or why there is none.

        Raises ModelError ``value-missing``, ``value-stale``, ``state-missing``, ``no-page``; UsageError ``item-unknown``.
        """
        first = next((each for each in ids if self._places.on_page(self._places[each])), None)
        start = Start()
        if first is not None:
            start = self._start(self._places[first], ids[: ids.index(first)], begin, live)
        row = [*(each.id for each in start.redo), *ids]
        self._refuse_missing(row)
        segments = [self._segment(self._places[node_id]) for node_id in row]
        values: dict[str, Json] = {}
        for node_id in row:
            for read in self._freshness.sources(node_id):
                known, value = self._freshness.value(read.chain, {}, node_id)
                if known and not self._in_loop(read):
                    _put(values, read, value)
        variables, facts = values.pop("vars", {}), values.pop("run", {})
        values.pop("inputs", None)
        return start, excerpt.Excerpt(segments=segments, names=row, values=values, variables=variables, facts=facts)

    # The page.

    def _start(self, first: NodePlace, ahead: Sequence[str], begin: From, live: Lineage | str) -> Start:
        """Return the start for the first node that works on a page; the nodes ``ahead`` of it work on none."""
        made = {each.id for node_id in ahead for each in self._places.below(node_id)}
        items = {} if self._lists(first) & made else self._items(first)
        way = self._freshness.way(first, items)
        on_page = (each for each in self._places.leaves(first) if each.touches_page)
        # A node that begins by opening an address works from any page.
        opens = getattr(next(on_page, None), "action", None) in effects.OPENS
        if begin == "fresh":
            return Start(fresh=True, how="a new browser", other_page=bool(way) and not opens)
        if begin == "live":
            if isinstance(live, str):
                raise ModelError(
                    "no-page",
                    f"there is no live page: {live}",
                    fix='use `from` "before", which continues from the last state that was kept, or "fresh"',
                )
            return Start(lineage=live, how="the current page", other_page=not opens and live != way)
        before = [place for place, _key in self._places.before(first.id, items)]
        for number in range(len(way), -1, -1):
            redo = before[number:]
            action = next((each for each in redo if self._places.acts(each)), None)
            if action is not None and opens and not isinstance(live, str):
                return Start(lineage=live, how="the current page")
            if action is not None:
                raise ModelError(
                    "state-missing",
                    f"no state of the page before `{first.id}` was kept, and `{action.id}`, which leads there, is not repeated unasked",
                    fix=f'continue on the current page (`from` "live"), if `{first.id}` works there; or execute "{action.id}..{first.id}", which does it',
                )
            if live == way[:number]:
                return Start(redo, lineage=way[:number], how="the current page")
            if number and (state := self._results.state(way[:number])) is not None:
                how = f"the state kept after `{before[number - 1].id}`"
                return Start(redo, fresh=True, state=state, lineage=way[:number], how=how)
        return Start(before, fresh=True, how="a new browser")

    # Values.

    def _items(self, place: NodePlace) -> dict[str, str]:
        """Return the selected items of the loops around a node. Raises ModelError if a list has no valid value."""
        items: dict[str, str] = {}
        names: dict[str, Json] = {}
        for loop in place.loops:
            missing: list[MissingRecord | None] = []
            for read in [] if loop.as_ in self._freshness.pins else self._places.reads_of_list(loop.id):
                known, value = self._freshness.value(read.chain, items, place.id)
                if known:
                    _put(names, read, value)
                elif not read.guarded and read.chain[0] not in names:
                    missing.append(self._freshness.missing_name(read.chain, place.id, items))
            if any(missing):
                raise self._missing_values([each for each in missing if each is not None])
            item = self._turn(loop, names)
            items[loop.id] = item.segment
            names |= item.bound
        return items

    def _lists(self, place: NodePlace) -> set[str]:
        return {str(read.chain[0]) for loop in place.loops for read in self._places.reads_of_list(loop.id)}

    def _turn(self, loop: Iterate, names: Mapping[str, Json]) -> Item:
        wanted = self._requested.get(loop.id)
        if loop.as_ is not None and loop.as_ in self._freshness.pins:
            loop, wanted = loop.model_copy(update={"over": [self._freshness.pins[loop.as_]], "limit": None}), None
        return excerpt.turn(loop, excerpt.turns(self._places.loaded, loop, names), wanted)

    def _refuse_missing(self, row: Sequence[str]) -> None:
        """Raise ModelError if a node reads a name that has no valid value and that no earlier node of the run makes."""
        made: set[str] = set()
        missing: list[MissingRecord] = []
        for node_id in row:
            place = self._places[node_id]
            # If this run makes the list, its items are not known yet.
            items = {} if self._lists(place) & made else self._items(place)
            missing += self._freshness.missing(node_id, items, made)
            made |= {each.id for each in self._places.below(node_id)}
        if missing:
            raise self._missing_values(missing)

    def _segment(self, place: NodePlace) -> excerpt.Segment | excerpt.Placed:
        if place.loops:
            return lambda names: self._placed(place, names)
        return excerpt.Segment(place.node, self._places.path(place.id))

    def _in_loop(self, read: Read) -> bool:
        maker = self._places.all.get(str(read.chain[0]))
        return maker is not None and bool(maker.loops)

    def _placed(self, place: NodePlace, names: Mapping[str, Json]) -> excerpt.Segment:
        """Return a loop's node with its item, selected by the values known when it starts."""
        items: dict[str, str] = {}
        bound: dict[str, Json] = {}
        for loop in place.loops:
            item = self._turn(loop, {**names, **bound})
            items[loop.id] = item.segment
            bound |= item.bound
        for read in filter(self._in_loop, self._freshness.sources(place.id)):
            # The values of earlier nodes for the same item, from this run or a previous one.
            root = str(read.chain[0])
            made = self._freshness.record(root, items)
            if root in self._freshness.pins:
                bound.setdefault(root, self._freshness.pins[root])
            elif made is not None and made.ran and not made.masked:
                bound.setdefault(root, made.value)
        return excerpt.Segment(place.node, self._places.path(place.id, items), bound)

    def _missing_values(self, missing: Sequence[MissingRecord]) -> ModelError:
        once = {(each.reader, each.chain): each for each in missing}
        reasons = [
            f"`{each.reader}` reads `{written(each.chain)}`, which {each.why or 'has no value yet'}"
            for each in itertools.islice(once.values(), MOST_NAMES)
        ]
        refresh = self._freshness.refresh(missing)
        fix = f"pin a value (`set_variable` {written(missing[0].chain)})"
        if refresh is not None:
            in_loop = any(each.maker is not None and self._places[each.maker].loops for each in missing)
            same = " with the same `item`" if in_loop and self._requested else ""
            alone = ', which only reads, on the page that is open (`from` "live" if it is another one), then this again'
            fix = f'execute "{refresh.nodes}"{same}{alone if refresh.alone else ""}, or {fix}'
        if any(each.why for each in missing):
            return ModelError("value-stale", "; ".join(reasons), fix=fix)
        return ModelError("value-missing", "; ".join(reasons), fix=fix)


def requested_items(selection: Selection, item: str | None, places: NodeMap) -> dict[str, str]:
    """Return the requested items, by loop id: from step paths, else from ``item``. Raises ModelError ``item-unknown``."""
    found = dict(selection.items)
    if item is None or not item.strip():
        return found
    loops = list(dict.fromkeys(loop.id for node_id in selection.ids for loop in places[node_id].loops))
    if not loops:
        raise ModelError("item-unknown", "none of these nodes is in a loop", fix="leave `item` null")
    named = [each.strip() for each in item.split("/")] if len(loops) > 1 else [item.strip()]
    for loop, each in zip(reversed(loops), reversed(named), strict=False):
        found.setdefault(loop, each)
    return found


def gaps(places: NodeMap, row: Sequence[str]) -> list[str]:
    """Return a note on each node before which a run omits nodes that change the page."""
    notes: list[str] = []
    on_page = [each for each in row if places.on_page(places[each])]
    for one, other in itertools.pairwise(on_page):
        end = max(each.position for each in places.below(one))
        before = [each for each, _key in places.before(other, {}) if each.position > end and each.id not in row]
        left_out = [each.id for each in before if not any(outer.id in row for outer in each.around)]
        if left_out:
            names = ", ".join(f"`{each}`" for each in left_out[:MOST_NAMES])
            notes.append(f"`{other}` is run without {names}, which come before it and change the page")
    return notes


def _put(names: dict[str, Json], read: Read, value: Json) -> None:
    *way, last = (str(each) for each in read.chain)
    owner = names
    for step in way:
        owner = owner.setdefault(step, {})
    owner[last] = value
