"""The tools of every session: they show its subject, and keep agreements."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from director.session import plan as plans
from director.session import state_paths
from director.session import variables as session_variables
from director.session.events import Listener
from director.session.state import SessionState
from director.session.subject import Subject
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
from runtime.log import entries
from runtime.log.writer import Texts
from runtime.observation import page_text

_STATUS: dict[str, Json] = {"type": "string", "enum": list[Json](plans.STATUSES)}
_TASK = toolbox.fields(
    {
        "task_id": TEXT,
        "description": TEXT,
        "status": _STATUS,
        "notes": PERHAPS,
        "node_ids": each(TEXT),
    }
)
_PLAN = toolbox.fields(
    {
        "overall_goal": TEXT,
        "current_phase": PERHAPS,
        "phases": each(toolbox.fields({"phase_name": TEXT, "status": _STATUS, "tasks": each(_TASK)})),
        "next_actions": each(TEXT),
        "blockers": each(TEXT),
        "notes": PERHAPS,
    }
)


class Toolbox(ModelTools):
    def __init__(
        self,
        state: SessionState,
        subject: Subject,
        texts: Texts,
        listener: Listener,
        more: Sequence[Toolset] = (),
    ) -> None:
        super().__init__(state, listener, [*_toolsets(state, subject, texts, listener), *more])


def _toolsets(state: SessionState, subject: Subject, texts: Texts, listener: Listener) -> Sequence[Toolset]:
    reads, keeps = _Reads(state, subject, texts), _Keeps(state, listener)

    def toolset(
        name: str, description: str, fields: dict[str, dict[str, Json]], modes: frozenset[entries.Mode], do: Any
    ) -> Toolset:
        return Simple(tool(name, description, fields), modes, cast("Callable[[dict[str, Json]], str]", do))

    which = toolbox.of(TEXT, "Positions (`1-10`, `3`), an id, a step path, `all`, `recent`; `workflow`: the head.")
    return (
        toolset("get_workflow_summary", "What the workflow or run is, how it went, what stands in the way; with its outline.", {}, READ, reads.summary),
        toolset("get_workflow_nodes", "Nodes as the file has them.", {"which": which, "type": toolbox.of(PERHAPS, "Only of this node type.")}, READ, reads.nodes),
        toolset("get_workflow_variables", "Values of the workflow or run, and the session's variables.", {"key": toolbox.of(PERHAPS, "One of them, whole; null for all, shortened.")}, READ, reads.variables),
        toolset("get_current_plan", "The plan.", {}, READ, reads.plan),
        toolset("get_workflow_description", "What is wanted, as it was last agreed on.", {}, READ, reads.description),
        toolset("get_browser_state", "Tabs and addresses, as they were last known.", {}, READ, reads.browser_state),
        toolset(state_paths.NAME, "Reads on in what was cut.", {"path": toolbox.of(TEXT, "From `@state/` on."), "start": toolbox.of(NUMBER, "First character, from 0."), "end": toolbox.of(NUMBER, "Character behind the last.")}, READ, reads.state),
        toolset("update_plan", "Writes the whole plan anew.", {"plan": _PLAN, "reason": REASON}, CHANGED, keeps.plan),
        toolset("patch_plan_task", "Changes one task of the plan.", {"task_id": TEXT, "status": toolbox.of({"type": ["string", "null"], "enum": [*plans.STATUSES, None]}, "null: as it is."), "notes": toolbox.of(PERHAPS, "null: as they are."), "reason": REASON}, CHANGED, keeps.task),
        toolset("update_workflow_description", "Writes anew what is wanted.", {"description": TEXT, "reason": REASON}, CHANGED, keeps.description),
        toolset("get_workflow_variable", "One of the session's variables, whole.", {"key": TEXT}, READ, reads.variable),
        toolset("set_variable", "Keeps a value in the session.", {"name": TEXT, "value": toolbox.of(TEXT, "As JSON."), "reason": REASON}, KEPT, keeps.variable),
        toolset("clear_variable", "Takes a variable's value away.", {"name": TEXT, "reason": REASON}, CHANGED, keeps.cleared),
        toolset("clear_all_variables", "Takes all variables' values away.", {"reason": REASON}, CHANGED, keeps.all_cleared),
    )  # fmt: skip


class _Reads:
    def __init__(self, state: SessionState, subject: Subject, texts: Texts) -> None:
        self._state, self._subject, self._texts = state, subject, texts

    def summary(self, _arguments: dict[str, Json]) -> str:
        return f"{self._subject.summary()}\n\n{self._subject.outline()}".strip()

    def nodes(self, arguments: dict[str, Json]) -> str:
        return self._subject.nodes(str(arguments["which"]), arguments.get("type")) or "(no nodes yet)"

    def variables(self, arguments: dict[str, Json]) -> str:
        key: str | None = arguments.get("key")
        values = {**self._subject.variables(), **self._state.variables.all()}
        if key is None:
            return page_text.fenced("\n".join(session_variables.told(values))) if values else "(none has a value)"
        if key in values:
            # Each of them may contain what a step has read on a page.
            return page_text.fenced(state_paths.as_text(values[key]))
        within = {name: value for name, value in values.items() if name.startswith(f"{key}.")}
        if not within:
            raise session_variables.unknown(key, list(values), self._subject.lacks(key))
        return page_text.fenced("\n".join(session_variables.told(within)))

    def variable(self, arguments: dict[str, Json]) -> str:
        if arguments["key"] not in self._state.variables.names():
            # Values of nodes are requested with this tool as often as with the other one.
            return self.variables(arguments)
        return page_text.fenced(state_paths.as_text(self._state.variables.get(str(arguments["key"]))))

    def plan(self, _arguments: dict[str, Json]) -> str:
        plan = self._state.plan
        return plans.as_text(plan) if plan is not None else "(there is no plan yet)"

    def description(self, _arguments: dict[str, Json]) -> str:
        return self._state.description or self._subject.description() or "(there is none yet)"

    def browser_state(self, _arguments: dict[str, Json]) -> str:
        return self._subject.browser_state()

    def state(self, arguments: dict[str, Json]) -> str:
        path = str(arguments["path"])
        text = state_paths.of_session(self._state, path, self._texts)
        if text is None:
            text = self._subject.state(path)
        if text is None:
            raise state_paths.unknown(path)
        return state_paths.part(text, arguments.get("start"), arguments.get("end"))


class _Keeps:
    def __init__(self, state: SessionState, listener: Listener) -> None:
        self._state, self._listener = state, listener

    def plan(self, arguments: dict[str, Json]) -> str:
        plan = plans.of(arguments["plan"])
        self._state.set_plan(plan, reason=str(arguments["reason"]))
        return self._kept("plan", f"kept as version {self._number('plan')}")

    def task(self, arguments: dict[str, Json]) -> str:
        task = str(arguments["task_id"])
        plan = self._state.patch_task(
            task,
            status=arguments.get("status"),
            notes=arguments.get("notes"),
            reason=str(arguments["reason"]),
        )
        return self._kept("plan", f"kept as version {self._number('plan')}: {one_line(plans.as_step(plan, task))}")

    def description(self, arguments: dict[str, Json]) -> str:
        self._state.describe(str(arguments["description"]), reason=str(arguments["reason"]))
        return self._kept("description", f"kept as version {self._number('description')}")

    def variable(self, arguments: dict[str, Json]) -> str:
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
        told = "\n".join(session_variables.told({name: self._state.value("variable", name)}))
        return self._kept("variable", told, name)

    def cleared(self, arguments: dict[str, Json]) -> str:
        name = str(arguments["name"])
        self._state.variables.clear(name, reason=str(arguments["reason"]))
        return self._kept("variable", f"`{name}` has no value any more", name)

    def all_cleared(self, arguments: dict[str, Json]) -> str:
        names = self._state.variables.clear_all(reason=str(arguments["reason"]))
        for name in names:
            self._listener.changed("variable", name)
        return "no variable has a value any more"

    def _number(self, of: str) -> int:
        return len(self._state.history.versions(of))

    def _kept(self, of: str, told: str, name: str = "") -> str:
        self._listener.changed(of, name)
        return told
