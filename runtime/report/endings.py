"""What commands print with ``--json`` when they end: how a run, a batch, a chat, a build or a repair ended."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import SkipValidation

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.events import RunEnded
from runtime.log import entries
from runtime.report.models import AskedReport
from runtime.report.parts import Costs, ErrorReport, FileReport, FlagReport, Model, Printed, absent
from runtime.runs import results

FileName = Annotated[str, SkipValidation]
"""The name of a file as it was typed: it may hold bytes that are no text."""

ChatStatus = Literal["ended", "failed", "paused", "out-of-budget", "replaced", "interrupted"]
BuildStatus = Literal["done", "given-up", "failed", "paused", "out-of-budget", "replaced", "interrupted"]
Proof = Literal["proved", "held", "guess"]
"""``held``: proved up to a side effect that was withheld; ``guess``: not proved."""


class PauseReport(Model):
    """What a paused run asks."""

    reason: str
    message: str
    path: str | None
    """The step that asks."""
    fix: str | None
    evidence: dict[str, Json] | None


class RunRecord(Model):
    """How a run ended. Every field is always there."""

    run: str | None
    """Null where it did not start."""
    status: results.State
    """``error``: it could not start."""
    exit: int | None
    """The exit code; null where it was not begun."""
    seconds: float | None
    output: Json
    error: ErrorReport | None
    path: str | None
    """The step that failed, or that asks."""
    place: str | None
    """Where that step is: file, line and column."""
    tolerated: int
    """Failures that `on_error: continue` passed over."""
    costs: Costs | None
    question: PauseReport | None
    flags: list[FlagReport]
    files: list[FileReport]


class RunEnding(RunRecord, Printed):
    """How a run ended: `resume`, `decide`, `answer` and `try` with `--json`."""


class AnswerKept(Printed):
    """An answer is written down, and the run was not resumed: `answer` and `decide` with `--only` and `--json`."""

    run: str
    status: Literal["paused"] = "paused"
    exit: Literal[0] = 0
    answered: dict[str, Json] | None = absent()
    """The answers by name."""
    decided: Literal["done", "not-done", "skip"] | None = absent()
    """What became of the side effect."""


class _Named(Model):
    file: FileName
    """As it was named, or found."""


class FileRecord(RunRecord, _Named):
    """How the run of a file ended."""


class BatchEnding(Printed):
    """How several runs ended: `run --json`."""

    exit: int
    """The worst exit code."""
    runs: list[FileRecord]


class AboutReport(Model):
    """What a chat is about."""

    run: str | None
    file: FileName | None


class WordReport(Model):
    """One message of the person, and what came of it."""

    said: str
    answer: str | None
    error: ErrorReport | None
    run: RunRecord | None = absent()
    """The run that it started or resumed."""


class ChatEnding(Printed):
    """How a chat ended: `chat --json`."""

    session: str
    status: ChatStatus
    exit: int
    mode: entries.Mode
    about: AboutReport
    words: list[WordReport]
    costs: Costs | None
    runs: dict[str, Costs]
    """The costs of the runs that it started, by run."""
    window: dict[str, Json] | None
    """The context of the last request: as `show SESSION --window --json` has it."""
    warnings: list[str]


class BuildRecord(Model):
    """How a build ended."""

    session: str
    status: BuildStatus
    exit: int
    goal: str | None
    file: FileName | None
    """The workflow that it left."""
    proved: Json
    """How far the workflow is proved."""
    output: Json
    """What its last run returned."""
    changed: str | None
    """How the file has changed since."""
    finish: dict[str, Json] | None
    """All that the build left."""
    error: ErrorReport | None
    costs: Costs | None
    runs: dict[str, Costs]
    questions: list[AskedReport]


class BuildEnding(BuildRecord, Printed):
    """How a build ended: `build --json`."""


class PatchedStep(Model):
    """A step that a patch changes."""

    path: str
    what: str
    """What is changed."""
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
    """How a repair ended: `repair --json`."""

    run: str
    status: Literal["fix-ready", "not-fixed"]
    exit: int
    path: str
    """The step that failed."""
    code: str
    """The code of its error."""
    kind: str
    """What kind of failure it is."""
    why: list[str]
    """What speaks for that."""
    next: str
    """What to do or type next."""
    fix: PatchReport | None
    tried: list[str]
    looked: str | None
    """How the page was looked at again."""
    build: BuildRecord | None
    """The build that looked for a patch, where one did."""


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
    """Side effects that the proof performed: resuming the run would repeat them."""


def of_run(ended: RunEnded | None, run: str | None, state: results.State, code: int | None) -> RunEnding:
    """How a run ended; ``ended`` is None where it could not say so."""
    return RunEnding.model_validate({"version": 1, **_facts(ended, run, state, code)})


def of_word(said: str, answer: str | None, error: RunOpsError | None, ended: RunEnded | None) -> WordReport:
    """What came of a message; ``ended`` is how the run ended that it started."""
    run = RunRecord.model_validate(_facts(ended, ended.run, ended.status, ended.exit)) if ended is not None else None
    return WordReport(said=said, answer=answer, error=ErrorReport.raised(error), run=run)


def of_build(record: BuildRecord) -> BuildEnding:
    """How the build ended that a command was for."""
    return BuildEnding(**dict(record))


def of_batch(ended: list[results.Outcome], code: int) -> BatchEnding:
    """How the runs of a command ended."""
    return BatchEnding(exit=code, runs=[_of_file(each) for each in ended])


def _of_file(outcome: results.Outcome) -> FileRecord:
    facts = _facts(outcome.ended, outcome.run, outcome.state, outcome.exit)
    if outcome.error is not None:
        facts["error"] = outcome.error.as_json()
    return FileRecord.model_validate({"file": str(outcome.file), **facts})


def _facts(ended: RunEnded | None, run: str | None, state: results.State, code: int | None) -> dict[str, Json]:
    """The fields of a record."""
    return {
        "run": run,
        "status": state,
        "exit": code,
        "seconds": round(ended.seconds, 3) if ended else None,
        "output": ended.output if ended else None,
        "error": ended.error if ended else None,
        "path": ended.path if ended else None,
        "place": ended.place if ended else None,
        "tolerated": ended.tolerated if ended else 0,
        "costs": ended.costs if ended else None,
        "question": ended.question if ended else None,
        "flags": ended.flags if ended else [],
        "files": ended.files if ended else [],
    }
