"""Results of the draft's nodes: the last good value of each in the session's log, and states of the browser in its private folder."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.bench.node_map import NodeMap, digest, written
from director.bench.records import FreshnessCheck, Lineage, Record
from director.draft import layout
from director.proving import draft_runs
from nodes.values import Json
from runtime.browser import port
from runtime.log import entries
from runtime.system import files, regular_files

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

FOLDER = "bench"
MOST = 60  # limit of the states; the oldest is dropped


class Results:
    def __init__(self, build: BuildContext) -> None:
        self._build = build
        self.folder = build.here.reader.private(build.writer.conversation.id) / FOLDER
        self._records: dict[str, Record] | None = None
        self._places: tuple[str, NodeMap] | None = None
        self.passed_over: set[Path] = set()  # states that show another page now than when they were kept

    @property
    def places(self) -> NodeMap:
        """The draft's nodes, as the bench sees them. Raises ModelError ``draft-missing``, WorkflowInvalid."""
        draft = self._build.state.draft
        text = draft.text if draft is not None else ""
        if draft is None or self._places is None or self._places[0] != text:
            # The files that it uses are those of the place where it will be saved.
            loaded = draft_runs.as_saved(self._build)
            positions = {each.id: each.position for each in layout.Layout(loaded.document).nodes}
            self._places = (text, NodeMap(loaded, positions))
        return self._places[1]

    @property
    def records(self) -> dict[str, Record]:
        """The last good result of each node, by key."""
        if self._records is None:
            history = self._build.state.history
            kept = {name: history.latest("bench", name) for name in history.names_of("bench")}
            self._records = {
                name: Record.of(self._build.writer.value_of(each), masked=each.masked is True)
                for name, each in kept.items()
                if each is not None
            }
        return self._records

    def keep(self, record: Record, reason: str) -> None:
        self.records[record.key] = record
        version = entries.Version(of="bench", name=record.key, number=0, reason=reason, by="model")
        self._build.state.keep(version, record.as_json())

    def clear(self, ids: Collection[str], reason: str) -> None:
        """Give up the values of these nodes, in all turns of their loops: the nodes are stale."""
        for each in [each for each in self.records.values() if each.id in ids and not each.cleared]:
            self.keep(each.without_value(), reason)

    def is_secret(self, value: Json) -> bool:
        return self._build.writer.masker.json(value) != value

    def freshness(
        self, places: NodeMap, inputs: Mapping[str, Json] | None = None, pins: Mapping[str, Json] | None = None
    ) -> FreshnessCheck:
        """Return the check of results for these inputs and pins, by default the session's. Raises UsageError for invalid inputs."""
        if inputs is None:
            inputs = places.loaded.check_inputs(draft_runs.declared(self._build, places.loaded))
        return FreshnessCheck(places, self.records, inputs, self.pins(places) if pins is None else pins)

    def pins(self, places: NodeMap) -> dict[str, Json]:
        """Return the session's variables that replace values: those named like a node, an item, ``error`` or ``vars.NAME``."""
        items = {loop.as_ for place in places.in_order for loop in place.loops if loop.as_}
        return {
            name: value
            for name, value in self._build.state.variables.all().items()
            if name in places.all or name in items or name == "error" or name.startswith("vars.")
        }

    def pinned(self, places: NodeMap, ids: Sequence[str]) -> list[str]:
        read = {written(each.chain) for node_id in ids for each in places.reads(node_id)}
        names = [f"`{each}`" for each in self.pins(places) if each in read]
        return [f"pinned by a variable of the session: {', '.join(names)}"] if names else []

    # States: files named by the lineage of their page, and by their content.

    async def keep_state(self, lineage: Lineage, captured: port.Captured) -> None:
        """Keep a state, and drop an earlier one of the same lineage. Raises LogError."""
        before = self._states(lineage)
        path = self.folder / f"{digest(list(lineage))}-{_sha256(captured.data)}.json"
        self.passed_over.discard(path)
        try:
            await files.keep(path, captured.data)
        except OSError as error:
            raise files.not_written("a state of the bench", path, error) from None
        every = sorted(self.folder.glob("*.json"), key=lambda each: each.stat().st_mtime_ns)
        for each in {*before, *every[:-MOST]} - {path}:
            each.unlink(missing_ok=True)

    def drop_states(self) -> None:
        for each in self.folder.glob("*.json"):
            each.unlink(missing_ok=True)

    def state(self, lineage: Lineage) -> Path | None:
        """Return the file of the undamaged state with exactly this lineage, unless it is passed over."""
        valid = (each for each in self._states(lineage) if each not in self.passed_over)
        return next((each for each in valid if each.stem.partition("-")[2] == _content(each)), None)

    def _states(self, lineage: Lineage) -> list[Path]:
        return list(self.folder.glob(f"{digest(list(lineage))}-*.json"))


def _content(file: Path) -> str | None:
    try:
        return _sha256(regular_files.read(file))
    except OSError:
        return None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
