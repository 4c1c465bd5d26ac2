"""The tools of a session that tell what it is about and keep what is agreed: the same in every mode, and refused in words where the mode does not allow them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, cast

from typing_extensions import override

from director import desk as desks
from director import plan as plans
from director import states
from director import variables as variables_module
from director.listening import Listener
from director.subject import Subject
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime import journal, log, turn
from runtime.agents import telling
from runtime.models.exchange import Tool, ToolCall

LONGEST = 6_000
"""Characters that a model is told of one call; of more it is told how it begins, and where the rest is."""

BEGINNING = 4_000
"""Characters of what is longer that it is told."""

FINISH = "finish"
"""What the tool of a build is called that ends it where it succeeds."""

READ: frozenset[log.Mode] = frozenset({"chat", "agent", "run"})
KEPT: frozenset[log.Mode] = frozenset({"chat", "agent"})
CHANGED: frozenset[log.Mode] = frozenset({"agent"})
"""The modes in which a tool may be used that reads; that keeps a value; that changes what the session is to do."""


class Kit(Protocol):
    """One tool, with what it does."""

    @property
    def tool(self) -> Tool:
        """What the model is told of it; the same at every request of a thread, unless the tool says otherwise."""
        ...

    @property
    def modes(self) -> frozenset[log.Mode]:
        """The modes in which it may be used."""
        ...

    @property
    def side_by_side(self) -> bool:
        """Whether several calls of it that follow each other are done at the same time."""
        ...

    @property
    def reads(self) -> bool:
        """Whether it changes nothing: then it is done behind a call of the same answer that failed, too, and stops nothing where it fails."""
        return self.modes == READ

    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """Do it. What the model did wrong is an outcome, or a RunOpsError that is told to it; the ``value`` is what is told after a crash."""
        ...

    def find_out(self, call: log.Call) -> turn.Outcome | None:
        """What came of a call of it that a crash left open, where that is known; None for calls of other tools too."""
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Simple(Kit):
    """A tool that answers with a text, at once."""

    offered: Tool
    allowed: frozenset[log.Mode]
    do: Callable[[dict[str, Json]], str]

    @property
    @override
    def tool(self) -> Tool:
        return self.offered

    @property
    @override
    def modes(self) -> frozenset[log.Mode]:
        return self.allowed

    @property
    @override
    def side_by_side(self) -> bool:
        return False

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        text = self.do(arguments)
        return turn.Outcome(text, text)


class Box(turn.Tools):
    """The tools of one model, in a session."""

    def __init__(self, desk: desks.Desk, listener: Listener, kits: Sequence[Kit]) -> None:
        """``desk`` is that of the session."""
        self._desk, self._listener = desk, listener
        self._kits: Mapping[str, Kit] = {each.tool.name: each for each in kits}

    @property
    @override
    def offered(self) -> Sequence[Tool]:
        return tuple(each.tool for each in self._kits.values())

    @property
    @override
    def final(self) -> Collection[str]:
        return (FINISH,)

    @property
    @override
    def side_by_side(self) -> Collection[str]:
        return frozenset(name for name, each in self._kits.items() if each.side_by_side)

    @property
    @override
    def reads(self) -> Collection[str]:
        return frozenset(name for name, each in self._kits.items() if each.reads)

    @override
    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        self._listener.called(place.path, asked.name, asked.arguments)
        outcome = await self._outcome(self._kits[asked.name], arguments, place)
        told = self._bounded(outcome.told, place) if asked.name != states.NAME else outcome.told
        self._listener.done(place.path, self._desk.masker.text(told), failed=outcome.error is not None)
        return dataclasses.replace(outcome, told=told)

    async def _outcome(self, kit: Kit, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        try:
            self._refuse(kit)
            return await kit.take(arguments, place)
        except ModelError as error:
            return turn.Outcome(_words(error.as_json()), error=error.as_json())
        except RunOpsError as error:
            # What is kept cannot be written any more, or was taken over: nothing goes on from here.
            if error.who in _ENDS:
                raise
            return turn.Outcome(_words(error.as_json()), error=error.as_json())

    def _refuse(self, kit: Kit) -> None:
        mode = self._desk.history.mode
        if mode not in kit.modes:
            allowed = " or ".join(f"`/mode {each}`" for each in sorted(kit.modes))
            raise ModelError(
                "tool-not-in-mode",
                f"`{kit.tool.name}` cannot be used in mode {mode}",
                mend=f"tell the person what you would do; they allow it with {allowed}",
            )

    def _bounded(self, text: str, place: turn.Place) -> str:
        """What is told of a text: all of it, or its beginning, with where the rest is: the value of the call is the whole."""
        if len(text) <= LONGEST:
            return text
        where = f"@state/{self._desk.conversation}/{place.path}"
        begins = text[:BEGINNING]
        if begins.rfind(telling.BEGIN) > begins.rfind(telling.END):
            begins = f"{begins}\n{telling.END}"
        return f"{begins}\n… ({len(text):,} characters in all; read on: `read_state` {where} from {BEGINNING})"

    @override
    def told(self, asked: ToolCall, result: log.Result) -> str:
        if result.error is not None:
            return _words(result.error)
        value = self._desk.value_of(result)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        call = self._desk.history.deeds[result.call].call
        return self._bounded(text, turn.Place(0, call.path, call.thread)) if asked.name != states.NAME else text


class Toolbox(Box):
    """All tools of a session: its own, and ``more``."""

    def __init__(
        self,
        desk: desks.Desk,
        subject: Subject,
        texts: journal.Texts,
        listener: Listener,
        more: Sequence[Kit] = (),
    ) -> None:
        """``texts`` reads what entries of the session say."""
        super().__init__(desk, listener, [*_kits(desk, subject, texts, listener), *more])


_ENDS = frozenset({"operator", "cancelled", "replaced", "internal", "budget", "paused"})


def _words(error: dict[str, Json]) -> str:
    """An error as a model is told it: what is wrong, and the mend."""
    return f"{error['message']} ({error['code']}). {error.get('mend') or ''}".rstrip()


# The tools.

_TEXT: dict[str, Json] = {"type": "string"}
_PERHAPS: dict[str, Json] = {"type": ["string", "null"]}
_NUMBER: dict[str, Json] = {"type": ["integer", "null"]}
_STATUS: dict[str, Json] = {"type": "string", "enum": list[Json](plans.STATUSES)}


def _of(schema: dict[str, Json], description: str) -> dict[str, Json]:
    return {**schema, "description": description}


_REASON = _of(_TEXT, "Why, in a sentence.")


def _object(properties: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list[Json](properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Json]) -> dict[str, Json]:
    return {"type": "array", "items": items}


_TASK = _object(
    {"task_id": _TEXT, "description": _TEXT, "status": _STATUS, "notes": _PERHAPS, "node_ids": _list(_TEXT)}
)
_PLAN = _object(
    {
        "overall_goal": _TEXT,
        "current_phase": _PERHAPS,
        "phases": _list(_object({"phase_name": _TEXT, "status": _STATUS, "tasks": _list(_TASK)})),
        "next_actions": _list(_TEXT),
        "blockers": _list(_TEXT),
        "notes": _PERHAPS,
    }
)


def _kits(desk: desks.Desk, subject: Subject, texts: journal.Texts, listener: Listener) -> Sequence[Kit]:
    """The session's own tools, in order of weight."""
    reads, keeps = _Reads(desk, subject, texts), _Keeps(desk, listener)

    def kit(name: str, description: str, fields: dict[str, Json], modes: frozenset[log.Mode], do: Any) -> Kit:
        return Simple(Tool(name, description, _object(fields)), modes, cast("Callable[[dict[str, Json]], str]", do))

    which = _of(_TEXT, "Positions (`1-10`, `3`), an id, a step path, `all`, or `recent`.")
    return (
        kit("get_workflow_summary", "What the workflow or run is, how it went, what stands in the way; with its outline.", {}, READ, reads.summary),
        kit("get_workflow_nodes", "Nodes as the file has them.", {"which": which, "type": _of(_PERHAPS, "Only of this node type.")}, READ, reads.nodes),
        kit("get_workflow_variables", "Values of the workflow or run, and the session's variables.", {"key": _of(_PERHAPS, "One of them, whole; null for all, shortened.")}, READ, reads.variables),
        kit("get_current_plan", "The plan.", {}, READ, reads.plan),
        kit("get_workflow_description", "What is wanted, as it was last agreed on.", {}, READ, reads.description),
        kit("get_browser_state", "Tabs and addresses, as they were last known.", {}, READ, reads.browser_state),
        kit(states.NAME, "Reads on in what was cut.", {"path": _of(_TEXT, "From `@state/` on."), "start": _of(_NUMBER, "First character, from 0."), "end": _of(_NUMBER, "Character behind the last.")}, READ, reads.state),
        kit("update_plan", "Writes the whole plan anew.", {"plan": _PLAN, "reason": _REASON}, CHANGED, keeps.plan),
        kit("patch_plan_task", "Changes one task of the plan.", {"task_id": _TEXT, "status": _of({"type": ["string", "null"], "enum": [*plans.STATUSES, None]}, "null: as it is."), "notes": _of(_PERHAPS, "null: as they are."), "reason": _REASON}, CHANGED, keeps.task),
        kit("update_workflow_description", "Writes anew what is wanted.", {"description": _TEXT, "reason": _REASON}, CHANGED, keeps.description),
        kit("get_workflow_variable", "One of the session's variables, whole.", {"key": _TEXT}, READ, reads.variable),
        kit("set_variable", "Keeps a value in the session.", {"name": _TEXT, "value": _of(_TEXT, "As JSON."), "reason": _REASON}, KEPT, keeps.variable),
        kit("clear_variable", "Takes a variable's value away.", {"name": _TEXT, "reason": _REASON}, CHANGED, keeps.cleared),
        kit("clear_all_variables", "Takes all variables' values away.", {"reason": _REASON}, CHANGED, keeps.all_cleared),
    )  # fmt: skip


