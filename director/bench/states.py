"""Captured states of the browser, from which the bench goes on: each by what had been done to it. Files in the session's private folder."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from director.bench.node_map import digest
from director.bench.records import Done, Lineage
from director.session import state as session_state
from nodes.values import Json
from runtime.browser import port
from runtime.log import entries
from runtime.system import files, regular_files

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

    def __init__(self, desk: session_state.Desk, folder: Path) -> None:
        """``folder`` is the bench's own; it is made once there is a state to keep."""
        self._desk, self._folder = desk, folder
        self._states: dict[str, State] = {}
        for name in desk.history.names_of("bench"):
            if name.startswith(MARK) and desk.history.latest("bench", name) is not None:
                data = desk.value("bench", name)
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
        self._desk.keep(entries.Version(of="bench", name=name, number=0, reason=reason, by="model"), value)
        if before is not None and before.file != file:
            self._remove(before)
        while len(self._states) > MOST:
            oldest = next(iter(self._states))
            self._remove(self._states.pop(oldest))
            gone = entries.Version(
                of="bench", name=oldest, number=0, cleared=True, reason="others are newer", by="model"
            )
            self._desk.keep(gone, None)

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
