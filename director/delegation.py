"""``delegate``: a model sends another one to do a task in a thread of its own; only the answer comes back, with what it cost.

A delegate looks and changes nothing. It begins with nothing but its task, or behind what its sender was told: *clean* or *inherit*. What it spends, it
spends of its sender's budget, also where it fails or is interrupted. It may send delegates itself, down to ``DEPTH``.

A crash ends a delegate: one whose answer is in the log is not asked again, any other one is closed as interrupted, with all that works for it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import Literal

from typing_extensions import override

from director import around, states, summing
from director.listening import Listener
from director.tools import Kit
from nodes.budgets import Budget
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime import framing, journal, log, pieces, refusals, sessions, turn, window
from runtime.display import costs
from runtime.models import budgets, estimates, exchanges, ledger, supply, threads
from runtime.models.exchange import Item, Request, Tool, ToolCall, is_models

NAME = "delegate"

DEPTH = 2
"""How deep delegates may send delegates."""

TURNS = 20
"""Requests that one delegate may take."""

BUDGET = Budget(calls=50, tokens=500_000, time=Decimal(1200))
"""What one delegate may spend, with those that it sends; never more than its sender has left."""

MAX_OUTPUT = 4_000
"""Tokens that one answer of a delegate may have."""

ENDS = frozenset({"operator", "cancelled", "replaced", "internal"})
"""Who must act on an error after which nothing goes on, so that it is nobody's answer."""

Context = Literal["clean", "inherit"]


@dataclasses.dataclass(frozen=True, slots=True)
class Sender:
    """Who sends: the session itself, or a delegate of it."""

    depth: int
    """0 for the session itself."""
    budgets: budgets.Asked
    """Those that hold for it."""
    items: Callable[[], tuple[Item, ...]]
    """What a request of it would hold of what was said to it, the answer that asks for the delegate included."""


