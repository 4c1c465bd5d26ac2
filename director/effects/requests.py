"""A requested action: what is done, on what, over which items, with which values. If any of that differs, it is another action."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from director.effects import effects
from nodes.base import Leaf, Node
from nodes.context import Context
from nodes.group import Group
from nodes.iterate import Iterate
from nodes.route import Route
from nodes.values import Json
from runtime.display.text import harmless
from runtime.language import workflow

LONGEST = 300
"""Limit of an action's field as shown to a person, in characters."""

AROUND = frozenset({"over", "while_", "until", "max", "limit"})
"""Fields of a loop that decide for which items its nodes are done."""

_NAMES = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@dataclasses.dataclass(frozen=True, slots=True)
class Rests:
    """Dependencies of an action: if any of them differs, it is another action."""

    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The inputs that are read, with their values."""
    nodes: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The nodes whose values are read, by id, as they are in the file; also the nodes that those read."""
    pins: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Values set by hand, by the names that they replace."""


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """The way to the page of an action, in the order of its file. It decides the page of the action, and what that page sends to the site."""

    opened: Json = None
    """The last address opened before the action."""
    steps: Sequence[Node] = ()
    """The actions on the page since then: fields filled in, elements clicked."""


@dataclasses.dataclass(frozen=True, slots=True)
class EffectRequest:
    """An action as it is requested."""

    leaf: Leaf
    path: str
    """Without the keys of items."""
    around: Mapping[str, Json]
    """The lists of the loops around it, by their ids."""
    rests: Rests
    """Dependencies of its fields and of those around it."""
    way: Way = dataclasses.field(default_factory=Way)
    only: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The conditions of the blocks around it, by the ids of their nodes."""
    place: str = ""
    """The requesting call, if the action is requested each time."""

    @property
    def key(self) -> str:
        """A digest of everything that a yes covers."""
        rests = dataclasses.asdict(self.rests)
        way = [self.way.opened, [_as_done(each) for each in self.way.steps]]
        said = [self.path, self.place, effects.core(self.leaf), dict(self.around), rests, way, dict(self.only)]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def is_agent(self) -> bool:
        """True if a model acts by itself in it."""
        return self.leaf.asks == "agent"


def action(loaded: workflow.Loaded | None, leaf: Leaf, path: str, known: Rests, place: str) -> EffectRequest:
    """Return the request for a step of the file, or for an action that is in no file; ``known`` are all inputs, and all values set by hand."""
    found = loaded.find(path) if loaded is not None else None
    if loaded is None or found is None or found.node.id != leaf.id:
        return EffectRequest(leaf, effects.key_of(loaded, path), {}, Rests(), place=place)
    around: dict[str, Json] = {}
    for each in found.around:
        if isinstance(each, Iterate):
            told = each.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=set(AROUND))
            around[each.id] = told["over"] if list(told) == ["over"] else told
        elif isinstance(each, Group) and each.use is not None:
            around[each.id] = _used(each)
    way, only = _way(loaded, found), _only(found)
    said: list[Json] = [effects.core(leaf), around, way.opened, [_as_done(each) for each in way.steps], only]
    return EffectRequest(leaf, effects.key_of(loaded, path), around, _rests(loaded, said, known), way, only, place)


def _way(loaded: workflow.Loaded, found: workflow.Found) -> Way:
    opened: Json = None
    steps: list[Node] = []
    for node in found.file.nodes():
        if node.id == found.node.id:
            break
        if getattr(node, "action", None) in effects.OPENS:
            opened, steps = getattr(node, "url", None), []
        elif _leads_on(found.file, node):
            steps.append(node)
    user = loaded.find(found.user) if opened is None and found.user else None
    if user is None:
        return Way(opened, steps)
    # A file that opens no address before works on the page of the file that uses it.
    before = _way(loaded, user)
    return Way(before.opened, [*before.steps, *steps])


