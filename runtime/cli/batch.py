"""The cases of one command, in turn or by workers: each is reported as it ends, and all are summed up."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence

from nodes.errors import InternalError, RunOpsError, UsageError
from nodes.values import Json
from runtime import events
from runtime.batch import flaky, planning, shards
from runtime.batch import policy as policies
from runtime.cli import batch_summary, console, foreground, foreground_run, signals, values
from runtime.display import escapes, facts
from runtime.display.display import choose
from runtime.display.text import count
from runtime.language import diagnostics
from runtime.language import prepare as language_prepare
from runtime.report import endings
from runtime.runs import collect, model_plan, reporters, results, start
from runtime.runs.runtime import Runtime
from runtime.secrets import masking, sources
from runtime.services import functions
from runtime.workspace import host


@dataclasses.dataclass
class Batch:
    """The cases of one command."""

    found: Sequence[collect.Found]  # all files that were found, also those without a case here
    plan: planning.Plan
    here: host.Host
    as_json: bool = False
    quiet: bool = False
    workers: int = 1
    flags: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Settings that the command line gives: each worker loads its settings with them."""
    policy: policies.Policy = dataclasses.field(default_factory=policies.Policy)
    plain: bool = False  # true if one file was named: its output is printed as it is
    reporters: Sequence[reporters.Reporter] = ()
    listeners: Sequence[reporters.CaseListener] = ()
    key: str | None = None  # the run's key, only for one file: if a run has it, that run is resumed
    allow_changed: bool = False  # true if a resumed run uses its current file
    arguments: Sequence[str] = ()  # the command line, for messages that repeat it

    def __post_init__(self) -> None:
        self.outcomes = self.plan.outcomes
        self.results = results.Results(self.outcomes, self.plan.shard, self.plan.selected, results.now())
        if len(self.outcomes) > 1:
            self.here = dataclasses.replace(self.here, usual_mode="shared")
        self._prepared: dict[str, language_prepare.Prepared] = {}
        self._given: dict[str, dict[str, Json]] = {}  # inputs as they were given, without defaults
        self._signal: int | None = None
        self._unwritten: UsageError | None = None
        self._began = time.monotonic()
        self._current: foreground_run.Run | None = None  # the last run that was begun

    def _prepare(self, inputs: values.Given) -> None:
        """Check that every case can start."""
        files = [each.loaded for each in self.found if each.loaded is not None]
        if len(files) == len(self.found):  # the input may be meant for a file that cannot be read
            inputs.refuse_unknown(files)
        for outcome in self.outcomes:
            loaded = outcome.case.loaded
            if loaded is None or outcome.refused is not None:
                continue
            try:
                functions.check(loaded, self.here.settings.python_modules)
                given = self._given[outcome.case.id] = {**inputs.of(loaded), **outcome.case.inputs}
                prepared = language_prepare.prepare(loaded, given, self.here.secrets)
                model_plan.plan(loaded, self.here)
                self._prepared[outcome.case.id] = prepared
            except RunOpsError as error:
                outcome.refused = error

    def carry_out(self, inputs: values.Given) -> int:
        """Begin the runs in turn, if all of them can be begun; return the worst exit code.

        Raises UsageError ``unknown-input`` and ``report-not-written`` before the first run begins, and the exception of a bug after the
        report.
        """
        self._prepare(inputs)
        self._write_report()
        if self.plan.note is not None and not self.quiet:
            console.say(self.plan.note)
        if len(self._prepared) < len(self.outcomes):
            return self._refuse()
        failure: Exception | None = None
        try:
            if self.outcomes:
                self._run_all()
        except signals.Interrupted as interrupted:
            self._signal = interrupted.number
        except Exception as error:  # noqa: BLE001 — the outcomes of the other runs are reported first
            failure = error
        with signals.handled_by(lambda _number, _frame: None):
            code = self._sum_up(failed=failure is not None)
        if failure is not None:
            raise failure
        return code

    def _run_all(self) -> None:
        if self.workers > 1 and len(self.outcomes) > 1:
            self._run_parallel()
        else:
            self._run_in_turn()

    def _run_parallel(self) -> None:
        from runtime.cli import parallel  # most commands have one worker

        order = shards.longest_first([each.case.id for each in self.outcomes], self.plan.seconds)
        parallel.Parallel(
            [self.outcomes[position] for position in order],
            self._given,
            min(self.workers, len(self.outcomes)),
            self.flags,
            self.policy,
            self.here,
            over=self._case_over,
            changed=self._note_report,
            listeners=self.listeners,
            quiet=self.quiet,
            prints_outputs=not self.as_json,
        ).carry_out()

    def _run_in_turn(self) -> None:
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
                    console.say(f"-- {position}/{len(self.outcomes)}  {escapes.line(outcome.case.id)}")
                self._run_case(outcome, front, carrier)
                if self._signal is not None or self.policy.is_over(self.outcomes):
                    break

    def _run_case(self, outcome: results.Outcome, front: foreground.Foreground, carrier: Runtime) -> None:
        self._run(outcome, front, carrier)
        while self._signal is None and self.policy.retries_now(outcome):
            if not self.quiet:
                console.say(batch_summary.retry(outcome, self.policy.retries))
            self._run(outcome, front, carrier)
        self._case_over(outcome)

    def _case_over(self, outcome: results.Outcome) -> None:
        outcome.over = True
        self.policy.note(outcome)
        outcome.differed = flaky.differed(outcome, self.here.reader)
        if self.quiet and outcome.state == "flaky":
            console.say(batch_summary.line(outcome).lstrip())
        self._note_report()

    def _run(self, outcome: results.Outcome, front: foreground.Foreground, carrier: Runtime) -> None:
        prepared = self._prepared[outcome.case.id]
        run = self._current = foreground_run.Run(choose(quiet=self.quiet), self.here.reader)
        this = outcome.begin()
        self._note_report()
        try:
            ended = run.follow(
                front,
                lambda listener: carrier.begin(
                    prepared,
                    key=self.key,
                    allow_changed=self.allow_changed,
                    options=start.Options(row=outcome.case.row),
                    listener=self._heard(outcome.case, listener),
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
        # What a retry repairs is one line, once the case is over.
        if not (self.quiet and self._signal is None and self.policy.retries_now(outcome)):
            run.report(ended, quiet=self.quiet)
        if not self.as_json and ended is not None and ended.status == "passed" and ended.output is not None:
            output: Json = ended.output if self.plain else {outcome.case.id: ended.output}
            console.result(facts.result_text(output))

    def _heard(self, case: results.Case, listener: events.Listener) -> events.Listener:
        """Return a listener that tells all others, too."""

        def hear(event: events.Event) -> None:
            listener(event)
            for each in self.listeners:
                each.event(case, event.as_json())

        return hear if self.listeners else listener

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
            console.say(console.failure(shown, following, place=None if alone else outcome.case.id))
        if not alone:
            each = "file" if all(one.case.row is None for one in self.outcomes) else "case"
            console.say(f"{len(refused)} of {count(len(self.outcomes), each)} cannot be run, so none was begun")
        self._end([error.exit for _, error in refused])
        return self._print()

    def _sum_up(self, *, failed: bool) -> int:
        codes = self.policy.codes(self.outcomes)
        if self._signal is not None and any(each.state == "skipped" for each in self.outcomes):
            codes.append(signals.exit_code(self._signal))
        if failed:
            codes.append(InternalError.exit)
        self._end(codes)
        if self._unwritten is not None:
            console.say(console.failure(self._unwritten))
            self._end([*codes, self._unwritten.exit])
        several = len(self.outcomes) > 1 or any(each.state == "flaky" for each in self.outcomes)
        if several and not (self.quiet and not self.results.exit):
            console.say("\n".join(batch_summary.lines(self.outcomes, time.monotonic() - self._began)))
        return self._print()

    def _end(self, codes: Sequence[int]) -> None:
        self.results.exit = results.worst(codes)
        self._note_report()

    def _print(self) -> int:
        assert self.results.exit is not None
        if self.as_json:
            console.result(endings.of_batch(self.results, self.results.exit).as_json())
        return self.results.exit

    def _write_report(self) -> None:
        masker = masking.Masker(sources.SEEN)
        for each in self.reporters:
            each.update(self.results, masker)

    def _note_report(self) -> None:
        """Write the report again. A failure stops no run: it is reported at the end."""
        try:
            self._write_report()
        except UsageError as error:
            self._unwritten = error
