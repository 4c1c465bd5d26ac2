"""What the bench knows of the draft: its nodes, the last good value of each, the states between them, and what of that still counts."""

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
    """Reads it from the session's log once it is asked for, and keeps what comes."""

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
            # Files beside it are those of the place where it will be left.
            loaded = draft_runs.as_saved(self._build)
            positions = {each.id: each.position for each in layout.Layout(loaded.document).nodes}
            self._places = (text, NodeMap(loaded, positions))
        return self._places[1]

    @property
    def records(self) -> dict[str, Record]:
        """What came of each node the last time that it ended well, by key."""
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
        """The states that were kept."""
        if self._states is None:
            self._states = States(self._build.state, self._private)
        return self._states

    def keep(self, record: Record, reason: str) -> None:
        """Take what came of a node in the place of what came of it before."""
        self.records[record.done.key] = record
        version = entries.Version(of="bench", name=record.done.key, number=0, reason=reason, by="model")
        self._build.state.keep(version, record.as_json())

    def judge(
        self, places: NodeMap, inputs: Mapping[str, Json] | None = None, pins: Mapping[str, Json] | None = None
    ) -> FreshnessCheck:
        """Judges what is known, for these inputs and pins, or those that the person gave. Raises UsageError for inputs that do not fit."""
        if inputs is None:
            inputs = places.loaded.check_inputs(self.given(places.loaded))
        return FreshnessCheck(places, self.records, inputs, self.pins(places) if pins is None else pins)

    def pins(self, places: NodeMap) -> dict[str, Json]:
        """The session's variables that are called like something that a node reads."""
        items = {loop.as_ for place in places.in_order for loop in place.loops if loop.as_}
        return {
            name: value
            for name, value in self._build.state.variables.all().items()
            if name in places.all or name in items or name == "error" or name.startswith("vars.")
        }

    def pinned(self, places: NodeMap, ids: Sequence[str]) -> list[str]:
        """What is said of pins that these nodes read."""
        read = {written(each.chain) for node_id in ids for each in places.reads(node_id)}
        names = [f"`{each}`" for each in self.pins(places) if each in read]
        return [f"pinned by a variable of the session: {', '.join(names)}"] if names else []

    def given(self, loaded: workflow.Loaded) -> dict[str, Json]:
        """The inputs that the person gave, as far as the draft declares them."""
        declared = loaded.workflow.inputs
        return {name: each for name, each in self._build.goal.inputs.items() if name in declared}


MARK = "@"
"""How the names of states begin among what the bench keeps: no id of a node does."""


MOST = 60
"""States that are kept; the oldest gives way."""


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """The browser as it was once."""

    lineage: Lineage
    file: str
    sha256: str


class States:
    """Keeps them, for one session."""

    def __init__(self, state: SessionState, folder: Path) -> None:
        """``folder`` is the bench's own; it is made once there is a state to keep."""
        self._state, self._folder = state, folder
        self._states: dict[str, State] = {}
        for name in state.history.names_of("bench"):
            if name.startswith(MARK) and state.history.latest("bench", name) is not None:
                data = state.value("bench", name)
                lineage = tuple(Done.of(each) for each in data["lineage"])
                self._states[name] = State(lineage, str(data["file"]), str(data["sha256"]))

    async def keep(self, lineage: Lineage, captured: port.Captured, reason: str) -> None:
        """Keep what was captured, in the place of an earlier state to which the same nodes had led. Raises LogError."""
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
        """The state to which just these nodes had led, in this order, where there is one."""
        found = self._states.get(MARK + digest(list[Json](keys)))
        if found is not None and self._is_whole(found):
            yield found

    def path(self, state: State) -> Path:
        """Its file."""
        return self._folder / state.file

    def _is_whole(self, state: State) -> bool:
        try:
            return hashlib.sha256(regular_files.read(self.path(state))).hexdigest() == state.sha256
        except OSError:
            return False

    def _remove(self, state: State) -> None:
        with contextlib.suppress(OSError):
            self.path(state).unlink()
