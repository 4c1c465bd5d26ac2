"""Chat sessions for tests: `runops chat` as a process, with a fake model server."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.testing import responses, scripted_model
from tests.command import TIMEOUT, Project

PRICES = """\
version: 1
name: Add up the prices
inputs:
  prices: {type: string, default: "12.50 8.00 n/a"}
nodes:
  - {id: parts, type: transform, expr: "{{ inputs.prices | regex_all('[^ ]+') }}"}
  - {id: total, type: transform, expr: "{{ parts | map('number') | sum }}"}
output: "{{ total }}"
"""
"""A workflow without a page; with its default inputs its step `total` fails."""

COST = json.dumps({"test-model": {"input": 0.5, "output": 2.0}})


class Chats:
    """A project with a fake model server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: responses.Server | None = None

    def answers(
        self,
        *said: scripted_model.Scripted | scripted_model.Script,
        **settings: str,
    ) -> Project:
        """The project with these model answers, one after the other, or one function that makes them."""
        self.close()
        first = said[0] if said else None
        script = first if callable(first) else [each for each in said if not callable(each)]
        self.server = responses.Server(scripted_model.Model(script))
        served = {
            "RUNOPS_MODEL": "test-model",
            "RUNOPS_MODEL_BASE_URL": self.server.url,
            "RUNOPS_MODEL_KEY": self.server.key,
            "RUNOPS_MODEL_PROFILE": "openai",
            "RUNOPS_PRICES": COST,
        }
        project = Project(self.folder, **{**served, **settings})
        project.write("prices.yaml", PRICES)
        return project

    @property
    def asked(self) -> list[responses.Received]:
        """The requests to the model."""
        assert self.server is not None
        return self.server.asked

    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests."""
        return [each.body for each in self.asked]

    def close(self) -> None:
        """End the server."""
        if self.server is not None:
            self.server.close()
            assert self.server.problems == []
            self.server = None


def typed(
    project: Project, said: str, *arguments: str, seconds: float = TIMEOUT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`runops` with these arguments and this text on standard input."""
    settled = Project(project.folder, **{**project.environment, **environment})
    return settled.runops(*arguments, said=said, seconds=seconds)


def session_of(done: subprocess.CompletedProcess[str]) -> str:
    """The session id that a command prints at its end."""
    return done.stderr.strip().rpartition("--resume ")[2].split()[0]


def text_of(body: dict[str, Any]) -> str:
    """Everything in a request, as one text."""
    return json.dumps([body.get("instructions"), body["input"], body.get("tools")], ensure_ascii=False)


def words_of(body: dict[str, Any]) -> list[str]:
    """The messages of a request, each as ``role: text``; calls and outputs as ``call NAME`` and ``output: text``."""
    return [_word(item) for item in body["input"]]


def _word(item: dict[str, Any]) -> str:
    match item.get("type", "message"):
        case "message":
            return f"{item['role']}: {scripted_model.text_of(item)}"
        case "function_call":
            return f"call {item['name']}"
        case "function_call_output":
            return f"output: {scripted_model.text_of(item)}"
        case other:
            return str(other)


def log_of(project: Project) -> Path:
    """The log of the only session."""
    logs = (project.folder / ".runops" / "conversations").glob("*.jsonl")
    (found,) = [each for each in logs if '"session"' in each.read_text().partition("\n")[0]]
    return found


def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
