"""An excerpt: some nodes of a workflow, in order, as one run, with values for what they read and a state of the browser from which they go on.

It is a run of its own in the log, made by the engine's own step code, and it is never resumed.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nodes.base import Node
from nodes.errors import SetupError, UsageError
from nodes.iterate import Iterate
from nodes.ports import Item, escaped
from nodes.values import Json
from runtime.engine import attempt, rendering, run_state, scopes
from runtime.engine import engine as engines
from runtime.language import workflow
from runtime.system import regular_files

RESTORE_SECONDS = 30.0
"""How long the pages of a state may take to load."""


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """A node that is run by itself, at its place."""

    node: Node
    path: str
    """Its step path, with the items of the loops around it."""
    bound: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Names that hold for it only: the item of a loop, and what nodes before it yielded in the same turn."""

    @property
    def parent(self) -> str:
        """The path of the block in which it stands."""
        return self.path.rpartition("/")[0]


Placed = Callable[[Mapping[str, Json]], Segment]
"""Makes a piece once everything before it has run, of the names that there are by then: the list of a loop may be made by a piece before."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Excerpt:
    """What is run, and what it is given. Implements ``runtime.runs.start.Part``."""

    segments: Sequence[Segment | Placed]
    names: Sequence[str]
    """What the pieces are called where the run is told of."""
    values: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Values by name, as nodes before would have given them."""
    variables: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """What ``vars`` holds."""
    facts: Mapping[str, Mapping[str, Json]] = dataclasses.field(default_factory=dict[str, Mapping[str, Json]])
    """What ``run`` tells: ``errors``, ``taken``, ``failures``, each by the id of a node."""
    state: Path | None = None
    """The file of a captured state to which a fresh browser is brought first; None where it is as it should be."""
    watch: run_state.Watch | None = None
    held: dict[str, Json] | None = None
    """Once an action was held: what was ready (``attempt.EffectWithheld.as_value``), secrets masked."""

    @property
    def header(self) -> dict[str, Json]:
        """What the log says of it. The values that it is given stand in what gave them."""
        given = sorted(self.values)
        return {"node": ", ".join(self.names), "nodes": list[Json](self.names), "given": list[Json](given)}

    async def run(self, engine: engines.ExecutionEngine) -> Json:
        """Run the pieces in order; the value of the last one that ran. The first that fails, or is held, ends it."""
        root, program = engine.state.root, engine.state.root.program
        program.variables.update(self.variables)
        for kind, facts in self.facts.items():
            program.facts[kind] = {**program.facts.get(kind, {}), **facts}
        for name, given in self.values.items():
            root.bind(name, given)
        if self.state is not None:
            browser = await engine.state.need_browser()
            browser.bound(RESTORE_SECONDS)
            await browser.restore(await asyncio.to_thread(_state, self.state))
        value: Json = None
        engine.state.watch = self.watch
        try:
            for each in self.segments:
                value = await self._piece(engine, each if isinstance(each, Segment) else each(root), value)
        except attempt.EffectWithheld as held:
            self.held = engine.state.writer.masker.json(held.as_value())
            raise
        finally:
            engine.state.watch = None
        engine.state.writer.scope("", "committed", "run", value=value)
        return value

    @staticmethod
    async def _piece(engine: engines.ExecutionEngine, segment: Segment, before: Json) -> Json:
        frame = scopes.Scope(engine.state.root, dict(segment.bound)) if segment.bound else engine.state.root
        # What it yielded another time says nothing of this one, also where `when` passes it by.
        engine.state.forget([segment.node], frame)
        value = await engine.block([segment.node], frame, segment.parent, unit=True)
        return value if segment.node.id in frame.names else before


def turns(loaded: workflow.Loaded, loop: Iterate, names: Mapping[str, Json]) -> list[Item]:
    """The turns that a loop over a list has, given these names; of a loop with a condition the first one, for nobody knows how many there are.

    Raises AuthorError for what the list or a key reads and is not there, or is no list.
    """
    if loop.over is None:
        return [Item(loop.as_, 1, 1, None, None)]
    seen = rendering.RecordedClock([])

    def filled(field: str, value: Json, within: Mapping[str, Json]) -> Json:
        return rendering.coerce_field(loop, field, rendering.render_deep(value, loaded.templates, within, seen))

    listed: list[Json] = filled("over", loop.over, names)
    if loop.limit is not None:
        listed = listed[: filled("limit", loop.limit, names)]
    keys: list[Json] = [None] * len(listed)
    if loop.key is not None and loop.as_ is not None:
        keys = [filled("key", loop.key, {**names, loop.as_: each}) for each in listed]
    return [
        Item(loop.as_, value, index, len(listed), key)
        for index, (value, key) in enumerate(zip(listed, keys, strict=True), start=1)
    ]


def turn(loop: Iterate, listed: Sequence[Item], wanted: str | None) -> Item:
    """One of the turns: that of a key, or of a number from 1; the first, where none is named. Raises UsageError ``item-unknown``."""
    if loop.over is None:
        number = int(wanted) if wanted is not None and wanted.isdecimal() and int(wanted) > 0 else 1
        return Item(loop.as_, number, number, None, None)
    if not listed:
        raise UsageError(
            "item-unknown", f"the list of `{loop.id}` is empty", fix="look at the node that makes the list"
        )
    if wanted is None:
        return listed[0]
    named = next(
        (each for each in listed if each.key is not None and wanted in (str(each.key), escaped(each.key))), None
    )
    if named is None and wanted.isdecimal():
        named = next((each for each in listed if each.index == int(wanted)), None)
    if named is None:
        raise UsageError(
            "item-unknown",
            f"`{loop.id}` has no item of that key or number",
            fix=f"give a number from 1 to {len(listed)}" + (", or a key" if loop.key is not None else ""),
        )
    return named


def _state(file: Path) -> bytes:
    try:
        return regular_files.read(file)
    except OSError as error:
        raise SetupError(
            "checkpoint-unreadable",
            f"the state {file.name} cannot be read: {error.strerror or error}",
            fix="begin anew",
        ) from None
