"""Random small workflows, and one random change of each: the required outcome of a resume with the changed file."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from nodes.errors import UsageError
from nodes.targets import Target
from runtime import events
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log.writer import LogWriter
from tests.fakes import FakePage, FakeSite
from tests.rig import Killed, Rig

Spec = dict[str, Any]
"""A node as written in a file."""

Outcome = Literal["accepted", "refused", "over"]
"""``over``: the first run passed, so there was nothing to resume."""


class Page(FakePage):
    """A page that shows its address and the text typed on it, and records each action."""

    async def text(self, target: Target) -> str:
        name = str(target).removeprefix("css=")
        if name.startswith("done_"):
            done = {key_of(each) for each in self.browser.site.actions}
            return "yes" if name.removeprefix("done_") in done else "no"
        return f"{self.address} {sorted(self.filled.items())} {name}"


def key_of(target: str) -> str:
    """The name of the action, for any variant of its clicked target."""
    name, _, item = target.removeprefix("css=").partition("-")
    return f"{name.partition('~')[0]}-{item}"


async def take_up(_target: str, page: FakePage) -> None:
    """Submit the typed text by an action."""
    page.filled.clear()


class Author:
    """Writes a workflow, and changes it."""

    def __init__(self, chance: random.Random) -> None:
        """The same workflow for the same random numbers."""
        self.chance = chance
        self._count = 0

    def block(self, known: list[str], item: str, depth: int) -> list[Spec]:
        """Some nodes; ``known`` are the ids that they may read, ``item`` is the suffix of each action's name."""
        nodes: list[Spec] = []
        for _ in range(self.chance.randint(2, 6 if depth else 3)):
            kinds = ["goto", "fill", "click", "click", "value", "value", "text", "set", "loop", "group", "route"]
            nodes.append(self.node(self.chance.choice(kinds[: None if depth else -3]), known, item, depth))
        return nodes

    def node(self, kind: str, known: list[str], item: str, depth: int) -> Spec:
        """A node of a kind."""
        self._count += 1
        name = f"{kind[0]}{self._count}"
        action: Spec = {"id": name, "type": "browser_action"}
        match kind:
            case "goto":
                made = {**action, "action": "goto", "url": f"http://shop.test/{name}"}
            case "fill":
                made = {**action, "action": "fill", "target": {"css": name}, "value": self.read(known, name)}
            case "click":
                look = {
                    "id": f"look_{name}",
                    "type": "browser_query",
                    "query": "text",
                    "target": {"css": f"done_{name}-{item}"},
                }
                confirm = {"settle": 0, "nodes": [look], "done": f"{{{{ look_{name} == 'yes' }}}}"}
                made = {**action, "action": "click", "target": {"css": f"{name}-{item}"}, "confirm": confirm}
            case "text":
                made = {"id": name, "type": "browser_query", "query": "text", "target": {"css": name}}
            case "set":
                made = {"id": name, "type": "context", "set": {"n": "{{ vars.n + 1 }}"}}
            case "loop":
                turns = self.block(list(known), f"{item}{{{{ {name}o }}}}", depth - 1)
                made = {
                    "id": name,
                    "type": "iterate",
                    "over": ["a", "b"],
                    "as": f"{name}o",
                    "key": f"{{{{ {name}o }}}}",
                    "nodes": turns,
                }
            case "group":
                made = {"id": name, "type": "group", "nodes": self.block(known, item, depth - 1)}
            case "route":
                branch = {
                    "name": f"{name}_odd",
                    "when": "{{ vars.n % 2 == 1 }}",
                    "nodes": self.block(list(known), item, depth - 1),
                }
                made = {
                    "id": name,
                    "type": "route",
                    "branches": [branch],
                    "otherwise": self.block(list(known), item, depth - 1),
                }
            case _:
                made = {"id": name, "type": "transform", "expr": self.read(known, name)}
        if self.chance.random() < 0.08:
            made["when"] = "{{ vars.n % 2 == 0 }}"
        else:
            known.append(name)
        return made

    def read(self, known: list[str], name: str) -> str:
        """A text with a known reference in it."""
        source = self.chance.choice([*known[-3:], "vars.n"])
        return f"{name} {{{{ {source} | json }}}}" if self.chance.random() < 0.7 else name

    # Changes.

    def change(self, nodes: list[Spec]) -> None:
        """One change, somewhere."""
        blocks = list(blocks_of(nodes))
        block = self.chance.choice([each for each in blocks if each])
        place = self.chance.randrange(len(block))
        ways = [self.alter] * 5 + [self.remove, self.insert, self.insert, self.rename, self.swap, self.wrap, self.guard]
        self.chance.choice(ways)(block, place)

    def alter(self, block: list[Spec], place: int) -> None:
        """Change the action of a node."""
        node = block[place]
        match node["type"], node.get("action"):
            case "browser_action", "goto":
                node["url"] += "x"
            case "browser_action", "fill":
                field = self.chance.choice(["value", "target"])
                node[field] = f"{node['value']}x" if field == "value" else {"css": f"{node['id']}x"}
            case "browser_action", _:
                if self.chance.random() < 0.5:
                    node["timeout"] = 5
                else:
                    node["target"] = {"css": node["target"]["css"].replace("-", "~x-", 1)}
            case "browser_query", _:
                node["target"] = {"css": f"{node['id']}x"}
            case "transform", _:
                node["expr"] = f"{node['expr']}x"
            case "context", _:
                node["set"] = {"n": "{{ vars.n + 2 }}"}
            case "iterate", _:
                node["over"] = self.chance.choice([["a"], ["b", "a"], ["a", "b", "c"]])
            case "route", _:
                node["branches"][0]["when"] = "{{ vars.n % 2 == 0 }}"
            case _:
                node["value"] = "x"

    def remove(self, block: list[Spec], place: int) -> None:
        """Take a node out."""
        del block[place]

    def insert(self, block: list[Spec], place: int) -> None:
        """Put a node in."""
        kind = self.chance.choice(["goto", "fill", "value", "text", "set"])
        self._count += 100
        block.insert(place + self.chance.randint(0, 1), self.node(kind, [], "", 0))

    def rename(self, block: list[Spec], place: int) -> None:
        """Rename a node."""
        block[place]["id"] += "new"

    def swap(self, block: list[Spec], place: int) -> None:
        """Swap a node with its neighbour."""
        other = max(0, place - 1)
        block[place], block[other] = block[other], block[place]

    def wrap(self, block: list[Spec], place: int) -> None:
        """Put a node into a group."""
        block[place] = {"id": "wrapped", "type": "group", "nodes": [block[place]]}

    def guard(self, block: list[Spec], place: int) -> None:
        """Change the condition of a node."""
        block[place]["when"] = self.chance.choice(["{{ vars.n % 2 == 0 }}", "{{ vars.n >= 0 }}"])


