"""Follows runs that a session begins or resumes: each is logged in the session before it acts, and counts against its budget."""

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
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.messages.messages import Item, Usage
from runtime.models import budgets
from runtime.runs import start
from runtime.runs.runtime import Run
from runtime.system import tasks
from runtime.workspace import run_index

Begin = Callable[[events.Listener, start.Options], Awaitable[Run]]
"""Begins a run, given its listener and the session's options."""

Price = Callable[[Usage, str], Decimal | None]

NOTHING = entries.Ran(calls=0, tokens=0, dollars="0", seconds=0)  # spending of a run that has not begun


class Runs:
    """Follows runs.

    The start of a run is synced to the session's log before the run acts. So after a crash its runs (``of``) and their spending
    (``settle``) are known.
    """

    def __init__(
        self, writer: LogWriter[log_session.Session], store: log_store.StoreReader, listener: Listener, price: Price
    ) -> None:
        self._writer, self._store, self._listener, self._price = writer, store, listener, price

    async def follow(self, call: entries.Call, begin: Begin, *, reset: bool = False) -> events.RunEnded:
        """Start a run for a tool's ``call``, await its end, and log its spending in any case. Raises RunOpsError if it cannot start.

        ``reset``: the site's data were put back right before it.
        """
        started: list[str] = []

        async def begun(run: str) -> None:
            started.append(run)
            await self.begins(run, call.action, call=call.call, reset=reset)

        status = "interrupted"
        try:
            ended = await (
                await begin(self._listener.ran, self.options(begun, tool=call.path, command="build"))
            ).to_its_end()
            status = ended.status
        finally:
            for run in started:
                await self._ended(run, status)
        return ended

    async def begins(
        self,
        run: str,
        what: str | None,
        before: entries.Ran = NOTHING,
        *,
        call: str | None = None,
        reset: bool = False,
    ) -> None:
        asked: dict[str, Json] = {"call": call} if call is not None else {}
        asked |= {"reset": True} if reset else {}
        data: dict[str, Json] = {"run": run, "what": what, **asked, "spent": before.model_dump(mode="json")}
        self._writer.noted("child-started", data, entries.SESSION_THREAD)
        await self._writer.barrier()

    def options(
        self,
        begun: Callable[[str], Awaitable[None]],
        before: entries.Ran = NOTHING,
        *,
        tool: str | None = None,
        command: str = "chat",
        background: Sequence[Item] = (),
    ) -> start.Options:
        session, name = self._writer.history, self._writer.conversation.id
        allowance: budgets.Allowance | None = None
        if session.budget is not None:
            spent = budgets.spent_in_all(session.ledger, self._price) - budgets.amount(before)
            allowance = budgets.Allowance(name, node_budgets.parse(session.budget), spent, command)
        return start.Options(
            parent=name,
            tool=tool,
            allowance=allowance,
            codes=self._writer.masker.codes,
            hides=self._hide,
            begun=begun,
            background=background,
        )

    def _hide(self, code: str) -> None:
        """Mask a run's one-time code from now on: a page on the bench, or of the scout, may still show it."""
        self._writer.masker = self._writer.masker.passing(code)

    def of(self, call: entries.Call) -> Sequence[str]:
        """Return the runs begun for a call, in order, ended or not."""
        return self._writer.history.runs_of.get(call.call, [])

    async def settle(self) -> None:
        """Log end and spending of each run of a tool that was active when the session's process died."""
        for run, note in list(self._writer.history.open_runs.items()):
            if "call" in note.data:
                past = await tasks.in_thread(self.past, run)
                await self._ended(run, run_index.state_of(past, owned=False) if past is not None else "lost")

    def past(self, run: str) -> history.History | None:
        with contextlib.suppress(UsageError, LogError):
            return run_index.load_history(self._store, run)[0]
        return None

    def spent(self, past: history.History, before: entries.Ran = NOTHING) -> entries.Ran | None:
        spent = budgets.ran(past.ledger, self._price, before)
        return spent if spent.calls else None

    async def _ended(self, run: str, status: str) -> None:
        past = await tasks.in_thread(self.past, run)
        spent = self.spent(past) if past is not None else None
        cost = spent.model_dump(mode="json") if spent is not None else None
        self._writer.noted("child-ended", {"run": run, "status": status, "spent": cost}, entries.SESSION_THREAD)
