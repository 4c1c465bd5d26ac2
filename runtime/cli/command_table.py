"""The commands of ``runops``, by name, one-line help and import path. Reading the table imports none of them."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

GROUP = "runops.commands"
"""The entry-point group for commands of other packages. The name of an entry is ``NAME: HELP``, its value the import path."""


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """One command: a function with annotations for typer, at ``target`` (``module:function``)."""

    name: str
    help: str
    target: str

    def load(self) -> Callable[..., Any]:
        module, _, attribute = self.target.partition(":")
        return getattr(importlib.import_module(module), attribute)


_OWN = {
    "init": "Make the files of a project, with a workflow that passes",
    "new": "Write a small workflow to begin with",
    "run": "Run workflows: files, and folders of them",
    "resume": "Resume a run that was killed, interrupted, paused, or failed",
    "decide": "Tell a paused run whether its last side effect happened",
    "answer": "Answer what a paused run asks, and continue",
    "report": "Join the reports of the shards of a command",
    "runs": "List the runs of this project",
    "show": "Show what a run did, step by step",
    "diff": "Compare two runs step by step",
    "query": "Ask the logs of all runs with SQL",
    "ps": "List active runs and leftover browsers",
    "prune": "Delete old runs and unused files",
    "validate": "Check workflow files, without a browser or the network",
    "export": "Write workflows as plain Playwright tests, which need no RunOps",
    "schema": "Print the JSON Schema of workflow files, for your editor",
    "try": "Run one node of a workflow by itself",
    "nodes": "List the node types, or show all about one",
    "sign-ins": "List signed-in states, and carry them to another machine",
    "agents": "List the agents that a session can send as delegates",
    "config": "Print the settings, and where each comes from",
    "doctor": "Check this machine and its model server",
    "completion": "Complete command lines in your shell",
    "install": "Install a browser for RunOps to drive",
}
_ELSEWHERE = {
    "decide": "resume:decide",
    "answer": "resume:answer",
    "ps": "runs:ps",
    "try": "try_node:try_node",
    "sign-ins": "sign_ins:sign_ins",
}
OWN = tuple(
    Command(name, text, f"runtime.cli.commands.{_ELSEWHERE.get(name, f'{name}:{name}')}") for name, text in _OWN.items()
)
"""The commands of this package, in the order of ``runops --help``."""


def offered() -> list[Command]:
    """Return the commands of installed packages, by name. They never replace one of ``OWN``."""
    from importlib import metadata  # costs 20 ms, which our own commands need not spend

    found: dict[str, Command] = {}
    for entry in metadata.entry_points(group=GROUP):
        name, _, text = entry.name.partition(":")
        if name.strip() not in _OWN:
            found.setdefault(name.strip(), Command(name.strip(), text.strip(), entry.value))
    return [found[name] for name in sorted(found)]


def every() -> list[Command]:
    return [*OWN, *offered()]


def find(name: str) -> Command | None:
    own = next((command for command in OWN if command.name == name), None)
    return own or next((command for command in offered() if command.name == name), None)
