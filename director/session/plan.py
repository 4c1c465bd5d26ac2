"""The plan of a session: a goal, in phases of tasks. Each change writes a whole new version."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from nodes import errors
from nodes.errors import ModelError
from nodes.values import Json
from runtime.display import plans
from runtime.display.text import count

Status = Literal["pending", "in_progress", "completed", "blocked"]
STATUSES: tuple[Status, ...] = get_args(Status)

MOST_TASKS = 200
A_TEXT = 2_000  # limit of any text of a plan, in characters


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=A_TEXT)

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


class Task(Part):
    task_id: str = Field(min_length=1, max_length=80)  # its name in the plan
    description: str
    status: Status = "pending"
    notes: str = ""  # its outcome, or what it waits for
    node_ids: tuple[str, ...] = ()  # the nodes of the workflow that it is about


class Phase(Part):
    phase_name: str = Field(min_length=1, max_length=200)
    status: Status = "pending"
    tasks: tuple[Task, ...] = ()


class Plan(Part):
    overall_goal: str
    current_phase: str = ""  # name of the current phase
    phases: tuple[Phase, ...] = ()
    blockers: tuple[str, ...] = ()
    notes: str = ""

    def tasks(self) -> Iterator[Task]:
        for phase in self.phases:
            yield from phase.tasks

    def patch(self, task_id: str, *, status: Status | None = None, notes: str | None = None) -> Plan:
        """Return the plan with the given fields of one task changed; the status of its phase follows from its tasks.

        If that completes the current phase, the first open one becomes current.
        Raises ModelError ``task-unknown``, with the closest id, and ``plan-invalid``.
        """
        if all(each.task_id != task_id for each in self.tasks()):
            known = [each.task_id for each in self.tasks()]
            close = errors.near(task_id, known)
            raise ModelError(
                "task-unknown",
                f"the plan has no task `{task_id}`",
                fix=f"did you mean `{close}`?" if close else f"these are its tasks: {', '.join(known) or 'none'}",
            )
        update = {name: value for name, value in (("status", status), ("notes", notes)) if value is not None}
        data = self.as_json()
        for phase in data["phases"]:
            for task in phase["tasks"]:
                if task["task_id"] == task_id:
                    task.update(update)
                    phase["status"] = _together([each["status"] for each in phase["tasks"]])
        return _settled(data)

    def find(self, part: str) -> Task:
        """Return the task with this id, or the only one whose id or description contains ``part``. Raises ModelError ``task-unknown``."""
        said = " ".join(part.split()).casefold()
        every = [*self.tasks()]
        exact = [each for each in every if each.task_id.casefold() == said]
        found = exact or [each for each in every if said in f"{each.task_id} {each.description}".casefold()]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(each.task_id for each in found)
            raise ModelError(
                "task-unknown", f"`{part}` is in several tasks: {several}", fix="say more of it, or its name"
            )
        names = [each.task_id for each in every]
        known = f"these are its tasks: {', '.join(names) or 'none'}"
        fix = errors.did_you_mean(part, names, known)
        raise ModelError("task-unknown", f"the plan has no task `{part}`", fix=fix)

    def add(self, description: str) -> Plan:
        """Return the plan with a further task, in the current phase or the last one. Raises ModelError ``plan-invalid``."""
        data = self.as_json()
        taken = {each.task_id for each in self.tasks()}
        name = next(
            each for each in (f"task_{number}" for number in itertools.count(len(taken) + 1)) if each not in taken
        )
        if not data["phases"]:
            data["phases"] = [Phase(phase_name="Tasks").as_json()]
        last = data["phases"][-1]
        phase = next((each for each in data["phases"] if each["phase_name"] == data["current_phase"]), last)
        phase["tasks"] = [*phase["tasks"], Task(task_id=name, description=description[:A_TEXT]).as_json()]
        if phase["status"] == "completed":
            phase["status"] = _together([each["status"] for each in phase["tasks"]])
        return _settled(data)

    def drop(self, task_id: str) -> Plan:
        """Return the plan without a task, and without its phase if that has no other. Raises ModelError ``plan-invalid``."""
        data = self.as_json()
        for phase in data["phases"]:
            before, phase["tasks"] = phase["tasks"], [each for each in phase["tasks"] if each["task_id"] != task_id]
            if len(before) != len(phase["tasks"]) and phase["tasks"]:
                phase["status"] = _together([each["status"] for each in phase["tasks"]])
        data["phases"] = [each for each in data["phases"] if each["tasks"] or each["phase_name"] in self._empty()]
        if data["current_phase"] not in [each["phase_name"] for each in data["phases"]]:
            data["current_phase"] = ""
        return _settled(data)

    def _empty(self) -> list[str]:
        return [each.phase_name for each in self.phases if not each.tasks]

    @property
    def next_task(self) -> Task | None:
        found = {each.status: each for each in reversed(list(self.tasks()))}
        return found.get("in_progress") or found.get("pending")


def by_person(plan: Plan | None, what: str, task: str) -> tuple[Plan, str]:
    """Return the plan with a change of a person, and what changed. ``what`` is done, todo, add or drop; a part of a task suffices.

    Raises ModelError ``plan-missing``, ``task-unknown``, ``plan-invalid``.
    """
    if what == "add":
        changed = (plan or Plan(overall_goal="")).add(task)
        before = {each.task_id for each in plan.tasks()} if plan is not None else set[str]()
        new = next(each.task_id for each in changed.tasks() if each.task_id not in before)
        return changed, f"{new} is new: {task}; {as_step(changed, new)}"
    if plan is None:
        raise ModelError("plan-missing", "there is no plan yet", fix="add a task: `/plan add TEXT`")
    found = plan.find(task)
    if what == "drop":
        return plan.drop(found.task_id), f"{found.task_id} is dropped"
    changed = plan.patch(found.task_id, status="completed" if what == "done" else "pending")
    return changed, as_step(changed, found.task_id)


def of(data: Json) -> Plan:
    """Parse a plan; null counts as empty. Raises ModelError ``plan-invalid`` with every mistake."""
    try:
        plan = Plan.model_validate(_without_nulls(data))
    except pydantic.ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)[:5]]
        raise _invalid("; ".join(faults)) from None
    ids = [each.task_id for each in plan.tasks()]
    names = [each.phase_name for each in plan.phases]
    if len(ids) > MOST_TASKS:
        raise _invalid(f"it has {len(ids)} tasks, and a plan has at most {MOST_TASKS}")
    for what, every in (("tasks", ids), ("phases", names)):
        if twice := next((each for each in every if every.count(each) > 1), None):
            raise _invalid(f"two {what} are called `{twice}`")
    if plan.current_phase and plan.current_phase not in names:
        close = errors.near(plan.current_phase, names)
        raise _invalid(
            f"the current phase `{plan.current_phase}` is none of its phases",
            f"did you mean `{close}`?" if close else "name one of them, or leave it empty",
        )
    return plan


class _Taking:
    """Makes a plan of what a model wrote, and says what it took otherwise."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self._ids: set[str] = set()
        self._names: set[str] = set()

    def plan(self, data: Json) -> Plan:
        given = self._map(Plan, data if isinstance(data, dict) else {"phases": data}, "phases", "the plan")
        if "tasks" in given:
            given["phases"] = [*_list(given.get("phases")), {"phase_name": "Tasks", "tasks": given.pop("tasks")}]
        phases = [self._phase(each) for each in _list(given.get("phases"))]
        if current := given.get("current_phase"):
            names = [each["phase_name"] for each in phases]
            name = current if current in names else errors.near(str(current), names) or str(current)
            if name not in names:
                phases.append({"phase_name": name})
            if name not in names or name != current:
                self.said.append(
                    f"the current phase is {'the new' if name not in names else ''} `{name}`".replace("  ", " ")
                )
            given["current_phase"] = name
        blockers = [str(each) for each in _list(given.get("blockers"))]
        return of({"overall_goal": "", **given, "phases": phases, "blockers": blockers})

    def _phase(self, data: Json) -> dict[str, Json]:
        given = self._map(Phase, data, "phase_name", "a phase")
        name = self._free(str(given.get("phase_name") or f"Phase {len(self._names) + 1}"), self._names)
        tasks = [self._task(each) for each in _list(given.get("tasks"))]
        found = self._status(given, name) or (_together([each["status"] for each in tasks]) if tasks else "pending")
        return {"phase_name": name, "status": found, "tasks": tasks}

    def _task(self, data: Json) -> dict[str, Any]:
        given = self._map(Task, data, "description", "a task")
        name = self._free(str(given.get("task_id") or f"task_{len(self._ids) + 1}"), self._ids)
        nodes = [str(each) for each in _list(given.get("node_ids"))]
        said = {"description": given.get("description") or name, "status": self._status(given, name) or "pending"}
        return {**given, **said, "task_id": name, "node_ids": nodes}

    def _map(self, part: type[Part], data: Json, alone: str, what: str) -> dict[str, Json]:
        """Return the fields of a part; ``alone`` is the one that a text or list without a map is."""
        given = _without_nulls(data if isinstance(data, dict) else {alone: data})
        known = {*part.model_fields, *({"tasks"} if part is Plan else ())}
        if left := ", ".join(f"`{each}`" for each in given if each not in known):
            self.said.append(f"{what} has no {left}")
        return {name: each for name, each in given.items() if name in known}

    def _free(self, name: str, taken: set[str]) -> str:
        others = (f"{name}_{number}" for number in itertools.count(2))
        free = next(each for each in itertools.chain([name], others) if each not in taken)
        if free != name:
            self.said.append(f"the second `{name}` is `{free}`")
        taken.add(free)
        return free

    def _status(self, given: dict[str, Json], name: str) -> Status | None:
        said = given.get("status")
        if said is None or said in STATUSES:
            return said
        meant = _MEANT.get(str(said).casefold(), "pending")
        self.said.append(f"`{name}` is {meant}: there is no status `{str(said)[:40]}`")
        return meant


