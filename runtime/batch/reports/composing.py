"""Composes the report of many runs from the outcomes of the cases and the logs of their runs, with every secret masked."""

from __future__ import annotations

import base64
import contextlib
import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from nodes.errors import RunOpsError
from runtime.log import entries as log_entries
from runtime.log.store import store as log_store
from runtime.report import differences, endings, of_run, pictures
from runtime.report.models import RunReport
from runtime.report.parts import DifferenceReport, Model
from runtime.runs import results
from runtime.secrets import masking
from runtime.workspace import run_index

PICTURES = 16 << 20  # most characters of pictures in a report; those of cases that did not pass come first

INTERRUPTED = 130  # the exit code of a command that has not ended: its process may be killed

AnyModel = TypeVar("AnyModel", bound=Model)


class Composer:
    def __init__(self, store: log_store.StoreReader, *, whole: bool) -> None:
        """``whole``: with the steps of all runs, and pictures. Otherwise only with the steps of cases that did not simply pass."""
        self._store = store
        self._whole = whole
        self._details: dict[tuple[str, int], RunReport | None] = {}  # by run, and number of its processes
        self._pictures: dict[tuple[str, str], dict[str, str]] = {}  # by run, and time of its last entry
        self._greens: dict[str, RunReport | None] = {}
        self._passed: list[tuple[str, log_entries.RunHeader]] | None = None
        self._differing: dict[tuple[str, str, str], list[DifferenceReport]] = {}

    def compose(self, found: results.Results, masker: masking.Masker) -> endings.BatchReport:
        code = found.exit if found.exit is not None else results.worst([INTERRUPTED, *_exits(found)])
        ending = masked(endings.of_batch(found, code), masker)
        details = {run: each for run, each in self._of_runs(found, masker) if each is not None}
        runs = [self._compared(each, details, masker) for each in ending.runs]
        shown = self._pictures_of(runs, details) if self._whole else {}
        facts: dict[str, Any] = {**dict(ending), "runs": runs, "details": details, "pictures": shown}
        return endings.BatchReport(**facts)

    def _of_runs(self, found: results.Results, masker: masking.Masker) -> Iterator[tuple[str, RunReport | None]]:
        for outcome in found.outcomes:
            if outcome.state == "passed" and not self._whole and not outcome.notes:
                continue
            processes: dict[str, int] = {}
            for each in outcome.runs:
                if each.id is not None and each.exit is not None:
                    processes[each.id] = processes.get(each.id, 0) + 1
            for key in processes.items():
                if key not in self._details:
                    self._details[key] = self._read(key[0], masker)
                yield key[0], self._details[key]

    def _compared(
        self, case: endings.CaseRecord, details: Mapping[str, RunReport], masker: masking.Masker
    ) -> endings.CaseRecord:
        """Add what a case that did not pass does differently since it last passed."""
        last = details.get(case.run or "")
        if last is None or not self._whole or case.status in ("passed", "flaky"):
            return case
        green = self._green(case.attempts[0].run or "", masker)
        fields = {"green": green.run, "since_green": self._differences(green, last)} if green is not None else {}
        return case.model_copy(update=fields)

    def _differences(self, before: RunReport, after: RunReport) -> list[DifferenceReport]:
        pair = (before.run, after.run, after.last)
        if pair not in self._differing:
            self._differing[pair] = differences.differences(before, after)
        return self._differing[pair]

    def _green(self, run: str, masker: masking.Masker) -> RunReport | None:
        """Return the last run that passed before ``run``, of the same file with the same inputs."""
        if run not in self._greens:
            self._greens[run] = None
            with contextlib.suppress(RunOpsError):
                if self._passed is None:  # those of this command are of other cases, so one list serves all
                    self._passed = [*run_index.passed_before(self._store, run)]
                found = run_index.alike(self._store, run, self._passed)
                self._greens[run] = self._read(found, masker) if found is not None else None
        return self._greens[run]

    def _read(self, run: str, masker: masking.Masker) -> RunReport | None:
        """Return the report of a run; None if its log is damaged or gone."""
        with contextlib.suppress(RunOpsError):
            past, reading = run_index.load_history(self._store, run)
            return masked(of_run.run_report(past, reading, self._store, placed=True), masker)
        return None

    def _pictures_of(self, runs: Iterable[endings.CaseRecord], details: Mapping[str, RunReport]) -> dict[str, str]:
        ordered = sorted(runs, key=lambda each: each.status == "passed")
        ids = dict.fromkeys(each.run for case in ordered for each in case.attempts if each.run in details)
        return bounded(pair for run in ids for pair in self._pictures_of_run(details[run or ""]).items())

    def _pictures_of_run(self, report: RunReport) -> Mapping[str, str]:
        key = (report.run, report.last)
        if key not in self._pictures:
            found = pictures.of_run(report, self._store)
            self._pictures[key] = {sha256: base64.b64encode(data).decode() for sha256, data in found.items()}
        return self._pictures[key]


def bounded(shown: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return those of the pictures, by SHA-256, that a report has room for, the first ones first."""
    found: dict[str, str] = {}
    left = PICTURES
    for sha256, data in shown:
        if sha256 not in found and len(data) <= left:
            found[sha256] = data
            left -= len(data)
    return dict(sorted(found.items()))


def _exits(found: results.Results) -> Iterator[int]:
    return (each.exit for each in found.outcomes if each.exit is not None)


def masked(model: AnyModel, masker: masking.Masker) -> AnyModel:
    """Return ``model`` with every secret masked in its texts. A word that the model itself chooses from a list stays."""
    return model if masker.idle else cast("AnyModel", _masked(model, masker))


def _masked(value: Any, masker: masking.Masker) -> Any:
    match value:
        case Model():
            fixed = _fixed(type(value))
            fields = {name: each for name, each in value.__dict__.items() if name not in fixed}
            return value.model_copy(update={name: _masked(each, masker) for name, each in fields.items()})
        case list():
            return [_masked(each, masker) for each in cast("list[Any]", value)]
        case dict():
            keyed = cast("dict[str, Any]", value)
            return {next(iter(masker.json({key: None}))): _masked(each, masker) for key, each in keyed.items()}
        case str() | int() | float():
            return masker.json(value)
        case _:
            return value


@functools.cache
def _fixed(model: type[Model]) -> frozenset[str]:
    """Return the fields whose words are listed in the model, and those with numbers."""
    return frozenset(name for name, field in model.model_fields.items() if _is_fixed(field.annotation))


def _is_fixed(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_fixed(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return all(_is_fixed(each) for each in get_args(annotation))
    return origin is Literal or annotation in (int, float, bool, type(None))
