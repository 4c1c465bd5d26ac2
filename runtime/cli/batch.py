"""Several runs, one after another: each is reported as it ends, and all are summed up."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime.cli import console, foreground, foreground_run, signals, values
from runtime.display import costs, escapes, facts
from runtime.display.display import choose
from runtime.display.text import count, duration, one_line
from runtime.language import diagnostics
from runtime.language import prepare as language_prepare
from runtime.log import ledger
from runtime.report import endings
from runtime.runs import collect, model_plan, reporters, results
from runtime.runs.runtime import Runtime
from runtime.secrets import masking
from runtime.services import functions
from runtime.workspace import host


@dataclasses.dataclass
class Batch:
    """The runs of one command, one for each found file."""

    found: Sequence[collect.Found]
    here: host.Host
    as_json: bool = False
    quiet: bool = False
    fail_fast: bool = False  # begin no further run once one did not pass
    plain: bool = False  # true if one file was named: its output is printed as it is
    reporters: Sequence[reporters.Reporter] = ()
    key: str | None = None  # the run's key, only for one file: if a run has it, that run is resumed
    allow_changed: bool = False  # true if a resumed run uses its current file
    arguments: Sequence[str] = ()  # the command line, for messages that repeat it

    def __post_init__(self) -> None:
        self.outcomes = [results.Outcome(results.Case(each.file, each.loaded)) for each in self.found]
        self.results = results.Results(self.outcomes, selected=[each.case.id for each in self.outcomes])
        if len(self.found) > 1:
            self.here = dataclasses.replace(self.here, usual_mode="shared")
        self._prepared: dict[Path, language_prepare.Prepared] = {}
        self._signal: int | None = None
        self._unwritten: UsageError | None = None
        self._current: foreground_run.Run | None = None  # the last run that was begun

    def _prepare(self, inputs: values.Given) -> None:
        """Check that every file can start."""
        files = [each.loaded for each in self.found if each.loaded is not None]
        if len(files) == len(self.found):  # the input may be meant for a file that cannot be read
            inputs.refuse_unknown(files)
        for outcome, each in zip(self.outcomes, self.found, strict=True):
            if each.error is not None:
                outcome.refused = each.error
            if each.loaded is None:
                continue
            try:
                functions.check(each.loaded, self.here.settings.python_modules)
                prepared = language_prepare.prepare(each.loaded, inputs.of(each.loaded), self.here.secrets)
                model_plan.plan(each.loaded, self.here)
                self._prepared[outcome.file] = prepared
            except RunOpsError as error:
                outcome.refused = error

    def carry_out(self, inputs: values.Given) -> int:
        """Begin the runs in turn, if all of them can be begun; return the worst exit code.

        Raises UsageError ``unknown-input`` and ``report-not-written`` before the first run begins, and the exception of a bug after the
        report.
        """
        self._prepare(inputs)
        self._write_report()
        if len(self._prepared) < len(self.outcomes):
            return self._refuse()
        failure: Exception | None = None
        try:
            self._run_all()
        except signals.Interrupted as interrupted:
            self._signal = interrupted.number
        except Exception as error:  # noqa: BLE001 — the outcomes of the other runs are reported first
            failure = error
        with signals.handled_by(lambda _number, _frame: None):
            self._note_report()
            code = self._sum_up()
        if failure is not None:
            raise failure
        return code

    def _run_all(self) -> None:
        with (
            foreground.Foreground(
                lambda: self._current.last_words() if self._current is not None else "interrupted",
                clear=lambda: self._current is not None and self._current.clear(),
                notice=lambda: self._current is not None and self._current.notice(),
            ) as front,
            front.holding(Runtime.of(self.here)) as carrier,
        ):
            for position, outcome in enumerate(self.outcomes, start=1):
                if len(self.outcomes) > 1 and not self.quiet:
                    console.say(f"-- {position}/{len(self.outcomes)}  {escapes.line(str(outcome.file))}")
                self._run(outcome, front, carrier)
                self._note_report()
                if self._signal is not None or (self.fail_fast and outcome.state != "passed"):
                    break

    def _run(self, outcome: results.Outcome, front: foreground.Foreground, carrier: Runtime) -> None:
        prepared = self._prepared[outcome.file]
        run = self._current = foreground_run.Run(choose(quiet=self.quiet), self.here.reader)
        this = outcome.begin()
        self._note_report()
        try:
            ended = run.follow(
                front,
                lambda listener: carrier.begin(
                    prepared, key=self.key, allow_changed=self.allow_changed, listener=listener
                ),
            )
        except RunOpsError as error:
            this.refuse(error)
            console.say(console.failure(error, console.next_command(error, [*self.arguments])))
            return
        except Exception:
            this.id = run.id
            if run.ended is not None:
                this.end(run.ended, run.ended.exit)
            raise
        this.id = run.id
        if ended is None and run.id is None:
            outcome.runs.remove(this)
        else:
            this.end(ended, run.code(ended))
        self._signal = run.signal
        run.report(ended, quiet=self.quiet)
        if not self.as_json and ended is not None and ended.status == "passed" and ended.output is not None:
            output: Json = ended.output if self.plain else {str(outcome.file): ended.output}
            console.result(facts.result_text(output))

    def _refuse(self) -> int:
        """Print the errors; a mistake of a file that several others use is printed once."""
        refused = [(each, each.error) for each in self.outcomes if each.error is not None]
        alone = len(self.outcomes) == 1
        printed: set[diagnostics.Diagnostic] = set()
        for outcome, error in refused:
            shown = error
            if isinstance(error, diagnostics.WorkflowInvalid):
                new = [each for each in error.diagnostics if each not in printed]
                printed.update(new)
                if not new:
                    continue
                shown = diagnostics.WorkflowInvalid(new, str(outcome.file))
            following = console.next_command(shown, [*self.arguments]) if alone else None
            console.say(console.failure(shown, following, place=None if alone else str(outcome.file)))
        if not alone:
            console.say(f"{len(refused)} of {count(len(self.outcomes), 'file')} cannot be run, so none was begun")
        return self._result(results.worst(error.exit for _, error in refused))

    def _sum_up(self) -> int:
        codes = [each.exit for each in self.outcomes if each.exit is not None]
        if self._signal is not None and any(each.state == "skipped" for each in self.outcomes):
            codes.append(signals.exit_code(self._signal))
        if self._unwritten is not None:
            console.say(console.failure(self._unwritten))
            codes.append(self._unwritten.exit)
        if len(self.outcomes) > 1 and not (self.quiet and not any(codes)):
            console.say("\n".join(summary(self.outcomes)))
        return self._result(results.worst(codes))

    def _result(self, code: int) -> int:
        if self.as_json:
            console.result(endings.of_batch(self.results, code).as_json())
        return code

    def _write_report(self) -> None:
        masker = masking.Masker(host.ENVIRONMENT.seen)
        for each in self.reporters:
            each.update(self.results, masker)

    def _note_report(self) -> None:
        """Write the report again. A failure stops no run: it is reported at the end."""
        try:
            self._write_report()
        except UsageError as error:
            self._unwritten = error


STATES: dict[results.State, str] = {
    "passed": "passed",
    "flaky": "flaky",
    "failed": "FAILED",
    "paused": "PAUSED",
    "interrupted": "INTERRUPTED",
    "out-of-budget": "OUT OF BUDGET",
    "replaced": "REPLACED",
    "error": "NOT RUN",
    "begun": "BEGUN",
    "skipped": "skipped",
}


def summary(ended: Sequence[results.Outcome]) -> list[str]:
    tally = Counter(each.state for each in ended)
    counts = [f"{tally[state]} {word.lower()}" for state, word in STATES.items() if tally[state]]
    lines = [f"{', '.join(counts)}  {duration(sum(each.seconds for each in ended))}"]
    names = [escapes.line(str(each.file)) for each in ended]
    wide = max(map(len, names))
    for each, name in zip(ended, names, strict=True):
        ran = f"{each.run}  {duration(each.seconds)}" if each.run is not None else ""
        why = one_line(f"{each.step or ''}  {(each.problem or {}).get('message', '')}")
        lines.append(f"  {STATES[each.state]:<11}  {name:<{wide}}  {ran}  {why}".rstrip())
    spent = [each.ended.costs for each in ended if each.ended is not None and each.ended.costs is not None]
    if spent:
        lines.append(f"  cost   {costs.render(ledger.together(spent))}")
    stopped = next((each for each in ended if each.run is not None and each.state != "passed"), None)
    if stopped is not None:
        again = {"again": f"runops resume {stopped.run}"} if stopped.state == "interrupted" else {}
        following = foreground_run.next_step(stopped.ended) if stopped.ended is not None else again
        lines.append(f"  look   runops show {stopped.run}")
        lines += [f"  {name:<6} {following[name]}" for name in ("again", "answer") if name in following]
    return lines
