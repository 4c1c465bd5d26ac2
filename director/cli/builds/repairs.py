"""Runs a repair in the foreground: follows it, and reports the result."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from director.cli import questions
from director.cli.builds import foreground as builds_foreground
from director.cli.builds import outcome as builds_outcome
from director.cli.builds import repair_builds
from director.effects import grants
from director.repair import effects as repair_effects
from director.repair import patch_files, repair
from director.session import person
from nodes.errors import SetupError, UsageError
from nodes.values import Json
from runtime import events
from runtime.cli import console, foreground, foreground_run, signals
from runtime.context import briefs
from runtime.display import costs
from runtime.display.text import harmless, one_line
from runtime.engine import evidence
from runtime.language import reader, workflow
from runtime.log import history
from runtime.log.store import store
from runtime.report import endings
from runtime.workspace import host, run_index

if TYPE_CHECKING:
    from director.draft.goal import Policy


SAID = {
    "proved": "proved: a copy of the run continued from there to its end",
    "held": "proved up to an action that was held",
    "guess": "not proved: nothing tells for sure that this is what was meant",
}
SAID_OF_BUILDS = {
    "proved": "proved: the whole workflow passed, in fresh browsers",
    "held": "proved up to an action that was held, in fresh browsers",
}
"""The same for a fix by a model."""


@dataclasses.dataclass(frozen=True, slots=True)
class RepairOptions:
    """The options of the command."""

    file: Path | None
    """None for the file of the run."""
    run: str
    effects: Policy | None
    apply: bool
    yes: bool
    runs: int = 2
    """Number of runs that a model's fix must pass."""
    model: str | None = None
    no_model: bool = False

    @property
    def named(self) -> str:
        """Return the file as it is typed, with a blank after it; empty if it can be omitted."""
        return f"{shlex.quote(str(self.file))} " if self.file is not None else ""


def carry_out(goal: RepairOptions, here: host.Host, *, of_build: host.Host, as_json: bool, quiet: bool) -> None:
    """Repair a run; ``of_build`` has the settings of a build that fixes it. Always raises ``typer.Exit``, or RunOpsError if it could not begin."""
    foreground_run.hush()
    home = here.kept
    run = run_index.find(home, goal.run)
    past, reading = run_index.load_history(home, run)
    if reading.held:
        raise UsageError("not-failed", f"run {run} is continuing", fix="wait for its end, or stop it")
    if past.status == "passed":
        _passed(run, as_json=as_json, quiet=quiet)
    loaded = reader.load(goal.file or run_index.workflow_file(past))
    _refuse_other_file(loaded, past, run)
    before = patch_files.known(home, run) if goal.apply else None
    if before is not None:
        _apply(goal, run, before, _going_on(run, past, loaded), as_json=as_json)
    policy = _policy(goal, loaded, past)
    order = repair_builds.RepairBuild(of_build, policy, goal.runs, goal.model, goal.no_model, goal.yes, quiet)
    outcome, code = _followed(goal, here, run, loaded, policy, quiet=quiet)
    if outcome is None:
        raise typer.Exit(code)
    came, hindered = _built(goal, outcome, order, past, loaded, home, quiet=quiet)
    fix = _fix_of(came) or _keep(home, outcome)
    code = builds_outcome.READY if fix is not None else 1
    console.say("\n".join(_told(goal, outcome, fix, came, hindered, past, loaded)))
    if came is not None and came.ended is None:
        # The build can be resumed: the person reads that last.
        code = came.code
        console.say(came.told())
    try:
        if as_json:
            console.result(_ending(goal, outcome, code, fix, came).as_json())
        elif fix is not None and fix["patch"]:
            console.result(str(fix["patch"]).rstrip("\n"))
    except SetupError as error:
        # The same command would inspect, and perhaps pay, again.
        error = error.replaced(fix="make room; what was found stands as it was told")
        console.say(console.failure(error, _look(goal, run, fix)))
        raise typer.Exit(error.exit) from None
    made = patch_files.known(home, run) if goal.apply and fix is not None and code == builds_outcome.READY else None
    if made is not None:
        _apply(goal, run, made, _going_on(run, past, loaded), as_json=False)
    raise typer.Exit(code)


def _look(goal: RepairOptions, run: str, fix: dict[str, Json] | None) -> str:
    """Return the command to use if a result could not be written."""
    if fix is None:
        return f"runops show {run}"
    return f"runops repair {goal.named}--run {run} --apply{' --yes' if fix['verdict'] == 'guess' else ''}"


def _built(
    goal: RepairOptions,
    outcome: repair.Outcome,
    order: repair_builds.RepairBuild,
    past: history.History,
    loaded: workflow.Loaded,
    home: store.Kept,
    *,
    quiet: bool,
) -> tuple[builds_foreground.Came | None, str | None]:
    """Return the result of a build for the fix; without one, the reason why none was begun although it was possible."""
    if not order.asks(outcome, loaded):
        return None, order.hindered(outcome, loaded)
    if not quiet:
        console.say(f"..  no fix is proved ({outcome.found.kind}): a model looks further")
    try:
        return order.carry_out(outcome, past, loaded, home), None
    except (SetupError, UsageError) as error:
        # Results without a model are reported even so.
        return None, f"no model could be asked: {error.message}. {error.fix or ''}".rstrip()