def _leads_on(file: workflow.Loaded, node: Node) -> bool:
    """Return whether the page may be another one after the node."""
    if isinstance(node, Leaf):
        return node.moves_page and not effects.confirms(file, node)
    return isinstance(node, Group) and node.use is not None


def _as_done(node: Node) -> Json:
    """Return the action of a step on the way, without its name and its class."""
    if isinstance(node, Group):
        return _used(node)
    assert isinstance(node, Leaf)
    done: dict[str, Json] = effects.core(node)
    return {name: each for name, each in done.items() if name not in ("id", "effect")}


def _used(group: Group) -> Json:
    return group.model_dump(mode="json", by_alias=True, include={"use", "with_"})


def _only(found: workflow.Found) -> dict[str, Json]:
    """Return the conditions of the blocks around a step by node id; of a ``route`` those of its branch and of the branches before."""
    only: dict[str, Json] = {}
    for outer, inner in itertools.pairwise([*found.around, found.node]):
        if not isinstance(outer, Node):
            continue
        conditions = [outer.when] if outer.when is not None else []
        if isinstance(outer, Route):
            own = next(number for number, (_field, block) in enumerate(outer.blocks()) if inner in block)
            conditions += [each.when for each in outer.branches[: own + 1]]
        if conditions:
            only[outer.id] = [str(each) for each in conditions]
    return only


def _rests(loaded: workflow.Loaded, said: Json, known: Rests) -> Rests:
    """Return what these fields read, and what that reads in turn, in the file or in files that it uses.

    ``known`` are all inputs and all values set by hand. A name of one file also matches that of another: at worst a person is asked
    once more.
    """
    files, roots = loaded.files(), set[str]()
    every = [node for file in files for node in file.nodes()]
    nodes: dict[str, Json] = {}
    inputs: dict[str, Json] = {}
    pending = _chains(files, said)
    while pending:
        root, *keys = pending.pop()
        if root == "inputs":
            inputs |= {name: value for name, value in known.inputs.items() if not keys or name == keys[0]}
            continue
        roots |= {root, *keys[:1]} if root == "vars" else {root}
        for node in every:
            gives = isinstance(node, Context) if root == "vars" else node.id == root
            if gives and node.id not in nodes:
                nodes[node.id] = effects.without_checks(node)
                pending += _chains(files, nodes[node.id])
                # An SQL statement reads its tables.
                for statement in _statements(nodes[node.id]):
                    pending += [tuple(each.split(".")) for each in _NAMES.findall(statement)]
    return Rests(inputs, nodes, {name: value for name, value in known.pins.items() if name in roots})


def _chains(files: Sequence[workflow.Loaded], said: Json) -> list[tuple[str, ...]]:
    """Return what these fields read: names, each with the keys after it."""
    known = (file.templates[text] for text in effects.texts(said) for file in files if text in file.templates)
    return [tuple(map(str, use.chain)) for each in known for use in each.names]


def _statements(said: Json) -> Iterator[str]:
    """Yield the SQL statements in the fields of a node, nested nodes included."""
    if isinstance(said, dict):
        for name, each in said.items():
            if name == "sql" and isinstance(each, str):
                yield each
            yield from _statements(each)
    elif isinstance(said, list):
        for each in said:
            yield from _statements(each)


def decided_by(loaded: workflow.Loaded, leaf: Leaf, path: str, inputs: Mapping[str, Json]) -> set[str]:
    """Return the inputs that decide the target of a step's action, without those that only serve to sign in before it."""
    one = action(loaded, leaf, path, Rests(inputs), "")
    steps = list(map(_as_done, one.way.steps))
    signed = [
        number
        for number, each in enumerate(steps)
        if any(chain[0] == "secrets" for chain in _chains(loaded.files(), each))
    ]
    behind = steps[signed[-1] + 1 :] if signed else steps
    said: list[Json] = [effects.core(leaf), dict(one.around), one.way.opened, behind, dict(one.only)]
    return set(_rests(loaded, said, Rests(inputs)).inputs)


def one_line(value: Json) -> str:
    """Return a value as shown to a person: on one line, shortened if long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = harmless(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