class Delegation(Kit):
    """The tool, as one sender has it."""

    def __init__(
        self,
        pen: journal.Journal[sessions.Session],
        models: supply.Supply | None,
        tools: Callable[[], turn.Tools],
        listener: Listener,
        limits: Callable[[], window.Limits],
        sender: Sender,
        *,
        clean: bool,
    ) -> None:
        """``tools`` are those of the session; ``clean`` is how a delegate begins of which the call does not say so itself. ``models`` may lack where nothing is sent."""
        self._pen, self._models, self._tools = pen, models, tools
        self._listener, self._limits, self._sender, self._clean = listener, limits, sender, clean

    @property
    @override
    def tool(self) -> Tool:
        begins = (
            "It sees nothing of this conversation: write a task that can be understood by itself, with every name and value that it needs"
            if self._clean
            else "It sees this conversation up to here"
        )
        other = "`inherit` to let it see this conversation" if self._clean else "`clean` to begin with the task alone"
        fields: dict[str, Json] = {
            "task": {
                "type": "string",
                "description": "Self-contained: what is to be found out, and where."
                if self._clean
                else "What is to be found out.",
            },
            "context": {
                "type": ["string", "null"],
                "enum": ["inherit", "clean", None],
                "description": f"{other}; null as said above.",
            },
            "reason": {"type": ["string", "null"], "description": "Why, in a sentence."},
        }
        schema: dict[str, Json] = {
            "type": "object",
            "properties": fields,
            "required": list[Json](fields),
            "additionalProperties": False,
        }
        return Tool(NAME, f"Another model does a task that needs looking only, and answers. {begins}.", schema)

    @property
    @override
    def modes(self) -> frozenset[log.Mode]:
        return frozenset({"agent", "run"})

    @property
    @override
    def side_by_side(self) -> bool:
        return True

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        task = str(arguments["task"])
        if not task.strip():
            refusal = _no_task().as_json()
            return turn.Outcome(refusals.told(refusal), error=refusal)
        call = log.Call(
            thread=place.thread,
            path=place.path,
            node=NAME,
            action=NAME,
            asked=place.asked,
            attempt=1,
            # Nobody sends it a second time for a sender that asked once.
            effect="effect",
            args=arguments,
            fingerprint="",
        )
        call = self._pen.call(call, barrier=True)
        begun = time.monotonic()
        child = self._child(call, self._before(arguments.get("context"), place.asked))
        try:
            answer = await child.work(task)
        except asyncio.CancelledError:
            child.close()
            raise
        except RunOpsError as error:
            if error.who in ENDS:
                raise
            child.close(error)
            outcome = self._failed(error, call)
        else:
            told = self._answered(answer, call)
            outcome = turn.Outcome(told, told, written=True)
        status = "ok" if outcome.error is None else "error"
        seconds = round(time.monotonic() - begun, 4)
        self._pen.result(call, status, value=outcome.value, error=outcome.error, seconds=seconds)
        return outcome

    def find_out(self, call: log.Call) -> turn.Outcome | None:
        """What came of a delegate that a crash or a person has interrupted; what it left open is closed. None for a call of another tool."""
        if call.action != NAME:
            return None
        said = self._pen.history.thread(log.delegate_thread(call.call)).said
        last = said[-1] if said else None
        if isinstance(last, threads.Exchange) and not last.answer.calls:
            told = self._answered(self._pen.text_of(last.answer), call)
            return turn.Outcome(told, told)
        if self._models is not None:
            self._child(call, ()).close()
        error = ModelError(
            "delegate-interrupted",
            f"the delegate was interrupted before it had an answer ({self._cost(call)})",
            mend="send it again if its answer is still wanted",
        )
        return turn.Outcome("", error=error.as_json())

    def _child(self, call: log.Call, before: tuple[Item, ...]) -> _Child:
        assert self._models is not None, "whoever sends a delegate was asked by a model"
        return _Child(
            self._pen,
            self._models,
            self._tools,
            self._listener,
            self._limits,
            self._sender,
            call,
            before,
            clean=self._clean,
        )

    def _before(self, context: Json, asked: str) -> tuple[Item, ...]:
        """What stands before the task: nothing, or all that its sender was told before the answer that asks for it."""
        if self._clean if context is None else context == "clean":
            return ()
        items = self._sender.items()
        asks = (number for number, each in enumerate(items) if isinstance(each, ToolCall) and each.id == asked)
        # Where there is no room for the answer itself, all that is there stands before it.
        ends = next(asks, len(items))
        while ends and is_models(items[ends - 1]):
            ends -= 1
        return items[:ends]

    def _answered(self, answer: str, call: log.Call) -> str:
        return f"{answer or journal.NOTHING}\n({self._cost(call)})"

    def _failed(self, error: RunOpsError, call: log.Call) -> turn.Outcome:
        told = error.as_json()
        told["message"] = f"the delegate failed: {error.message} ({self._cost(call)})"
        told.setdefault("mend", "do it without one, or send it with another task")
        told = self._pen.masker.json(told)
        return turn.Outcome(refusals.told(told), error=told, written=True)

    def _cost(self, call: log.Call) -> str:
        """What it cost, with all that worked for it."""
        return f"the delegate took {costs.told(ledger.totals([*self._pen.history.ledger.within(call.path)]))}"


