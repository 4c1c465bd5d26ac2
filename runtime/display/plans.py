"""Plan of a session as a to-do list, from plain data of the log: a reader of logs needs no code of the planner."""

from __future__ import annotations

from collections.abc import Mapping

from nodes.values import Json
from runtime.display.text import joined, one_line, value_text

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "blocked": "[!]"}
"""Marks before a task, by its status."""

DRAWN = {"pending": "☐", "in_progress": "▶", "completed": "☑", "blocked": "✗"}
"""The same for terminals that can show them."""


def as_todo(plan: Json, marks: Mapping[str, str] = MARKS) -> list[str]:
    """Return the plan as lines: goal, phases, tasks, blockers, notes; data of another shape as one line."""
    try:
        return _lines(plan, marks) if plan else []
    except (AttributeError, TypeError):
        return [one_line(value_text(plan))]


def _lines(plan: Mapping[str, Json], marks: Mapping[str, str]) -> list[str]:
    def mark(of: Mapping[str, Json]) -> str:
        return marks.get(_text(of, "status"), "[?]")

    lines = [f"Goal: {goal}"] if (goal := _text(plan, "overall_goal")) else []
    current = _text(plan, "current_phase")
    for phase in plan.get("phases") or ():
        name = _text(phase, "phase_name")
        lines.append(f"{mark(phase)} {name}{'  (now)' if name and name == current else ''}")
        lines += [f"  {mark(each)} {_task(each)}" for each in phase.get("tasks") or ()]
    lines += [f"Blocked by: {one_line(each)}" for each in plan.get("blockers") or ()]
    notes = _text(plan, "notes")
    return [*lines, f"Notes: {notes}"] if notes else lines


def _task(task: Mapping[str, Json]) -> str:
    nodes = ", ".join(map(one_line, task.get("node_ids") or ()))
    notes = _text(task, "notes")
    text = joined(_text(task, "task_id"), _text(task, "description"), f"({nodes})" if nodes else "")
    return f"{text} - {notes}" if notes else text


def _text(of: Mapping[str, Json], name: str) -> str:
    return one_line(of.get(name) or "")
