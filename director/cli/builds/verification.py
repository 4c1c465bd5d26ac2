"""Proves a workflow by whole runs in the foreground, and writes the proof into its head."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path

from director.draft import output_files
from director.effects import grants
from director.proving import draft_runs, finish, proofs, report, resets
from nodes.errors import AssertFailed, LogError, RunOpsError, UsageError
from runtime import events, logger
from runtime.cli import console, foreground, foreground_run, signals, values
from runtime.display import escapes
from runtime.display.display import choose
from runtime.engine import run_state
from runtime.language import prepare, reader
from runtime.log import history
from runtime.report import endings
from runtime.report.parts import ErrorReport
from runtime.runs import model_plan, results, start
from runtime.runs.runtime import Runtime
from runtime.secrets import masking, sources
from runtime.services import functions
from runtime.system import regular_files
from runtime.workspace import host, run_index


@dataclasses.dataclass(frozen=True, slots=True)
class VerifyOptions:
    file: Path
    inputs: values.Given
    runs: int
    hold: bool  # true if the first side effect ends each run
    unproved: tuple[str, ...]  # names of actions and outputs that may stay unproved
    write: bool
    as_json: bool
    quiet: bool
    arguments: tuple[str, ...]  # the command line, for messages that repeat it


class Verification:
    """The runs of one command. Raises RunOpsError from the start if the workflow cannot be run."""

    def __init__(self, options: VerifyOptions, here: host.Host) -> None:
        logger.silence()
        self._options, self._here = options, here
        self._loaded = loaded = reader.load(options.file)
        self._text = regular_files.read(options.file).decode()  # with its byte order mark, if it has one
        options.inputs.refuse_unknown([loaded])
        functions.check(loaded, here.settings.python_modules)
        self._prepared = prepare.prepare(loaded, options.inputs.of(loaded), here.secrets)
        model_plan.plan(loaded, here)
        if options.write:
            _refuse_unwritable(options.file)
        self._reset = resets.of(here, options.file.absolute().parent)
        self._mask = masking.Masker(sources.SEEN).text
        self._runs: list[tuple[foreground_run.Run, events.RunEnded | None]] = []
        self._ran: list[proofs.Ran] = []
        self._signal: int | None = None

    def carry_out(self) -> int:
        """Run the workflow until a run does not go well, report the proof, and write it; return the exit code."""
        error: RunOpsError | None = None
        try:
            self._run_all()
        except signals.Interrupted as interrupted:
            self._signal = interrupted.number
        except RunOpsError as failed:
            error = failed
        with signals.handled_by(lambda _number, _frame: None):
            return self._sum_up(error)

    def _run_all(self) -> None:
        def current() -> foreground_run.Run | None:
            return self._runs[-1][0] if self._runs else None

        with (
            foreground.Foreground(
                lambda: run.last_words() if (run := current()) is not None else "interrupted",
                clear=lambda: (run := current()) is not None and run.clear(),
                notice=lambda: (run := current()) is not None and run.notice(),
            ) as front,
            front.holding(Runtime.of(self._here)) as carrier,
        ):
            while len(self._runs) < self._options.runs and all(each.went_well for each in self._ran):
                self._say(f"-- run {len(self._runs) + 1}/{self._options.runs}")
                self._put_back(front)
                self._run(front, carrier)
                if self._signal is not None:
                    break

    def _put_back(self, front: foreground.Foreground) -> None:
        """Put the site's data back. Raises SetupError ``reset-failed``."""
        if self._reset is not None:
            done = front.run(self._reset.carry_out(self._mask))
            done.check()
            self._say(done.describe(self._mask(self._reset.command)))

    def _run(self, front: foreground.Foreground, carrier: Runtime) -> None:
        run = foreground_run.Run(choose(quiet=self._options.quiet), self._here.reader)
        self._runs.append((run, None))
        holds = grants.withheld(None, {}, ()) if self._options.hold else run_state.withholds_nothing
        ended = run.follow(
            front,
            lambda listener: carrier.begin(
                self._prepared, listener=listener, options=start.Options(holds=holds, proves=True)
            ),
        )
        self._runs[-1], self._signal = (run, ended), run.signal
        if ended is None:
            run.report(ended, quiet=self._options.quiet)
            return
        ran = draft_runs.of_ended(ended, self._loaded, self._past(ended.run), reset=self._reset is not None)
        self._ran.append(ran)
        if ran.stopped is None:
            run.report(ended, quiet=self._options.quiet)
        else:
            self._say(report.head(ran))

    def _past(self, run: str) -> history.History | None:
        with contextlib.suppress(UsageError, LogError):
            return run_index.load_history(self._here.reader, run)[0]
        return None

    def _sum_up(self, error: RunOpsError | None) -> int:
        options = self._options
        proof = finish.Proof(self._loaded.text, self._loaded, tuple(self._ran))
        whole = len(self._ran) == options.runs and all(each.went_well for each in self._ran)
        unproved = list(finish.unsaid(proof, finish.FinishRequest("", " ".join(options.unproved)))) if whole else []
        if unproved:
            error = _unproved(proof, unproved)
        written = False
        if whole and not unproved and options.write:
            try:
                written = self._write(proof)
            except UsageError as failed:
                error = failed
        codes = [self._code(run, ended) for run, ended in self._runs]
        codes += [signals.exit_code(self._signal)] if self._signal is not None else []
        code = results.worst([*codes, *([error.exit] if error is not None else [])])
        if whole:
            self._tell(proof, written=written, told=bool(unproved))
        if error is not None:
            console.say(console.failure(error, console.next_command(error, [*options.arguments])))
        elif self._signal is not None and not self._runs:
            console.say("interrupted before a run began")
        if options.as_json:
            record = endings.VerifyRecord(
                file=str(options.file),
                exit=code,
                proved=proof.headline if whole else "not",
                reset=self._reset is not None,
                effects=[
                    endings.ActionReport(node=each.key, action=each.said, what=each.describe()) for each in proof.listed
                ],
                not_executed=proof.not_executed,
                unproved=unproved,
                written=written,
                error=ErrorReport.raised(error),
            )
            ended = [(each, run.id, self._code(run, each)) for run, each in self._runs]
            console.result(endings.of_verify(record, ended).as_json())
        return code

    def _code(self, run: foreground_run.Run, ended: events.RunEnded | None) -> int:
        ran = next((each for each in self._ran if ended is not None and each.run == ended.run), None)
        if ran is None or (ran.stopped is None and ran.already is None):
            return run.code(ended)
        return 0 if ran.went_well else AssertFailed.exit

    def _tell(self, proof: finish.Proof, *, written: bool, told: bool) -> None:
        """``told``: an error names what some run did not do, and the fix."""
        if not self._options.as_json:
            lines = [*proof.head]
            lines += [f"executed in no run: {', '.join(proof.unreached)}"] if proof.unreached else []
            lines += [f"passed by: {guard}" for guard in proof.guards]
            console.result("\n".join(map(escapes.line, map(self._mask, lines))))
        if proof.without_reset and not told:
            self._say(self._mask(proof.without_reset))
        if written:
            self._say(f"the proof is written into the head of {self._options.file}")

    def _say(self, text: str) -> None:
        if not self._options.quiet:
            console.say(escapes.shown(text))

    def _write(self, proof: finish.Proof) -> bool:
        """Write the proof into the head of the file. Raises UsageError ``file-changed``, ``file-not-written``."""
        file = self._options.file
        try:
            if regular_files.read(file).decode() != self._text:
                raise UsageError(
                    "file-changed",
                    f"{file} was changed while it was verified, so the proof is not written",
                    fix="verify it again",
                )
            lines = [self._mask(each) for each in proof.head]
            output_files.overwrite(file, output_files.verified(self._text, lines, [each.run for each in proof.runs]))
        except OSError as error:
            raise _not_written(file, error) from None
        return True


def _refuse_unwritable(file: Path) -> None:
    """Raise UsageError ``file-not-written`` if the head of the file cannot be written, before any run."""
    place = file.resolve()
    # Root could write a read-only file all the same: respect its mode.
    if not place.stat().st_mode & 0o222 or not os.access(place.parent, os.W_OK | os.X_OK):
        raise _not_written(file, PermissionError(None, "it is read-only"))


def _not_written(file: Path, error: OSError) -> UsageError:
    return UsageError(
        "file-not-written",
        f"{file} could not be written: {error.strerror or error}",
        fix="make it writable, or print the proof only: --no-write",
    )


def _unproved(proof: finish.Proof, names: list[str]) -> AssertFailed:
    fix = "change the workflow or its inputs; what is right so is named with `--unproved NAME`"
    if proof.without_reset:
        fix = f"put the site's data back before each run: `--reset CMD`. Or {fix}"
    return AssertFailed("unproved", f"the runs passed, and do not prove: {', '.join(names)}", fix=fix)
