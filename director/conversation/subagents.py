"""Subagents (delegates, scouts): models that work for one call of a session, in a separate thread. Only the answer is returned.

The answer comes with its cost. Its spending counts against its parent's budget, even if it fails or is interrupted. A crash ends it. If its
answer is in the log, it is not asked again. Any other is closed as interrupted, with its own subagents.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

from typing_extensions import override

from director.session.events import Listener
from director.tools import barrier
from director.tools.toolbox import Toolset
from nodes.budgets import Budget
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime.context import items as window_items
from runtime.context import request as context_request
from runtime.context import summaries, window
from runtime.display import costs
from runtime.log import entries, ledger, session, threads
from runtime.log.writer import NOTHING, LogWriter, chars_of
from runtime.messages import estimates
from runtime.messages.messages import Item, Request
from runtime.models import budgets, requests, run_models
from runtime.models.turns import call_checks, turn

MAX_OUTPUT = 4_000
"""Limit of one answer, in tokens."""

ENDS = barrier.ENDS - {"budget", "paused"}
"""Categories of errors that end all work, and so are not returned as an answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sender:
    depth: int
    """0 for the session itself."""
    budgets: budgets.Requester
    items: Callable[[], tuple[Item, ...]]
    """Returns the thread in its requests, with the answer that calls the subagent."""


class SubagentConfig(turn.Tools, Protocol):
    def around(self) -> window.RequestFrame: ...

    def find_out(self, call: entries.Call) -> turn.Outcome | None:
        """Return the outcome of a call of its tools that a crash left open, if it is known."""
        ...

    async def close(self) -> None: ...


class SubagentCall(Toolset):
    name: str
    """Name of the tool, and of the calls in the subagent's thread."""
    who: str
    turns: int
    budget: Budget

    def __init__(
        self,
        writer: LogWriter[session.Session],
        models: run_models.RunModels | None,
        listener: Listener,
        sender: Sender,
    ) -> None:
        self._writer, self._models, self._listener, self._sender = writer, models, listener, sender
        self._limits: Callable[[], window.Limits] = window.Limits

    def employ(self, models: run_models.RunModels | None, limits: Callable[[], window.Limits], sender: Sender) -> None:
        self._models, self._limits, self._sender = models, limits, sender

    @property
    @override
    def side_by_side(self) -> bool:
        return True

    @abstractmethod
    def config(self, call: entries.Call, subagent: Subagent) -> SubagentConfig: ...

    def word(self, arguments: dict[str, Json]) -> str:
        return str(arguments["task"]).strip() and str(arguments["task"])

    def left(self, _call: entries.Call) -> str:
        """Return possible effects that must not be repeated, and must be checked first, for the case that it gave no answer."""
        return ""

    def before(self, _arguments: dict[str, Json], _asked: str) -> tuple[Item, ...]:
        """Return what precedes that in its thread."""
        return ()

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        word = self.word(arguments)
        if not word:
            refusal = _no_task(self.name).as_json()
            return turn.Outcome(call_checks.told(refusal), error=refusal)
        call = entries.Call(
            thread=place.thread,
            path=place.path,
            node=self.name,
            action=self.name,
            asked=place.asked,
            attempt=1,
            # A call starts it only once.
            effect="effect",
            args=arguments,
            fingerprint="",
        )
        call = await self._writer.announce(call)
        begun = time.monotonic()
        subagent = self._subagent(call, self.before(arguments, place.asked))
        try:
            answer = await subagent.work(word)
        except asyncio.CancelledError:
            subagent.close()
            raise
        except RunOpsError as error:
            if error.who in ENDS:
                raise
            subagent.close(error)
            outcome = self._failed(error, call)
        else:
            told = self._answered(answer, call)
            outcome = turn.Outcome(told, told, written=True)
        finally:
            await subagent.config.close()
        status = "ok" if outcome.error is None else "error"
        seconds = round(time.monotonic() - begun, 4)
        self._writer.result(call, status, value=outcome.value, error=outcome.error, seconds=seconds)
        return outcome

    def find_out(self, call: entries.Call) -> turn.Outcome | None:
        """Return the outcome of one that a crash or a person has interrupted, and close its open calls. None for a call of another tool."""
        if call.action != self.name:
            return None
        said = self._writer.history.thread(entries.delegate_thread(call.call)).said
        last = said[-1] if said else None
        if isinstance(last, threads.Exchange) and not last.answer.calls:
            told = self._answered(self._writer.text_of(last.answer), call)
            return turn.Outcome(told, told)
        if self._models is not None:
            self._subagent(call, ()).close()
        error = ModelError(
            "delegate-interrupted",
            f"the {self.who} was interrupted before it had an answer ({self._cost(call)})",
            fix=f"{self.left(call)}send it again if its answer is still wanted",
        )
        return turn.Outcome("", error=error.as_json())

    def _subagent(self, call: entries.Call, before: tuple[Item, ...]) -> Subagent:
        assert self._models is not None, "whoever sends one was asked by a model"
        return Subagent(self, self._writer, self._models, self._listener, self._limits, self._sender, call, before)

    def _answered(self, answer: str, call: entries.Call) -> str:
        return f"{answer or NOTHING}\n({self._cost(call)})"

    def _failed(self, error: RunOpsError, call: entries.Call) -> turn.Outcome:
        told = error.as_json()
        told["message"] = f"the {self.who} failed: {error.message} ({self._cost(call)})"
        told["fix"] = f"{self.left(call)}{told.get('fix') or 'do it without one, or send it with another task'}"
        told = self._writer.masker.json(told)
        return turn.Outcome(call_checks.told(told), error=told, written=True)

    def _cost(self, call: entries.Call) -> str:
        return f"the {self.who} took {costs.told(ledger.totals([*self._writer.history.ledger.within(call.path)]))}"