def blocks_of(nodes: list[Spec]) -> Iterator[list[Spec]]:
    """Every block of nodes, except ``confirm``."""
    yield nodes
    for node in nodes:
        inner = [node.get("nodes"), node.get("otherwise"), *(each["nodes"] for each in node.get("branches", ()))]
        for block in inner:
            if block is not None:
                yield from blocks_of(block)


def text_of(nodes: list[Spec], output: list[str]) -> str:
    """A file of these nodes; the first sets their counter variable."""
    first: Spec = {"id": "first", "type": "context", "set": {"n": 0}}
    shown = [f"{{{{ {name} | default('-') }}}}" for name in output]
    return json.dumps({"version": 1, "name": "any", "nodes": [first, *nodes], "output": [*shown, "{{ vars.n }}"]})


def ids_of(nodes: list[Spec]) -> list[str]:
    """The ids at the top, and in the groups there."""
    return [each["id"] for each in nodes] + [
        name for each in nodes if each["type"] == "group" for name in ids_of(each["nodes"])
    ]


@dataclasses.dataclass
class Case:
    """A workflow, a change of it, and the end of its first run."""

    text: str
    changed: str
    line: int
    """The line of the log before which it is killed."""
    missing: set[str]
    """Elements missing in the first run, so that it fails there."""
    survives: bool


