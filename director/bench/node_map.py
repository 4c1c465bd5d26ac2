"""Maps a draft for the bench: the place of each node, what it reads, its action, and the nodes before it. Pure."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from director.effects import effects
from nodes import errors
from nodes.base import Leaf, Node
from nodes.errors import ModelError
from nodes.group import Group
from nodes.handle import Handle
from nodes.iterate import Iterate
from nodes.values import Json
from runtime.language import workflow
from runtime.language.checks.declarations import variables_of
from runtime.language.expressions.names_read import Chain
from runtime.language.node_tree import Anatomy
from runtime.recovery.compatibility import JUDGED
from runtime.runs import single_node

CHECKS = ("verify", "confirm")
FACTS = ("errors", "taken", "failures")
Items = Mapping[str, str]
"""The selected item of each loop around a node, by loop id, as in a step path: ``[#1007]``."""

NO_ITEMS: Items = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Read:
    chain: Chain
    """The part of a reference that names its source: an id, ``inputs`` or ``vars`` with a name, ``run`` with a fact and an id."""
    guarded: bool  # True if its absence is no error


@dataclasses.dataclass(frozen=True, slots=True)
class NodePlace:
    node: Node
    position: int
    around: tuple[Node, ...]  # the containers around it, outermost first
    confirms: bool  # True if it belongs to a ``confirm``; nothing else runs it

    @property
    def id(self) -> str:
        return self.node.id

    @property
    def loops(self) -> list[Iterate]:
        """Outermost first."""
        return [each for each in self.around if isinstance(each, Iterate)]

    def key(self, items: Items) -> str:
        """Return its id with its items. Moving the node into a group does not change the key."""
        return self.id + "".join(items.get(each.id, "") for each in self.loops)


class NodeMap:
    """The nodes of a draft, by id, in file order."""

    def __init__(self, loaded: workflow.Loaded, positions: Mapping[str, int]) -> None:
        self.loaded = loaded
        self.all: dict[str, NodePlace] = {}
        for each, (node, around) in loaded.index.items():
            confirms = any(isinstance(outer, Leaf) for outer in around)
            self.all[each] = NodePlace(node, positions[each], around, confirms)
        self.in_order: list[NodePlace] = sorted(
            (each for each in self.all.values() if not each.confirms), key=lambda each: each.position
        )
        self._anatomy = Anatomy(loaded.document.data, workflow.Workflow)
        self._units = {unit.id: unit for unit in self._anatomy.every_unit() if unit.id}
        self._reads: dict[str, list[Read]] = {}
        self._prints: dict[str, str] = {}

    def __getitem__(self, node_id: str) -> NodePlace:
        return self.all[node_id]

    def path(self, node_id: str, items: Items = NO_ITEMS) -> str:
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
        found: dict[str, str] = {}
        for step in path.split("/")[:-1]:
            name, bracket, rest = step.partition("[")
            if bracket and name in self.all and isinstance(self.all[name].node, Iterate):
                found[name] = bracket + rest
        return found

    def below(self, node_id: str) -> Iterator[NodePlace]:
        return (each for each in self.in_order if each.id == node_id or any(o.id == node_id for o in each.around))

    def acts(self, place: NodePlace) -> bool:
        """Return whether a node must not be repeated unasked: it has a side effect, or asks a model."""
        return any(effects.changes(leaf) or leaf.asks is not None for leaf in self.leaves(place))

    def _block(self, place: NodePlace) -> Sequence[Node]:
        if not place.around:
            return self.loaded.workflow.nodes
        return next(block for _field, block in place.around[-1].blocks() if any(each is place.node for each in block))

    # The nodes before.

    def before(self, node_id: str, items: Items) -> list[tuple[NodePlace, str]]:
        """Return the page-changing nodes before a node, in order, each with its key. A container other than a group is one node.

        For loops around the node only the given item counts; for a ``route`` or ``handle``, only the node's own block.
        """
        place = self.all[node_id]
        found: list[tuple[NodePlace, str]] = []
        for level in (*(self.all[each.id] for each in place.around), place):
            for node in self._block(level):
                if node is level.node:
                    break
                found += self._units_of(self.all[node.id], items)
        return found

    def up_to(self, node_id: str, items: Items) -> list[tuple[NodePlace, str]]:
        return [*self.before(node_id, items), *self._units_of(self.all[node_id], items)]

    def is_unit(self, place: NodePlace, within: Sequence[Node] = ()) -> bool:
        """Return whether the node changes the page, does more than group, and is in no such container but those in ``within``."""
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
        """Yield the leaves of a node, with those of files that it uses."""
        return _leaves(self.loaded, place.node)

    def changes_page(self, place: NodePlace) -> bool:
        return any(leaf.moves_page for leaf in self.leaves(place))

    def on_page(self, place: NodePlace) -> bool:
        return any(leaf.touches_page or any(rule.kind != "expr" for rule in leaf.verify) for leaf in self.leaves(place))

    def action_digest(self, node_id: str) -> str:
        """Return a digest of the node and the nodes in it, without their checks and descriptions."""
        if node_id not in self._prints:
            said: list[str] = []
            for each in self.below(node_id):
                said.append(f"{each.id} {workflow.fingerprint(each.node, JUDGED)}")
                callee = self.loaded.callees.get(each.id)
                said += [file.text for file in (callee.files() if callee is not None else ())]
            self._prints[node_id] = digest(list[Json](said))
        return self._prints[node_id]

    def checks(self, node_id: str) -> dict[str, str]:
        """Return digests of the ``verify`` and the ``confirm`` of the node and the nodes in it, by field, if there are any."""
        found: dict[str, list[Json]] = {}
        for leaf in self.leaves(self.all[node_id]):
            written = workflow.plain(leaf)
            for field in filter(written.get, CHECKS):
                found.setdefault(field, []).append([leaf.id, written[field]])
        return {field: digest(each) for field, each in found.items()}

    def reads(self, node_id: str) -> list[Read]:
        """Return what the node and the nodes in it read from outside, in file order; items and ``loop`` of outer loops included."""
        if node_id not in self._reads:
            self._reads[node_id] = list(self._read(self.all[node_id]))
        return self._reads[node_id]

    def _read(self, place: NodePlace) -> Iterator[Read]:
        ids = {each.id for each in self.below(place.id)}
        unit = self._units[place.id]
        bound = single_node.bound(unit)
        given = {name for each in single_node.below(unit) for name in variables_of(each)}
        found: dict[Chain, bool] = {}
        for slot, known in single_node.references(self.loaded, self._anatomy, unit, on_page=self.on_page(place)):
            for use in self.loaded.templates[slot.text].names:
                if (chain := _source(use.chain, bound, given, ids)) is not None:
                    found[chain] = found.get(chain, True) and use.sure_of(use.chain[: len(chain)], known)
        # A name in SQL may be a table or a column: it counts as a table if an earlier node has that name.
        earlier = {each.id for each in self.in_order if each.position < place.position} - {"inputs", "vars"}
        for statement in (str(getattr(each.node, "sql", None) or "") for each in self.below(place.id)):
            for name in effects.names_in_sql(statement):
                if name[0] in earlier or (name[0] in ("inputs", "vars") and len(name) > 1):
                    chain = _source(name, bound, given, ids)
                    found |= {chain: found.get(chain, True)} if chain is not None else {}
        yield from (Read(chain, guarded) for chain, guarded in found.items())

    def reads_of_list(self, loop: str) -> list[Read]:
        unit = self._units[loop]
        over = [slot.text for slot in unit.slots if slot.field in ("over", "limit", "key")]
        uses = [use for text in over for use in self.loaded.templates[text].names]
        own = {name for name in (unit.text("as"),) if name}
        chains = [(_source(use.chain, own, set(), set()), use) for use in uses]
        return [Read(chain, use.sure_of(use.chain[: len(chain)])) for chain, use in chains if chain is not None]

    @functools.cached_property
    def setters(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in self.in_order:
            for name in variables_of(self._units[each.id]):
                found.setdefault(name, []).append(each.id)
        return found


def transparent(node: Node) -> bool:
    """Return whether a container only groups its nodes, which do the same without it."""
    return isinstance(node, Group) and node.nodes is not None and node.when is None and node.on_error == "fail"


def bound_by(place: NodePlace) -> set[str]:
    names = {name for each in place.loops if each.as_ for name in (each.as_, f"{each.as_}_loop")}
    return names | ({"loop"} if place.loops else set())


def digest(value: Json) -> str:
    said = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def written(chain: Chain) -> str:
    return ".".join(str(each) for each in chain)


def _source(chain: Chain, bound: set[str], given: set[str], ids: set[str]) -> Chain | None:
    """Return the part of a reference that names its source; None if the node itself provides it."""
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


def _leaves(file: workflow.Loaded, node: Node) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    for _field, block in node.blocks():
        for each in block:
            yield from _leaves(file, each)
    if (callee := file.callees.get(node.id)) is not None:
        for each in callee.workflow.nodes:
            yield from _leaves(callee, each)


# Selections.

LONGEST = 2_000
HOW = "say `all`, positions (`1-3,10`), ids, `login..submit`, or step paths"

_NUMBER = re.compile(r"[0-9]{1,6}")
_RANGE = re.compile(r"([0-9]{1,6})\s*[-–]\s*([0-9]{1,6})")
_KEYS = re.compile(r"\[[^\]]*\]")


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    ids: tuple[str, ...]
    """In file order, each once. Nodes in a selected container are not listed separately."""
    items: dict[str, str]  # the items in step paths, by loop id: a key, or a number
    left_out: str = ""  # why named nodes are not among them; empty if all are


def select(text: str, places: NodeMap) -> Selection:
    """Return the nodes that a text selects. Raises ModelError ``node-unknown`` if it selects none, with the closest id."""
    text = text.strip()[: LONGEST + 1]
    if not text or len(text) > LONGEST:
        raise _unknown(f"`{text[:40]}` is no selection", HOW)
    if text == "all":
        return Selection(tuple(each.id for each in places.in_order if not each.around), {})
    items: dict[str, str] = {}
    # A comma in a key separates nothing.
    parts = filter(None, map(str.strip, re.split(r",(?![^\[]*\])", text)))
    named = [each for part in parts for each in _part(part, places, items)]
    if not named:
        raise _unknown(f"`{text[:40]}` names no node", HOW)
    found = {each.id for each in named if not each.confirms}
    left_out = _only_in_confirm([each for each in named if each.confirms])
    if not found:
        raise _unknown(
            left_out, f"`run_draft`, or take `{next(each.id for each in named[0].around if isinstance(each, Leaf))}`"
        )
    ids = tuple(each.id for each in places.in_order if each.id in found and not any(o.id in found for o in each.around))
    return Selection(ids, items, f"left out: {left_out}: `run_draft`" if left_out else "")


def _only_in_confirm(places: Sequence[NodePlace]) -> str:
    """Return why these nodes of a ``confirm`` are not run alone; empty if there are none."""
    ids = ", ".join(f"`{each}`" for each in dict.fromkeys(each.id for each in places))
    return f"{ids}: nodes of a `confirm` are tried with their action" if ids else ""


def _part(part: str, places: NodeMap, items: dict[str, str]) -> list[NodePlace]:
    first, dots, last = part.partition("..")
    if (numbers := _RANGE.fullmatch(part)) is not None:
        begin, end = int(numbers[1]), int(numbers[2])
        end = next((_end(each, places) for each in places.in_order if each.position == end), end)
    elif dots and "[" not in first:
        one, other = (_one(each.strip(), places, items) for each in (first, last))
        begin, end = one.position, _end(other, places)
    else:
        return [_one(part, places, items)]
    within = [each for each in places.in_order if begin <= each.position <= end]
    if not within and (confirms := [each for each in places.all.values() if begin <= each.position <= end]):
        return confirms
    if not within:
        turned = " the other way round" if begin > end else ""
        raise _unknown(f"there is no node at {part[:80]}{turned}", f"the positions are 1 to {len(places.all)}")
    # A container that extends beyond the range is left out; its nodes within the range are kept.
    return [each for each in within if _end(each, places) <= end]


def _end(place: NodePlace, places: NodeMap) -> int:
    return max((each.position for each in places.below(place.id)), default=place.position)


def _one(said: str, places: NodeMap, items: dict[str, str]) -> NodePlace:
    bare = _KEYS.sub("", said)
    if _NUMBER.fullmatch(said):
        found = next((each for each in places.all.values() if each.position == int(said)), None)
    else:
        found = places.all.get(bare.rpartition("/")[2])
    if found is None:
        close = errors.near(said, places.all)
        positions = f"the positions are 1 to {len(places.all)}; the outline has the ids"
        raise _unknown(f"there is no node `{said[:80]}`", f"did you mean `{close}`?" if close else positions)
    if "/" in said and not found.confirms:
        if bare != (there := places.path(found.id)):
            raise _unknown(f"there is no step `{said[:80]}`", f"the path of `{found.id}` is `{there}`")
        for loop, segment in places.items_in(said).items():
            items[loop] = segment.strip("[]").removeprefix("#")
    return found


def _unknown(what: str, fix: str) -> ModelError:
    return ModelError("node-unknown", what, fix=fix)
