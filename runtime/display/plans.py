"""Plan of a session as a to-do list, from the log's plain data: a reader of logs needs no code of the planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from nodes.values import Json
from runtime.display.text import joined, one_line

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "blocked": "[!]"}
"""Marks before a task, by its status."""

DRAWN = {"pending": "☐", "in_progress": "▶", "completed": "☑", "blocked": "✗"}
"""The same for terminals that can show them."""


def as_todo(plan: Json, marks: Mapping[str, str] = MARKS) -> list[str]:
    """Return the plan as lines: the goal, each phase, each task, and the blockers; empty for an empty plan."""

    def mark(of: Mapping[str, Json]) -> str:
        return marks.get(_text(of, "status"), "[?]")

    data = _map(plan)
    lines = [f"Goal: {goal}"] if (goal := _text(data, "overall_goal")) else []
    current = _text(data, "current_phase")
    for phase in map(_map, _list(data, "phases")):
        name = _text(phase, "phase_name")
        lines.append(f"{mark(phase)} {name}{'  (now)' if name and name == current else ''}")
        lines += [f"  {mark(each)} {_task(each)}" for each in map(_map, _list(phase, "tasks"))]
    lines += [f"Next: {each}" for each in _texts(data, "next_actions")]
    lines += [f"Blocked by: {each}" for each in _texts(data, "blockers")]
    if notes := _text(data, "notes"):
        lines.append(f"Notes: {notes}")
    return lines


def _task(task: Mapping[str, Json]) -> str:
    nodes = ", ".join(_texts(task, "node_ids"))
    notes = _text(task, "notes")
    text = joined(_text(task, "task_id"), _text(task, "description"), f"({nodes})" if nodes else "")
    return f"{text} - {notes}" if notes else text


def _map(value: Json) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}


def _list(of: Mapping[str, Json], name: str) -> list[Json]:
    value = of.get(name)
    return cast("list[Json]", value) if isinstance(value, list) else []


def _text(of: Mapping[str, Json], name: str) -> str:
    value = of.get(name)
    return one_line(value) if isinstance(value, str) else ""


def _texts(of: Mapping[str, Json], name: str) -> Iterator[str]:
    return (one_line(each) for each in _list(of, name) if isinstance(each, str))
