"""The tools of every session: they show its subject, and store its plan, description and variables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence

from typing_extensions import override

from director.session import plan as plans
from director.session import state_paths
from director.session import variables as session_variables
from director.session.events import Listener
from director.session.state import SessionState
from director.session.subject import Subject
from director.subjects import session_runs
from director.tools import toolbox
from director.tools.toolbox import (
    CHANGED,
    KEPT,
    NUMBER,
    PERHAPS,
    READ,
    REASON,
    TEXT,
    ModelTools,
    Simple,
    Toolset,
    each,
    tool,
)
from nodes.errors import ModelError
from nodes.values import Json
from runtime.display.text import one_line
from runtime.log import entries, threads
from runtime.observation import page_text
from runtime.secrets import masking

REFRESH = frozenset({
    "get_workflow_summary", "get_workflow_nodes", "get_workflow_variables", "get_current_plan", "get_browser_state",
})  # fmt: skip
"""Tools that tell how things stand; a model is told of them after a summary."""

NOTES = frozenset({"update_plan", "patch_plan_task", "update_workflow_description"})
"""Tools whose failure keeps no other call from being done."""

PROPOSE = "propose_command"

OF_TALKS = frozenset({
    "get_workflow_description", "update_workflow_description", "get_workflow_variable", "get_browser_state", PROPOSE,
})  # fmt: skip
"""Tools for what a person says over a long talk. A build has its goal from the start, and pays for each tool with every request."""

_PROPOSED = re.compile(r"/(answer \S.*|decide (done|not-done|skip)|resume)")

_STATUS: dict[str, Json] = {"type": "string", "enum": list[Json](plans.STATUSES)}
_TASK = toolbox.fields(
    {"task_id": TEXT, "description": TEXT, "status": _STATUS, "notes": PERHAPS, "node_ids": each(TEXT)}
)
_PLAN = toolbox.fields(
    {
        "overall_goal": TEXT,
        "current_phase": PERHAPS,
        "phases": each(toolbox.fields({"phase_name": TEXT, "status": _STATUS, "tasks": each(_TASK)})),
        "blockers": each(TEXT),
        "notes": PERHAPS,
    }
)


_Row = tuple[str, str, dict[str, dict[str, Json]], frozenset[entries.Mode], Callable[[dict[str, Json]], str]]


class Toolbox(ModelTools):
    def __init__(
        self,
        state: SessionState,
        subject: Subject,
        listener: Listener,
        more: Sequence[Toolset] = (),
        without: Collection[str] = (),
    ) -> None:
        """``without`` names tools that are not offered."""
        self._subject, self._runs = subject, session_runs.SessionRuns(state)
        every = [*self._own(), *more]
        super().__init__(state, listener, [each for each in every if each.tool.name not in without])

    @property
    @override
    def lenient(self) -> Collection[str]:
        return ("update_plan",)

    def _own(self) -> Sequence[Toolset]:
        which = toolbox.of(TEXT, "Positions (`1-10`, `3`), an id, a step path, `all`, `recent`; `workflow`: the head.")
        table: list[_Row] = [
            ("get_workflow_summary", "The workflow or run: facts, phase, last run, what blocks it, what is next.", {}, READ, lambda _: self._summary()),
            ("get_workflow_nodes", "Nodes as the file has them.", {"which": which, "type": toolbox.of(PERHAPS, "Only of this node type.")}, READ, lambda given: self._subject.nodes(str(given["which"]), given.get("type")) or "(no nodes yet)"),
            ("get_workflow_variables", "Values of the workflow or run, and the session's variables.", {"key": toolbox.of(PERHAPS, "One of them, whole; null for all, shortened."), "run": toolbox.of(PERHAPS, "Of that run of the session, by its id; null: as it is now.")}, READ, self._variables),
            ("get_current_plan", "The plan.", {}, READ, lambda _: plans.as_text(self._state.plan)),
            ("get_workflow_description", "What the person wants, as last agreed.", {}, READ, lambda _: self._state.description or self._subject.description() or "(there is none yet)"),
            ("get_browser_state", "The last known tabs and addresses.", {}, READ, lambda _: self._subject.browser_state()),
            (state_paths.NAME, "Reads text that was cut, runs, and the whole past: `@state` lists the paths.", {"path": toolbox.of(TEXT, "From `@state/` on."), "start": toolbox.of(NUMBER, "First character, from 0."), "end": toolbox.of(NUMBER, "First character not to read.")}, READ, self._read_state),
            ("update_plan", "Replaces the whole plan.", {"plan": _PLAN, "reason": REASON}, CHANGED, self._write_plan),
            ("patch_plan_task", "Changes one task of the plan.", {"task_id": TEXT, "status": toolbox.of({"type": ["string", "null"], "enum": [*plans.STATUSES, None]}, "null: as it is."), "notes": toolbox.of(PERHAPS, "null: as they are."), "reason": REASON}, CHANGED, self._write_task),
            ("update_workflow_description", "Replaces the description of what the person wants.", {"description": TEXT, "reason": REASON}, CHANGED, self._write_description),
            ("get_workflow_variable", "One of the session's variables, whole.", {"key": TEXT}, READ, self._variable),
            ("set_variable", "Keeps a value in the session; under the name of an input, it is its value in the next `/run`.", {"name": TEXT, "value": toolbox.of(TEXT, "As JSON."), "reason": REASON}, KEPT, self._write_variable),
            ("clear_variable", "Clears a variable, or a node's value.", {"name": TEXT, "reason": REASON}, CHANGED, self._cleared),
            ("clear_all_variables", "Clears all of both.", {"reason": REASON}, CHANGED, self._all_cleared),
            (PROPOSE, "Proposes what the person may do with the session's run; it is done if they say yes.", {"command": toolbox.of(TEXT, "`/answer TEXT`, `/decide done`, `/decide not-done`, `/decide skip` or `/resume`."), "reason": REASON}, READ, self._proposed),
        ]  # fmt: skip
        return [
            Simple(tool(name, text, fields), modes, do, "note" if name in NOTES else None)
            for name, text, fields, modes, do in table
        ]

    def _summary(self) -> str:
        phase = f"Phase: {plans.phase(self._state.plan)}"
        return f"{self._subject.summary()}\n{phase}\n\n{self._subject.outline()}".strip()

    def _variables(self, arguments: dict[str, Json]) -> str:
        key, run = arguments.get("key"), arguments.get("run")
        if run is None:
            values = session_variables.told(self._state, self._subject.variables())
        else:
            values = session_variables.hidden(self._state, self._runs.variables(str(run)))
        if key is None:
            return page_text.fenced("\n".join(session_variables.render(values))) if values else "(none has a value)"
        if key in values:
            # A value may contain page text that a step has read.
            return page_text.fenced(state_paths.as_text(values[key]))
        within = {name: value for name, value in values.items() if name.startswith(f"{key}.")}
        if not within:
            raise session_variables.unknown(
                key, list(values), self._subject.missing_value(key) if run is None else None
            )
        return page_text.fenced("\n".join(session_variables.render(within)))

    def _variable(self, arguments: dict[str, Json]) -> str:
        if arguments["key"] not in self._state.variables.names():
            # Models ask for values of nodes with this tool, too.
            return self._variables(arguments)
        return page_text.fenced(state_paths.as_text(session_variables.told(self._state)[str(arguments["key"])]))

    def _read_state(self, arguments: dict[str, Json]) -> str:
        path = str(arguments["path"])
        text = state_paths.of_session(self._state, path, self._state.writer)
        if text is None:
            text = self._runs.text(path)
        if text is None:
            text = self._subject.state(path)
        if text is None:
            raise state_paths.unknown(path)
        return state_paths.part(self._told(path, text), arguments.get("start"), arguments.get("end"))

    def _told(self, path: str, text: str) -> str:
        """Return what is kept at a path without values that are hidden by their names, before it is cut into parts."""
        names = self._state.masker.names
        last = next((each for each in reversed(path.split("/")) if not each.isdecimal()), "")
        return masking.MASK if names.named(last) else names.text(text)

    def _write_plan(self, arguments: dict[str, Json]) -> str:
        given = {name: value for name, value in arguments.items() if name != "reason"}
        plan, otherwise = plans.taken(given.get("plan") or given)
        self._state.set_plan(plan, reason=str(arguments.get("reason") or "none given"))
        more = f"; {'; '.join(otherwise)}" if otherwise else ""
        return self._stored("plan", one_line(f"kept as version {self._number('plan')}{more}"))

    def _write_task(self, arguments: dict[str, Json]) -> str:
        task = str(arguments["task_id"])
        plan = self._state.patch_task(
            task,
            status=arguments.get("status"),
            notes=arguments.get("notes"),
            reason=str(arguments["reason"]),
        )
        return self._stored("plan", f"kept as version {self._number('plan')}: {one_line(plans.as_step(plan, task))}")

    def _write_description(self, arguments: dict[str, Json]) -> str:
        self._state.describe(str(arguments["description"]), reason=str(arguments["reason"]))
        return self._stored("description", f"kept as version {self._number('description')}")

    def _write_variable(self, arguments: dict[str, Json]) -> str:
        name, text = str(arguments["name"]), str(arguments["value"])
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise ModelError(
                "variable-invalid",
                f"the value of `{name[:100]}` is no JSON",
                fix='write it as JSON: a text in quotes (`"tea"`), a number, a list, a map',
            ) from None
        self._state.variables.set(name, value, reason=str(arguments["reason"]))
        shown = "\n".join(session_variables.render({name: session_variables.told(self._state)[name]}))
        return self._stored("variable", shown, name)

    @staticmethod
    def _proposed(arguments: dict[str, Json]) -> str:
        command = one_line(str(arguments["command"]))
        if not _PROPOSED.fullmatch(command):
            raise ModelError(
                "tool-arguments",
                f"`{command[:100]}` cannot be proposed",
                fix="propose `/answer TEXT`, `/decide done`, `/decide not-done`, `/decide skip` or `/resume`",
            )
        return f"proposed: {command}. Nothing is done yet: say why, and end your answer; the person says yes, or something else"

    def _cleared(self, arguments: dict[str, Json]) -> str:
        name, reason = str(arguments["name"]), str(arguments["reason"])
        variables, nodes, values = self._state.variables, self._subject.clearable(), self._subject.variables()
        if name not in variables.names() and name not in variables.cleared_since(self._asked_at, reason):
            if name in nodes:
                self._subject.clear([name], reason)
                return f"the value of `{name}` is cleared: the node is stale"
            if name in values:
                raise ModelError(
                    "variable-fixed",
                    f"`{name}` is a value of the workflow or its run, and cannot be cleared",
                    fix="what a run made stays as it was, and inputs are given when a run is started",
                )
        variables.clear(name, reason=reason, others=[*values, *nodes])
        more = ": the value of its node counts again" if name in nodes else ""
        return self._stored("variable", f"the variable `{name}` is cleared{more}", name)

    def _all_cleared(self, arguments: dict[str, Json]) -> str:
        reason, nodes = str(arguments["reason"]), self._subject.clearable()
        # A call that a crash has interrupted tells the same when it is repeated.
        names = [*self._state.variables.cleared_since(self._asked_at, reason)]
        names += self._state.variables.clear_all(reason=reason)
        self._subject.clear(nodes, reason)
        for name in names:
            self._listener.changed("variable", name)
        cleared = [
            *([f"the variables {', '.join(names)}"] if names else []),
            *([f"the values of {', '.join(nodes)}, which are stale now"] if nodes else []),
        ]
        return f"cleared: {'; '.join(cleared)}" if cleared else "there is nothing to clear"

    @property
    def _asked_at(self) -> int:
        """The line of the answer whose calls are executed now."""
        said = self._state.history.thread(entries.SESSION_THREAD).said
        return max((each.answer.seq for each in said[-1:] if isinstance(each, threads.Exchange)), default=0)

    def _number(self, of: str) -> int:
        return len(self._state.history.versions(of))

    def _stored(self, of: str, text: str, name: str = "") -> str:
        self._listener.changed(of, name)
        return text
