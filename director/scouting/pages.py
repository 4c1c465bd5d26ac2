"""The pages of a session, for its subagents: own tabs in the scout's browser, or looks at every page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from typing_extensions import override

from director.conversation import subagents
from director.draft.goal import addresses
from director.scouting import observer, tools
from director.tools.build_context import BuildContext
from director.tools.toolbox import Toolset
from runtime.log import entries


class Pages(subagents.Pages):
    def __init__(self, build: BuildContext) -> None:
        self._build = build

    @override
    def tabs(self, call: entries.Call, kind: str = observer.DELEGATE, url: str | None = None) -> subagents.Tabs:
        """Return the tabs of a subagent; ``kind`` begins their names, ``url`` is where it begins, by default at the goal's site."""
        return _OwnTabs(self._build, call, kind, url)

    @override
    def looking(self, thread: str) -> Sequence[Toolset]:
        return [each for each in tools.toolsets(self._build, thread) if each.reads]

    @override
    def actions(self, call: entries.Call) -> int:
        past = self._build.writer.history
        within = f"{call.path}/"
        runs = [
            run for each, of in past.runs_of.items() if past.actions[each].call.path.startswith(within) for run in of
        ]
        logs = filter(None, map(self._build.runs.past, runs))
        return sum(each.may_have_happened for log_ in logs for each in log_.all_attempts())


class _OwnTabs(subagents.Tabs):
    def __init__(self, build: BuildContext, call: entries.Call, kind: str, url: str | None) -> None:
        self._build, self._url, self._call = build, url, call
        # A tab is named by the order of sending: scout1, scout2.
        sent = [each for each, action in build.writer.history.actions.items() if action.call.action == call.action]
        self._mine = [f"{kind}{sent.index(call.call) + 1 if call.call in sent else len(sent) + 1}"]
        self._toolsets = tools.toolsets(build, entries.delegate_thread(call.call), self._mine)

    @property
    @override
    def toolsets(self) -> Sequence[Toolset]:
        return self._toolsets

    @property
    @override
    def notes(self) -> str:
        goal = self._build.goal
        task = " ".join(map(str, self._build.writer.value_of(self._call).values()))
        url = self._url or (goal.url if goal.url not in addresses(task) else None)
        secrets = f"Secrets that you may type: {', '.join(goal.secrets)}." if goal.secrets else ""
        return "\n\n".join(filter(None, (f"Begin at {url}." if url else "", secrets)))

    @override
    async def close(self) -> None:
        await cast("observer.PageObserver", self._build.observer).scout.shut(self._mine)