class _Reads:
    """What is told."""

    def __init__(self, desk: desks.Desk, subject: Subject, texts: journal.Texts) -> None:
        self._desk, self._subject, self._texts = desk, subject, texts

    def summary(self, _arguments: dict[str, Json]) -> str:
        return f"{self._subject.summary()}\n\n{self._subject.outline()}".strip()

    def nodes(self, arguments: dict[str, Json]) -> str:
        return self._subject.nodes(str(arguments["which"]), arguments.get("type")) or "(no nodes yet)"

    def variables(self, arguments: dict[str, Json]) -> str:
        key: str | None = arguments.get("key")
        values = {**self._subject.variables(), **self._desk.variables.all()}
        if key is None:
            return telling.fenced("\n".join(variables_module.told(values))) if values else "(none has a value)"
        if key in values:
            # What a step has read on a page may stand in any of them.
            return telling.fenced(states.as_text(values[key]))
        within = {name: value for name, value in values.items() if name.startswith(f"{key}.")}
        if not within:
            raise variables_module.unknown(key, list(values))
        return telling.fenced("\n".join(variables_module.told(within)))

    def variable(self, arguments: dict[str, Json]) -> str:
        return telling.fenced(states.as_text(self._desk.variables.get(str(arguments["key"]))))

    def plan(self, _arguments: dict[str, Json]) -> str:
        plan = self._desk.plan
        return plans.as_text(plan) if plan is not None else "(there is no plan yet)"

    def description(self, _arguments: dict[str, Json]) -> str:
        return self._desk.description or self._subject.description() or "(there is none yet)"

    def browser_state(self, _arguments: dict[str, Json]) -> str:
        return self._subject.browser_state()

    def state(self, arguments: dict[str, Json]) -> str:
        path = str(arguments["path"])
        text = states.of_session(self._desk, path, self._texts)
        if text is None:
            text = self._subject.state(path)
        if text is None:
            raise states.unknown(path)
        return states.part(text, arguments.get("start"), arguments.get("end"))


