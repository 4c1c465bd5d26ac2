"""Results of the draft's nodes: the last good value of each, the states between them, and which of that is still valid."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.bench.node_map import NodeMap, digest, written
from director.bench.records import Done, FreshnessCheck, Lineage, Record
from director.draft import layout
from director.proving import draft_runs
from director.session.state import SessionState
from nodes.values import Json
from runtime.browser import port
from runtime.language import workflow
from runtime.log import entries
from runtime.system import files, regular_files

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext


class Results:
    """Reads results from the session's log on demand, and adds new ones."""

    def __init__(self, build: BuildContext, private: Path) -> None:
        """``private`` is the bench's own folder; nothing is read yet."""
        self._build, self._private = build, private
        self._records: dict[str, Record] | None = None
        self._states: States | None = None
        self._places: tuple[str, NodeMap] | None = None

    @property
    def places(self) -> NodeMap:
        """The draft's nodes, as the bench sees them. Raises ModelError ``draft-missing``, WorkflowInvalid."""
        draft = self._build.state.draft
        text = draft.text if draft is not None else ""
        if draft is None or self._places is None or self._places[0] != text:
            # Its files are those of its future place.
            loaded = draft_runs.as_saved(self._build)
            positions = {each.id: each.position for each in layout.Layout(loaded.document).nodes}
            self._places = (text, NodeMap(loaded, positions))
        return self._places[1]

    @property
    def records(self) -> dict[str, Record]:
        """The last good result of each node, by key."""
        if self._records is None:
            history = self._build.state.history
            self._records = {}
            for name in history.names_of("bench"):
                found = history.latest("bench", name)
                if found is not None and not name.startswith(MARK):
                    data = self._build.writer.value_of(found)
                    self._records[name] = Record.of(data, masked=found.masked is True)
        return self._records

    @property
    def states(self) -> States:
        """The kept states."""
        if self._states is None:
            self._states = States(self._build.state, self._private)
        return self._states

    def keep(self, record: Record, reason: str) -> None:
        """Replace the result of a node."""
        self.records[record.done.key] = record
        version = entries.Version(of="bench", name=record.done.key, number=0, reason=reason, by="model")
        self._build.state.keep(version, record.as_json())

    def judge(
        self, places: NodeMap, inputs: Mapping[str, Json] | None = None, pins: Mapping[str, Json] | None = None
    ) -> FreshnessCheck:
        """Return the check of results for these inputs and pins, by default the person's. Raises UsageError for inputs that do not fit."""
        if inputs is None:
            inputs = places.loaded.check_inputs(self.given(places.loaded))
        return FreshnessCheck(places, self.records, inputs, self.pins(places) if pins is None else pins)

    def pins(self, places: NodeMap) -> dict[str, Json]:
        """Return the session's variables named like something that a node reads."""
        items = {loop.as_ for place in places.in_order for loop in place.loops if loop.as_}
        return {
            name: value
            for name, value in self._build.state.variables.all().items()
            if name in places.all or name in items or name == "error" or name.startswith("vars.")
        }

    def pinned(self, places: NodeMap, ids: Sequence[str]) -> list[str]:
        """Describe the pins that these nodes read."""
        read = {written(each.chain) for node_id in ids for each in places.reads(node_id)}
        names = [f"`{each}`" for each in self.pins(places) if each in read]
        return [f"pinned by a variable of the session: {', '.join(names)}"] if names else []

    def given(self, loaded: workflow.Loaded) -> dict[str, Json]:
        """Return the person's inputs that the draft declares."""
        declared = loaded.workflow.inputs
        return {name: each for name, each in self._build.goal.inputs.items() if name in declared}


MARK = "@"
"""Prefix of the names of states, which no node id has."""


MOST = 60
"""Limit of the states; the oldest is dropped."""


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """An earlier state of the browser."""

    lineage: Lineage
    file: str
    sha256: str


class States:
    """Keeps the states of one session."""

    def __init__(self, state: SessionState, folder: Path) -> None:
        """``folder`` is the bench's own; it is made for the first state."""
        self._state, self._folder = state, folder
        self._states: dict[str, State] = {}
        for name in state.history.names_of("bench"):
            if name.startswith(MARK) and state.history.latest("bench", name) is not None:
                data = state.value("bench", name)
                lineage = tuple(Done.of(each) for each in data["lineage"])
                self._states[name] = State(lineage, str(data["file"]), str(data["sha256"]))

    async def keep(self, lineage: Lineage, captured: port.Captured, reason: str) -> None:
        """Keep a captured state, and replace an earlier one reached by the same nodes. Raises LogError."""
        name = MARK + digest([each.key for each in lineage])
        sha256 = hashlib.sha256(captured.data).hexdigest()
        file = f"{name.removeprefix(MARK)}-{sha256[:8]}.json"
        path = self._folder / file
        try:
            await files.keep(path, captured.data)
        except OSError as error:
            raise files.not_written("a state of the bench", path, error) from None
        before = self._states.pop(name, None)
        self._states[name] = State(lineage, file, sha256)
        value: Json = {"lineage": [each.as_json() for each in lineage], "file": file, "sha256": sha256}
        self._state.keep(entries.Version(of="bench", name=name, number=0, reason=reason, by="model"), value)
        if before is not None and before.file != file:
            self._remove(before)
        while len(self._states) > MOST:
            oldest = next(iter(self._states))
            self._remove(self._states.pop(oldest))
            gone = entries.Version(
                of="bench", name=oldest, number=0, cleared=True, reason="others are newer", by="model"
            )
            self._state.keep(gone, None)

    def after(self, keys: Sequence[str]) -> Iterator[State]:
        """Yield the state reached by exactly these nodes, in this order, if there is one."""
        found = self._states.get(MARK + digest(list[Json](keys)))
        if found is not None and self._is_whole(found):
            yield found

    def path(self, state: State) -> Path:
        """Return its file."""
        return self._folder / state.file

    def _is_whole(self, state: State) -> bool:
        try:
            return hashlib.sha256(regular_files.read(self.path(state))).hexdigest() == state.sha256
        except OSError:
            return False

    def _remove(self, state: State) -> None:
        with contextlib.suppress(OSError):
            self.path(state).unlink()
