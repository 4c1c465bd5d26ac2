"""Runs a repair in the foreground: follows it, lets a model look further, and reports the result."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
from pathlib import Path

import typer

from director.cli import foreground as cli_foreground
from director.cli import input as typed_input
from director.cli import session_options
from director.cli.builds import foreground, outcome
from director.draft import project_files
from director.draft.goal import Policy
from director.effects import grants
from director.repair import effects as repair_effects
from director.repair import goals, patch_files, repair
from director.session import person, settings
from director.session.state import SessionState
from nodes.errors import SetupError, UsageError
from nodes.values import Json
from runtime import events, logger
from runtime.cli import console, signals
from runtime.cli.foreground import Foreground
from runtime.context import briefs
from runtime.display import costs
from runtime.display.text import one_line
from runtime.engine import evidence
from runtime.language import reader
from runtime.log import entries
from runtime.report import endings
from runtime.secrets import hidden_names, masking, sources
from runtime.workspace import host, run_index

VERDICTS = {
    "proved": "proved: a copy of the run continued from there to its end",
    "held": "proved up to an action that was held",
    "guess": "not proved: nothing shows for sure that this element was meant",
}
VERDICTS_OF_BUILDS = {**VERDICTS, "proved": "proved: the whole workflow passed, in fresh browsers"}


@dataclasses.dataclass(frozen=True, slots=True)
class RepairOptions:
    file: Path | None  # None for the file of the run
    run: str
    effects: Policy | None
    apply: bool
    yes: bool
    runs: int = 2  # number of runs that a model's fix must pass
    model: str | None = None
    no_model: bool = False


def carry_out(goal: RepairOptions, here: host.Host, *, of_build: host.Host, as_json: bool, quiet: bool) -> None:
    """Repair a run; ``of_build`` has the settings for a build that looks for a fix.

    Always raises ``typer.Exit``, or RunOpsError if it could not begin.
    """
    logger.silence()
    one = _Repair(goal, here, quiet=quiet)
    if one.past.status == "passed":
        if not quiet:
            console.say(f"run {one.run} passed: there is nothing to repair")
        if as_json:
            console.result(endings.NothingToRepair(run=one.run).as_json())
        raise typer.Exit(0)
    one.load()
    one.apply(as_json=as_json)
    found = one.follow()
    built, no_build = one.build(found, of_build)
    ending = one.ending(found, built)
    console.say("\n".join(one.render(ending, found, built, no_build)))
    if built is not None and built.ended is None:
        # The command that resumes the build comes last.
        console.say(built.text)
    patch = ending.fix.patch.rstrip("\n") if ending.fix is not None else ""
    cli_foreground.result(ending.as_json() if as_json else patch or None, one.next_command(ending.fix))
    if ending.exit == outcome.READY:
        one.apply(as_json=False)
    raise typer.Exit(ending.exit)


class _Repair:
    def __init__(self, goal: RepairOptions, here: host.Host, *, quiet: bool) -> None:
        self._goal, self._here, self._quiet = goal, here, quiet
        self.run = run_index.find(here.reader, goal.run)
        self.past, reading = run_index.load_history(here.reader, self.run)
        if reading.owned:
            raise UsageError("not-failed", f"run {self.run} is continuing", fix="wait for its end, or stop it")
        assert self.past.header is not None
        self._header = self.past.header
        self._was = Path(self.past.header.file)
        named = f"{shlex.quote(str(goal.file))} " if goal.file is not None else ""
        self._again = f"runops repair {named}--run {self.run}"
        self._asks = typed_input.can_ask() and not goal.yes

    def load(self) -> None:
        """Read the file, which may have moved. Raises UsageError ``other-workflow``, ``effects-not-local``."""
        self._loaded = loaded = reader.load(self._goal.file or run_index.workflow_file(self.past))
        self._same_file = self._was.resolve() == loaded.path.resolve()
        if not self._same_file and loaded.workflow.name != self._header.workflow:
            raise UsageError(
                "other-workflow",
                f"run {self.run} is one of {self._was}, and not of {loaded.path}",
                fix=f"`runops repair {shlex.quote(str(self._was))} --run {self.run}`",
            )
        self._changed = self._header.text.sha256 != hashlib.sha256(loaded.text.encode()).hexdigest()

    def _policy(self) -> Policy:
        if self._goal.effects == "allow":
            declared = self._loaded.workflow.inputs
            known = {name: value for name, value in self._header.inputs.items() if name in declared}
            grants.refuse_allow(self._loaded.origins(self._loaded.check_inputs(known)))
        if self._goal.effects == "ask" or (self._goal.effects is None and not os.environ.get("CI")):
            return "ask" if self._asks else "hold"
        return self._goal.effects or "hold"

    def follow(self) -> repair.Outcome:
        self.policy: Policy = self._policy()
        copies: list[str] = []

        def say(text: str) -> None:
            if not self._quiet:
                console.say(f"..  {one_line(text)}")

        def listen(event: events.Event) -> None:
            if isinstance(event, events.RunStarted):
                copies.append(event.run)

        who = typed_input.person_at(console.say) if self._asks else person.Nobody()
        one = repair.Repair(self._here, repair_effects.Effects(self.policy, who), say, listen)
        with Foreground(
            lambda: f"again  {self._again}", clear=lambda: cli_foreground.end_browsers(self._here.reader, copies)
        ) as front:
            try:
                return front.run(one.repair(self.run, self._loaded))
            except signals.Interrupted as interrupted:
                console.say(f"interrupted; no file is changed\n  again  {self._again}")
                raise typer.Exit(interrupted.exit) from None

    def build(self, found: repair.Outcome, of_build: host.Host) -> tuple[outcome.Outcome | None, str | None]:
        """Return the outcome of a build for the fix, or None with the reason why none was begun, if one is to be shown."""
        if not goals.is_open(found) or self._goal.no_model:
            return None, None
        step = found.case.found
        if step is not None and step.user:
            why = f"the step is in {step.file.path}, and a build fixes only the file that was run"
            return None, f"no model is asked: {why}"
        try:
            return self._built(found, of_build), None
        except (SetupError, UsageError) as error:
            # What was found without a model is still reported.
            return None, f"no model was asked: {error.message}. {error.fix or ''}".rstrip()

    def _built(self, found: repair.Outcome, here: host.Host) -> outcome.Outcome:
        """Run a build that looks for a fix. Raises SetupError and UsageError if it cannot begin; then nothing is written."""
        models = session_options.Models.of(here)
        models.check(here.settings.budget)
        if not self._quiet:
            console.say(f"..  no fix is proved ({found.found.kind}): a model looks further")
        # A person who has refused an action is not asked again.
        policy: Policy = "hold" if found.refused else self.policy
        goal = goals.of(found, self.past, self._loaded, here.reader, policy=policy, runs=self._goal.runs)
        known = sources.read(here.secrets, goal.secrets, goal.place.parent)
        masker = masking.Masker({**known, **models.masked()}, hidden_names.of(here.settings.hidden_names))
        text = project_files.text_of(goal.place)
        if masker.but_words.holds(text):
            raise UsageError(
                "secret-refused",
                f"{self._loaded.path} contains a secret, so it is not sent to a model",
                fix="write `{{ secrets.NAME }}` in its place, or repair with `--no-model`",
            )
        wanted = entries.Build.model_validate(masker.json(goal.as_logged().model_dump(mode="json")))
        header = entries.SessionHeader(purpose="build", versions={}, build=wanted)

        async def keep(own: SessionState) -> None:
            settings.keep(own, settings.given(here.settings, {"model_director": self._goal.model}))

        opening = session_options.open_session(here, models, header, known, keep)
        return foreground.follow(opening, here, models, asks=not self._goal.yes, quiet=self._quiet)

    def _keep(self, found: repair.Outcome) -> endings.PatchReport | None:
        proof = found.proof
        if proof is None:
            return None
        changes = patch_files.patches_of(proof.repairs, self.run)
        known = patch_files.KnownPatch(proof.verdict, changes, proof.done, proof.run)
        steps = [
            endings.PatchedStep(
                path=each.path, what=each.what, file=str(each.file), others=[] if each.evident else list(each.others)
            )
            for each in proof.repairs
        ]
        fix = patch_files.keep(self._here.reader, self.run, known, list(map(dict, steps)), proof.reached)
        return endings.PatchReport.model_validate(fix)

    def apply(self, *, as_json: bool) -> None:
        """With `--apply` and a stored fix, write the fix into its files and exit. Raises UsageError ``fix-not-proved``."""
        known = patch_files.known(self._here.reader, self.run) if self._goal.apply else None
        if known is None:
            return
        if known.verdict == "guess" and not self._goal.yes:
            raise UsageError(
                "fix-not-proved",
                f"the fix of run {self.run} is a guess: nothing shows that the element that it finds was meant",
                fix="look at it; `--apply --yes` writes it even so",
            )
        patch_files.apply(known.changes)
        files = [str(each.file) for each in known.changes]
        console.say(f"applied to {', '.join(files)}\n  {self._next(known)}")
        if as_json:
            applied = {"run": self.run, "verdict": known.verdict, "files": files, "done": list(known.done)}
            console.result(endings.RepairApplied.model_validate(applied).as_json())
        raise typer.Exit(0)

    def _next(self, known: patch_files.KnownPatch) -> str:
        """Return the next command after the fix; it must not repeat the actions of the proof."""
        if not known.done:
            return f"again  {self._resume_command()}"
        if known.verdict == "proved":
            return f"done   run {known.proof} continued to the end in its place: {self.run} is not to be resumed"
        actions = ", ".join(briefs.ours(each) for each in known.done)
        return f"look   runops show {known.proof}   (it did {actions} on the site: resuming {self.run} would do that again)"

    def _resume_command(self) -> str:
        """Return the command that continues with the current file. A run resumes only with the path that it began with."""
        if self._same_file:
            return f"runops resume {self.run} --allow-changed"
        file = shlex.quote(outcome.shown(str(self._loaded.path)))
        was = one_line(str(self._was))
        return f"runops run {file}   ({self.run} was a run of {was}, and continues with no other file)"

    def next_command(self, fix: endings.PatchReport | None) -> str:
        if fix is None:
            return f"runops show {self.run}"
        return f"{self._again} --apply{' --yes' if fix.verdict == 'guess' else ''}"

    def ending(self, found: repair.Outcome, built: outcome.Outcome | None) -> endings.RepairEnding:
        fix = endings.PatchReport.maybe(built.fix if built is not None else None) or self._keep(found)
        code = outcome.READY if fix is not None else 1
        advice = "none: run the file as it is now" if found.case.gone else found.found.advice
        if found.works_now and found.found.kind == "slow page":
            advice = "none is needed: the step finds what it looks for now"
        failure = found.case.failure
        return endings.RepairEnding(
            run=self.run,
            status="fix-ready" if fix is not None else "not-fixed",
            exit=code if built is None or built.ended is not None else built.record.exit,
            path=failure.path,
            code=failure.code,
            kind=found.found.kind,
            why=[found.found.why],
            next=advice if fix is None else self.next_command(fix),
            fix=fix,
            tried=list(found.tried),
            looked=found.looked,
            build=built.record if built is not None else None,
        )

    def render(
        self,
        ending: endings.RepairEnding,
        found: repair.Outcome,
        built: outcome.Outcome | None,
        no_build: str | None,
    ) -> list[str]:
        kind, path, fix = ending.kind, ending.path, ending.fix
        rows = [("why", one_line(each)) for each in ending.why]
        if self._changed:
            rows.append(("file", "it has changed since the run began; the present file was examined"))
        if found.case.gone:
            rows.append(("file", f"it has no step `{one_line(path)}` any more"))
        seen: dict[str, Json] = evidence.of(self.past, path) or {}
        if seen.get("url"):
            rows.append(("page", str(seen["url"])))
        if seen.get("screenshot") and Path(seen["screenshot"]["path"]).is_file():
            rows.append(("kept", str(seen["screenshot"]["path"])))
        rows += [("tried", one_line(each)) for each in ending.tried]
        rows += [("model", one_line(no_build))] if no_build is not None else []
        rows += _of_build(built) if built is not None else []
        if fix is None:
            rows += [("fix", ending.next), ("look", f"runops show {self.run} --at {shlex.quote(path)}")]
            if kind in ("site error", "slow page", "signed out"):
                rows.append(("again", f"runops resume {self.run}{' --allow-changed' if self._changed else ''}"))
        else:
            rows += [("fix", one_line(f"{each.path}: {each.what}")) for each in fix.steps]
            rows += [("or", one_line(other)) for each in fix.steps for other in each.others or ()]
            said = VERDICTS if built is None or built.fix is None else VERDICTS_OF_BUILDS
            where = f": {briefs.ours(fix.reached)}" if fix.reached else ""
            rows.append(("proof", f"{said[fix.verdict]}{where}  (run {fix.run})"))
            rows += [("done", f"{one_line(each)}: the proof did it on the site") for each in fix.done]
            rows += [("patch", fix.kept), ("apply", ending.next)]
            if not fix.done:
                rows.append(("then", self._resume_command()))
        return [f"{console.paint(kind, console.BOLD, console.YELLOW)}  {one_line(path)}", *outcome.rows(rows)]


def _of_build(built: outcome.Outcome) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if built.ended is not None and not built.ended.done:
        rows.append(("model", one_line(f"found no fix: {built.ended.value.get('summary') or built.ended.answer}")))
    if built.record.costs is not None:
        rows.append(("cost", costs.render(built.record.costs.model_dump())))
    return [*rows, ("build", f"runops show {built.record.session}")]
