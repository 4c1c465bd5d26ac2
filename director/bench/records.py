"""Results of executed nodes, and whether they are still valid. Pure.

A value depends on the node's action, on what it read, and on what had been done to its page. If any of these has changed, the value is
*stale*: it is not used until the node has run again. Values that a node read are compared by content. So a node that runs again with the
same result makes nothing stale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from director.bench.node_map import FACTS, NodeMap, Read, digest, written
from nodes.values import Json
from runtime.language.expressions.names_read import Chain

How = Literal["missing", "stale", "hidden"]
"""Reason why there is no value: nothing made it yet; a dependency has changed since; it contained a secret and was not kept."""


EDITED = "edited since"
"""Cause of staleness: the node itself was changed."""

BROKEN = "!"
"""Prefix of the key of a node that was interrupted: the page after it belongs to no node."""


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """A node that ran, with everything on which later nodes depend."""

    key: str
    id: str
    print: str
    """Digest of its action (``NodeMap.print``)."""
    reads: Mapping[str, str]
    """The names that it read, as in the file, each with a digest of its value."""

    def as_json(self) -> Json:
        """Return it as logged."""
        return [self.key, self.id, self.print, dict(self.reads)]

    @classmethod
    def of(cls, data: Json) -> Done:
        """Parse it from the log."""
        key, node_id, said, reads = data
        return cls(key, node_id, said, reads)


Lineage = tuple[Done, ...]
"""The nodes that changed a browser's page since it was fresh, in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """Result of a node, the last time that it ended well."""

    done: Done
    items: Mapping[str, str]
    """Its items, by loop id."""
    page: Lineage
    """The nodes on which its page depends (``FreshnessCheck.page_of``); empty for one that observes no page."""
    run: str
    ran: bool
    """False if its ``when`` skipped it, or its error was tolerated: it has no value then."""
    value: Json = None
    masked: bool = False
    """True if the value contained a secret, and is unknown now."""
    sets: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    facts: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Its facts in ``run``: ``errors``, ``taken``, ``failures``, if it has any."""

    def as_json(self) -> Json:
        """Return it as logged."""
        return {
            "done": self.done.as_json(),
            "items": dict(self.items),
            "page": [each.as_json() for each in self.page],
            "run": self.run,
            "ran": self.ran,
            "value": self.value,
            "sets": dict(self.sets),
            "facts": dict(self.facts),
        }

    @classmethod
    def of(cls, data: Json, *, masked: bool = False) -> Record:
        """Parse it from the log; ``masked``: secrets were removed from it."""
        page = tuple(Done.of(each) for each in data["page"])
        return cls(
            Done.of(data["done"]),
            data["items"],
            page,
            data["run"],
            data["ran"],
            None if masked else data["value"],
            masked,
            {} if masked else data["sets"],
            {} if masked else data["facts"],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class MissingRecord:
    """A name that a node reads, and that has no valid value."""

    reader: str
    """Id of the node that reads it."""
    chain: Chain
    how: How
    maker: str | None
    """Id of the node that provides it."""
    why: str | None = None
    """Cause of its staleness, if it is stale."""


class FreshnessCheck:
    """Decides which records are valid for one version of the draft."""

    def __init__(
        self,
        places: NodeMap,
        records: Mapping[str, Record],
        inputs: Mapping[str, Json],
        pins: Mapping[str, Json],
    ) -> None:
        """``records`` by key; ``pins`` override all other values, by name (``orders``, ``vars.seen``)."""
        self._places, self._records = places, records
        self._inputs, self._pins = inputs, pins
        self._known: dict[str, bool] = {}
        self._digests: dict[tuple[Chain, tuple[str, ...], str], str | None] = {}

    def pinned(self, name: str) -> bool:
        """Return whether a pin overrides this name."""
        return name in self._pins

    def record(self, node_id: str, items: Mapping[str, str]) -> Record | None:
        """Return the result of a node for these items, stale or not."""
        place = self._places.all.get(node_id)
        return self._records.get(place.key(items)) if place is not None else None

    def holds(self, record: Record) -> bool:
        """Return whether the result of the node is valid."""
        key = record.done.key
        if key not in self._known:
            # A value that depends on itself is no workflow; until it is checked it is invalid.
            self._known[key] = False
            self._known[key] = self.still(record.done, record.items) and all(map(self._same_page, _last(record)))
        return self._known[key]

    def why(self, record: Record) -> str | None:
        """Return the cause of staleness of a result: ``read `orders`, which has changed since``. None if it is valid."""
        if self.holds(record):
            return None
        if (said := self._changed(record.done, record.items)) is not None:
            return said
        for each in _last(record):
            if each.id in self._places.all and (said := self._changed(each, _turns(each, self._places))) is not None:
                return f"its page rests on `{each.id}`, which {'was ' if said == EDITED else ''}{said}"
        return None

    def page_of(self, page: Lineage, done: Done, items: Mapping[str, str]) -> Lineage:
        """Return the nodes on which the page of a node that has just run depends.

        Each is as last done, and on the way there in the current draft. Excluded are nodes changed since, nodes after this one, and nodes of
        other items. The model was shown that, and chose to continue from there.
        """
        own = self._places.all[done.id]
        latest = {each.key: each for each in page if not each.key.startswith(BROKEN)}
        latest.pop(done.key, None)
        found: list[Done] = []
        for each in latest.values():
            place = self._places.all.get(each.id)
            if place is None or place.position >= own.position:
                continue
            turns = _turns(each, self._places)
            if all(items.get(loop, turn) == turn for loop, turn in turns.items()) and self.still(each, turns):
                found.append(each)
        return tuple(found)

    def still(self, done: Done, items: Mapping[str, str]) -> bool:
        """Return whether a node would now do the same as then."""
        return self._changed(done, items) is None

    def _changed(self, done: Done, items: Mapping[str, str]) -> str | None:
        """Explain why a node would not do the same now; None if it would."""
        if done.id not in self._places.all or self._places.print(done.id) != done.print:
            return EDITED
        for name, was in done.reads.items():
            now = self._digest(tuple(name.split(".")), items, done.id)
            if now != was:
                return f"read `{name}`, which {'has changed since' if now is not None else 'is stale itself'}"
        return None

    def _same_page(self, done: Done) -> bool:
        """Return whether the draft still changes the page so. A node deleted from the draft may have been irrelevant to what was read there."""
        return done.id not in self._places.all or self.still(done, _turns(done, self._places))

    def fits(self, lineage: Lineage, wanted: Sequence[str]) -> bool:
        """Return whether exactly these keys changed a page, in this order, as in the current draft."""
        if [each.key for each in lineage] != list(wanted):
            return False
        return all(self.still(each, _turns(each, self._places)) for each in lineage)

    # Values.

    def value(self, chain: Chain, items: Mapping[str, str], reader: str = "") -> tuple[bool, Json]:
        """Return whether a name has a valid value for a node with these items, and the value."""
        name = written(chain)
        if name in self._pins:
            return True, self._pins[name]
        match [str(each) for each in chain]:
            case ["inputs"]:
                return True, dict(self._inputs)
            case ["inputs", given, *_]:
                return given in self._inputs, self._inputs.get(given)
            case ["vars", variable, *_]:
                return self._variable(variable, items, reader)
            case ["run", fact, node_id, *_]:
                found = self.record(node_id, items)
                if found is None or not self.holds(found) or found.masked:
                    return False, None
                return fact in found.facts, found.facts.get(fact)
            case [node_id, *_]:
                found = self.record(node_id, items)
                if found is None or not found.ran or found.masked or not self.holds(found):
                    return False, None
                return True, found.value
            case _:
                return False, None

    def _variable(self, name: str, items: Mapping[str, str], reader: str) -> tuple[bool, Json]:
        """Return the value set by the last node before the reader."""
        behind = self._places.all[reader].position if reader in self._places.all else 1_000_000
        for setter in reversed(self._places.setters.get(name, [])):
            if self._places[setter].position >= behind:
                continue
            for each in (setter, *(outer.id for outer in reversed(self._places[setter].around))):
                found = self.record(each, items)
                if found is not None and name in found.sets and self.holds(found):
                    return True, found.sets[name]
        return False, None

    def _digest(self, chain: Chain, items: Mapping[str, str], reader: str) -> str | None:
        asked = (chain, tuple(items.values()), reader if chain[:1] == ("vars",) else "")
        if asked not in self._digests:
            known, value = self.value(chain, items, reader)
            self._digests[asked] = digest(value) if known else None
        return self._digests[asked]

    def sources(self, node_id: str) -> list[Read]:
        """Return what the node and the lists of the loops around it read."""
        place = self._places[node_id]
        own = {each.id for each in place.around} | {each.as_ for each in place.loops}
        found = {read.chain: read for read in self._places.reads(node_id)}
        for loop in place.loops:
            if loop.as_ is not None and self.pinned(loop.as_):
                continue
            inside = {each.id for each in self._places.below(loop.id)}
            for read in self._places.reads_of_list(loop.id):
                if read.chain[0] not in own | inside:
                    found.setdefault(read.chain, read)
        return list(found.values())

    def lacks(
        self, node_id: str, items: Mapping[str, str], bound: Iterable[str], made: Iterable[str]
    ) -> list[MissingRecord]:
        """Return what the node reads without a valid value. ``bound`` are names of its items, ``made`` ids of nodes before it in the same run."""
        bound, made = set(bound), set(made)
        found: list[MissingRecord] = []
        for read in self.sources(node_id):
            if read.chain[0] in bound or any(each in made for each in self._makers(read.chain, node_id)):
                continue
            missing = self.missing(read.chain, node_id, items)
            found += [each for each in missing if each.how != "missing" or not read.guarded]
        return found

    def missing(self, chain: Chain, reader: str, items: Mapping[str, str]) -> list[MissingRecord]:
        """Return the name, if it needs a valid value and has none."""
        if self.value(chain, items, reader)[0] or chain[:1] == ("inputs",):
            return []
        makers = self._makers(chain, reader)
        records = [record for each in makers if (record := self.record(each, items)) is not None]
        hidden = any(each.masked for each in records)
        # A node that ran without a value has none: its reader handles that, or fails as it would in the run.
        if records and not hidden and all(map(self.holds, records)):
            return []
        how: How = "hidden" if hidden else "stale" if records else "missing"
        why = next((said for each in records if (said := self.why(each)) is not None), None)
        return [MissingRecord(reader, chain, how, makers[-1] if makers else None, why)]

    def _makers(self, chain: Chain, reader: str) -> list[str]:
        """Return the nodes that provide a name, in file order."""
        match [str(each) for each in chain]:
            case ["vars", name, *_]:
                limit = self._places[reader].position
                setters = [each for each in self._places.setters.get(name, []) if self._places[each].position < limit]
                return [self._outside(each, reader) for each in setters]
            case ["run", fact, name, *_] if fact in FACTS:
                pass
            case [name, *_]:
                pass
            case _:
                return []
        return [name] if name in self._places.all else []

    def _outside(self, node_id: str, reader: str) -> str:
        """Return the node, or the outermost loop around it that does not contain the reader."""
        around = {each.id for each in self._places[reader].around}
        loops = [each.id for each in self._places[node_id].loops if each.id not in around]
        return loops[0] if loops else node_id

    def refresh(self, lacks: Sequence[MissingRecord]) -> str | None:
        """Return the selection of nodes that provides all missing values, dependencies included, and runs the readers. None if no node does."""
        first, seen = [self._places[each.reader].position for each in lacks], set[str]()
        last = max(first)
        pending = [each.maker for each in lacks]
        while pending:
            maker = pending.pop()
            if maker is None:
                return None
            if maker in seen:
                continue
            seen.add(maker)
            first.append(self._places[maker].position)
            bound = {
                name for each in self._places[maker].loops for name in ("loop", each.as_, f"{each.as_}_loop") if name
            }
            pending += [each.maker for each in self.lacks(maker, {}, bound, ())]
        by_position = {each.position: each for each in self._places.in_order}
        begin, end = by_position[min(first)], by_position[last]
        if begin is end:
            return begin.id
        exact = [by_position[each] for each in sorted(set(first))]
        if not any(map(self._places.on_page, exact[1:])):
            return ",".join(each.id for each in exact)
        return f"{begin.id}..{end.id}"


def _last(record: Record) -> list[Done]:
    """Return the nodes on which a node's page depends, each as last done, without interrupted ones and earlier attempts of the node itself.

    The model was shown that such a page is used, and chose to continue from it.
    """
    latest = {each.key: each for each in record.page if not each.key.startswith(BROKEN)}
    latest.pop(record.done.key, None)
    return list(latest.values())


def _turns(done: Done, places: NodeMap) -> dict[str, str]:
    loops = [each.id for each in places[done.id].loops]
    rest, found = done.key.removeprefix(BROKEN)[len(done.id) :], dict[str, str]()
    for loop in loops:
        segment, _bracket, rest = rest.partition("]")
        if segment:
            found[loop] = f"{segment}]"
    return found
