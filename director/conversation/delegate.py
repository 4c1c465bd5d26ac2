"""``delegate``: a model gives a subagent a task in a separate thread; only the answer is returned, with its cost.

A delegate only reads. It begins with its task alone (*clean*), or with its parent's thread (*inherit*). It may send delegates itself,
down to ``DEPTH``. ``director.conversation.subagents`` runs and ends them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Literal

from typing_extensions import override

from director.conversation import subagents
from director.session import state_paths
from director.session.events import Listener
from director.session.state import SessionState
from director.tools import toolbox
from director.tools.toolbox import PERHAPS, TEXT, ModelTools, of
from nodes.budgets import Budget
from nodes.values import Json
from runtime.log import entries
from runtime.messages.messages import Item, Tool, ToolCall, is_models

NAME = "delegate"

DEPTH = 2  # limit of nested delegates
TURNS = 20  # limit of the requests of one delegate

BUDGET = Budget(calls=50, tokens=500_000, time=Decimal(1200))
"""Budget of one delegate and those that it sends; never more than its parent has left."""

Context = Literal["clean", "inherit"]


class Delegation(subagents.SubagentCall):
    who = "delegate"
    turns = TURNS
    budget = BUDGET

    def __init__(
        self, state: SessionState, listener: Listener, tools: Callable[[], ModelTools], *, clean: bool
    ) -> None:
        """``tools`` returns the session's tools; ``clean`` is the default context of a call."""
        super().__init__(state, listener, _tool(clean=clean), frozenset({"agent", "run"}))
        self._tools, self._clean = tools, clean

    @override
    def before(self, arguments: dict[str, Json], asked: str) -> tuple[Item, ...]:
        """Return the parent's thread before the answer with this call; nothing for a clean context."""
        context: Context | None = arguments.get("context")
        if self._clean if context is None else context == "clean":
            return ()
        items = self.sender.items()
        asks = (number for number, each in enumerate(items) if isinstance(each, ToolCall) and each.id == asked)
        # If the window has no room for that answer, all items precede it.
        ends = next(asks, len(items))
        while ends and is_models(items[ends - 1]):
            ends -= 1
        return items[:ends]

    @override
    def config(self, call: entries.Call, subagent: subagents.Subagent) -> subagents.SubagentTools:
        """Return the reading tools of the session, and below the depth limit a tool that sends another delegate."""
        every: list[toolbox.Toolset] = [
            each for name, each in self._tools().toolsets.items() if name.startswith("get_") or name == state_paths.NAME
        ]
        if subagent.sender.depth + 1 < DEPTH:
            more = Delegation(self.state, self.listener, self._tools, clean=self._clean)
            sender = subagents.Sender(subagent.sender.depth + 1, subagent.share, subagent.items)
            more.employ(self.models, self.limits, sender)
            every.append(more)
        return _Tools(self.state, self.listener, every)


def _tool(*, clean: bool) -> Tool:
    begins = (
        "It sees nothing of this conversation: write a task that can be understood by itself, with every name and value that it needs"
        if clean
        else "It sees this conversation up to here"
    )
    other = "`inherit` to let it see this conversation" if clean else "`clean` to begin with the task alone"
    fields: dict[str, dict[str, Json]] = {
        "task": of(TEXT, "Self-contained: what to find, and where." if clean else "What to find."),
        "context": {
            "type": ["string", "null"],
            "enum": ["inherit", "clean", None],
            "description": f"{other}; null as said above.",
        },
        "reason": of(PERHAPS, "Why, in a sentence."),
    }
    return toolbox.tool(NAME, f"Another model does a task that only reads, and answers. {begins}.", fields)


class _Tools(subagents.SubagentTools):
    prompts = ("delegate", "rules", "tools")
