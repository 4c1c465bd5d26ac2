"""A requested action: its target, items and values, and what leads to its page. If any of that differs, it is another action."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence

from director.effects import effects
from nodes.base import Leaf, Node
from nodes.context import Context
from nodes.group import Group
from nodes.values import Json
from runtime.display.text import harmless
from runtime.language import workflow

LONGEST = 300
OF_RESULT = effects.NO_ACTION | {"id", "type", "value", "collect"}
"""Fields of a container that do not decide if, for which items and how often its nodes run."""


@dataclasses.dataclass(frozen=True, slots=True)
class EffectRequest:
    """An action as it is requested, with references as in the file."""

    leaf: Leaf
    path: str  # without the keys of items
    place: str  # the requesting call, if the action is requested each time
    opened: Json = None  # the last address opened before the action
    steps: Sequence[Node] = ()  # the nodes since then that act on the page: fields filled in, elements clicked
    around: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The containers around it, by id, as far as they decide on it: lists of loops, conditions, used files."""
    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The inputs that all of the above reads, directly or through other nodes, with their values."""
    nodes: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The nodes that all of the above reads, directly or through other nodes, by id, as in the file."""
    pins: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Values set by hand, by the names that they replace."""

    @property
    def key(self) -> str:
        """A digest of everything that a yes covers."""
        said = [self.path, self.place, _written(self), dict(self.inputs), dict(self.nodes), dict(self.pins)]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def is_agent(self) -> bool:
        return self.leaf.asks == "agent"


def action(
    loaded: workflow.Loaded | None,
    leaf: Leaf,
    path: str,
    inputs: Mapping[str, Json],
    pins: Mapping[str, Json],
    place: str = "",
) -> EffectRequest:
    """Return the request for a step of the file, or for an action in no file; ``pins`` are all values set by hand."""
    found = loaded.find(path) if loaded is not None else None
    one = EffectRequest(leaf, effects.key_of(loaded, path), place)
    if loaded is None or found is None or found.node.id != leaf.id:
        return one
    opened, steps = _way(loaded, found)
    around = {each.id: _as_done(each) for each in found.around if isinstance(each, Node)}
    one = dataclasses.replace(
        one, opened=opened, steps=steps, around={name: each for name, each in around.items() if each}
    )
    return _with_sources(one, loaded, inputs, pins)


def _written(action: EffectRequest) -> Json:
    """Return the action, and the containers and steps that decide its target, as in the file."""
    steps: Json = [_as_done(each) for each in action.steps]
    return [effects.core(action.leaf), dict(action.around), action.opened, steps]


def _way(loaded: workflow.Loaded, found: workflow.Found) -> tuple[Json, list[Node]]:
    """Return the last address opened before a step, and the actions since: they decide its page and what is sent to the site."""
    opened: Json = None
    steps: list[Node] = []
    for node in found.file.nodes():
        if node.id == found.node.id:
            break
        if getattr(node, "action", None) in effects.OPENS:
            opened, steps = getattr(node, "url", None), []
        elif _acts(found.file, node):
            steps.append(node)
    user = loaded.find(found.user) if opened is None and found.user else None
    if user is None:
        return opened, steps
    # A used file that has opened no address works on the page of its user.
    opened, before = _way(loaded, user)
    return opened, [*before, *steps]


def _acts(file: workflow.Loaded, node: Node) -> bool:
    if isinstance(node, Leaf):
        return node.moves_page and not effects.confirms(file, node)
    return isinstance(node, Group) and node.use is not None


def _as_done(node: Node) -> dict[str, Json]:
    """Return the fields that define a node's action, without id and class; for a container, without its nodes."""
    if isinstance(node, Leaf):
        return {name: each for name, each in effects.core(node).items() if name not in ("id", "effect")}
    return workflow.plain(node, OF_RESULT)


def _with_sources(
    one: EffectRequest, loaded: workflow.Loaded, inputs: Mapping[str, Json], pins: Mapping[str, Json]
) -> EffectRequest:
    """Return the request with everything that its fields read, directly or through other nodes, in the file and the files it uses.

    A name also matches the same name in another file: at worst a person is asked once more.
    """
    files, roots = loaded.files(), set[str]()
    every = [node for file in files for node in file.nodes()]
    nodes: dict[str, Json] = {}
    read: dict[str, Json] = {}
    pending = _chains(files, _written(one))
    while pending:
        root, *keys = pending.pop()
        if root == "inputs":
            read |= {name: value for name, value in inputs.items() if not keys or name == keys[0]}
            continue
        roots |= {root, *keys[:1]} if root == "vars" else {root}
        for node in every:
            gives = isinstance(node, Context) if root == "vars" else node.id == root
            if gives and node.id not in nodes:
                nodes[node.id] = effects.without_checks(node)
                pending += _chains(files, nodes[node.id])
    pinned = {name: value for name, value in pins.items() if name in roots}
    return dataclasses.replace(one, inputs=read, nodes=nodes, pins=pinned)


def _chains(files: Sequence[workflow.Loaded], said: Json) -> list[tuple[str, ...]]:
    """Return the names that these fields read, each with the keys after it; every name of an SQL statement counts."""
    known = (file.templates[text] for text in effects.texts(said) for file in files if text in file.templates)
    return [
        *(tuple(map(str, use.chain)) for each in known for use in each.names),
        *itertools.chain.from_iterable(map(effects.names_in_sql, _statements(said))),
    ]


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
    """Return the inputs that decide a step's action, without those that only serve to sign in before it."""
    one = action(loaded, leaf, path, {}, {})
    secret = [any(chain[0] == "secrets" for chain in _chains(loaded.files(), _as_done(each))) for each in one.steps]
    signed = max((number for number, each in enumerate(secret, 1) if each), default=0)
    one = dataclasses.replace(one, steps=one.steps[signed:])
    return set(_with_sources(one, loaded, inputs, {}).inputs)


def one_line(value: Json) -> str:
    """Return a value as shown to a person: on one line, shortened if long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = harmless(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