class Subagent:
    def __init__(
        self,
        sending: SubagentCall,
        writer: LogWriter[session.Session],
        models: run_models.RunModels,
        listener: Listener,
        limits: Callable[[], window.Limits],
        sender: Sender,
        call: entries.Call,
        before: tuple[Item, ...],
    ) -> None:
        self.sender = sender
        self._writer, self._limits, self._before = writer, limits, before
        self._thread = entries.delegate_thread(call.call)
        self._most, budget = sending.turns, sending.budget
        self._begun = time.monotonic()
        requester = requests.RequestScope(
            call.path,
            self._thread,
            "director",
            lambda: self._begun + float(budget.time or math.inf) - time.monotonic(),
            lambda what: listener.waiting(f"{call.path}: {what}"),
        )
        self._exchanges = requests.Exchanges(models, writer, requester, None, budget, sender.budgets)
        self.config = sending.config(call, self)
        frame = context_request.Frame(
            writer,
            self._thread,
            self.config.around,
            self._room,
            max_output=MAX_OUTPUT,
            models=models,
            asks=asks(models, writer, requester.left, requester.tell, budget, sender.budgets),
        )
        self._turns = turn.Turns(
            self._exchanges,
            _Behind(frame, before),
            self.config,
            writer,
            turn.TurnOptions(call.path, self._thread, sending.name),
            talks=True,
            find_out=self.config.find_out,
        )

    @property
    def share(self) -> budgets.Requester:
        return self._exchanges.share

    async def work(self, word: str) -> str:
        self._turns.say(word)
        while True:
            latest = await self._turns.turn()
            if not latest.answer.calls:
                return latest.answer.text
            if self._turns.count >= self._most:
                raise ModelError(
                    "delegate-turns",
                    f"it had no answer after {self._most} requests",
                    fix="send it with a smaller task",
                )

    def close(self, error: RunOpsError | None = None) -> None:
        said = self._writer.history.thread(self._thread).said
        if not said:
            return
        self._turns.break_off()
        if not isinstance(said[-1], entries.ModelError):
            self._exchanges.broken_off(error or interrupted())

    def items(self) -> tuple[Item, ...]:
        thread = window_items.Thread(self._writer.history.thread(self._thread), self._writer)
        return (*self._before, *window.build(thread, self.config.around(), self._room()).items)

    def _room(self) -> window.Limits:
        """Return the limits of its own part of a request: the preceding part has a fixed size."""
        limits = self._limits()
        size = sum(map(estimates.of_item, self._before))
        chars = sum(map(chars_of, self._before))
        left = {
            "compress_at": max(1, limits.compress_at - size),
            "hard_limit": max(1, limits.hard_limit - size) if limits.hard_limit is not None else None,
            "max_chars": max(1, limits.max_chars - chars) if limits.max_chars is not None else None,
            "max_messages": max(1, limits.max_messages - len(self._before))
            if limits.max_messages is not None
            else None,
        }
        return limits.model_copy(update={"strategy": "clean", **left})


class _Behind(turn.Frame):
    def __init__(self, frame: turn.Frame, before: tuple[Item, ...]) -> None:
        self._frame, self._before = frame, before

    @override
    async def request(self, model: str) -> Request:
        request = await self._frame.request(model)
        return dataclasses.replace(request, items=(*self._before, *request.items))


def _no_task(name: str) -> ModelError:
    return ModelError(
        "tool-arguments",
        f"the arguments do not fit `{name}`: task: it says nothing",
        fix="call it again, with what is to be found out",
    )


def interrupted() -> ModelError:
    return ModelError("interrupted", "it was interrupted", fix="say `continue`, or what is wanted now")


def asks(
    models: run_models.RunModels,
    writer: LogWriter[session.Session],
    left: Callable[[], float],
    tell: Callable[[str], None],
    budget: Budget | None = None,
    within: budgets.Requester | None = None,
) -> summaries.Asks:
    def opened(thread: str) -> requests.Exchanges:
        requester = requests.RequestScope(
            writer.history.path_of(thread), thread, "summary", left, lambda what: tell(f"a summary: {what}")
        )
        return requests.Exchanges(models, writer, requester, None, budget, within)

    return opened