_MEANT: dict[str, Status] = {
    "done": "completed",
    "complete": "completed",
    "active": "in_progress",
    "doing": "in_progress",
}


def taken(data: Json) -> tuple[Plan, list[str]]:
    """Return the plan that a model wrote, as far as it is one, and what was taken otherwise. Raises ModelError ``plan-invalid``."""
    taking = _Taking()
    return taking.plan(data), list(dict.fromkeys(taking.said))


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [] if value is None else [value]


def as_text(plan: Plan | None, *, open_only: bool = False) -> str:
    """Return the plan as a list of tasks; ``open_only``: without the completed ones."""
    if plan is None:
        return "(there is no plan yet)"
    if open_only:
        phases = tuple(
            each.model_copy(update={"tasks": tuple(task for task in each.tasks if task.status != "completed")})
            for each in plan.phases
        )
        gone = sum(task.status == "completed" for task in plan.tasks())
        left = f"({count(gone, 'completed task')} left out: `get_current_plan` has them.)"
        return "\n".join(
            [*plans.as_todo(plan.model_copy(update={"phases": phases}).as_json()), *([left] if gone else [])]
        )
    return "\n".join(plans.as_todo(plan.as_json()))


def phase(plan: Plan | None) -> str:
    """Return on one line the current phase with its status, and the next task."""
    if plan is None:
        return "there is no plan yet"
    tasks = [*plan.tasks()]
    completed = sum(each.status == "completed" for each in tasks)
    status = next((each.status for each in plan.phases if each.phase_name == plan.current_phase), None)
    current = f"{plan.current_phase} ({status})" if status is not None else "none is current"
    coming = plan.next_task
    task = f"; next task: {coming.task_id}, {coming.description}" if coming is not None else ""
    return " ".join(f"{current}, {completed} of {count(len(tasks), 'task')} completed{task}".split())


