"""What the bench knows of nodes that ran, and whether it still holds. Pure.

A value is known by what the node did, by what it read, and by what had been done to the page it worked on. Where any of that is another by now, the
value is *stale*: nobody reads it any more until the node has run again. What a node read is compared by content, so a node that runs again and yields
the same makes nothing stale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from director.bench.node_map import FACTS, NodeMap, Read, digest, written
from nodes.values import Json
from runtime.language.expressions.names_read import Chain

How = Literal["missing", "stale", "hidden"]
"""In what way there is no value: nobody made it yet; it rests on something that was changed since; it held a secret, and was not kept."""


EDITED = "edited since"
"""Why what came of a node counts no more where the node itself was changed."""

BROKEN = "!"
"""How a key begins of a node that was broken off: what it has left of the page is that of no node."""


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """A node that ran, as far as what comes behind it rests on that."""

    key: str
    id: str
    print: str
    """What it did (``NodeMap.print``)."""
    reads: Mapping[str, str]
    """What it read: names as a file has them, each with a digest of its value."""

    def as_json(self) -> Json:
        """As the log keeps it."""
        return [self.key, self.id, self.print, dict(self.reads)]

    @classmethod
    def of(cls, data: Json) -> Done:
        """From what the log keeps."""
        key, node_id, said, reads = data
        return cls(key, node_id, said, reads)


Lineage = tuple[Done, ...]
"""What was done to a browser since it was fresh, in order: the nodes that change the page."""


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What came of a node the last time that it ended well."""

    done: Done
    items: Mapping[str, str]
    """The turns that it was in, by the ids of the loops."""
    page: Lineage
    """What its page rests on (``FreshnessCheck.page_of``); nothing for one that looks at none."""
    run: str
    """The run in which it ran."""
    ran: bool
    """False where its ``when`` passed it by, or its error was passed over: it has no value then."""
    value: Json = None
    masked: bool = False
    """Whether the value held a secret, and is not known any more."""
    sets: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The variables that it set."""
    facts: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """What ``run`` tells of it: ``errors``, ``taken``, ``failures``, as far as they tell anything."""

    def as_json(self) -> Json:
        """As the log keeps it."""
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
        """From what the log keeps; ``masked``: it was kept without the secrets in it."""
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
    """A name that a node reads, and that has no value that counts."""

    reader: str
    """Id of the node that reads it."""
    chain: Chain
    how: How
    maker: str | None
    """Id of the node that would give it one."""
    why: str | None = None
    """Of what it is stale, where it is."""


class FreshnessCheck:
    """What of the records counts, for one version of the draft."""

    def __init__(
        self,
        places: NodeMap,
        records: Mapping[str, Record],
        inputs: Mapping[str, Json],
        pins: Mapping[str, Json],
    ) -> None:
        """``records`` by key; ``pins`` are values that stand in the place of all others, by name (``orders``, ``vars.seen``)."""
        self._places, self._records = places, records
        self._inputs, self._pins = inputs, pins
        self._known: dict[str, bool] = {}
        self._digests: dict[tuple[Chain, tuple[str, ...], str], str | None] = {}

    def pinned(self, name: str) -> bool:
        """Whether a value stands in the place of all others of this name."""
        return name in self._pins

    def record(self, node_id: str, items: Mapping[str, str]) -> Record | None:
        """What came of a node in these turns, stale or not."""
        place = self._places.all.get(node_id)
        return self._records.get(place.key(items)) if place is not None else None

    def holds(self, record: Record) -> bool:
        """Whether what came of the node still counts."""
        key = record.done.key
        if key not in self._known:
            # What reads itself around a corner is no workflow; until it is judged it does not count.
            self._known[key] = False
            self._known[key] = self.still(record.done, record.items) and all(map(self._same_page, _last(record)))
        return self._known[key]

    def why(self, record: Record) -> str | None:
        """What was changed since, where what came of the node counts no more: ``read `orders`, which has changed since``."""
        if self.holds(record):
            return None
        if (said := self._changed(record.done, record.items)) is not None:
            return said
        for each in _last(record):
            if each.id in self._places.all and (said := self._changed(each, _turns(each, self._places))) is not None:
                return f"its page rests on `{each.id}`, which {'was ' if said == EDITED else ''}{said}"
        return None

    def page_of(self, page: Lineage, done: Done, items: Mapping[str, str]) -> Lineage:
        """What the page of a node rests on that has just run: what was done to it, each as it was done last, as far as it leads there in the draft as it is.

        What is otherwise by now than it was done has been gone on from all the same, and so has what stands behind the node, or in another turn: whoever
        went on from there has been told of it, and wanted to.
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
        """Whether a node would do now what it did then."""
        return self._changed(done, items) is None

    def _changed(self, done: Done, items: Mapping[str, str]) -> str | None:
        """Why a node would not do now what it did then; None where it would."""
        if done.id not in self._places.all or self._places.print(done.id) != done.print:
            return EDITED
        for name, was in done.reads.items():
            now = self._digest(tuple(name.split(".")), items, done.id)
            if now != was:
                return f"read `{name}`, which {'has changed since' if now is not None else 'is stale itself'}"
        return None

    def _same_page(self, done: Done) -> bool:
        """Whether what was done to a page is still what the draft does. What is gone from the draft may have been of no account for what was read there."""
        return done.id not in self._places.all or self.still(done, _turns(done, self._places))

    def fits(self, lineage: Lineage, wanted: Sequence[str]) -> bool:
        """Whether just this was done to a page, in this order (keys), as the draft has it now."""
        if [each.key for each in lineage] != list(wanted):
            return False
        return all(self.still(each, _turns(each, self._places)) for each in lineage)

    # Values.

    def value(self, chain: Chain, items: Mapping[str, str], reader: str = "") -> tuple[bool, Json]:
        """The value that a name has by now, for a node in these turns; whether it has one that counts."""
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
        """What the last node before the reader has set it to."""
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
        """What the node reads, and what the lists of the loops around it are made of."""
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
        """What the node reads and has no value that counts. ``bound`` are names that its turns bring, ``made`` ids of nodes that run before it in the same run."""
        bound, made = set(bound), set(made)
        found: list[MissingRecord] = []
        for read in self.sources(node_id):
            if read.chain[0] in bound or any(each in made for each in self._makers(read.chain, node_id)):
                continue
            missing = self.missing(read.chain, node_id, items)
            found += [each for each in missing if each.how != "missing" or not read.guarded]
        return found

    def missing(self, chain: Chain, reader: str, items: Mapping[str, str]) -> list[MissingRecord]:
        """The name, where it has no value that counts and should have one."""
        if self.value(chain, items, reader)[0] or chain[:1] == ("inputs",):
            return []
        makers = self._makers(chain, reader)
        records = [record for each in makers if (record := self.record(each, items)) is not None]
        hidden = any(each.masked for each in records)
        # What ran, and has no value, has none: whoever reads it takes care of that, or is to fail as the run would.
        if records and not hidden and all(map(self.holds, records)):
            return []
        how: How = "hidden" if hidden else "stale" if records else "missing"
        why = next((said for each in records if (said := self.why(each)) is not None), None)
        return [MissingRecord(reader, chain, how, makers[-1] if makers else None, why)]

    def _makers(self, chain: Chain, reader: str) -> list[str]:
        """The nodes that give a name its value, in the order of the file."""
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
        """The node, or the outermost loop around it in which the reader does not stand."""
        around = {each.id for each in self._places[reader].around}
        loops = [each.id for each in self._places[node_id].loops if each.id not in around]
        return loops[0] if loops else node_id

    def refresh(self, lacks: Sequence[MissingRecord]) -> str | None:
        """The selection that makes everything that lacks, with what that lacks in turn, and then runs the readers; None where no node makes it."""
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
    """What a node's page rests on: what was done again counts as it was done last, and what was broken off or was itself an earlier try counts as nothing.

    Whoever goes on from such a page has been told of it, and wanted to.
    """
    latest = {each.key: each for each in record.page if not each.key.startswith(BROKEN)}
    latest.pop(record.done.key, None)
    return list(latest.values())


def _turns(done: Done, places: NodeMap) -> dict[str, str]:
    """The turns that a key tells of, by the ids of the loops."""
    loops = [each.id for each in places[done.id].loops]
    rest, found = done.key.removeprefix(BROKEN)[len(done.id) :], dict[str, str]()
    for loop in loops:
        segment, _bracket, rest = rest.partition("]")
        if segment:
            found[loop] = f"{segment}]"
    return found
