"""Plans the runs of the bench: their inputs, and how to reach the page for the first node. Nothing is opened or run here."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from director.bench import node_map, results
from director.bench.node_map import NodeMap, NodePlace, Read, written
from director.bench.records import FreshnessCheck, How, Lineage, MissingRecord, Record
from director.effects import effects, requests
from nodes.errors import ModelError
from nodes.iterate import Iterate
from nodes.ports import Item
from nodes.values import Json
from runtime.runs import excerpt

From = Literal["before", "live", "fresh"]
"""Start of a run: the page as it is right before the first node, the current page, or a new browser."""

LACKING: Mapping[How, str] = {
    "missing": "has no value yet",
    "stale": "is stale",
    "hidden": "held a secret, and was not kept",
}

MOST_TOLD = 5
"""Limit of the names listed in an error."""


@dataclasses.dataclass(frozen=True, slots=True)
class Live:
    """The bench's current browser."""

    lineage: Lineage
    """The nodes that changed its page."""
    fits: bool
    """True if the draft still needs the same browser options."""


@dataclasses.dataclass(slots=True)
class Start:
    """The way to the page for the first node."""

    redo: list[tuple[NodePlace, str]] = dataclasses.field(default_factory=list[tuple[NodePlace, str]])
    """Nodes to repeat first, each with its key; all may be done twice."""
    fresh: bool = False
    state: Path | None = None
    lineage: Lineage = ()
    """The nodes that changed the page with which the run begins."""
    how: str = ""
    astray: bool = False
    """True if the page may differ from the one that the draft reaches."""


