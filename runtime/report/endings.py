"""Output of commands with ``--json``: the outcome of a run, a batch, a chat, a build or a repair."""

from __future__ import annotations

import platform
from typing import Annotated, Literal

from pydantic import SkipValidation

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.events import RunEnded
from runtime.log import entries
from runtime.log.store import store as log_store
from runtime.report.models import AskedReport, DelegateReport, RunReport
from runtime.report.parts import Costs, DifferenceReport, ErrorReport, FileReport, FlagReport, Model, Printed, absent
from runtime.runs import results

FileName = Annotated[str, SkipValidation]  # as it was typed; it may contain bytes that are no text

ChatStatus = Literal["ended", "failed", "paused", "out-of-budget", "replaced", "interrupted"]
BuildStatus = Literal["done", "given-up", "failed", "paused", "out-of-budget", "replaced", "interrupted"]
# `held`: proved up to a side effect that was withheld; `guess`: not proved.
Proof = Literal["proved", "held", "guess"]


class PauseReport(Model):
    """The question of a paused run."""

    reason: str
    message: str
    path: str | None
    """The step that asks."""
    fix: str | None
    evidence: dict[str, Json] | None


class RunRecord(Model):
    """The outcome of a run. Every field is always present."""

    run: str | None
    """Null if the run did not start."""
    status: results.State
    """``error``: it could not start."""
    exit: int | None
    """The exit code; null if the run was not begun."""
    seconds: float | None
    output: Json
    error: ErrorReport | None
    path: str | None
    """The step that failed, or that asks."""
    place: str | None
    """File, line and column of that step."""
    tolerated: int
    """Number of failures that `on_error: continue` tolerated."""
    costs: Costs | None
    question: PauseReport | None
    flags: list[FlagReport]
    files: list[FileReport]


class RunEnding(RunRecord, Printed):
    """The outcome of a run: `resume`, `decide`, `answer` and `try` with `--json`."""


class AnswerKept(Printed):
    """An answer was saved without resuming the run: `answer` and `decide` with `--only` and `--json`."""

    run: str
    status: Literal["paused"] = "paused"
    exit: Literal[0] = 0
    answered: dict[str, Json] | None = absent()
    """The answers by name."""
    decided: Literal["done", "not-done", "skip"] | None = absent()
    """The decision about the side effect."""


class _Named(Model):
    file: FileName
    """The path as it was named, or found."""


class CaseRecord(RunRecord, _Named):
    """The outcome of a case: a workflow with the inputs of one row. Its last run decides."""

    case: FileName
    """Identifies the case in selections: `FILE`, or `FILE[ROW]`."""
    name: str
    row: str | None
    """The label of its row of inputs."""
    tags: list[str]
    """The tags of its workflow."""
    started: str
    """When its first run began; empty if none did."""
    attempts: list[RunRecord]
    """All its runs, in order."""
    differed: list[DifferenceReport]
    """Of a flaky case: how the run that passed differed from the one before it."""
    notes: list[str]
    """Sentences for a person: it was not retried, or the process of a run of it died."""
    live: bool
    """Whether a model answered while it ran, so that the same run may end differently."""
    host: str
    """The name of the machine that ran it."""
    green: str | None = absent()
    """The last run of the case that passed before this command."""
    since_green: list[DifferenceReport] | None = absent()
    """How its last run differs from that run."""


class ShardReport(Model):
    """The part of all cases that a command ran."""

    number: int
    """From 1."""
    of: int


class LastRun(Model):
    """The newest run of a case in this project."""

    run: str
    state: log_store.State
    started: str
    seconds: float | None


class ListedCase(_Named):
    """A case that would run."""

    case: FileName
    name: str
    row: str | None
    tags: list[str]
    last: LastRun | None
    seconds: float | None
    """How long it took before, as far as known."""
    error: ErrorReport | None
    """Why its file cannot be read."""


class CaseList(Printed):
    """The cases that would run: `run --list --json`."""

    exit: int
    shard: ShardReport | None
    selected: list[FileName]
    """All selected cases, those of other shards too."""
    cases: list[ListedCase]