def case_of(seed: int) -> Case | None:
    """The case of a seed; None where the changed file would be invalid."""
    chance = random.Random(seed)
    author = Author(chance)
    nodes = author.block([], "", 1)
    changed = copy.deepcopy(nodes)
    for _ in range(chance.choice([1, 1, 1, 2])):
        author.change(changed)
    # Names that were renamed or removed are shown by neither.
    output = sorted(set(ids_of(nodes)) & set(ids_of(changed)))
    text, now = text_of(nodes, output), text_of(changed, output)
    for each in (text, now):
        try:
            reader.parse(each, "test.yaml")
        except WorkflowInvalid:
            return None
    fills = [node["target"]["css"] for block in blocks_of(nodes) for node in block if node.get("action") == "fill"]
    missing = {f"css={chance.choice(fills)}"} if fills and chance.random() < 0.4 else set[str]()
    return Case(text, now, chance.randint(3, 40), missing, chance.random() < 0.5)


def site() -> FakeSite:
    """A shop without any actions yet."""
    return FakeSite(page=Page, on_click=take_up)


async def examine(case: Case, home: Path) -> Outcome:
    """Run, die or fail, resume with the changed file, and check the outcome."""
    fresh = Rig(home / "fresh", case.changed, site=site())
    wanted = await fresh.start()
    rig = Rig(home / "run", case.text, site=site(), missing=case.missing)
    if (first := await _first(rig, case)) is not None and first.status == "passed":
        return "over"
    rig.missing.clear()
    if rig.browser is not None:
        rig.browser.missing.clear()
    log = rig.store.conversation_file(rig.id)
    before = log.read_bytes()
    outcome: Outcome = "accepted"
    code, after = "", b""
    try:
        ended = await rig.resume_changed(case.changed)
    except UsageError as error:
        outcome = "refused"
        code, after = error.code, log.read_bytes()
        ended = await rig.resume()
    counted = collections.Counter(map(key_of, rig.site.actions))
    assert set(counted.values()) <= {1}, f"done twice: {counted}"
    if outcome == "accepted":
        assert (ended.status, ended.error) == (wanted.status, wanted.error)
        assert ended.output == wanted.output, "another output than that of a new run"
        assert _records(rig) == _records(fresh), "an action sent something else than in a new run"
    else:
        assert (code, after) == ("node-changed", before), "a refusal writes nothing"
        assert ended.status == "passed", ended
    return outcome


def _records(rig: Rig) -> dict[str, dict[str, str]]:
    """The fields that each action sent."""
    return {key_of(action): sent for action, sent in zip(rig.site.actions, rig.site.records, strict=True)}


async def _first(rig: Rig, case: Case) -> events.RunEnded | None:
    """The run until it ends, or is killed: then None. The remains of its process are as after a kill."""
    written = 0
    append = LogWriter._append

    def counted(self: LogWriter, entry: object) -> object:
        nonlocal written
        written += 1
        if written == case.line:
            raise Killed
        return append(self, entry)

    ended: events.RunEnded | None = None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LogWriter, "_append", counted)
        with contextlib.suppress(Killed):
            ended = await rig.start()
    writing = [task for task in asyncio.all_tasks() if "Checkpoints" in getattr(task.get_coro(), "__qualname__", "")]
    for task in writing:
        task.cancel()
    await asyncio.gather(*writing, return_exceptions=True)
    rig.die(browser_survives=case.survives and ended is None)
    return ended
