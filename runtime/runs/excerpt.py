"""Some nodes of a workflow, run in order as one run, with given values, in the browser as it is.

It is a separate run in the log, made by the engine's step code, and is never resumed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from nodes.base import Node
from nodes.errors import UsageError
from nodes.iterate import Iterate
from nodes.ports import Item, escaped
from nodes.values import Json
from runtime.engine import attempt, rendering, run_state, scopes
from runtime.engine import engine as engines
from runtime.language import workflow


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    node: Node
    path: str  # its step path, with the items of the loops around it
    bound: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Names that only this node sees: the item of a loop, and outputs of earlier nodes in the same iteration."""


Placed = Callable[[Mapping[str, Json]], Segment]
"""Makes a segment once everything before it has run, from the names known then. An earlier segment may make the list of a loop."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Excerpt:
    """The nodes to run and their inputs. Implements ``runtime.runs.start.Part``."""

    segments: Sequence[Segment | Placed]
    names: Sequence[str]  # names of the segments in reports of the run
    values: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Values by name, as earlier nodes would have given them."""
    variables: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    facts: Mapping[str, Mapping[str, Json]] = dataclasses.field(default_factory=dict[str, Mapping[str, Json]])
    """The content of ``run``: ``errors``, ``taken``, ``failures``, each by the id of a node."""
    watch: run_state.Watch | None = None
    withheld: dict[str, Json] | None = None
    """The prepared action, once one was withheld (``attempt.EffectWithheld.value``), secrets masked."""

    @property
    def header(self) -> dict[str, Json]:
        """The log's record of it. The given values are kept in the log of the run that made them."""
        given = sorted(self.values)
        return {"node": ", ".join(self.names), "nodes": list[Json](self.names), "given": list[Json](given)}

    async def run(self, engine: engines.ExecutionEngine) -> Json:
        """Run the segments in order and return the value of the last one that ran. The first failed or withheld one ends it."""
        root, program = engine.state.root, engine.state.root.program
        program.variables.update(self.variables)
        for kind, facts in self.facts.items():
            program.facts[kind] = {**program.facts.get(kind, {}), **facts}
        for name, given in self.values.items():
            root.bind(name, given)
        value: Json = None
        engine.state.watch = self.watch
        try:
            for each in self.segments:
                value = await self._piece(engine, each if isinstance(each, Segment) else each(root), value)
        except attempt.EffectWithheld as held:
            self.withheld = engine.state.writer.masker.json(held.value)
            raise
        finally:
            engine.state.watch = None
        engine.state.writer.scope("", "committed", "run", value=value)
        return value

    @staticmethod
    async def _piece(engine: engines.ExecutionEngine, segment: Segment, before: Json) -> Json:
        frame = scopes.Scope(engine.state.root, dict(segment.bound)) if segment.bound else engine.state.root
        # Values of an earlier run of this node do not count, even where `when` skips it now.
        engine.state.forget([segment.node], frame)
        value = await engine.block([segment.node], frame, segment.path.rpartition("/")[0], unit=True)
        return value if segment.node.id in frame.names else before


def turns(loaded: workflow.Loaded, loop: Iterate, names: Mapping[str, Json]) -> list[Item]:
    """Return the iterations of a loop over a list. A loop with a condition yields only the first, as their number is unknown.

    Raises AuthorError if the list or a key reads something missing, or the list is no list.
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
    """Return one iteration by key, or by number from 1; the first one if ``wanted`` is None. Raises UsageError ``item-unknown``."""
    if loop.over is None:
        number = int(wanted) if wanted is not None and wanted.isdecimal() and int(wanted) > 0 else 1
        return Item(loop.as_, number, number, None, None)
    if not listed:
        raise UsageError(
            "item-unknown", f"the list of `{loop.id}` is empty", fix="look at the node that makes the list"
        )
    if wanted is None:
        return listed[0]
    named = [each for each in listed if each.key is not None and wanted in (str(each.key), escaped(each.key))]
    if found := named or [each for each in listed if str(each.index) == wanted]:
        return found[0]
    raise UsageError(
        "item-unknown",
        f"`{loop.id}` has no item of that key or number",
        fix=f"give a number from 1 to {len(listed)}" + (", or a key" if loop.key is not None else ""),
    )
