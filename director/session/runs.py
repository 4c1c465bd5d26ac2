"""Runs that a session's tools start: each has its own conversation, is logged in the session before it acts, and counts against its budget."""

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
"""Begins a run, given its listener and the session's options."""

Price = Callable[[Usage, str], Decimal | None]

NOTHING = entries.Ran(calls=0, tokens=0, dollars="0", seconds=0)
"""Spending of a run that has not begun."""


class Runs:
    """Starts runs.

    The session log has the beginning of a run synced before the run acts. So after a crash its runs are known (``of``), and so is their
    spending (``settle``).
    """

    def __init__(
        self, writer: LogWriter[log_session.Session], kept: store.Kept, listener: Listener, price: Price
    ) -> None:
        """``writer`` is the session's; ``kept`` stores its runs; ``price`` returns the cost of a model usage."""
        self._writer, self._kept, self._listener, self._price = writer, kept, listener, price

    async def follow(self, call: entries.Call, begin: Begin) -> events.RunEnded:
        """Start a run for the tool's ``call``, and await its end. Raises RunOpsError if it cannot start; its spending is logged in any case."""
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
        """Return the runs begun for a call, in order, including those whose end is known."""
        return self._writer.history.runs_of.get(call.call, [])

    async def settle(self) -> None:
        """Log the end and the spending of each run that was active when the session's process died."""
        for run, note in list(self._writer.history.open_runs.items()):
            if "call" not in note.data:
                continue
            past = await tasks.in_thread(self.past, run)
            await self._followed(run, run_index.state_of(past, held=False) if past is not None else "lost")

    def past(self, run: str) -> history.History | None:
        """Return the history of a run; None if it cannot be read."""
        with contextlib.suppress(UsageError, LogError):
            return run_index.load_history(self._kept, run)[0]
        return None

    def _allowance(self) -> budgets.Allowance | None:
        """Return the budget left for a run; None if the session has no budget."""
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