def _fix_of(came: builds_foreground.Came | None) -> dict[str, Json] | None:
    done = came is not None and came.ended is not None and came.ended.done
    return came.ended.value.get("fix") if came is not None and came.ended is not None and done else None


def _keep(home: store.Kept, outcome: repair.Outcome) -> dict[str, Json] | None:
    """Store a fix by candidates next to the run; return its report."""
    proof = outcome.proof
    if proof is None:
        return None
    changes = patch_files.patches_of(proof.repairs, outcome.run)
    known = patch_files.KnownPatch(proof.verdict, changes, proof.done, proof.run)
    steps: list[dict[str, Json]] = [
        {
            "path": each.path,
            "what": each.what,
            "file": str(each.file),
            "others": [] if each.told else list(each.others),
        }
        for each in proof.repairs
    ]
    return patch_files.keep(home, outcome.run, known, steps, proof.reached)


def _passed(run: str, *, as_json: bool, quiet: bool) -> None:
    if not quiet:
        console.say(f"run {run} passed: there is nothing to repair")
    if as_json:
        console.result(endings.NothingToRepair(run=run).as_json())
    raise typer.Exit(0)


def _refuse_other_file(loaded: workflow.Loaded, past: history.History, run: str) -> None:
    """Raise if the file is not that of the run; it may have moved."""
    assert past.header is not None
    same = Path(past.header.file).resolve() == loaded.path.resolve()
    if not same and loaded.workflow.name != past.header.workflow:
        raise UsageError(
            "other-workflow",
            f"run {run} is one of {past.header.file}, and not of {loaded.path}",
            fix=f"`runops repair {shlex.quote(past.header.file)} --run {run}`",
        )


def _changed(loaded: workflow.Loaded, past: history.History) -> bool:
    """Return whether the file differs from that of the run."""
    assert past.header is not None
    return past.header.text.sha256 != hashlib.sha256(loaded.text.encode()).hexdigest()


def _policy(goal: RepairOptions, loaded: workflow.Loaded, past: history.History) -> Policy:
    """Return the policy for the actions of a proof. Raises UsageError ``effects-not-local``."""
    if goal.effects == "allow":
        assert past.header is not None
        known = {name: value for name, value in past.header.inputs.items() if name in loaded.workflow.inputs}
        grants.refuse_allow(loaded.origins(loaded.check_inputs(known)))
    if goal.effects == "ask" and (goal.yes or not questions.possible()):
        return "hold"
    if goal.effects is not None:
        return goal.effects
    asked = questions.possible() and not goal.yes and not os.environ.get("CI")
    return "ask" if asked else "hold"


