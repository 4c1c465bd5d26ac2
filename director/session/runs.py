"""Runs that a session's tools start: each in a conversation of its own, named in the session before it does anything, and counted against its budget."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal

from director.session.events import Listener
from nodes import budgets as node_budgets
from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime import events
from runtime.log import entries, history
from runtime.log import session as log_session
from runtime.log.store import store
from runtime.log.writer import LogWriter
from runtime.messages.messages import Usage
from runtime.models import budgets
from runtime.runs import start
from runtime.runs.runtime import Run
from runtime.system import tasks
from runtime.workspace import run_index

Begin = Callable[[events.Listener, start.Options], Awaitable[Run]]
"""Begins a run, told who listens and what the session wants of it."""

Price = Callable[[Usage, str], Decimal | None]

NOTHING = entries.Ran(calls=0, tokens=0, dollars="0", seconds=0)
"""What a run has spent that has not begun."""


class Runs:
    """Starts them.

    That a run begins is on the disk, in the session, before it does anything; so whoever goes on after a crash knows of it (``of``) and has what it
    spent (``settle``).
    """

    def __init__(
        self, writer: LogWriter[log_session.Session], kept: store.Kept, listener: Listener, price: Price
    ) -> None:
        """``writer`` is the session's; ``kept`` keeps its runs; ``price`` says what a usage of a model costs."""
        self._writer, self._kept, self._listener, self._price = writer, kept, listener, price

    async def follow(self, call: entries.Call, begin: Begin) -> events.RunEnded:
        """Start a run for the tool's ``call``, and await its end. Raises RunOpsError for what could not start; the session has what it spent in any case."""
        started: list[str] = []

        async def begun(run: str) -> None:
            started.append(run)
            data: dict[str, Json] = {
                "run": run,
                "what": call.action,
                "call": call.call,
                "spent": NOTHING.model_dump(mode="json"),
            }
            self._writer.noted("child-started", data, entries.SESSION_THREAD)
            await self._writer.barrier()

        status = "interrupted"
        try:
            options = start.Options(parent=self._writer.conversation.id, allowance=self._allowance(), begun=begun)
            ended = await (await begin(self._listener.ran, options)).to_its_end()
            status = ended.status
        finally:
            for run in started:
                await self._followed(run, status)
        return ended

    def of(self, call: entries.Call) -> Sequence[str]:
        """The runs that were begun for a call, in order; also those of which is known by now how they ended."""
        return self._writer.history.runs_of.get(call.call, [])

    async def settle(self) -> None:
        """Write of each run how it ended that was under way when the session's process died, and what it spent."""
        for run, note in list(self._writer.history.open_runs.items()):
            if "call" not in note.data:
                continue
            past = await tasks.in_thread(self.past, run)
            await self._followed(run, run_index.state_of(past, held=False) if past is not None else "lost")

    def past(self, run: str) -> history.History | None:
        """What a run has done; None where nobody can read it."""
        with contextlib.suppress(UsageError, LogError):
            return run_index.load_history(self._kept, run)[0]
        return None

    def _allowance(self) -> budgets.Allowance | None:
        """What is left for a run; None where the session has no budget."""
        session = self._writer.history
        if session.budget is None:
            return None
        spent = budgets.spent_in_all(session.ledger, self._price)
        return budgets.Allowance(self._writer.conversation.id, node_budgets.parse(session.budget), spent, "build")

    async def _followed(self, run: str, status: str) -> None:
        past = await tasks.in_thread(self.past, run)
        spent = budgets.ran(past.ledger, self._price, NOTHING) if past is not None else None
        told = spent.model_dump(mode="json") if spent is not None and spent.calls else None
        self._writer.noted("child-ended", {"run": run, "status": status, "spent": told}, entries.SESSION_THREAD)