class _Keeps:
    """What is kept: each with its reason."""

    def __init__(self, desk: desks.Desk, listener: Listener) -> None:
        self._desk, self._listener = desk, listener

    def plan(self, arguments: dict[str, Json]) -> str:
        plan = plans.of(arguments["plan"])
        self._desk.set_plan(plan, reason=str(arguments["reason"]), by="model")
        return self._kept("plan", f"kept as version {self._number('plan')}")

    def task(self, arguments: dict[str, Json]) -> str:
        plan = self._desk.patch_task(
            str(arguments["task_id"]),
            status=arguments.get("status"),
            notes=arguments.get("notes"),
            reason=str(arguments["reason"]),
            by="model",
        )
        return self._kept("plan", f"kept as version {self._number('plan')}:\n{plans.as_text(plan)}")

    def description(self, arguments: dict[str, Json]) -> str:
        self._desk.describe(str(arguments["description"]), reason=str(arguments["reason"]), by="model")
        return self._kept("description", f"kept as version {self._number('description')}")

    def variable(self, arguments: dict[str, Json]) -> str:
        name, text = str(arguments["name"]), str(arguments["value"])
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise ModelError(
                "variable-invalid",
                f"the value of `{name[:100]}` is no JSON",
                mend='write it as JSON: a text in quotes (`"tea"`), a number, a list, a map',
            ) from None
        self._desk.variables.set(name, value, reason=str(arguments["reason"]), by="model")
        told = "\n".join(variables_module.told({name: self._desk.value("variable", name)}))
        return self._kept("variable", told, name)

    def cleared(self, arguments: dict[str, Json]) -> str:
        name = str(arguments["name"])
        self._desk.variables.clear(name, reason=str(arguments["reason"]), by="model")
        return self._kept("variable", f"`{name}` has no value any more", name)

    def all_cleared(self, arguments: dict[str, Json]) -> str:
        names = self._desk.variables.clear_all(reason=str(arguments["reason"]), by="model")
        for name in names:
            self._listener.changed("variable", name)
        return "no variable has a value any more"

    def _number(self, of: str) -> int:
        return len(self._desk.history.versions(of))

    def _kept(self, of: str, told: str, name: str = "") -> str:
        self._listener.changed(of, name)
        return told
