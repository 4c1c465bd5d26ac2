"""What the engine is to a container node: it runs blocks, keeps decisions, opens the turns of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nodes.base import Container, Node
from nodes.errors import AuthorError
from nodes.part import Part
from nodes.ports import Item, escaped
from nodes.values import Json
from runtime import events, frames, steps

if TYPE_CHECKING:
    from runtime.engine import ExecutionEngine


class Blocks:
    """A container's view of the engine (``nodes.ports.BlockContext``)."""

    def __init__(self, engine: ExecutionEngine, node: Container, frame: frames.Frame, path: str, *, unit: bool) -> None:
        """``unit`` tells whether leaves in the container's blocks are no commit points of their own."""
        self._engine = engine
        self._node = node
        self._frame = frame
        self._path = path
        self._unit = unit
        self.lost = False
        """Whether a finished item's value held a secret, so that it is not known any more."""
        self._clock = steps.RecordedClock(engine.history.recorded(path))

    def render(self, part: Part, field: str, **bound: Json) -> Json:
        """The value of a field, with ``bound`` names in scope too."""
        frame = frames.Frame(self._frame, bound) if bound else self._frame
        return self._engine.render(part, field, frame, self._path, clock=self._clock)

    def decide(self, evaluate: Callable[[], Json]) -> Json:
        """The recorded decision, or the one made now. One that held a secret is made again: a mask is never used as a value."""
        engine = self._engine
        state = engine.history.scopes.get(self._path)
        if state is not None and state.decided is not None and not state.decided.masked:
            return engine.journal.value_of(state.decided)
        if state is not None and state.stale is not None and not state.stale.masked:
            old = engine.journal.value_of(state.stale)
            decision = self._renewed(old, evaluate) if any(key is not None for key in old["keys"]) else old
        else:
            decision = evaluate()
        if not self._engine.settling:
            self._engine.journal.scope(
                self._path, "decided", self._node.type, value=decision, recorded=self._clock.given or None
            )
        return decision

    def _renewed(self, old: Json, evaluate: Callable[[], Json]) -> Json:
        """The list of a loop whose maker is done again. Items that were begun stay, with what they were, also where the site lists them no more."""
        engine, new = self._engine, evaluate()
        begun = [
            (item, key)
            for item, key in zip(old["items"], old["keys"], strict=True)
            if engine.history.begun(f"{self._path}[#{escaped(key)}]")
        ]
        kept = {str(key) for _item, key in begun}
        listed = {str(key) for key in new["keys"]}
        if gone := sorted(kept - listed):
            engine.tell(events.Said(f"{self._path}: no longer listed, and kept as they were begun: {', '.join(gone)}"))
        rest = [(item, key) for item, key in zip(new["items"], new["keys"], strict=True) if str(key) not in kept]
        return {"items": [item for item, _key in begun + rest], "keys": [key for _item, key in begun + rest]}

    async def block(self, nodes: Sequence[Node]) -> Json:
        """Run a block in the scope around the container."""
        return await self._engine.block(nodes, self._frame, self._path, unit=self._unit)

    async def item(self, nodes: Sequence[Node], item: Item) -> Json:
        """Run a block for one item; a finished item yields what it yielded."""
        engine, path = self._engine, f"{self._path}{item.segment}"
        if engine.journal.masker.touches(item.segment.encode()):
            raise AuthorError(
                "secret-in-key",
                "the `key` of an item holds a secret",
                mend="choose another key: it stands in every step path of the item",
            )
        engine.tell(events.LoopTurn(self._path, item.index, item.length, item.key))
        state = engine.history.scopes.get(path)
        if state is not None and state.committed is not None:
            if state.committed.masked:
                self.lost = True
                return None
            return engine.journal.value_of(state.committed)
        if state is None and not engine.settling:
            engine.journal.scope(path, "opened", "item")
        names: dict[str, Json] = {item.name: item.value, "loop": item.loop, f"{item.name}_loop": item.loop}
        value = await engine.block(nodes, frames.Frame(self._frame, names), path, unit=True)
        if not engine.settling:
            self.lost = self.lost or isinstance(value, frames.Lost)
            kept = {"masked": True} if isinstance(value, frames.Lost) else {"value": value}
            engine.journal.scope(path, "committed", "item", **kept)
            await engine.checkpoints.commit(engine.browser)
        return value

    def note_taken(self, branch: str | None) -> None:
        """Name the branch that was taken."""
        self._engine.facts["taken"][self._node.id] = branch
