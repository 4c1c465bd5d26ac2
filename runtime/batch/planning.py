"""From found files to the cases that a command runs: rows, selection, shard, and what earlier runs tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodes.errors import UsageError
from runtime.batch import cases, earlier, policy, selection, shards
from runtime.display.text import count
from runtime.log.store import store as log_store
from runtime.runs import collect, results
from runtime.workspace import run_index


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a command line asks for."""

    table: cases.Rows | None = None
    selection: selection.Selection = dataclasses.field(default_factory=selection.Selection)
    shard: results.Shard | None = None
    durations: Path | None = None
    last_failed: bool = False
    looks_back: bool = False
    """True if earlier runs are needed, for a list or an order."""

    def __post_init__(self) -> None:
        if self.shard is not None and self.last_failed:
            # Each machine has only the logs of its own shard, so the partitions would differ.
            fix = "`--last-failed` alone also runs what other shards have run, as it has no run in this home; narrow it with `-k`"
            raise UsageError("usage", "`--last-failed` and `--shard` contradict each other", fix=fix)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    outcomes: Sequence[results.Outcome]
    """Of the cases of this command, in order."""
    selected: Sequence[str]
    """Ids of all selected cases, those of other shards too."""
    shard: results.Shard | None = None
    earlier: Mapping[str, run_index.RunSummary] = dataclasses.field(default_factory=dict[str, run_index.RunSummary])
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict[str, float])
    """How long cases took before."""
    note: str | None = None
    """A sentence for the person: why there is nothing to run, or more than expected."""


def plan(found: Sequence[collect.Found], request: Request, store: log_store.StoreReader) -> Plan:
    """Raises UsageError as the parts of the request do, ``unknown-input`` for a column, ``no-case`` if none is selected.

    An empty shard is no error.
    """
    files = [each.loaded for each in found if each.loaded is not None]
    if request.table is not None and len(files) == len(found):  # a column may be meant for a file that cannot be read
        request.table.refuse_unknown(files)
    outcomes = request.selection.of(cases.of(found, request.table))
    looks_back = request.last_failed or request.looks_back
    known = earlier.of(store, [each.case for each in outcomes]) if looks_back else {}
    note: str | None = None
    if request.last_failed:
        outcomes, note = _last_failed(outcomes, known, store)
    measured = earlier.durations(request.durations) if request.durations is not None else {}
    selected = [each.case.id for each in outcomes]
    if request.shard is not None:
        own = shards.partition(selected, request.shard.of, measured)[request.shard.number - 1]
        outcomes = [outcomes[position] for position in own]
        if not outcomes:
            place = f"{request.shard.number}/{request.shard.of}"
            note = f"shard {place} has no case: there are only {len(selected)}"
    return Plan(
        outcomes=outcomes,
        selected=selected,
        shard=request.shard,
        earlier=known,
        seconds={**earlier.seconds_of(known), **measured},
        note=note,
    )


def _last_failed(
    outcomes: Sequence[results.Outcome], known: Mapping[str, run_index.RunSummary], store: log_store.StoreReader
) -> tuple[list[results.Outcome], str | None]:
    # A row with corrected values has no run, and neither has any case in a new home: a job that runs nothing must not pass.
    last = {each.case.id: known[each.case.id].state for each in outcomes if each.case.id in known}
    left = [each for each in outcomes if last.get(each.case.id) not in ("passed", "running")]
    for each in left:
        if each.case.id in known and policy.forbidden(each):
            each.refused = _not_again(known[each.case.id])
    new = sum(each.refused is None and each.case.id not in last for each in left)
    if new:
        return left, f"{new} of {count(len(outcomes), 'case')} never ran in {store.place}: selected too"
    if left:
        return left, None
    running = [*last.values()].count("running")
    passed = f"{count(running, 'case')} still running, and the others" if running else "the newest run of each case"
    return left, f"{passed} passed, so there is nothing to run"


def _not_again(last: run_index.RunSummary) -> UsageError:
    said = f"its last run {last.id} is {last.state}, and its file says `rerun: never`"
    return UsageError(
        "rerun-never", said, fix=f"continue that run: `runops resume {last.id}`; `runops run FILE` begins a new one"
    )