def _followed(
    goal: RepairOptions, here: host.Host, run: str, loaded: workflow.Loaded, policy: Policy, *, quiet: bool
) -> tuple[repair.Outcome | None, int]:
    """Return the outcome; without one the exit code of an interruption."""

    def say(text: str) -> None:
        if not quiet:
            console.say(f"..  {one_line(text)}")

    copies: list[str] = []

    def listen(event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            copies.append(event.run)

    who = questions.person_at(console.say) if questions.possible() and not goal.yes else person.Nobody()
    one = repair.Repair(here, repair_effects.Effects(policy, who), say, listen)
    again = f"again  runops repair {goal.named}--run {run}"

    def clear() -> None:
        for each in copies:
            foreground.end_browser(here.kept.private(each))

    with foreground.Foreground(lambda: again, clear=clear) as front:
        try:
            return front.run(one.repair(run, loaded)), 0
        except signals.Interrupted as interrupted:
            console.say(f"interrupted; no file is changed\n  {again}")
            return None, interrupted.exit


def _apply(goal: RepairOptions, run: str, known: patch_files.KnownPatch, going_on: str, *, as_json: bool) -> None:
    """Write the fix into its files, and exit; ``going_on`` is the next command."""
    if known.verdict == "guess" and not goal.yes:
        raise UsageError(
            "fix-not-proved",
            f"the fix of run {run} is a guess: nothing tells that what it finds is what was meant",
            fix="look at it; with `--apply --yes` it is written all the same",
        )
    patch_files.apply(known.changes)
    files = [str(each.file) for each in known.changes]
    console.say(f"applied to {', '.join(files)}\n  {_next(run, known, going_on)}")
    if as_json:
        told = {"run": run, "verdict": known.verdict, "files": files, "done": list(known.done)}
        console.result(endings.RepairApplied.model_validate(told).as_json())
    raise typer.Exit(0)


def _going_on(run: str, past: history.History, loaded: workflow.Loaded) -> str:
    """Return the command that resumes with the current file: a run resumes only with the file that it began with."""
    assert past.header is not None
    was = Path(past.header.file)
    if was.resolve() == loaded.path.resolve():
        return f"runops resume {run} --allow-changed"
    return f"runops run {shlex.quote(builds_outcome.shown(str(loaded.path)))}   ({run} was a run of {one_line(str(was))}, and continues with no other file)"


def _next(run: str, known: patch_files.KnownPatch, going_on: str) -> str:
    """Return the command after the fix. Actions of the proof must not be repeated."""
    if not known.done:
        return f"again  {going_on}"
    if known.verdict == "proved":
        return f"done   run {known.proof} continued to the end in its place: {run} is not to be resumed"
    actions = ", ".join(briefs.ours(each) for each in known.done)
    return f"look   runops show {known.proof}   (it did {actions} on the site: resuming {run} would do that again)"


def _told(
    goal: RepairOptions,
    outcome: repair.Outcome,
    fix: dict[str, Json] | None,
    came: builds_foreground.Came | None,
    hindered: str | None,
    past: history.History,
    loaded: workflow.Loaded,
) -> list[str]:
    """Return the report for a person: the failure, its reasons, the fix, and the next command."""
    failure, found = outcome.case.failure, outcome.found
    changed, gone = _changed(loaded, past), outcome.case.gone
    lines = [f"{console.paint(found.kind, console.BOLD, console.YELLOW)}  {one_line(failure.path)}"]
    rows: list[tuple[str, str]] = [("why", one_line(each)) for each in found.why]
    rows += [("file", "it has changed since the run began, and was looked at as it is now")] if changed else []
    rows += [("file", f"it has no step `{one_line(failure.path)}` any more")] if gone else []
    seen = evidence.of(past, failure.path) or {}
    rows += [("page", str(seen["url"]))] if seen.get("url") else []
    rows += [
        ("kept", str(seen[name]["path"]))
        for name in ("screenshot",)
        if seen.get(name) and Path(seen[name]["path"]).is_file()
    ]
    rows += [("tried", one_line(each)) for each in outcome.tried]
    rows += _of_model(came, hindered)
    if fix is None:
        rows.append(("fix", _none(outcome)))
        rows.append(("look", f"runops show {outcome.run} --at {shlex.quote(failure.path)}"))
        if found.kind in ("site error", "slow page", "signed out"):
            rows.append(("again", f"runops resume {outcome.run}{' --allow-changed' if changed else ''}"))
    else:
        rows += [("fix", one_line(f"{each['path']}: {each['what']}")) for each in fix["steps"]]
        rows += [("or", one_line(other)) for each in fix["steps"] for other in each.get("others", ())]
        rows.append(("proof", _proved(fix, built=_fix_of(came) is not None)))
        rows += [("done", f"{one_line(str(each))}, in the proof: it is done on the site") for each in fix["done"]]
        rows.append(("patch", str(fix["kept"])))
        rows.append(("apply", _look(goal, outcome.run, fix)))
        if not fix["done"]:
            rows.append(("then", _going_on(outcome.run, past, loaded)))
    wide = max(len(name) for name, _ in rows)
    return [*lines, *(f"  {name:<{wide}}  {harmless(text)}" for name, text in rows)]


def _of_model(came: builds_foreground.Came | None, hindered: str | None) -> list[tuple[str, str]]:
    if came is None:
        return [("model", one_line(hindered))] if hindered is not None else []
    rows: list[tuple[str, str]] = []
    if came.ended is not None and not came.ended.done:
        rows.append(("model", one_line(f"found no fix: {came.ended.value.get('summary') or came.ended.answer}")))
    totals = came.past.ledger.totals()
    rows += [("cost", costs.told(totals))] if totals is not None else []
    return [*rows, ("build", f"runops show {came.session}")]


def _none(outcome: repair.Outcome) -> str:
    if outcome.works_now and outcome.found.kind == "slow page":
        return "none is needed: the step finds what it looks for now"
    return "none: run the file as it is now" if outcome.case.gone else outcome.found.fix


def _proved(fix: dict[str, Json], *, built: bool) -> str:
    said = (SAID_OF_BUILDS if built else SAID)[str(fix["verdict"])]
    where = f": {briefs.ours(str(fix['reached']))}" if fix["reached"] else ""
    return f"{said}{where}  (run {fix['run']})"


def _ending(
    goal: RepairOptions,
    outcome: repair.Outcome,
    code: int,
    fix: dict[str, Json] | None,
    came: builds_foreground.Came | None,
) -> endings.RepairEnding:
    failure, found = outcome.case.failure, outcome.found
    return endings.RepairEnding(
        run=outcome.run,
        status="fix-ready" if fix is not None else "not-fixed",
        exit=code,
        path=failure.path,
        code=failure.code,
        kind=found.kind,
        why=list(found.why),
        next=_none(outcome) if fix is None else _look(goal, outcome.run, fix),
        fix=endings.PatchReport.maybe(fix),
        tried=list(outcome.tried),
        looked=outcome.looked,
        build=came.record() if came is not None else None,
    )
