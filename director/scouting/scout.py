"""``send_scout``: a subagent observes the site for a build in a separate tab; its parent sees only the report.

Several work concurrently: they share the scout's browser and its sign-ins, and use it one action after the other.
"""

from __future__ import annotations

from decimal import Decimal

from typing_extensions import override

from director.conversation import subagents
from director.scouting import observer, pages
from director.tools import toolbox
from director.tools.build_context import BuildContext
from director.tools.toolbox import CHANGED, PERHAPS, REASON, TEXT
from nodes.budgets import Budget
from nodes.values import Json
from runtime.log import entries

NAME = "send_scout"

TURNS = 15
BUDGET = Budget(calls=40, tokens=400_000, time=Decimal(900))  # budget of one scout; never more than the build has left

LOOK_FIRST = "You have not looked at any page yet. Look at it with your tools, then report what you saw."

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
    turns = TURNS
    budget = BUDGET
    kind = "scout"

    def __init__(self, build: BuildContext) -> None:
        super().__init__(build.state, build.listener, SCOUT, CHANGED)
        self._pages = self.pages = pages.Pages(build)

    @override
    def who(self, call: entries.Call) -> str:
        return "scout"

    @override
    def unfounded(self, call: entries.Call) -> str:
        thread = entries.delegate_thread(call.call)
        looked = any(
            each.call.thread == thread and each.result is not None and each.result.status == "ok"
            for each in self.writer.history.actions.values()
        )
        return "" if looked else LOOK_FIRST

    @override
    def config(self, call: entries.Call, subagent: subagents.Subagent) -> subagents.SubagentTools:
        """Return tools with which it observes its own tabs, and acts in them."""
        given: dict[str, Json] = self.writer.value_of(call)
        tabs = self._pages.tabs(call, observer.SCOUT, given.get("url"))
        return subagents.SubagentTools(
            self.state, self.listener, tabs.toolsets, subagents.prompts("scout", "rules"), tabs
        )
