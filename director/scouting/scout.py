"""``send_scout``: a subagent observes the site for a build in a separate tab; its parent sees only the report.

Several work concurrently: they share the scout's browser and its sign-ins, and use it one action after the other.
"""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from typing_extensions import override

from director.conversation import subagents
from director.scouting import observer, tools
from director.tools import toolbox
from director.tools.build_context import BuildContext
from director.tools.toolbox import CHANGED, PERHAPS, REASON, TEXT, Toolset
from nodes.budgets import Budget
from nodes.errors import ModelError, Paused
from nodes.values import Json
from runtime.display.text import count
from runtime.log import entries
from runtime.models.turns import call_checks, turn

NAME = "send_scout"

TURNS = 15
BUDGET = Budget(calls=40, tokens=400_000, time=Decimal(900))  # budget of one scout; never more than the build has left

SCOUT = toolbox.tool(
    NAME,
    "Another model looks around on the site in a tab of its own, and reports.",
    {
        "task": toolbox.of(TEXT, "What to find out; it sees nothing of this conversation."),
        "url": toolbox.of(PERHAPS, "Where it begins; null: where the site is."),
        "reason": REASON,
    },
)


class Scouting(subagents.SubagentCall):
    who = "scout"
    turns = TURNS
    budget = BUDGET

    def __init__(self, build: BuildContext) -> None:
        super().__init__(build.state, build.listener, SCOUT, CHANGED)
        self._build = build

    @override
    def word(self, arguments: dict[str, Json]) -> str:
        task, goal = super().word(arguments), self._build.goal
        url = arguments.get("url") or goal.url
        begins = f"Begin at {url}." if url else ""
        secrets = f"Secrets that you may type: {', '.join(goal.secrets)}." if goal.secrets else ""
        return "\n\n".join(filter(None, (task, begins, secrets))) if task else ""

    @override
    def left(self, call: entries.Call) -> str:
        """Return a note on the number of actions that it did, or may have done, on the site."""
        past, thread = self._build.writer.history, entries.delegate_thread(call.call)
        runs = [run for each, of in past.runs_of.items() if past.actions[each].call.thread == thread for run in of]
        logs = filter(None, map(self._build.runs.past, runs))
        number = sum(each.may_have_happened for log_ in logs for each in log_.all_attempts())
        return f"it did {count(number, 'action')} on the site, or may have: look there first; " if number else ""

    @override
    def config(self, call: entries.Call, subagent: subagents.Subagent) -> subagents.SubagentTools:
        return _Tools(self._build, call)


class _Tools(subagents.SubagentTools):
    """Tools of a scout: it observes its own tabs, and acts in them."""

    prompts = ("scout", "rules")

    def __init__(self, build: BuildContext, call: entries.Call) -> None:
        # Its tab is named by the order of sending: scout1, scout2.
        sent = [each for each, action in build.writer.history.actions.items() if action.call.action == NAME]
        self._mine = [f"scout{sent.index(call.call) + 1 if call.call in sent else len(sent) + 1}"]
        toolsets = tools.toolsets(build, entries.delegate_thread(call.call), self._mine)
        super().__init__(build.state, build.listener, toolsets)
        self._build = build

    @override
    async def _outcome(self, toolset: Toolset, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        try:
            return await super()._outcome(toolset, arguments, place)
        except Paused:
            # A scout cannot wait for a person; its parent can.
            error = ModelError(
                "scout-unasked",
                "a person must be asked for it, and none is there now",
                fix="leave it, and say in the report what would have to be done",
            ).as_json()
            return turn.Outcome(call_checks.render_error(error), error=error)

    @override
    async def close(self) -> None:
        await cast("observer.PageObserver", self._build.observer).scout.shut(self._mine)
