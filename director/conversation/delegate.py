"""``delegate``: a model gives a subagent a task in a separate thread; only the answer is returned, with its cost.

A delegate is an agent of the project, by name, or the anonymous one, which only reads. It begins with its task alone (*clean*), or with
its parent's thread (*inherit*). It may send delegates itself, and these may do no more than it may. ``director.conversation.subagents``
runs and ends them.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Literal

from typing_extensions import override

from director.conversation import subagents
from director.session.events import Listener
from director.session.state import SessionState
from director.tools import toolbox
from director.tools.toolbox import PERHAPS, TEXT, ModelTools, Toolset, of
from nodes.budgets import Budget
from nodes.values import Json
from runtime.context import window
from runtime.language import agent_files
from runtime.language.agent_files import Agent
from runtime.log import entries
from runtime.messages.messages import Item, Tool, ToolCall, is_models
from runtime.models.turns import turn

NAME = "delegate"

LEVELS = agent_files.DEEPEST + 1  # limit of nested delegates
TURNS = 20  # limit of the requests of one delegate

BUDGET = Budget(calls=50, tokens=500_000, time=Decimal(1200))
"""Budget of one delegate and those that it sends; never more than its parent has left. An agent may have another one, part by part."""

ANONYMOUS = Agent(description="Only reads.")

Context = Literal["clean", "inherit"]

PARTS = {"constraints": "Constraints", "deliverable": "Deliverable", "end": "End"}
"""Parts of a task besides its goal, by their arguments, as its first message names them."""

NEEDED = ("goal", "deliverable", "end")  # parts without which a clean task is refused

_PAGES = frozenset((*agent_files.READING["pages"], *agent_files.ACTING["pages"]))


@dataclasses.dataclass(frozen=True, slots=True)
class Delegates:
    """What the delegates of a session may be and use."""

    clean: bool = False  # the context of a delegate if neither its call nor its agent says
    origin: str = "default"  # where that comes from: a flag, a variable, a file
    agents: Mapping[str, Agent] = dataclasses.field(default_factory=dict[str, Agent])
    pages: subagents.Pages | None = None
    one_at_a_time: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)
    """Held by tools that share the draft's browser."""


class Delegation(subagents.SubagentCall):
    turns = TURNS
    budget = BUDGET

    def __init__(
        self,
        state: SessionState,
        listener: Listener,
        tools: Callable[[], ModelTools],
        delegates: Delegates,
        *,
        acts: bool = True,
    ) -> None:
        """``tools`` returns the session's tools. Only agents that look are offered unless the sender ``acts``."""
        self._offered = {name: each for name, each in delegates.agents.items() if acts or not each.acts}
        super().__init__(state, listener, _tool(self._offered, clean=delegates.clean), frozenset({"agent", "run"}))
        self._tools, self._delegates, self.pages = tools, delegates, delegates.pages

    @override
    def who(self, call: entries.Call) -> str:
        name = self._name(call)
        return f"delegate {name}" if name is not None else "delegate"

    @override
    def check(self, arguments: dict[str, Json]) -> None:
        """Raise ModelError ``tool-arguments`` if a clean task lacks a part, or any task its goal."""
        context, _why = self._context(arguments)
        needed = NEEDED if context == "clean" else NEEDED[:1]
        lacks = [each for each in needed if not str(arguments.get(each) or "").strip()]
        if not lacks:
            return
        what = "a delegate that begins clean sees only its task, and this " if context == "clean" else "this task "
        fix = "call it again with what is missing"
        other = ", or with `context` inherit" if context == "clean" and "goal" not in lacks else ""
        raise self._incomplete(f"{what}lacks {', '.join(f'`{each}`' for each in lacks)}", f"{fix}{other}")

    @override
    def word(self, arguments: dict[str, Json]) -> str:
        rest = [f"{PARTS[each]}: {arguments[each]}" for each in PARTS if str(arguments.get(each) or "").strip()]
        return "\n\n".join(filter(None, (str(arguments["goal"]), "\n".join(rest))))

    @override
    def terms(self, call: entries.Call) -> subagents.Terms:
        agent = self._agent(call)
        own = {name: value for name, value in agent.budget or () if value is not None}
        budget = self.budget.model_copy(update=own)
        return subagents.Terms(budget, self.turns, agent.model, agent.max_output)

    @override
    def began(self, call: entries.Call, subagent: subagents.Subagent) -> None:
        context, why = self._context(self.writer.value_of(call))
        data: dict[str, Json] = {
            "call": call.call,
            "agent": self._name(call),
            "acts": self._agent(call).acts,
            "context": context,
            "why": why,
            "model": subagent.model,
            "tools": [each.name for each in subagent.config.offered],
        }
        self.writer.noted("delegate-started", data, entries.delegate_thread(call.call))

    @override
    def before(self, arguments: dict[str, Json], asked: str) -> tuple[Item, ...]:
        """Return the parent's thread before the answer with this call; nothing for a clean context."""
        if self._context(arguments)[0] == "clean":
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
        """Return the agent's tools, as far as the session has them, and one that sends another delegate if it may."""
        agent = self._agent(call)
        every = list(self._of_session(agent))
        tabs: subagents.Tabs | None = None
        if self.pages is not None and agent.names & _PAGES:
            tabs = self.pages.tabs(call) if agent.acts else None
            looking = self.pages.looking(entries.delegate_thread(call.call)) if tabs is None else tabs.toolsets
            found = [each for each in looking if each.tool.name in agent.names]
            # Looking at all pages includes that of the draft.
            every += found if tabs is not None else [_OneAtATime(each, self._delegates.one_at_a_time) for each in found]
        levels = min(agent.delegates, subagent.sender.levels - 1)
        if levels > 0:
            more = Delegation(self.state, self.listener, self._tools, self._delegates, acts=agent.acts)
            more.employ(self.models, self.limits, subagents.Sender(levels, subagent.share, subagent.items))
            every.append(more)
        own = [window.Part("agent", self.state.masker.text(agent.prompt))] if agent.prompt.strip() else []
        parts = [*subagents.prompts("delegate", *(["tabs"] if tabs is not None else [])), *own]
        return subagents.SubagentTools(
            self.state, self.listener, every, [*parts, *subagents.prompts("rules", "tools")], tabs
        )

    def _of_session(self, agent: Agent) -> Iterator[Toolset]:
        for name, each in self._tools().toolsets.items():
            if name in agent.names and name not in _PAGES:
                shares = isinstance(each, toolbox.OfBuild)
                yield _OneAtATime(each, self._delegates.one_at_a_time) if shares else each

    def _name(self, call: entries.Call) -> str | None:
        given: dict[str, Json] = self.writer.value_of(call)
        return given.get("agent")

    def _agent(self, call: entries.Call) -> Agent:
        # A file that was deleted since a crash ends nothing: its delegate is only closed.
        return self._offered.get(self._name(call) or "", ANONYMOUS)

    def _context(self, arguments: dict[str, Json]) -> tuple[Context, str]:
        """Return what the delegate begins with, and what decides that."""
        said: Context | None = arguments.get("context")
        if said is not None:
            return said, "call"
        name: str | None = arguments.get("agent")
        agent = self._offered.get(name or "", ANONYMOUS)
        if agent.context is not None:
            return agent.context, f"agent {name}"
        return "clean" if self._delegates.clean else "inherit", self._delegates.origin