@dataclasses.dataclass(slots=True)
class Plan:
    """Inputs of one run."""

    start: Start
    segments: list[excerpt.Segment | excerpt.Placed]
    values: dict[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    variables: dict[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    facts: dict[str, dict[str, Json]] = dataclasses.field(default_factory=dict[str, dict[str, Json]])

    def give(self, read: Read, value: Json) -> None:
        """Set the value of a name."""
        match [str(each) for each in read.chain]:
            case ["inputs", *_]:
                pass
            case ["vars", name]:
                self.variables[name] = value
            case ["run", fact, node_id]:
                self.facts.setdefault(fact, {})[node_id] = value
            case [name, *_]:
                self.values[name] = value
            case _:
                pass


class Planner:
    """Plans runs of one version of the draft."""

    def __init__(
        self,
        places: NodeMap,
        judge: FreshnessCheck,
        records: Mapping[str, Record],
        pins: Mapping[str, Json],
        given: Mapping[str, str],
    ) -> None:
        """``records`` grow during a run; ``given`` are the requested items, by loop id."""
        self._places, self._judge, self._records = places, judge, records
        self._pins, self._given = pins, given

    def plan(self, ids: Sequence[str], begin: From, live: Live | None, kept: results.States) -> Plan:
        """Return the plan for these nodes, in sequence.

        Raises ModelError ``value-missing``, ``value-stale``, ``state-missing``, ``no-page``; UsageError ``item-unknown``.
        """
        first = next((each for each in ids if self._places.on_page(self._places[each])), None)
        start = Start()
        if first is not None:
            start = self._start(first, ids[: ids.index(first)], begin, live, kept)
        row = [*(place.id for place, _key in start.redo), *ids]
        self._refuse_missing(row)
        plan = Plan(start, [])
        for node_id in row:
            self._give(plan, node_id)
        return plan

    # The page.

    def _start(self, first: str, ahead: Sequence[str], begin: From, live: Live | None, kept: results.States) -> Start:
        """Return the start for the first node that works on a page; those ``ahead`` of it in the run work on none."""
        made = {each.id for node_id in ahead for each in self._places.below(node_id)}
        items = {} if self._lists(self._places[first]) & made else self._items(self._places[first])
        leads = [] if self._opens(first) else [key for _place, key in self._places.before(first, items)]
        if begin == "fresh":
            return Start(fresh=True, how="a new browser", astray=bool(leads))
        if begin == "live":
            if live is None or not live.fits:
                why = "nothing was executed yet, or the session was interrupted since"
                raise ModelError(
                    "no-page",
                    f"there is no live page: {why if live is None else 'the draft asks for another browser now'}",
                    fix='use `from` "before", which continues from the last state that was kept, or "fresh"',
                )
            astray = not self._opens(first) and not self._judge.fits(live.lineage, leads)
            return Start(lineage=live.lineage, how="the page as it stood", astray=astray)
        return self._before(first, items, live, kept)

    def _opens(self, node_id: str) -> bool:
        """Return whether a node works from any page: it opens an address first."""
        on_page = (each for each in self._places.leaves(self._places[node_id]) if each.touches_page)
        return getattr(next(on_page, None), "action", None) in requests.OPENS

    def _before(self, first: str, items: Mapping[str, str], live: Live | None, kept: results.States) -> Start:
        """Return the current page if it is the required one, else the last kept state; nodes between are repeated if they may be."""
        places, judge = self._places, self._judge
        before = places.before(first, items)
        keys = [key for _place, key in before]
        for number in range(len(keys), -1, -1):
            redo = before[number:]
            action = next((place for place, _key in redo if _not_again(places, place)), None)
            if action is not None:
                raise ModelError(
                    "state-missing",
                    f"the page as it is right before `{first}` is not there, and `{action.id}`, which leads there, is not done again unasked",
                    fix=f'execute "{action.id}..{first}", which does it; or continue on the page as it stands (`from` "live")',
                )
            if live is not None and live.fits and judge.fits(live.lineage, keys[:number]):
                return Start(redo, lineage=live.lineage, how="the page as it stood")
            found = next((each for each in kept.after(keys[:number]) if judge.fits(each.lineage, keys[:number])), None)
            if found is not None:
                how = f"the state kept after `{before[number - 1][0].id}`"
                return Start(redo, fresh=True, state=kept.path(found), lineage=found.lineage, how=how)
        return Start(before, fresh=True, how="a new browser")

    # Values.

    def _items(self, place: NodePlace) -> dict[str, str]:
        """Return the selected items of the loops around a node, by the current values. Raises ModelError if a list has no valid value."""
        items: dict[str, str] = {}
        names: dict[str, Json] = {}
        for loop in place.loops:
            reads = [] if loop.as_ in self._pins else self._places.reads_of_list(loop.id)
            lacking: list[MissingRecord] = []
            for read in reads:
                known, value = self._judge.value(read.chain, items, place.id)
                if known:
                    _put(names, read, value)
                elif not read.guarded and read.chain[0] not in names:
                    lacking += self._judge.missing(read.chain, place.id, items)
            if lacking:
                raise self._lacking(lacking)
            item = self._turn(loop, names)
            items[loop.id] = item.segment
            names |= item.bound
        return items

    def _lists(self, place: NodePlace) -> set[str]:
        """Return what the lists of the loops around a node read."""
        return {str(read.chain[0]) for loop in place.loops for read in self._places.reads_of_list(loop.id)}

    def _turn(self, loop: Iterate, names: Mapping[str, Json]) -> Item:
        """Return the selected item of a loop, given these names; a pinned item takes precedence."""
        wanted = self._given.get(loop.id)
        if loop.as_ is not None and loop.as_ in self._pins:
            loop, wanted = loop.model_copy(update={"over": [self._pins[loop.as_]], "limit": None}), None
        return excerpt.turn(loop, excerpt.turns(self._places.loaded, loop, names), wanted)

    def _refuse_missing(self, row: Sequence[str]) -> None:
        """Raise ModelError if a node reads a name without a valid value, and no node before it in the run provides it."""
        made: set[str] = set()
        lacks: list[MissingRecord] = []
        for node_id in row:
            place = self._places[node_id]
            # The items of a list made in this run are known only then.
            items = {} if self._lists(place) & made else self._items(place)
            lacks += self._judge.lacks(node_id, items, bound_by(place), made)
            made |= {each.id for each in self._places.below(node_id)}
        if lacks:
            raise self._lacking(lacks)

    def _give(self, plan: Plan, node_id: str) -> None:
        """Add a node to the plan, with the values that it reads."""
        place, places = self._places[node_id], self._places
        for read in self._judge.sources(node_id):
            root = str(read.chain[0])
            if root not in places.all or not places[root].loops:
                known, value = self._judge.value(read.chain, {}, node_id)
                if known:
                    plan.give(read, value)
        if place.loops:
            plan.segments.append(lambda names: self._placed(place, names))
        else:
            plan.segments.append(excerpt.Segment(place.node, places.path(node_id)))

    def _placed(self, place: NodePlace, names: Mapping[str, Json]) -> excerpt.Segment:
        """Return a node of a loop in its item, by the values at its start."""
        items: dict[str, str] = {}
        bound: dict[str, Json] = {}
        for loop in place.loops:
            item = self._turn(loop, {**names, **bound})
            items[loop.id] = item.segment
            bound |= item.bound
        for read in self._judge.sources(place.id):
            root = str(read.chain[0])
            if root in self._places.all and self._places[root].loops and root not in bound:
                # The values of earlier nodes for the same item: from this run, or from one before.
                made = self._records.get(self._places[root].key(items))
                if root in self._pins:
                    bound[root] = self._pins[root]
                elif made is not None and made.ran and not made.masked:
                    bound[root] = made.value
        return excerpt.Segment(place.node, self._places.path(place.id, items), bound)

    def _lacking(self, lacks: Sequence[MissingRecord]) -> ModelError:
        """Return the error for missing values, with the selection of nodes that provides them."""
        stale = any(each.how != "missing" for each in lacks)
        once = {(each.reader, each.chain): each for each in lacks}
        words = [
            f"`{each.reader}` reads `{written(each.chain)}`, which {LACKING[each.how]}{f' ({each.why})' if each.how == 'stale' and each.why else ''}"
            for each in itertools.islice(once.values(), MOST_TOLD)
        ]
        name = written(lacks[0].chain)
        selection = self._judge.refresh(lacks)
        pin = f"pin a value (`set_variable` {name})"
        turns = any(each.maker is not None and self._places[each.maker].loops for each in lacks)
        same = " with the same `item`" if turns and self._given else ""
        fix = f'execute "{selection}"{same}, or {pin}' if selection is not None else pin
        said = "; ".join(words)
        return ModelError("value-stale", said, fix=fix) if stale else ModelError("value-missing", said, fix=fix)


def bound_by(place: NodePlace) -> set[str]:
    """Return the names that the loops around a node bind."""
    names = {name for each in place.loops if each.as_ for name in (each.as_, f"{each.as_}_loop")}
    return names | ({"loop"} if place.loops else set())


def given(selection: node_map.Selection, item: str | None, places: NodeMap) -> dict[str, str]:
    """Return the requested items, by loop id: from step paths, else from ``item``, which lists nested loops with slashes between."""
    found = dict(selection.items)
    if item is None or not item.strip():
        return found
    loops = list(dict.fromkeys(loop.id for node_id in selection.ids for loop in places[node_id].loops))
    if not loops:
        raise ModelError("item-unknown", "none of these nodes stands in a loop", fix="leave `item` null")
    named = [each.strip() for each in item.split("/")] if len(loops) > 1 else [item.strip()]
    for loop, each in zip(reversed(loops), reversed(named), strict=False):
        found.setdefault(loop, each)
    return found


def gaps(places: NodeMap, row: Sequence[str]) -> list[str]:
    """Return the nodes omitted between those of a run although they change the page."""
    notes: list[str] = []
    on_page = [each for each in row if places.on_page(places[each])]
    for one, other in itertools.pairwise(on_page):
        behind = max(each.position for each in places.below(one))
        before = [each for each, _key in places.before(other, {}) if each.position > behind and each.id not in row]
        left_out = [each.id for each in before if not any(outer.id in row for outer in each.around)]
        if left_out:
            names = ", ".join(f"`{each}`" for each in left_out[:MOST_TOLD])
            notes.append(f"`{other}` is run without {names}, which come before it and change the page")
    return notes


def _put(names: dict[str, Json], read: Read, value: Json) -> None:
    """Insert a value where a reference finds it."""
    *way, last = (str(each) for each in read.chain)
    owner = names
    for step in way:
        owner = owner.setdefault(step, {})
    owner[last] = value


def _not_again(places: NodeMap, place: NodePlace) -> bool:
    """Return whether a node must not be repeated unasked, or asks a model."""
    return any(effects.changes(leaf) or leaf.asks is not None for leaf in places.leaves(place))
