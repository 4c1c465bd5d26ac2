"""A deed as it is asked for: what is done, on what, over which items, with which values; with any of that otherwise it is another one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from director import effects
from nodes.base import Leaf
from nodes.context import Context
from nodes.group import Group
from nodes.iterate import Iterate
from nodes.values import Json
from runtime.display.text import harmless
from runtime.language import workflow

MOST_READ = 8
"""Nodes of which a person is told that a deed reads them."""

LONGEST = 300
"""Characters of a field of a deed that a person is shown."""

AROUND = frozenset({"over", "while_", "until", "max", "limit"})
"""Fields of a loop that say for what the nodes in it are done."""

_NAMES = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@dataclasses.dataclass(frozen=True, slots=True)
class Rests:
    """What a deed rests on: with any of this otherwise it would be another one."""

    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The inputs that are read, with their values."""
    nodes: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """The nodes whose values are read, by id, as they stand in the file; also those that these read."""
    pins: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Values that were set by hand, by the names for which they stand."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deed:
    """A deed as it is asked for."""

    leaf: Leaf
    path: str
    """Without the keys of items."""
    around: Mapping[str, Json]
    """What the loops around it go over, by their ids."""
    rests: Rests
    """What its fields and those around it read."""
    opened: Json = None
    """The address that the file opens last before it."""
    place: str = ""
    """The call that wants it, where it is asked for each time."""

    @property
    def key(self) -> str:
        """A digest of all that a yes is for."""
        rests = dataclasses.asdict(self.rests)
        said = [self.path, self.place, effects.core(self.leaf), dict(self.around), rests, self.opened]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def is_agent(self) -> bool:
        """Whether it is a model that does deeds of its own."""
        return self.leaf.asks == "agent"


def deed(loaded: workflow.Loaded | None, leaf: Leaf, path: str, known: Rests, place: str) -> Deed:
    """The deed that a step of the file does, or one that stands in no file; ``known`` are all inputs, and all values set by hand."""
    found = loaded.find(path) if loaded is not None else None
    if loaded is None or found is None or found.node.id != leaf.id:
        return Deed(leaf, effects.key_of(loaded, path), {}, Rests(), place=place)
    around: dict[str, Json] = {}
    for each in found.around:
        if isinstance(each, Iterate):
            told = each.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=set(AROUND))
            around[each.id] = told["over"] if list(told) == ["over"] else told
        elif isinstance(each, Group) and each.use is not None:
            around[each.id] = each.model_dump(mode="json", by_alias=True, include={"use", "with_"})
    opened = _opened_before(found)
    rests = _rests(loaded, [effects.core(leaf), around, opened], known)
    return Deed(leaf, effects.key_of(loaded, path), around, rests, opened, place)


def _opened_before(found: workflow.Found) -> Json:
    """The address that is opened last before a step, in the order of its file."""
    last: Json = None
    for node in found.file.nodes():
        if node.id == found.node.id:
            break
        last = getattr(node, "url", None) or last
    return last


def _rests(loaded: workflow.Loaded, said: Json, known: Rests) -> Rests:
    """What these fields read, and what that reads in turn, in the file or in any that it uses; ``known`` are all inputs and all values set by hand.

    A name of one file is taken for that of another, too: at worst somebody is asked once more.
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
                # A statement of SQL names what it reads as its tables.
                for statement in _statements(nodes[node.id]):
                    pending += [tuple(each.split(".")) for each in _NAMES.findall(statement)]
    return Rests(inputs, nodes, {name: value for name, value in known.pins.items() if name in roots})


def _chains(files: Sequence[workflow.Loaded], said: Json) -> list[tuple[str, ...]]:
    """What these fields read: names, each with the keys behind it."""
    known = (file.templates[text] for text in effects.texts(said) for file in files if text in file.templates)
    return [tuple(map(str, use.chain)) for each in known for use in each.names]


def _statements(said: Json) -> Iterator[str]:
    """The statements of SQL in the fields of a node, those of the nodes in it too."""
    if isinstance(said, dict):
        for name, each in said.items():
            if name == "sql" and isinstance(each, str):
                yield each
            yield from _statements(each)
    elif isinstance(said, list):
        for each in said:
            yield from _statements(each)


def fields(leaf: Leaf) -> dict[str, Json]:
    """What a deed is given beside its target."""
    said: dict[str, Json] = leaf.model_dump(mode="json", by_alias=True, exclude_defaults=True, warnings=False)
    left_out = {*effects.NO_DEED_OF_AGENT, "id", "type", "action", "target", "goal", "effect"}
    fields = {name: each for name, each in said.items() if name not in left_out and not name.startswith("x-")}
    if leaf.asks == "agent":
        fields["goal"] = said.get("goal")
        fields["tools"] = ", ".join(getattr(leaf, "tools", ()))
    return fields


def one_line(value: Json) -> str:
    """A value as a person is shown it: in one line, and not all of a long one."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = harmless(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
