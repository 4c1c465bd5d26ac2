"""Writes what happens to the cases as JSON lines, each at once."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from typing_extensions import override

from nodes.errors import UsageError
from nodes.values import Json
from runtime.batch.reports.composing import masked
from runtime.batch.reports.writing import not_written
from runtime.report import batch_events, endings
from runtime.runs import reporters, results
from runtime.secrets import masking, published
from runtime.system import regular_files

FLAG = "--events"


class EventLines(reporters.Reporter, reporters.CaseListener):
    """A new file. After a failed write it writes no more, and says so at the next update."""

    def __init__(self, file: Path) -> None:
        """Raises UsageError ``report-not-written``."""
        self._path = file
        self._masker = masking.Masker({})
        self._begun = False
        self._started: set[str] = set()
        self._over: set[str] = set()
        self._failed: UsageError | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle = regular_files.descriptor(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            self._file = os.fdopen(handle, "wb", buffering=0)
        except OSError as error:
            raise not_written(FLAG, file, error) from None

    @override
    def update(self, results: results.Results, masker: masking.Masker) -> None:
        self._masker = masker
        ended = results.exit is not None
        if not self._begun:
            self._begun = True
            cases = [each.case.id for each in results.outcomes]
            shard = endings.shard_of(results.shard)
            selected = [*results.selected]
            self._write(batch_events.StartedEvent(case=None, at=_now(), shard=shard, selected=selected, cases=cases))
        for each in results.outcomes:
            if each.runs and each.case.id not in self._started:
                self._start(each.case)
            if (each.over or (ended and each.state != "skipped")) and each.case.id not in self._over:
                self._over.add(each.case.id)
                record = endings.of_case(each)
                self._write(batch_events.CaseEndedEvent(case=each.case.id, at=_now(), outcome=record))
        if results.exit is not None and not self._file.closed:
            self._write(batch_events.EndedEvent(case=None, at=_now(), exit=results.exit))
            self._file.close()
        if self._failed is not None:
            raise self._failed

    @override
    def event(self, case: results.Case, event: dict[str, Json]) -> None:
        self._write(batch_events.of_run(case.id, _now(), event))

    def _start(self, case: results.Case) -> None:
        self._started.add(case.id)
        about = {"file": str(case.file), "name": case.name, "row": case.row}
        self._write(batch_events.CaseStartedEvent.model_validate({"case": case.id, "at": _now(), **about}))

    def _write(self, line: batch_events.Line) -> None:
        if self._failed is not None or self._file.closed:
            return
        data = f"{masked(line, self._masker).line()}\n".encode()
        try:
            published.demand_clean(str(self._path), data)
            self._file.write(data)
        except UsageError as error:
            self._failed = error
        except OSError as error:
            self._failed = not_written(FLAG, self._path, error)
        if self._failed is not None:
            self._file.close()


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
