"""Results of executed nodes, and whether they are still valid. Pure.

A result is valid while its node, the values that the node read, and the way to its page are as they were when it ran. Otherwise it is
*stale*: unused until the node has run again. Values are compared by content, so a node that yields the same value again makes nothing
stale. The way to a page is compared as a chain, like the layers of an image: all page-changing nodes before it, in order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from director.bench.node_map import FACTS, NodeMap, NodePlace, Read, bound_by, digest, written
from nodes.values import Json
from runtime.language.expressions.names_read import Chain

Lineage = tuple[str, ...]
"""The nodes that changed a page since its browser was fresh, in order: key, and digest of action and values read."""

BROKEN = "!"  # in a lineage, an interrupted node: the page then belongs to no node

CIRCULAR = "it depends on itself"
CLEARED = "its value was cleared"


def link(key: str, action: str, reads: Mapping[str, str]) -> str:
    return f"{key} {digest([action, dict(reads)])}"


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    key: str
    id: str
    items: Mapping[str, str]
    print: str  # digest of its action (``NodeMap.print``)
    reads: Mapping[str, str]  # the names that it read, as in the file, each with a digest of its value
    way: Lineage
    """The lineage of its page by the draft, even if it ran on another page; empty for a node without a page."""
    run: str
    ran: bool  # False if its ``when`` skipped it or its error was tolerated: then it has no value
    value: Json = None
    sets: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    facts: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Its facts in ``run``: ``errors``, ``taken``, ``failures``, if it has any."""
    checks: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Digests of the ``verify`` and the ``confirm`` with which it ran, if it has them."""
    cleared: bool = False  # True if the session gave the value up
    masked: bool = False  # True if the value contained a secret, and is unknown now
    at: Sequence[str] = ()
    """The addresses of its page on the bench: before it, after it, and a third if that changed by itself before the next node."""

    def as_json(self) -> Json:
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name != "masked"}
        return {**fields, "way": list(self.way)}

    def without_value(self) -> Record:
        return dataclasses.replace(self, value=None, sets={}, facts={}, cleared=True, masked=False)

    @classmethod
    def of(cls, data: Json, *, masked: bool = False) -> Record:
        """Parse it from the log; ``masked``: secrets were removed from it."""
        fields: dict[str, Any] = {**data, "way": tuple(data["way"])}
        if masked:
            fields |= {"value": None, "sets": {}, "facts": {}}
        return cls(**fields, masked=masked)


@dataclasses.dataclass(frozen=True, slots=True)
class MissingRecord:
    reader: str
    chain: Chain
    maker: str | None
    why: str | None  # reason why an earlier value does not count; None if there was none


class Refresh(NamedTuple):
    nodes: str  # a selection
    alone: bool = False  # True if it leaves out the readers


class FreshnessCheck:
    def __init__(
        self,
        places: NodeMap,
        records: Mapping[str, Record],
        inputs: Mapping[str, Json],
        pins: Mapping[str, Json],
    ) -> None:
        """``records`` by key; ``pins`` override all other values, by name (``orders``, ``vars.seen``)."""
        self.places, self.records, self.pins = places, records, pins
        self._inputs = inputs
        self._causes: dict[str, str | None] = {}
        self._links: dict[str, str] = {}

    def record(self, node_id: str, items: Mapping[str, str]) -> Record | None:
        place = self.places.all.get(node_id)
        return self.records.get(place.key(items)) if place is not None else None

    def why(self, record: Record) -> str | None:
        """Return the cause of staleness of a result: ``read `orders`, which has changed since``. None if it is valid."""
        if record.key not in self._causes:
            self._causes[record.key] = CIRCULAR
            self._causes[record.key] = self._why(record)
        return self._causes[record.key]

    def _why(self, record: Record) -> str | None:
        if record.cleared:
            return CLEARED
        place = self.places.all.get(record.id)
        if place is None or self.places.action_digest(record.id) != record.print:
            return "edited since"
        now = self.reads(place, record.items)
        for name in {**record.reads, **now}:
            if record.reads.get(name) != now.get(name):
                return f"read `{name}`, which {'has changed since' if name in now else 'is stale itself'}"
        way = self.way(place, record.items) if self.places.on_page(place) else ()
        if way != record.way:
            both = (*way, *record.way)
            changed = next((each for each in both if each not in way or each not in record.way), both[0])
            return f"its page depends on `{changed.partition(' ')[0]}`, which has changed since"
        return None

    def way(self, place: NodePlace, items: Mapping[str, str], *, after: bool = False) -> Lineage:
        """Return the lineage of the page right before a node, or right after it, as the draft makes it now."""
        nodes = self.places.up_to(place.id, items) if after else self.places.before(place.id, items)
        for each, key in nodes:
            if key not in self._links:
                self._links[key] = link(key, self.places.action_digest(each.id), self.reads(each, items))
        return tuple(self._links[key] for _place, key in nodes)

    # Values.

    def reads(self, place: NodePlace, items: Mapping[str, str]) -> dict[str, str]:
        """Return the names with a valid value that a node reads, each with a digest of the value."""
        values = {written(chain): self.value(chain, items, place.id) for chain in self.chains(place)}
        return {name: digest(value) for name, (known, value) in values.items() if known}

    def chains(self, place: NodePlace) -> list[Chain]:
        """Return the names that a node reads, except unpinned names that its loops bind: their values are part of its key."""
        bound = bound_by(place) | {"loop", "error"}
        return [
            each.chain
            for each in self.sources(place.id)
            if each.chain[0] not in bound or written(each.chain) in self.pins
        ]

    def value(self, chain: Chain, items: Mapping[str, str], reader: str = "") -> tuple[bool, Json]:
        """Return whether a name has a valid value for a node with these items, and the value."""
        name = written(chain)
        if name in self.pins:
            return True, self.pins[name]
        match [str(each) for each in chain]:
            case ["inputs"]:
                return True, dict(self._inputs)
            case ["inputs", given, *_]:
                return given in self._inputs, self._inputs.get(given)
            case ["vars", variable, *_]:
                return self._variable(variable, items, reader)
            case ["run", fact, node_id, *_]:
                found = self._valid(node_id, items)
                return (fact in found.facts, found.facts.get(fact)) if found is not None else (False, None)
            case [node_id, *_]:
                found = self._valid(node_id, items)
                return (True, found.value) if found is not None and found.ran else (False, None)
            case _:
                return False, None

    def _valid(self, node_id: str, items: Mapping[str, str]) -> Record | None:
        found = self.record(node_id, items)
        return found if found is not None and not found.masked and self.why(found) is None else None

    def _variable(self, name: str, items: Mapping[str, str], reader: str) -> tuple[bool, Json]:
        for setter in reversed(self._setters(name, reader)):
            for each in (setter, *(outer.id for outer in reversed(self.places[setter].around))):
                found = self._valid(each, items)
                if found is not None and name in found.sets:
                    return True, found.sets[name]
        return False, None

    def _setters(self, name: str, reader: str) -> list[str]:
        setters = self.places.setters.get(name, [])
        if reader not in self.places.all:
            return setters
        return [each for each in setters if self.places[each].position < self.places[reader].position]

    def sources(self, node_id: str) -> list[Read]:
        """Return what the node and the lists of the loops around it read."""
        place = self.places[node_id]
        own = {each.id for each in place.around} | {each.as_ for each in place.loops}
        found = {read.chain: read for read in self.places.reads(node_id)}
        for loop in place.loops:
            if loop.as_ is not None and loop.as_ in self.pins:
                continue
            inside = {each.id for each in self.places.below(loop.id)}
            for read in self.places.reads_of_list(loop.id):
                if read.chain[0] not in own | inside:
                    found.setdefault(read.chain, read)
        return list(found.values())

    # Missing values.

    def missing(self, node_id: str, items: Mapping[str, str], made: Collection[str] = ()) -> list[MissingRecord]:
        """Return what the node reads without a valid value; ``made`` are the ids of nodes before it in the same run."""
        bound = bound_by(self.places[node_id])
        found = [
            (read, self.missing_name(read.chain, node_id, items))
            for read in self.sources(node_id)
            if read.chain[0] not in bound and not any(each in made for each in self._makers(read.chain, node_id))
        ]
        return [each for read, each in found if each is not None and not (read.guarded and each.why is None)]

    def missing_name(self, chain: Chain, reader: str, items: Mapping[str, str]) -> MissingRecord | None:
        """Return the name as missing, or None if it has a valid value or needs none."""
        if chain[:1] == ("inputs",) or self.value(chain, items, reader)[0]:
            return None
        makers = self._makers(chain, reader)
        records = [record for each in makers if (record := self.record(each, items)) is not None]
        why = next((f"is stale ({cause})" for each in records if (cause := self.why(each)) is not None), None)
        if any(each.masked for each in records):
            why = "held a secret, and was not kept"
        # The node ran and made no value: its reader handles that, or fails as in a whole run.
        if records and why is None:
            return None
        return MissingRecord(reader, chain, makers[-1] if makers else None, why)

    def _makers(self, chain: Chain, reader: str) -> list[str]:
        match [str(each) for each in chain]:
            case ["vars", name, *_]:
                return [self._outside(each, reader) for each in self._setters(name, reader)]
            case ["run", fact, name, *_] if fact in FACTS:
                makers = [name]
            case names:
                makers = names[:1]
        return [each for each in makers if each in self.places.all]

    def _outside(self, node_id: str, reader: str) -> str:
        """Return the node, or the outermost loop around it that does not contain the reader."""
        around = {each.id for each in self.places[reader].around}
        return next((each.id for each in self.places[node_id].loops if each.id not in around), node_id)

    def refresh(self, missing: Sequence[MissingRecord]) -> Refresh | None:
        """Return what makes all missing values, dependencies included, and runs their readers. None if no node makes one.

        The readers are left out if an action between would be done again for them.
        """
        selected = {each.reader for each in missing}
        made, pending = set[str](), [each.maker for each in missing]
        while pending:
            maker = pending.pop()
            if maker is None:
                return None
            if maker not in made:
                made.add(maker)
                pending += [each.maker for each in self.missing(maker, {})]
        exact = [each for each in self.places.in_order if each.id in made | selected]
        if not any(map(self.places.on_page, exact[1:])):
            return Refresh(",".join(each.id for each in exact))
        between = [each for each in self.places.in_order if exact[0].position < each.position < exact[-1].position]
        if any(self.places.acts(each) for each in between if each not in exact and self._valid(each.id, {})):
            makers = [each for each in exact if each.id in made]
            if not any(map(self.places.acts, makers)):
                return Refresh(",".join(each.id for each in makers), alone=True)
        return Refresh(f"{exact[0].id}..{exact[-1].id}")