def as_step(plan: Plan, task_id: str) -> str:
    task = next(each for each in plan.tasks() if each.task_id == task_id)
    coming = plan.next_task
    if coming is None:
        blocked = [each.task_id for each in plan.tasks() if each.status == "blocked"]
        more = f"only blocked tasks are left ({', '.join(blocked)})" if blocked else "all tasks are completed"
    else:
        more = f"next: {coming.task_id}, {coming.description}"
    return f"{task.task_id} is {task.status}; {more}"


def _settled(data: dict[str, Any]) -> Plan:
    """Return the plan; if the current phase is completed, the first open one becomes current."""
    phases: dict[str, Status] = {each["phase_name"]: each["status"] for each in data["phases"]}
    if phases.get(data["current_phase"]) == "completed":
        data["current_phase"] = next((name for name, each in phases.items() if each != "completed"), "")
    return of(data)


def _together(statuses: Sequence[Status]) -> Status:
    if len(set(statuses)) == 1:
        return statuses[0]
    return "in_progress" if set(statuses) & {"in_progress", "completed"} else "pending"


def _invalid(what: str, fix: str = "write the whole plan again, fixed") -> ModelError:
    return ModelError("plan-invalid", f"this is no plan: {what}", fix=fix)


def _without_nulls(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_nulls(value) for name, value in data.items() if value is not None}
    if isinstance(data, list | tuple):
        return [_without_nulls(each) for each in data]
    return data
