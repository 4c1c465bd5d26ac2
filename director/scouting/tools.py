"""The tools of scouting: observations of a build's pages, and actions on those of the scout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from typing_extensions import override

from director.scouting import actions, observer, page_tools
from director.tools import barrier
from director.tools.build_context import BuildContext
from director.tools.toolbox import FLAG, NUMBER, PERHAPS, READ, REASON, TEXT, OfBuild, Toolset, of, tool
from nodes.errors import ModelError
from nodes.values import Json
from runtime.log import attempts as log_attempts
from runtime.log import entries
from runtime.messages.messages import Tool
from runtime.models.turns import turn

_PAGE = of(PERHAPS, "`bench`, or a scout tab; null: the one that showed the ref, else the one shown last.")
_SAME_PAGE = PERHAPS  # as in inspect_tab
_TAB = of(PERHAPS, "Scout tab; a new name opens one; null: as in inspect_tab.")
_MINE = of(PERHAPS, "A tab of yours; null: the first.")
_REF_OR_TARGET = of(PERHAPS, "Ref of an element, or a target in YAML.")
_TARGET = of(
    TEXT, "In YAML, as in a file: `{role: button, name: Pay, within: {role: row, has_text: A-7}}`, `{css: .x}` …"
)
_RULE = of(
    TEXT,
    "In YAML, as in `verify`: visible, hidden, text, url, count …, as `{visible: {role: alert}}`; or `quiet`: no more requests.",
)
_VALUE = "Text or `{{ secrets.NAME }}`; option; key; file; where to drag it, as `ref`; for a dialog accept, dismiss, or the text of a prompt."
_OPTIONS = "Other fields of the action, in YAML as in a file: `{button: right}`, `{by: {y: 300}}`."


class LookTool(OfBuild):
    def __init__(
        self, build: BuildContext, offered: Tool, do: Callable[[dict[str, Json], turn.Place], Awaitable[turn.Outcome]]
    ) -> None:
        super().__init__(build, offered, READ)
        self._do = do

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        return await self._do(arguments, place)


class ActionTool(OfBuild):
    kind = "scout"

    def __init__(
        self, build: BuildContext, offered: Tool, do: Callable[[entries.Call, dict[str, Json]], Awaitable[turn.Outcome]]
    ) -> None:
        super().__init__(build, offered)
        self._do = do

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        name = self.tool.name
        return await barrier.done(self._build.writer, name, arguments, place, lambda call: self._do(call, arguments))

    @override
    def interrupted_outcome(self, call: entries.Call) -> turn.Outcome | None:
        """Return the outcome of an interrupted call by the logs of its runs: done, perhaps done, or not done."""
        observer = cast("observer.PageObserver", self._build.observer)
        gone = "the scout's browser ended with the process, with its tabs: `debug_navigate` opens it again"
        if observer.scout.session is not None:
            gone = "`inspect_tab` shows the page as it is now"
        attempts: list[log_attempts.Attempt] = []
        for run in self._build.writer.history.runs_of.get(call.call, ()):
            past = self._build.runs.past(run)
            attempts += past.all_attempts() if past is not None else ()
        if any(each.result is not None and each.result.status == "ok" for each in attempts):
            text = f"done, before the session was interrupted; {gone}"
            return turn.Outcome(text, text)
        began = any(each.call.effect == "effect" for each in attempts)
        what = "it was interrupted, and may have happened" if began else "it was interrupted before it was done"
        look = "look at what the site says before it is done again; " if began else ""
        return turn.Outcome("", error=ModelError("scout-interrupted", what, fix=f"{look}{gone}").as_json())


def toolsets(
    build: BuildContext, thread: str = entries.SESSION_THREAD, mine: list[str] | None = None
) -> Sequence[Toolset]:
    """Return the tools for the model of one thread; ``mine`` are the tabs to which a scout is restricted."""
    looks = page_tools.Looking(build, cast("observer.PageObserver", build.observer), thread, mine)
    does = actions.ScoutActions(build, looks, mine)
    page, same, tab = (_PAGE, _SAME_PAGE, _TAB) if mine is None else (_MINE, _MINE, _MINE)
    inspect = tool(
        "inspect_tab",
        "Show a page with refs, or what changed since you saw it; with an instruction only what fits its words.",
        {
            "tab": page,
            "instruction": of(PERHAPS, "What to look for, in words of the page; null: everything."),
            "ref": of(PERHAPS, "Only this part."),
            "dom": of(FLAG, "With a ref: CSS of it and what is in it."),
            "screenshot": of(FLAG, "Add a picture with refs, and keep it as a file."),
            "reason": REASON,
        },
    )
    find = tool(
        "find",
        "List the elements of a page that fit all arguments, with refs.",
        {
            "tab": same,
            "role": PERHAPS,
            "name": PERHAPS,
            "row": of(PERHAPS, "Text of the row or card around it."),
            "text": of(PERHAPS, "Text in it."),
        },
    )
    trial = tool(
        "try_target",
        "Say what a target finds on a page now; does nothing to it.",
        {"tab": same, "target": _TARGET, "reason": REASON},
    )
    wait = tool(
        "wait_for",
        "Wait until a page shows something, and show what changed.",
        {"tab": same, "rule": _RULE, "seconds": of(NUMBER, "At most; null: 10."), "reason": REASON},
    )
    html = tool(
        "get_html",
        "Show HTML with attributes, without scripts and styles; `now` is what a field holds.",
        {
            "tab": same,
            "ref": of(PERHAPS, "Ref of an element, or a target in YAML; null: the page."),
            "depth": of(NUMBER, "Levels below it; null: all."),
            "reason": REASON,
        },
    )
    navigate = tool(
        "debug_navigate",
        "Load an address in the scout's browser, which is no part of the workflow, and show the page.",
        {
            "tab": tab,
            "url": TEXT,
            "reason": REASON,
        },
    )
    action = tool(
        "debug_action",
        "Do one action on a scout page, and show what changed; a click or key may be held.",
        {
            "tab": tab,
            "action": of(TEXT, "Of a node: click, fill, check, select, press, drag, upload …; close_tab."),
            "ref": _REF_OR_TARGET,
            "value": of(PERHAPS, _VALUE),
            "options": of(PERHAPS, _OPTIONS),
            "reason": REASON,
        },
    )
    return (
        LookTool(build, inspect, looks.inspect),
        LookTool(build, find, looks.find),
        LookTool(build, trial, looks.try_target),
        LookTool(build, html, looks.get_html),
        LookTool(build, wait, looks.wait_for),
        ActionTool(build, navigate, does.navigate),
        ActionTool(build, action, does.act),
    )