class BatchEnding(Printed):
    """The outcome of several runs: `run --json`."""

    exit: int
    """The worst exit code."""
    started: str
    shard: ShardReport | None
    selected: list[FileName]
    """All selected cases, those of other shards too."""
    runs: list[CaseRecord]


class BatchReport(BatchEnding):
    """All that a report of several runs shows: `run --report FILE`, and what `report merge` joins."""

    details: dict[str, RunReport]
    """Each run, by its id."""
    pictures: dict[str, str]
    """The pictures of their pages in base64, by SHA-256."""


class AboutReport(Model):
    """The subject of a chat."""

    run: str | None
    file: FileName | None


class WordReport(Model):
    """One message of the person, with its result."""

    said: str
    answer: str | None
    error: ErrorReport | None
    run: RunRecord | None = absent()
    """The run that it started or resumed."""


class BuiltReport(Model):
    """What a session has built."""

    goal: str | None
    file: FileName | None
    """The resulting workflow file; null while nothing is finished."""
    proved: Json
    """The level of proof that the workflow has."""
    output: Json
    """The output of the last run of the proof."""
    changed: str | None
    """Changes of the file or the draft since then."""
    finish: dict[str, Json] | None
    """All results of the last `finish`."""
    questions: list[AskedReport]


class ChatEnding(Printed):
    """The outcome of a chat: `chat --json`."""

    session: str
    status: ChatStatus
    exit: int
    mode: entries.Mode
    about: AboutReport
    built: BuiltReport | None
    words: list[WordReport]
    costs: Costs | None
    runs: dict[str, Costs]
    """The costs of the runs that it started, by run."""
    delegates: list[DelegateReport]
    """How each delegate ran, in the order in which they were sent."""
    window: dict[str, Json] | None
    """The context of the last request, as in `show SESSION --window --json`."""
    warnings: list[str]


class BuildRecord(Model):
    """The outcome of a build."""

    session: str
    status: BuildStatus
    exit: int
    goal: str | None
    file: FileName | None
    """The resulting workflow file."""
    proved: Json
    """The level of proof that the workflow has."""
    output: Json
    """The output of its last run."""
    changed: str | None
    """Changes of the file since then."""
    finish: dict[str, Json] | None
    """All results of the build."""
    error: ErrorReport | None
    costs: Costs | None
    runs: dict[str, Costs]
    questions: list[AskedReport]


class BuildEnding(BuildRecord, Printed):
    """The outcome of a build: `build --json`."""


class ActionReport(Model):
    """A side effect of a workflow, and what became of it in the runs of a proof."""

    node: str
    action: str
    what: str


class VerifyRecord(Model):
    """What whole runs have proved of a workflow."""

    file: FileName
    exit: int
    proved: str
    """``full``, ``all but …``, ``up to …`` or ``not``."""
    reset: bool
    """True if the site was reset before each run."""
    effects: list[ActionReport]
    not_executed: list[str]
    """The steps that no run executed."""
    unproved: list[str]
    """The actions and outputs that stay unproved, and that ``--unproved`` does not name."""
    written: bool
    """True if the proof was written into the file."""
    error: ErrorReport | None


class VerifyEnding(VerifyRecord, Printed):
    """The outcome of a proof: `verify --json`."""

    runs: list[RunRecord]


class PatchedStep(Model):
    """A step that a patch changes."""

    path: str
    what: str
    """The change."""
    file: FileName
    others: list[str] | None = absent()
    """Other changes that fit as well."""


class PatchReport(Model):
    """A patch that `repair` proposes."""

    verdict: Proof
    steps: list[PatchedStep]
    run: str | None
    """The run that proves it."""
    reached: str | None
    """The step at which that run stopped."""
    done: list[str]
    """Side effects that the proof performed."""
    patch: str
    kept: FileName
    """The file of the patch."""


