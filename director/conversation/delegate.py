"""``delegate``: a model sends another one to do a task in a thread of its own; only the answer comes back, with what it cost.

A delegate looks and changes nothing. It begins with nothing but its task, or behind what its sender was told: *clean* or *inherit*. It may send delegates
itself, down to ``DEPTH``. How one works and ends, ``director.conversation.subagents`` says.
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
"""How deep delegates may send delegates."""

TURNS = 20
"""Requests that one delegate may take."""

BUDGET = Budget(calls=50, tokens=500_000, time=Decimal(1200))
"""What one delegate may spend, with those that it sends; never more than its sender has left."""

Context = Literal["clean", "inherit"]


class Delegation(subagents.SubagentCall):
    """The tool, as one sender has it."""

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
        """``tools`` are those of the session; ``clean`` is how a delegate begins of which the call does not say so itself. ``models`` may lack where nothing is sent."""
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
        """Nothing, or all that its sender was told before the answer that asks for it."""
        context: Context | None = arguments.get("context")
        if self._clean if context is None else context == "clean":
            return ()
        items = self._sender.items()
        asks = (number for number, each in enumerate(items) if isinstance(each, ToolCall) and each.id == asked)
        # Where there is no room for the answer itself, all that is there stands before it.
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
    """What a delegate may do: what the session's tools read, and, where it is not too deep, send another one."""

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