class _Child:
    """One delegate."""

    def __init__(
        self,
        pen: journal.Journal[sessions.Session],
        models: supply.Supply,
        tools: Callable[[], turn.Tools],
        listener: Listener,
        limits: Callable[[], window.Limits],
        sender: Sender,
        call: log.Call,
        before: tuple[Item, ...],
        *,
        clean: bool,
    ) -> None:
        self._pen, self._limits, self._before = pen, limits, before
        self._thread = log.delegate_thread(call.call)
        self._begun = time.monotonic()
        asker = exchanges.Asker(
            call.path,
            self._thread,
            "director",
            lambda: self._begun + float(BUDGET.time or math.inf) - time.monotonic(),
            lambda what: listener.waiting(f"{call.path}: {what}"),
        )
        self._exchanges = exchanges.Exchanges(models, pen, asker, None, BUDGET, sender.budgets)
        more: Delegation | None = None
        if sender.depth + 1 < DEPTH:
            own = Sender(sender.depth + 1, self._exchanges.share, self._items)
            more = Delegation(pen, models, tools, listener, limits, own, clean=clean)
        self._tools = _Tools(tools(), more, listener, pen)
        frame = framing.Frame(
            pen,
            self._thread,
            self._around,
            self._room,
            max_output=MAX_OUTPUT,
            models=models,
            asks=summing.asks(models, pen, asker.left, asker.tell, BUDGET, sender.budgets),
        )
        self._turns = turn.Turns(
            self._exchanges,
            _Behind(frame, before),
            self._tools,
            pen,
            turn.Seat(call.path, self._thread, NAME),
            talks=True,
            find_out=more.find_out if more is not None else lambda _call: None,
        )
        self._path = call.path

    async def work(self, task: str) -> str:
        """Its answer. Raises RunOpsError."""
        self._turns.say(task)
        while True:
            latest = await self._turns.turn()
            if not latest.answer.calls:
                return latest.answer.text
            if self._turns.count >= TURNS:
                raise ModelError(
                    "delegate-turns",
                    f"it had no answer after {TURNS} requests",
                    mend="send it with a smaller task",
                )

    def close(self, error: RunOpsError | None = None) -> None:
        """Leave nothing open in its thread, and write why no answer comes; ``error`` where it has failed, else it was interrupted."""
        said = self._pen.history.thread(self._thread).said
        if not said:
            return
        self._turns.break_off()
        if not isinstance(said[-1], log.ModelError):
            self._exchanges.broken_off(error or interrupted())

    def _around(self) -> window.Around:
        return around.of_delegate(self._tools.offered)

    def _room(self) -> window.Limits:
        """The limits of its own part of a request: what stands before that has its place."""
        limits = self._limits()
        size = sum(map(estimates.of_item, self._before))
        chars = sum(map(journal.chars_of, self._before))
        left = {
            "compress_at": max(1, limits.compress_at - size),
            "hard_limit": max(1, limits.hard_limit - size) if limits.hard_limit is not None else None,
            "max_chars": max(1, limits.max_chars - chars) if limits.max_chars is not None else None,
            "max_messages": max(1, limits.max_messages - len(self._before))
            if limits.max_messages is not None
            else None,
        }
        return limits.model_copy(update={"strategy": "clean", **left})

    def _items(self) -> tuple[Item, ...]:
        thread = pieces.Thread(self._pen.history.thread(self._thread), self._pen)
        return (*self._before, *window.build(thread, self._around(), self._room()).items)


class _Behind(turn.Frame):
    """Requests of a thread that goes on from another one."""

    def __init__(self, frame: turn.Frame, before: tuple[Item, ...]) -> None:
        self._frame, self._before = frame, before

    @override
    async def request(self, model: str) -> Request:
        request = await self._frame.request(model)
        return dataclasses.replace(request, items=(*self._before, *request.items))


class _Tools(turn.Tools):
    """What a delegate may do: what the session's tools read, and, where it is not too deep, send another one."""

    def __init__(
        self,
        every: turn.Tools,
        more: Delegation | None,
        listener: Listener,
        pen: journal.Journal[sessions.Session],
    ) -> None:
        self._every, self._more, self._listener, self._pen = every, more, listener, pen

    @property
    @override
    def offered(self) -> Sequence[Tool]:
        reads = [each for each in self._every.offered if each.name.startswith("get_") or each.name == states.NAME]
        return tuple(reads if self._more is None else [*reads, self._more.tool])

    @property
    @override
    def final(self) -> Collection[str]:
        return ()

    @property
    @override
    def side_by_side(self) -> Collection[str]:
        return (NAME,) if self._more is not None else ()

    @override
    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        if asked.name != NAME or self._more is None:
            return await self._every.take(asked, arguments, place)
        self._listener.called(place.path, asked.name, asked.arguments)
        outcome = await self._more.take(arguments, place)
        self._listener.done(place.path, self._pen.masker.text(outcome.told), failed=outcome.error is not None)
        return outcome

    @override
    def told(self, asked: ToolCall, result: log.Result) -> str:
        return self._every.told(asked, result)


def _no_task() -> ModelError:
    return ModelError(
        "tool-arguments",
        f"the arguments do not fit `{NAME}`: task: it says nothing",
        mend="call it again, with what is to be found out",
    )


def interrupted() -> ModelError:
    """Why an answer broke off that a person did not wait for, or a crash."""
    return ModelError("interrupted", "it was interrupted", mend="say `continue`, or what is wanted now")
