"""What the bench knows of the draft: its nodes, the last good value of each, the states between them, and what of that still counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.bench import states
from director.bench.node_map import Places, written
from director.bench.records import Judge, Record
from director.draft import layout
from director.proving import draft_runs
from nodes.values import Json
from runtime.language import workflow
from runtime.log import entries

if TYPE_CHECKING:
    from director.tools.build_context import Workshop


class Known:
    """Reads it from the session's log once it is asked for, and keeps what comes."""

    def __init__(self, shop: Workshop, private: Path) -> None:
        """``private`` is the bench's own folder; nothing is read yet."""
        self._shop, self._private = shop, private
        self._records: dict[str, Record] | None = None
        self._states: states.States | None = None
        self._places: tuple[str, Places] | None = None

    @property
    def places(self) -> Places:
        """The draft's nodes, as the bench sees them. Raises ModelError ``draft-missing``, WorkflowInvalid."""
        draft = self._shop.desk.draft
        text = draft.text if draft is not None else ""
        if draft is None or self._places is None or self._places[0] != text:
            # Files beside it are those of the place where it will be left.
            loaded = draft_runs.as_saved(self._shop)
            positions = {each.id: each.position for each in layout.Layout(loaded.document).nodes}
            self._places = (text, Places(loaded, positions))
        return self._places[1]

    @property
    def records(self) -> dict[str, Record]:
        """What came of each node the last time that it ended well, by key."""
        if self._records is None:
            history = self._shop.desk.history
            self._records = {}
            for name in history.names_of("bench"):
                found = history.latest("bench", name)
                if found is not None and not name.startswith(states.MARK):
                    data = self._shop.pen.value_of(found)
                    self._records[name] = Record.of(data, masked=found.masked is True)
        return self._records

    @property
    def states(self) -> states.States:
        """The states that were kept."""
        if self._states is None:
            self._states = states.States(self._shop.desk, self._private)
        return self._states

    def keep(self, record: Record, reason: str) -> None:
        """Take what came of a node in the place of what came of it before."""
        self.records[record.done.key] = record
        version = entries.Version(of="bench", name=record.done.key, number=0, reason=reason, by="model")
        self._shop.desk.keep(version, record.as_json())

    def judge(
        self, places: Places, inputs: Mapping[str, Json] | None = None, pins: Mapping[str, Json] | None = None
    ) -> Judge:
        """Judges what is known, for these inputs and pins, or those that the person gave. Raises UsageError for inputs that do not fit."""
        if inputs is None:
            inputs = places.loaded.check_inputs(self.given(places.loaded))
        return Judge(places, self.records, inputs, self.pins(places) if pins is None else pins)

    def pins(self, places: Places) -> dict[str, Json]:
        """The session's variables that are called like something that a node reads."""
        items = {loop.as_ for place in places.in_order for loop in place.loops if loop.as_}
        return {
            name: value
            for name, value in self._shop.desk.variables.all().items()
            if name in places.all or name in items or name == "error" or name.startswith("vars.")
        }

    def pinned(self, places: Places, ids: Sequence[str]) -> list[str]:
        """What is said of pins that these nodes read."""
        read = {written(each.chain) for node_id in ids for each in places.reads(node_id)}
        names = [f"`{each}`" for each in self.pins(places) if each in read]
        return [f"pinned by a variable of the session: {', '.join(names)}"] if names else []

    def given(self, loaded: workflow.Loaded) -> dict[str, Json]:
        """The inputs that the person gave, as far as the draft declares them."""
        declared = loaded.workflow.inputs
        return {name: each for name, each in self._shop.wish.inputs.items() if name in declared}
