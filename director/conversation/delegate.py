"""``delegate``: a model gives a subagent a task in a separate thread; only the answer is returned, with its cost.

A delegate only reads. It begins with only its task (*clean*), or after its parent's thread (*inherit*). It may itself send delegates, down
to ``DEPTH``. ``director.conversation.subagents`` runs and ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import Literal

from typing_extensions import override

from director.conversation import subagents
from director.conversation.subagents import Sender, interrupted
from director.session import prompt, state_paths
from director.session.events import Listener
from director.tools import toolbox
from director.tools.toolbox import PERHAPS, TEXT, of
from nodes.budgets import Budget
from nodes.values import Json
from runtime.context import window
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.messages.messages import Item, Tool, ToolCall, is_models
from runtime.models import run_models
from runtime.models.turns import turn

__all__ = ["Delegation", "Sender", "interrupted"]

NAME = "delegate"

DEPTH = 2
"""Limit of nested delegates."""

TURNS = 20
"""Limit of the requests of one delegate."""

BUDGET = Budget(calls=50, tokens=500_000, time=Decimal(1200))
"""Budget of one delegate, with those that it sends; never more than its parent has left."""

Context = Literal["clean", "inherit"]


class Delegation(subagents.SubagentCall):
    name = NAME
    who = "delegate"
    turns = TURNS
    budget = BUDGET

    def __init__(
        self,
        writer: LogWriter[session.Session],
        models: run_models.RunModels | None,
        tools: Callable[[], turn.Tools],
        listener: Listener,
        limits: Callable[[], window.Limits],
        sender: Sender,
        *,
        clean: bool,
    ) -> None:
        super().__init__(writer, models, listener, sender)
        self._tools, self._limits, self._clean = tools, limits, clean

    @property
    @override
    def tool(self) -> Tool:
        begins = (
            "It sees nothing of this conversation: write a task that can be understood by itself, with every name and value that it needs"
            if self._clean
            else "It sees this conversation up to here"
        )
        other = "`inherit` to let it see this conversation" if self._clean else "`clean` to begin with the task alone"
        task = "Self-contained: what is to be found out, and where." if self._clean else "What is to be found out."
        fields: dict[str, dict[str, Json]] = {
            "task": of(TEXT, task),
            "context": {
                "type": ["string", "null"],
                "enum": ["inherit", "clean", None],
                "description": f"{other}; null as said above.",
            },
            "reason": of(PERHAPS, "Why, in a sentence."),
        }
        description = f"Another model does a task that needs looking only, and answers. {begins}."
        return toolbox.tool(NAME, description, fields)

    @property
    @override
    def modes(self) -> frozenset[entries.Mode]:
        return frozenset({"agent", "run"})

    @override
    def before(self, arguments: dict[str, Json], asked: str) -> tuple[Item, ...]:
        """Return nothing, or the parent's thread before the answer with the call."""
        context: Context | None = arguments.get("context")
        if self._clean if context is None else context == "clean":
            return ()
        items = self._sender.items()
        asks = (number for number, each in enumerate(items) if isinstance(each, ToolCall) and each.id == asked)
        # If the answer itself had no room, all items precede it.
        ends = next(asks, len(items))
        while ends and is_models(items[ends - 1]):
            ends -= 1
        return items[:ends]

    @override
    def config(self, call: entries.Call, subagent: subagents.Subagent) -> subagents.SubagentConfig:
        more: Delegation | None = None
        if subagent.sender.depth + 1 < DEPTH:
            own = Sender(subagent.sender.depth + 1, subagent.share, subagent.items)
            more = Delegation(
                self._writer, self._models, self._tools, self._listener, self._limits, own, clean=self._clean
            )
        return _Tools(self._tools(), more, self._listener, self._writer)


class _Tools(subagents.SubagentConfig):
    """Tools of a delegate: the reading tools of the session, and, above the depth limit, sending another one."""

    def __init__(
        self,
        every: turn.Tools,
        more: Delegation | None,
        listener: Listener,
        writer: LogWriter[session.Session],
    ) -> None:
        self._every, self._more, self._listener, self._writer = every, more, listener, writer

    @override
    def around(self) -> window.RequestFrame:
        return prompt.of_delegate(self.offered)

    @override
    def find_out(self, call: entries.Call) -> turn.Outcome | None:
        return self._more.find_out(call) if self._more is not None else None

    @override
    async def close(self) -> None:
        pass

    @property
    @override
    def offered(self) -> Sequence[Tool]:
        reads = [each for each in self._every.offered if each.name.startswith("get_") or each.name == state_paths.NAME]
        return tuple(reads if self._more is None else [*reads, self._more.tool])

    @property
    @override
    def final(self) -> Collection[str]:
        return ()

    @property
    @override
    def side_by_side(self) -> Collection[str]:
        return (NAME,) if self._more is not None else ()

    @property
    @override
    def reads(self) -> Collection[str]:
        return self._every.reads

    @override
    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        if asked.name != NAME or self._more is None:
            return await self._every.take(asked, arguments, place)
        self._listener.called(place.path, asked.name, asked.arguments)
        outcome = await self._more.take(arguments, place)
        self._listener.done(place.path, self._writer.masker.text(outcome.told), failed=outcome.error is not None)
        return outcome

    @override
    def told(self, asked: ToolCall, result: entries.Result) -> str:
        return self._every.told(asked, result)