class _OneAtATime(Toolset):
    """A tool that waits for those of other delegates."""

    def __init__(self, toolset: Toolset, lock: asyncio.Lock) -> None:
        super().__init__(toolset.tool, toolset.modes)
        self._toolset, self._lock, self.kind = toolset, lock, toolset.kind

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        async with self._lock:
            return await self._toolset.take(arguments, place)

    @override
    def needs(self, arguments: Mapping[str, Json], failed: str, theirs: Mapping[str, Json]) -> bool:
        return self._toolset.needs(arguments, failed, theirs)

    @override
    def stopped(self, asked: ToolCall) -> bool:
        return self._toolset.stopped(asked)

    @override
    def outcome_of_open_call(self, call: entries.Call) -> turn.Outcome | None:
        return self._toolset.outcome_of_open_call(call)


def _tool(agents: Mapping[str, Agent], *, clean: bool) -> Tool:
    begins = (
        "It sees nothing of this conversation: write a task that can be understood by itself, with every name and value that it needs"
        if clean
        else "It sees this conversation up to here"
    )
    other = "`inherit` to let it see this conversation" if clean else "`clean` to begin with the task alone"
    named: dict[str, dict[str, Json]] = {
        "agent": {
            "type": ["string", "null"],
            "enum": [*agents, None],
            "description": "\n".join(
                ["Who does it; null: one that only reads.", *map(_listed, agents, agents.values())]
            ),
        }
    }
    fields: dict[str, dict[str, Json]] = {
        **(named if agents else {}),
        "goal": of(TEXT, "Self-contained: what to find, and where." if clean else "What to find."),
        "constraints": of(PERHAPS, "What it must keep to."),
        "deliverable": of(PERHAPS, "What the answer contains, and its form."),
        "end": of(PERHAPS, "When it is done, and when it gives up."),
        "context": {
            "type": ["string", "null"],
            "enum": ["inherit", "clean", None],
            "description": f"{other}; null as said above. A clean one needs `deliverable` and `end`.",
        },
    }
    does = "does a task" if agents else "does a task that only reads"
    return toolbox.tool(NAME, f"Another model {does}, and answers. {begins}.", fields)


def _listed(name: str, agent: Agent) -> str:
    begins = {"clean": ["begins clean"], "inherit": ["sees this conversation"], None: []}[agent.context]
    traits = ", ".join(["acts"] * agent.acts + begins)
    return f"`{name}`{f' ({traits})' if traits else ''}: {' '.join(agent.description.split())}"
