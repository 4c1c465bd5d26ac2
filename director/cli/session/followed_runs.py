"""Runs that a session begins or resumes: followed to their end, reported to the model, and counted against the session's budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nodes import budgets as node_budgets
from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime import events
from runtime.cli import foreground, foreground_run
from runtime.context import briefs
from runtime.display import display, plain
from runtime.log import entries, history
from runtime.log.store import store
from runtime.models import budgets
from runtime.runs import start
from runtime.runs.runtime import Run, Runtime
from runtime.workspace import host, run_index

if TYPE_CHECKING:
    from director.cli.session import conversation

Begin = Callable[[Runtime, events.Listener, start.Options], Awaitable[Run]]
"""Starts or resumes a run, given its listener and the session's options."""

NOTHING = entries.Ran(calls=0, tokens=0, dollars="0", seconds=0)
"""Spending of a run that has not begun."""


class FollowedRun:
    """A run that a session follows, shown by plain lines.

    Its beginning is synced to the session's log before it acts. So a resumed session counts its spending even after a crash: ``settle``
    reads it from the run's log.
    """

    def __init__(self, held: conversation.Conversation, what: str, before: entries.Ran = NOTHING) -> None:
        """``what`` is the message that began it; ``before`` is the run's spending at that time."""
        self._held, self._what, self._before = held, what, before
        screen = held.screen
        self._display: display.Display = display.Quiet() if screen.quiet else plain.Plain(screen.talk)
        self._id: str | None = None
        self._begun = False
        self._ended: events.RunEnded | None = None

    def to_its_end(self, begin: Begin, front: foreground.Foreground, here: host.Host) -> events.RunEnded | None:
        """Return its end; None if it was interrupted before that. Raises RunOpsError if it could not start, ``signals.Interrupted``."""
        interrupted: BaseException | None = None
        try:
            front.run(self._run(begin, here))
        except BaseException as error:
            if self._id is None:
                raise
            interrupted = error
        assert self._id is not None
        front.complete(self._tell(self._id))
        if interrupted is not None:
            raise interrupted
        return self._ended

    async def _run(self, begin: Begin, here: host.Host) -> None:
        options = start.Options(parent=self._held.id, allowance=self._allowance(), begun=self._note)
        async with Runtime.of(here) as carrier:
            with self._display:
                self._ended = await (await begin(carrier, self._listen, options)).to_its_end()
            # A run that had ended before reports its end, and not its beginning.
            self._id = self._ended.run

    def _allowance(self) -> budgets.Allowance | None:
        """Return the budget left for the run; None if the session has no budget."""
        held = self._held
        if held.session.budget is None:
            return None
        spent = budgets.spent_in_all(held.session.ledger, held.price) - budgets.amount(self._before)
        return budgets.Allowance(held.id, node_budgets.parse(held.session.budget), spent)

    def _listen(self, event: events.Event) -> None:
        if isinstance(event, events.RunEnded):
            self._ended = event
        self._display(event)

    async def _note(self, run: str) -> None:
        self._id, self._begun = run, True
        await follow(self._held, self._what, run, self._before)

    async def _tell(self, run: str) -> None:
        ended = self._ended
        status = ended.status if ended is not None else "interrupted"
        error = (ended.question or ended.error) if ended is not None else None
        text = told(self._what, run, status, ended.path if ended is not None else None, error)
        spent = _spent(self._held, _past(self._held.here.kept, run), self._before) if self._begun else None
        await self._held.happened(text, run, spent)
        if ended is not None:
            for line in foreground_run.closing(ended).split("\n"):
                self._held.screen.say(line)


def spent_by(held: conversation.Conversation, run: str) -> entries.Ran:
    """Return the run's spending until now. Raises UsageError ``unknown-run``, LogError."""
    return budgets.ran(run_index.load_history(held.here.kept, run)[0].ledger, held.price)


async def follow(held: conversation.Conversation, what: str, run: str, before: entries.Ran) -> None:
    """Log that a run begins or resumes."""
    data: dict[str, Json] = {"run": run, "what": what, "spent": before.model_dump(mode="json")}
    held.writer.noted("child-started", data, entries.SESSION_THREAD)
    await held.writer.barrier()


def end_browser(held: conversation.Conversation) -> None:
    """End the browser of the followed run, which would outlive this process; does nothing without such a run."""
    if (note := held.session.following) is not None:
        foreground.end_browser(held.here.kept.private(str(note.data["run"])))


async def settle(held: conversation.Conversation) -> None:
    """Report the run that the session followed when its process died, and count its spending."""
    note = held.session.following
    if note is None:
        return
    run, what = str(note.data["run"]), str(note.data["what"])
    before = entries.Ran.model_validate(note.data["spent"])
    past = _past(held.here.kept, run)
    if past is None:
        # It was begun, and its log is gone or damaged: its spending is unknown.
        text = f"{what}: of run {run} nothing is known any more"
        await held.happened(text)
    else:
        ending = past.ending.data if past.ending is not None else {}
        state = run_index.state_of(past, held=held.here.kept.read(run).held)
        text = told(what, run, state, ending.get("path"), ending.get("error"))
        await held.happened(text, run, _spent(held, past, before))
    held.screen.say(f"--  {text}")


def _past(kept: store.Kept, run: str) -> history.History | None:
    """Return the history of a run; None if it cannot be read."""
    try:
        return run_index.load_history(kept, run)[0]
    except (UsageError, LogError):
        return None


def _spent(held: conversation.Conversation, past: history.History | None, before: entries.Ran) -> entries.Ran | None:
    """Return the run's spending since ``before``; None if it asked no model since, or cannot be read."""
    if past is None:
        return None
    spent = budgets.ran(past.ledger, held.price, before)
    return spent if spent.calls else None


def told(what: str, run: str, status: str, path: str | None, error: dict[str, Json] | None) -> str:
    """Return the end of a run for the model. Possible page text (errors, keys in a path) is not repeated: the model reads it marked as data."""
    code = (error or {}).get("code") or (error or {}).get("reason")
    where = f" at {briefs.ours(path)}" if path else ""
    return f"{what}: run {run} {status}{where}{f' ({code})' if code else ''}"
