"""A draft as the bench sees it: where each node stands, what it reads, what it does, and what comes before it. Pure."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from nodes import errors
from nodes.base import Leaf, Node
from nodes.errors import ModelError
from nodes.group import Group
from nodes.handle import Handle
from nodes.iterate import Iterate
from nodes.values import Json
from runtime.language import workflow
from runtime.language.checks.declarations import variables_of
from runtime.language.expressions.names_read import NOTHING, Chain
from runtime.language.node_tree import Anatomy, NodeSource
from runtime.recovery.compatibility import JUDGED

FACTS = ("errors", "taken", "failures")
"""What ``run`` tells of nodes, by their ids."""

Items = Mapping[str, str]
"""Which turn is meant of the loops around a node, by their ids: the segment of the turn in a step path, ``[#1007]``."""

NO_ITEMS: Items = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Read:
    """A name that a node reads from elsewhere."""

    chain: Chain
    """As far as it tells where the value comes from: an id, ``inputs`` or ``vars`` and a name, ``run``, a fact and an id."""
    guarded: bool
    """Whether its absence is no error."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodePlace:
    """A node of the draft."""

    node: Node
    position: int
    """As the outline counts."""
    around: tuple[Node, ...]
    """The containers in which it stands, outermost first."""
    confirms: bool
    """Whether it belongs to a ``confirm``, and is run by nothing else."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.node.id

    @property
    def loops(self) -> list[Iterate]:
        """The loops around it, outermost first."""
        return [each for each in self.around if isinstance(each, Iterate)]

    def key(self, items: Items) -> str:
        """What it is called on the bench: its id, and which turns it is in. Where it is put into a group, it stays the same."""
        return self.id + "".join(items.get(each.id, "") for each in self.loops)


class NodeMap:
    """The nodes of a draft, by id, in the order of the file."""

    def __init__(self, loaded: workflow.Loaded, positions: Mapping[str, int]) -> None:
        """``positions`` are those of the outline, by id."""
        self.loaded = loaded
        self.all: dict[str, NodePlace] = {}
        for each, (node, around) in loaded.index.items():
            confirms = any(isinstance(outer, Leaf) for outer in around)
            self.all[each] = NodePlace(node, positions[each], around, confirms)
        self.in_order: list[NodePlace] = sorted(
            (each for each in self.all.values() if not each.confirms), key=lambda each: each.position
        )
        anatomy = Anatomy(loaded.document.data, workflow.Workflow)
        self._units = {unit.id: unit for unit in anatomy.every_unit() if unit.id}
        self._of_browser = [slot.text for slot in anatomy.slots if slot.field != "output"]
        self._reads: dict[str, list[Read]] = {}
        self._prints: dict[str, str] = {}

    def __getitem__(self, node_id: str) -> NodePlace:
        return self.all[node_id]

    def path(self, node_id: str, items: Items = NO_ITEMS) -> str:
        """The step path of a node; a turn that is not named is left out of it."""
        place = self.all[node_id]
        steps: list[str] = []
        for outer, inner in itertools.pairwise([*place.around, place.node]):
            steps.append(outer.id + items.get(outer.id, ""))
            if isinstance(outer, Handle):
                steps.append(
                    next(str(field[0]) for field, block in outer.blocks() if any(each is inner for each in block))
                )
        return "/".join([*steps, place.id])

    def items_in(self, path: str) -> dict[str, str]:
        """The turns that a step path names, by the ids of the loops."""
        found: dict[str, str] = {}
        for step in path.split("/")[:-1]:
            name, bracket, rest = step.partition("[")
            if bracket and name in self.all and isinstance(self.all[name].node, Iterate):
                found[name] = bracket + rest
        return found

    def below(self, node_id: str) -> Iterator[NodePlace]:
        """A node and all nodes in its blocks, in the order of the file."""
        return (each for each in self.in_order if each.id == node_id or any(o.id == node_id for o in each.around))

    def block(self, place: NodePlace) -> Sequence[Node]:
        """The block in which it stands."""
        if not place.around:
            return self.loaded.workflow.nodes
        return next(block for _field, block in place.around[-1].blocks() if any(each is place.node for each in block))

    # What comes before.

    def before(self, node_id: str, items: Items) -> list[tuple[NodePlace, str]]:
        """What leaves the page as it is right before a node, in order, each with its key: nodes that change the page, a container as a whole.

        Of the loops around the node only the one turn counts, of a ``route`` and a ``handle`` only the node's own block.
        """
        place = self.all[node_id]
        found: list[tuple[NodePlace, str]] = []
        for level in (*(self.all[each.id] for each in place.around), place):
            for node in self.block(level):
                if node is level.node:
                    break
                found += self._units_of(self.all[node.id], items)
        return found

    def up_to(self, node_id: str, items: Items) -> list[tuple[NodePlace, str]]:
        """The same right after it."""
        return [*self.before(node_id, items), *self._units_of(self.all[node_id], items)]

    def is_unit(self, place: NodePlace, within: Sequence[Node] = ()) -> bool:
        """Whether the node changes the page by itself, and is not only a name for some that do; ``within`` are containers that are run as a whole."""
        inner = [each for each in place.around if each not in within]
        return self.changes_page(place) and not transparent(place.node) and all(map(transparent, inner))

    def _units_of(self, place: NodePlace, items: Items) -> Iterator[tuple[NodePlace, str]]:
        if not self.changes_page(place):
            return
        if not transparent(place.node):
            yield place, place.key(items)
            return
        for _field, block in place.node.blocks():
            for node in block:
                yield from self._units_of(self.all[node.id], items)

    def leaves(self, place: NodePlace) -> Iterator[Leaf]:
        """The leaves of a node, those of files that it uses too."""
        return _leaves(self.loaded, place.node)

    def changes_page(self, place: NodePlace) -> bool:
        """Whether it may leave the page another than it was."""
        return any(leaf.moves_page for leaf in self.leaves(place))

    def on_page(self, place: NodePlace) -> bool:
        """Whether it looks at the page."""
        return any(on_page(leaf) for leaf in self.leaves(place))

    # What a node says.

    def print(self, node_id: str) -> str:
        """A digest of what the node, and all in it, does: how it is watched, judged and described does not count."""
        if node_id not in self._prints:
            said: list[str] = []
            for each in self.below(node_id):
                said.append(f"{each.id} {workflow.fingerprint(each.node, JUDGED)}")
                callee = self.loaded.callees.get(each.id)
                said += [file.text for file in (callee.files() if callee is not None else ())]
            self._prints[node_id] = digest(list[Json](said))
        return self._prints[node_id]

    def reads(self, node_id: str) -> list[Read]:
        """What the node, with all in it, reads from elsewhere, in the order of the file; items and ``loop`` of loops around it are read like the others."""
        if node_id not in self._reads:
            self._reads[node_id] = list(self._read(self.all[node_id]))
        return self._reads[node_id]

    def _read(self, place: NodePlace) -> Iterator[Read]:
        ids = {each.id for each in self.below(place.id)}
        units = list(_below(self._units[place.id]))
        bound = {each.id for each in units if each.id} - {place.id}
        given = {name for each in units for name in variables_of(each)}
        for each in units:
            if each.model is Iterate:
                item = each.text("as")
                bound |= {"loop", *((item, f"{item}_loop") if item else ())}
            elif each.model is Handle:
                bound.add("error")
        texts = [(text, NOTHING) for text in self._of_browser] if self.on_page(place) else []
        when = units[0].slot("when")
        condition = self.loaded.templates.get(when.text) if when is not None else None
        facts = condition.facts(truth=True) if condition is not None else NOTHING
        texts += [
            (slot.text, NOTHING if slot is when else facts) for each in units for slot in (*each.slots, *each.done)
        ]
        found: dict[Chain, bool] = {}
        for text, known in texts:
            for use in self.loaded.templates[text].names:
                if (chain := _source(use.chain, bound, given, ids)) is not None:
                    found[chain] = found.get(chain, True) and use.sure_of(use.chain[: len(chain)], known)
        yield from (Read(chain, guarded) for chain, guarded in found.items())

    def reads_of_list(self, loop: str) -> list[Read]:
        """What the list of a loop is made of."""
        unit = self._units[loop]
        over = [slot.text for slot in unit.slots if slot.field in ("over", "limit", "key")]
        uses = [use for text in over for use in self.loaded.templates[text].names]
        own = {name for name in (unit.text("as"),) if name}
        chains = [(_source(use.chain, own, set(), set()), use) for use in uses]
        return [Read(chain, use.sure_of(use.chain[: len(chain)])) for chain, use in chains if chain is not None]

    @functools.cached_property
    def setters(self) -> Mapping[str, list[str]]:
        """The nodes that set each variable, by its name, in the order of the file."""
        found: dict[str, list[str]] = {}
        for each in self.in_order:
            for name in variables_of(self._units[each.id]):
                found.setdefault(name, []).append(each.id)
        return found


def transparent(node: Node) -> bool:
    """Whether a container is but a name for the nodes in it: they do the same by themselves."""
    return isinstance(node, Group) and node.nodes is not None and node.when is None and node.on_error == "fail"


def on_page(leaf: Leaf) -> bool:
    """Whether a leaf looks at the page."""
    return leaf.touches_page or any(rule.kind != "expr" for rule in leaf.verify)


def digest(value: Json) -> str:
    """A short digest of a value: the same for the same value."""
    said = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def written(chain: Chain) -> str:
    """A name as a file has it."""
    return ".".join(str(each) for each in chain)


def _source(chain: Chain, bound: set[str], given: set[str], ids: set[str]) -> Chain | None:
    """How much of what is read tells where it comes from; None for what the node has by itself."""
    root = str(chain[0])
    match root:
        case "secrets":
            return None
        case "inputs" | "vars":
            return None if root == "vars" and len(chain) > 1 and chain[1] in given else chain[:2]
        case "run":
            facts = len(chain) > 2 and chain[1] in FACTS and chain[2] not in ids
            return chain[:3] if facts else None
        case _:
            return None if root in bound else chain[:1]


def _below(unit: NodeSource) -> Iterator[NodeSource]:
    yield unit
    for each in (*(subagent for _path, block in unit.blocks for subagent in block), *unit.confirm):
        yield from _below(each)


def _leaves(file: workflow.Loaded, node: Node) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    for _field, block in node.blocks():
        for each in block:
            yield from _leaves(file, each)
    if (callee := file.callees.get(node.id)) is not None:
        for each in callee.workflow.nodes:
            yield from _leaves(callee, each)


_NUMBER = re.compile(r"[0-9]{1,6}")


_RANGE = re.compile(r"([0-9]{1,6})\s*[-–]\s*([0-9]{1,6})")


LONGEST = 2_000
"""Characters of a selection."""


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Nodes that are meant."""

    ids: tuple[str, ...]
    """In the order of the file, each once. What stands in a container that is meant is not named beside it."""
    items: dict[str, str]
    """The turns that step paths have named, by the ids of their loops: a key, or a number."""


def chosen(text: str, places: NodeMap) -> Selection:
    """The nodes that a text means. Raises ModelError ``node-unknown`` for what means none, with what was meant."""
    text = text.strip()[: LONGEST + 1]
    if not text or len(text) > LONGEST:
        raise _unknown(
            f"`{text[:40]}` is no selection", "say `all`, positions (`1-3,10`), ids, `login..submit`, or step paths"
        )
    if text == "all":
        return Selection(tuple(each.id for each in places.in_order if not each.around), {})
    found: dict[str, None] = {}
    items: dict[str, str] = {}
    for part in filter(None, map(str.strip, _parts(text))):
        for each in _part(part, places, items):
            found[each.id] = None
    if not found:
        raise _unknown(
            f"`{text[:40]}` names no node", "say `all`, positions (`1-3,10`), ids, `login..submit`, or step paths"
        )
    ids = tuple(each.id for each in places.in_order if each.id in found and not any(o.id in found for o in each.around))
    return Selection(ids, items)


def _parts(text: str) -> list[str]:
    """The text at its commas; a key may hold one."""
    return re.split(r",(?![^\[]*\])", text)


def _part(part: str, places: NodeMap, items: dict[str, str]) -> list[NodePlace]:
    if (numbers := _RANGE.fullmatch(part)) is not None:
        last_one = next((each for each in places.in_order if each.position == int(numbers[2])), None)
        end = _end(last_one, places) if last_one is not None else int(numbers[2])
        return _between(int(numbers[1]), end, places, part)
    first, dots, last = part.partition("..")
    if dots and "[" not in first:
        ends = [_one(each.strip(), places, items) for each in (first, last)]
        return _between(ends[0].position, _end(ends[1], places), places, part)
    return [_one(part, places, items)]


def _end(place: NodePlace, places: NodeMap) -> int:
    """The position of the last node in it."""
    return max(each.position for each in places.below(place.id))


def _between(first: int, last: int, places: NodeMap, said: str) -> list[NodePlace]:
    """The nodes from one position to another; of a container that goes on behind the last one only what comes before."""
    within = [each for each in places.in_order if first <= each.position <= last]
    if not within:
        turned = " the other way round" if first > last else ""
        raise _unknown(f"there is no node at {said[:80]}{turned}", f"the positions are 1 to {len(places.all)}")
    return [each for each in within if _end(each, places) <= last]


def _one(said: str, places: NodeMap, items: dict[str, str]) -> NodePlace:
    """The node of a position, an id, or a step path."""
    if _NUMBER.fullmatch(said):
        found = next((each for each in places.all.values() if each.position == int(said)), None)
    else:
        name = re.sub(r"\[[^\]]*\]", "", said).rpartition("/")[2]
        found = places.all.get(name)
        if found is not None and "/" in said:
            _take_items(said, found, places, items)
    if found is None:
        close = errors.near(said, places.all)
        fix = (
            f"did you mean `{close}`?"
            if close
            else f"the positions are 1 to {len(places.all)}; the outline has the ids"
        )
        raise _unknown(f"there is no node `{said[:80]}`", fix)
    if found.confirms:
        owner = found.around[-1].id
        raise _unknown(
            f"`{found.id}` belongs to the `confirm` of `{owner}`, and is run only where it must be found out whether that was done",
            f"take `{owner}`, or try the look as a node of its own",
        )
    return found


def _take_items(said: str, place: NodePlace, places: NodeMap, items: dict[str, str]) -> None:
    """Note the turns that a step path names. Raises ModelError ``node-unknown`` where the node stands elsewhere."""
    bare = re.sub(r"\[[^\]]*\]", "", said)
    there = places.path(place.id)
    if bare != there:
        raise _unknown(f"there is no step `{said[:80]}`", f"`{place.id}` stands at `{there}`")
    for loop, segment in places.items_in(said).items():
        inside = segment.strip("[]")
        items[loop] = inside.removeprefix("#")


def _unknown(what: str, fix: str) -> ModelError:
    return ModelError("node-unknown", what, fix=fix)
