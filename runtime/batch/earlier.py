"""Earlier runs of cases: from the logs of this home, or durations from a report of an earlier command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nodes.errors import UsageError
from nodes.values import Json
from runtime.language import inputs
from runtime.log import entries
from runtime.log.store import store as log_store
from runtime.runs import results
from runtime.system import regular_files
from runtime.workspace import run_index

NEWEST = 5000
"""Conversations of the home that are searched: a case whose last run is older counts as one that never ran."""


def of(store: log_store.StoreReader, cases: Sequence[results.Case]) -> dict[str, run_index.RunSummary]:
    """Return the newest whole run of each case, by the case's id; without those that have none.

    A run belongs to a case if it has its file, and the inputs of its row; to one without a row, if it had none either.
    """
    open_cases: dict[str, list[results.Case]] = {}
    for each in cases:
        if each.loaded is not None:
            open_cases.setdefault(str(each.file.absolute()), []).append(each)
    found: dict[str, run_index.RunSummary] = {}
    for read in _newest(store):
        head = read.first.run if isinstance(read.first, entries.Scope) else None
        if head is None or head.trial is not None or head.tool is not None:
            continue
        for case in [each for each in open_cases.get(head.file, ()) if _is_of(head, each)]:
            if (summary := run_index.summary_of(store, read)) is not None:
                found[case.id] = summary
            open_cases[head.file].remove(case)
        if not any(open_cases.values()):
            break
    return found


def _newest(store: log_store.StoreReader) -> Iterator[log_store.Summary]:
    before, left = None, NEWEST
    while left > 0 and (page := store.summaries(before, min(left, run_index.PAGE), None)):
        yield from page
        before, left = page[-1].id, left - len(page)


def _is_of(head: entries.RunHeader, case: results.Case) -> bool:
    assert case.loaded is not None
    if case.row is None:
        return head.row is None
    row = inputs.as_declared(case.loaded.workflow.inputs, case.inputs)
    return all(name in head.inputs and head.inputs[name] == value for name, value in row.items())


def seconds_of(found: Mapping[str, run_index.RunSummary]) -> dict[str, float]:
    """Return how long cases took; without those that did not come to an end."""
    return {case: each.seconds for case, each in found.items() if each.seconds is not None and each.state == "passed"}


def durations(file: Path) -> dict[str, float]:
    """Read how long each case took from a report: ``run --report``, or the output of ``run --json``.

    Raises UsageError ``file-not-found``, ``file-not-read``, ``durations-invalid``.
    """
    try:
        report: Json = json.loads(regular_files.read_text(file))
        return {str(each["case"]): float(each["seconds"]) for each in report["runs"] if each["seconds"] is not None}
    except FileNotFoundError:
        raise UsageError("file-not-found", f"there is no file {file}", fix="give a report that exists") from None
    except OSError as error:
        said = f"{file} cannot be read: {error.strerror}"
        raise UsageError("file-not-read", said, fix=regular_files.fix(error)) from None
    except (ValueError, TypeError, KeyError):
        fix = "give the file of `runops run --report FILE`, or the output of `runops run --json`"
        raise UsageError("durations-invalid", f"{file} is no report of runs", fix=fix) from None
