"""Builds for tests: `runops build` as a process, with a scripted model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodes.values import Json
from runtime.testing import scripted_model
from tests.chats import Chats
from tests.command import Project

GOAL = "Look at the shop"

PLAN: dict[str, Json] = {
    "overall_goal": GOAL,
    "current_phase": "Build",
    "phases": [
        {
            "phase_name": "Build",
            "status": "in_progress",
            "tasks": [
                {"task_id": "1", "description": "Open it", "status": "pending", "notes": None, "node_ids": []},
                {"task_id": "2", "description": "Prove it", "status": "pending", "notes": None, "node_ids": []},
            ],
        }
    ],
    "blockers": [],
    "notes": None,
}


def use(name: str, /, **arguments: Json) -> scripted_model.Answer:
    """One tool call by the model; calls of one answer are added up."""
    return scripted_model.call(name, arguments)


def plan(**more: Json) -> scripted_model.Answer:
    """The model writes a plan of two tasks."""
    return use("update_plan", plan={**PLAN, **more}, reason="the way")


class Builds(Chats):
    """A project with builds whose model answers come from a test."""

    def build(
        self,
        said: Sequence[scripted_model.Scripted] | scripted_model.Script,
        *arguments: str,
        goal: str | None = GOAL,
        seconds: float = 120.0,
        **settings: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run `runops build` with these model answers; without a goal it resumes a build."""
        project = self.answers(*([said] if callable(said) else said), **settings)
        return project.runops("build", *([goal] if goal is not None else []), *arguments, seconds=seconds)

    def built(
        self, said: Sequence[scripted_model.Scripted] | scripted_model.Script, *arguments: str, **more: Any
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """The same, and its `--json` result."""
        done = self.build(said, *arguments, "--json", **more)
        return done, json.loads(done.stdout)

    def resumes(
        self, said: Sequence[scripted_model.Scripted] | scripted_model.Script, *arguments: str, **more: Any
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Resume the last build."""
        return self.built(said, "--resume", "last", *arguments, goal=None, **more)

    def outputs(self, request: int = -1) -> list[str]:
        """The outputs of the model's calls in that request, oldest first."""
        items: list[dict[str, Any]] = self.asked[request].body["input"]
        return [scripted_model.text_of(each) for each in items if each.get("type") == "function_call_output"]

    def session(self, name: str) -> list[Mapping[str, Any]]:
        """The entries of a session's log."""
        file = self.folder / ".runops" / "conversations" / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    @property
    def project(self) -> Project:
        """The project, without a model."""
        return Project(self.folder)


def of(folder: Path) -> Builds:
    """Builds in this folder; ``close`` them."""
    return Builds(folder)