class RepairEnding(Printed):
    """The outcome of a repair: `repair --json`."""

    run: str
    status: Literal["fix-ready", "not-fixed"]
    exit: int
    path: str
    """The step that failed."""
    code: str
    """The code of its error."""
    kind: str
    """The kind of failure."""
    why: list[str]
    """The evidence for that kind."""
    next: str
    """The next thing to do or type."""
    fix: PatchReport | None
    tried: list[str]
    looked: str | None
    """The method of a second inspection of the page."""
    build: BuildRecord | None
    """The build that searched for a patch, if any."""


class NothingToRepair(Printed):
    """The run passed: `repair --json`."""

    run: str
    status: Literal["passed"] = "passed"
    exit: Literal[0] = 0
    kind: None = None


class RepairApplied(Printed):
    """A patch was written into its files: `repair --apply --json`."""

    run: str
    status: Literal["applied"] = "applied"
    exit: Literal[0] = 0
    verdict: Proof
    files: list[FileName]
    done: list[str]
    """Side effects that the proof performed. Resuming the run would repeat them."""


def of_run(ended: RunEnded | None, run: str | None, state: results.State, code: int | None) -> RunEnding:
    return RunEnding.model_validate({"version": 1, **_facts(ended, run, state, code)})


def of_word(said: str, answer: str | None, error: RunOpsError | None, ended: RunEnded | None) -> WordReport:
    run = RunRecord.model_validate(_facts(ended, ended.run, ended.status, ended.exit)) if ended is not None else None
    return WordReport(said=said, answer=answer, error=ErrorReport.raised(error), run=run)


def of_build(record: BuildRecord) -> BuildEnding:
    return BuildEnding(**dict(record))


def of_verify(record: VerifyRecord, runs: list[tuple[RunEnded | None, str | None, int]]) -> VerifyEnding:
    """Return the outcome of a proof; ``runs`` are its runs in order, each with its id and exit code. One without an end was interrupted."""
    records = [
        RunRecord.model_validate(_facts(ended, run, ended.status if ended is not None else "interrupted", code))
        for ended, run, code in runs
    ]
    return VerifyEnding(**dict(record), runs=records)


def of_batch(found: results.Results, code: int) -> BatchEnding:
    shard = shard_of(found.shard)
    runs = [of_case(each) for each in found.outcomes]
    return BatchEnding(exit=code, started=found.started, shard=shard, selected=[*found.selected], runs=runs)


def shard_of(shard: results.Shard | None) -> ShardReport | None:
    return ShardReport(number=shard.number, of=shard.of) if shard is not None else None


def of_case(outcome: results.Outcome) -> CaseRecord:
    facts = _facts(outcome.ended, outcome.run, outcome.state, outcome.exit)
    if outcome.error is not None:
        facts["error"] = outcome.error.as_json()
    tags = outcome.case.loaded.workflow.tags if outcome.case.loaded is not None else []
    about = {"name": outcome.name, "row": outcome.case.row, "tags": tags, "host": platform.node()}
    case = {"case": outcome.case.id, "started": outcome.started, **about}
    attempts = [RunRecord.model_validate(_facts(each.ended, each.id, each.state, each.exit)) for each in outcome.runs]
    asked = [each.ended.costs for each in outcome.runs if each.ended is not None and each.ended.costs is not None]
    live = any(costs["paid"] for costs in asked)
    return CaseRecord.model_validate(
        {
            "file": str(outcome.file),
            **case,
            "attempts": attempts,
            "differed": outcome.differed,
            "notes": outcome.notes,
            "live": live,
            **facts,
        }
    )


def _facts(ended: RunEnded | None, run: str | None, state: results.State, code: int | None) -> dict[str, Json]:
    facts: dict[str, Json] = {name: getattr(ended, name, None) for name in RunRecord.model_fields}
    if ended is None:
        facts |= {"tolerated": 0, "flags": [], "files": []}
    else:
        facts["seconds"] = round(ended.seconds, 3)
    return facts | {"run": run, "status": state, "exit": code}
