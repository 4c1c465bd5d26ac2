"""Several cases at once: workers carry them out, and the command shows what they do."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime import events
from runtime.batch import policy as policies
from runtime.batch import pool
from runtime.cli import batch_summary, console, foreground, foreground_run, signals
from runtime.display import escapes, facts
from runtime.display.stream import Talk, kind_for
from runtime.display.text import duration
from runtime.runs import patches, reporters, results
from runtime.workspace import host

if TYPE_CHECKING:
    from runtime.cli import board


def jobs(text: str) -> int:
    """Read ``-j N|auto``; ``auto`` is the number of processors. Raises UsageError ``usage``."""
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise UsageError("usage", f"`-j {text}` is no number of workers", fix=f"give 1 to {MOST}, or `auto`")
    return int(text)


MOST = 64


@dataclasses.dataclass
class Parallel:
    """The cases of one command, in several workers. It is the watcher of their pool."""

    outcomes: Sequence[results.Outcome]  # in the order in which they begin
    inputs: Mapping[str, Mapping[str, Json]]
    workers: int
    flags: Mapping[str, Json]  # settings that the command line gives, which each worker loads as the command did
    policy: policies.Policy
    here: host.Host
    over: Callable[[results.Outcome], None]
    """Called when a case has ended."""
    changed: Callable[[], None]
    """Called when a run began or ended."""
    listeners: Sequence[reporters.CaseListener] = ()
    quiet: bool = False
    prints_outputs: bool = True

    def __post_init__(self) -> None:
        self._board: board.Board | None = None
        if not self.quiet and kind_for(Talk(sys.stderr)) == "tree":
            from runtime.cli import board  # rich is slow to load, and only a terminal needs it

            self._board = board.Board(len(self.outcomes))
        self._done = 0

    def carry_out(self) -> None:
        """Carry out all cases. Raises ``signals.Interrupted`` once all current runs are interrupted, and WorkerBug."""
        options: dict[str, Json] = {"flags": dict(self.flags), "steps": self._board is not None or bool(self.listeners)}
        work = pool.Pool(self.outcomes, self.inputs, self.workers, options, self.policy, self)
        try:
            with foreground.Foreground(self._last_words, clear=self._clear, notice=self._notice) as front:
                front.run(self._shown(work))
        except signals.Interrupted as interrupted:
            for each in self.outcomes:
                if each.last is not None and each.state == "interrupted":
                    each.last.exit = signals.exit_code(interrupted.number)
            raise

    async def _shown(self, work: pool.Pool) -> None:
        with self._board or contextlib.nullcontext():
            await work.run()

    # A second Ctrl-C.

    def _clear(self) -> None:
        if self._board is not None:
            self._board.end()
        for run in self._current():
            foreground.end_browser(self.here.reader.private(run))

    def _current(self) -> list[str]:
        return [each.run for each in self.outcomes if each.run is not None and each.state in ("begun", "interrupted")]

    def _last_words(self) -> str:
        lines = [f"  again  runops resume {run}" for run in self._current()]
        return "\n".join(["interrupted; nothing is lost" if lines else "interrupted", *lines])

    def _notice(self) -> None:
        self._say("-- interrupting the runs (Ctrl-C again: at once)")

    # The watcher.

    def began(self, place: int, outcome: results.Outcome) -> None:
        if self._board is not None:
            self._board.began(place, outcome.case.id)

    def heard(self, place: int, outcome: results.Outcome, event: events.Event) -> None:
        for each in self.listeners:
            each.event(outcome.case, event.as_json())
        if isinstance(event, events.Said) and not self.quiet:
            self._say(f"-- {escapes.line(outcome.case.id)}: {escapes.line(event.text)}")
        if self._board is not None:
            self._board.heard(place, event)

    def retries(self, outcome: results.Outcome) -> None:
        if not self.quiet:
            self._say(batch_summary.retry(outcome, self.policy.retries))

    def ended(self, place: int, outcome: results.Outcome) -> None:
        self.over(outcome)
        self._done += 1
        if self._board is not None:
            self._board.ended(place, failed=outcome.state not in ("passed", "flaky"))
        if outcome.state != "skipped" and (not self.quiet or outcome.exit):
            self._say(self._line(outcome))
        ended = outcome.ended
        if self.prints_outputs and ended is not None and ended.status == "passed" and ended.output is not None:
            with self._aside():
                console.result(facts.result_text({outcome.case.id: ended.output}))

    def printed(self, text: str) -> None:
        self._say(text)

    def _line(self, outcome: results.Outcome) -> str:
        state = batch_summary.STATES[outcome.state]
        run = f"  run {outcome.run}" if outcome.run is not None else ""
        head = f"-- {self._done}/{len(self.outcomes)}  {state}  {escapes.line(outcome.case.id)}  {duration(outcome.seconds)}{run}"
        return "\n".join([head, *(f"  {each}" for each in outcome.notes), *self._block(outcome)])

    def _block(self, outcome: results.Outcome) -> list[str]:
        """Return what a person needs to know of a case that did not pass."""
        if isinstance(outcome.error, RunOpsError):
            return [console.failure(outcome.error)]
        ended = outcome.ended
        if outcome.state in ("passed", "flaky") or ended is None:
            return []
        if ended.status == "interrupted":
            return [f"  again  runops resume {ended.run}"]
        return [foreground_run.closing(ended, waits=patches.waits(self.here.reader, ended.run))]

    def _say(self, text: str) -> None:
        with self._aside():
            console.say(text)

    def _aside(self) -> contextlib.AbstractContextManager[None]:
        return self._board.aside() if self._board is not None else contextlib.nullcontext()
