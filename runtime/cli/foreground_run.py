"""A run in the foreground: its display, interruption and end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping
from types import FrameType

import typer

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events, logger
from runtime.cli import console, foreground, signals
from runtime.display import costs, escapes, facts
from runtime.display.display import Display, choose
from runtime.display.stream import put_at_once
from runtime.display.text import duration, from_here, harmless, one_line
from runtime.log.store import owners
from runtime.log.store import store as log_store
from runtime.recovery import workflow_source
from runtime.report import endings
from runtime.runs import answers, patches, runtime
from runtime.runs.runtime import Runtime
from runtime.workspace import host, run_index

REPAIRABLE = frozenset(
    {"target-not-found", "target-ambiguous", "target-not-actionable", "field-not-found", "verify-failed", "timeout"}
)
"""Error codes that may mean that the site no longer fits the file, which `runops repair` can explain."""


class Run:
    def __init__(self, display: Display, store: log_store.StoreReader, again: str | None = None) -> None:
        """``store`` has the run's log; ``again`` is the command that repeats a run that cannot be resumed."""
        self.display = display
        self._store = store
        self._again = again
        self.id: str | None = None  # known once the run's log is open
        self.ended: events.RunEnded | None = None  # the run's outcome, once it has reported one
        self.signal: int | None = None  # the signal that interrupted it

    def listen(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self.id = event.run
        elif isinstance(event, events.RunEnded):
            self.ended = event
        self.display(event)

    def follow(
        self, front: foreground.Foreground, begin: Callable[[events.Listener], Awaitable[runtime.Run]]
    ) -> events.RunEnded | None:
        """Start or resume the run with ``begin``, and wait for its end. Returns None if it was interrupted before it reported an outcome."""

        async def carried() -> events.RunEnded:
            with self.display:
                run = await begin(self.listen)
                return await run.to_its_end()

        try:
            return front.run(carried())
        except signals.Interrupted as interrupted:
            self.signal = interrupted.number
            return self.ended

    def notice(self) -> None:
        self.display(events.Said("interrupting the run (Ctrl-C again: at once)"))

    def clear(self) -> None:
        with contextlib.suppress(Exception):
            self.display.end()
        if self.id is not None:
            foreground.end_browser(self._store.private(self.id))

    def leave(self, number: int, _frame: FrameType | None) -> None:
        """Exit with the next command to type. This is the signal handler before and after the run."""
        if words := self.last_words():
            put_at_once(words)
        os._exit(signals.exit_code(number))

    def last_words(self) -> str:
        return "" if self.ended is not None and self.ended.status == "passed" else self._interrupted()

    def _interrupted(self) -> str:
        if self.id is None:
            return "interrupted before the run began"
        if self._again is not None:
            return f"interrupted\n  again  {self._again}"
        return f"interrupted; nothing is lost\n  again  runops resume {self.id}"

    def code(self, ended: events.RunEnded | None) -> int:
        if self.signal is not None and (ended is None or ended.status == "interrupted"):
            return signals.exit_code(self.signal)
        return ended.exit if ended is not None else 130

    def report(self, ended: events.RunEnded | None, *, quiet: bool) -> None:
        if ended is None or ended.status == "interrupted":
            console.say("\n".join([self._interrupted(), *_cost(ended)]))
        elif ended.status != "passed" or not quiet:
            waits, changed = patches.waits(self._store, ended.run), self._changed(ended)
            console.say(closing(ended, self._again, waits=waits, changed=changed))

    def _changed(self, ended: events.RunEnded) -> ChangedFile | None:
        """Return the changed file with which a failed run may continue; None if there is no such file."""
        if ended.status != "failed" or self._again is not None:
            return None
        try:
            past, _reading = run_index.load_history(self._store, ended.run)
            defaults = workflow_source.takeable(past, self._store)
        except RunOpsError:
            return None
        assert past.header is not None
        return ChangedFile(past.header.file, defaults) if defaults is not None else None


def carry_out(
    begin: Callable[[Runtime, events.Listener], Awaitable[runtime.Run]],
    *,
    here: host.Host,
    as_json: bool,
    quiet: bool,
    trial: str | None = None,
) -> None:
    """Follow a run to its end. Always raises: ``typer.Exit`` with the exit code, or RunOpsError if it could not start.

    ``trial`` is the command line of a trial: its output is printed as JSON, and it cannot be resumed.
    """
    logger.silence()
    run = Run(choose(quiet=quiet), here.reader, trial)

    with signals.handled_by(run.leave):
        with (
            foreground.Foreground(run.last_words, clear=run.clear, notice=run.notice) as front,
            front.holding(Runtime.of(here)) as carrier,
        ):
            ended = run.follow(front, lambda listener: begin(carrier, listener))
        code = run.code(ended)
        run.report(ended, quiet=quiet)
        if as_json:
            state = "interrupted" if ended is None else ended.status
            console.result(endings.of_run(ended, run.id, state, code).as_json())
        elif ended is not None and ended.status == "passed" and (trial is not None or ended.output is not None):
            form = escapes.as_json(ended.output, indent=2) if trial is not None else facts.result_text(ended.output)
            console.result(form)
    raise typer.Exit(code)


@dataclasses.dataclass(frozen=True, slots=True)
class ChangedFile:
    """A workflow that was changed after its run began; ``defaults`` are those of inputs for which the run has another value."""

    file: str
    defaults: Mapping[str, Json]


def report_takeover(holder: owners.Holder | None) -> None:
    if holder is not None:
        console.say(holder.as_taken())


def _cost(ended: events.RunEnded | None) -> list[str]:
    return [f"  cost  {costs.render(ended.costs)}"] if ended is not None and ended.costs is not None else []


def next_step(ended: events.RunEnded, *, waits: bool = False, changed: ChangedFile | None = None) -> dict[str, str]:
    """Return the commands to type after a run that did not pass, by label.

    ``waits``: a fix is ready, not applied. ``changed``: the file, if it has changed and the run may continue with it.
    """
    run, question = ended.run, ended.question or {}
    match ended.status:
        case "replaced":
            return {"look": f"runops show {run}"}
        case "paused":
            return {"answer": answers.how(run, str(question.get("reason")), question.get("evidence"))}
        case "out-of-budget":
            return {"again": costs.resume_command(run, ended.error)}
        case _:
            repair = f"runops repair --run {run}"
            more = {"again": f"runops resume {run}{'' if changed is None else ' --allow-changed'}"}
            if changed is not None and changed.defaults:
                file, names = shlex.quote(one_line(from_here(changed.file))), ", ".join(changed.defaults)
                more = {"anew": f"runops run {file}   (only a new run takes what the file now says: {names})", **more}
            if waits:
                return {"repair": f"{repair} --apply   (a fix of it is ready, and not applied)", **more}
            return {"repair": repair, **more} if (ended.error or {}).get("code") in REPAIRABLE else more


def closing(
    ended: events.RunEnded,
    again: str | None = None,
    *,
    waits: bool = False,
    changed: ChangedFile | None = None,
) -> str:
    """Render a run's outcome and the next command: ``again`` for a run that cannot be resumed; the others as in ``next_step``."""
    if ended.status == "passed":
        tolerated = f"  {ended.tolerated} tolerated" if ended.tolerated else ""
        passed = f"{console.paint('passed', console.BOLD, 32)}  {duration(ended.seconds)}{tolerated}  run {ended.run}"
        return "\n".join([passed, *_cost(ended)])
    error = ended.question or ended.error or {}
    colour = console.YELLOW if ended.status in ("paused", "out-of-budget", "replaced") else console.RED
    word = console.paint(ended.status.upper().replace("-", " "), console.BOLD, colour)
    where = f"{one_line(ended.path)}   " if ended.path else ""
    reason, seen = error.get("reason"), error.get("evidence")
    if reason is not None:
        seen = answers.question_fields(str(reason), seen)
    more = {
        "code": str(error.get("code") or reason),
        "at": one_line(from_here(ended.place or "")),
        "fix": one_line(str(error.get("fix") or "")),
        "cost": costs.render(ended.costs) if ended.costs is not None else "",
        "look": f"runops show {ended.run} --at {shlex.quote(ended.path)}" if ended.path else "",
        **({"again": again} if again is not None else next_step(ended, waits=waits, changed=changed)),
    }
    named = {name: text for name, text in more.items() if text}
    head = f"{word} {where}{harmless(str(error.get('message', '')))}".rstrip()
    return "\n".join([head, *facts.facts(seen if isinstance(seen, dict) else {}, named)])
