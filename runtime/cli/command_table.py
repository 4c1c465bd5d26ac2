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


OWN = (
    Command("run", "Run workflows: files, and folders of them", "runtime.cli.commands.run:run"),
    Command(
        "resume",
        "Resume a run that was killed, interrupted, paused, or failed",
        "runtime.cli.commands.resume:resume",
    ),
    Command("decide", "Tell a paused run whether its last side effect happened", "runtime.cli.commands.decide:decide"),
    Command("answer", "Answer what a paused run asks, and continue", "runtime.cli.commands.answer:answer"),
    Command("runs", "List the runs of this project", "runtime.cli.commands.runs:runs"),
    Command("show", "Show what a run did, step by step", "runtime.cli.commands.show:show"),
    Command("query", "Ask the logs of all runs with SQL", "runtime.cli.commands.query:query"),
    Command("ps", "List active runs and leftover browsers", "runtime.cli.commands.ps:ps"),
    Command("prune", "Delete old runs and unused files", "runtime.cli.commands.prune:prune"),
    Command(
        "validate", "Check workflow files, without a browser or the network", "runtime.cli.commands.validate:validate"
    ),
    Command("schema", "Print the JSON Schema of workflow files, for your editor", "runtime.cli.commands.schema:schema"),
    Command("try", "Run one node of a workflow by itself", "runtime.cli.commands.try_node:try_node"),
    Command("nodes", "List the node types, or show all about one", "runtime.cli.commands.nodes:nodes"),
    Command("doctor", "Check this machine and its model server", "runtime.cli.commands.doctor:doctor"),
    Command("install", "Install a browser for RunOps to drive", "runtime.cli.commands.install:install"),
)
"""The commands of this package, in the order of ``runops --help``."""


def offered() -> list[Command]:
    """Return the commands of installed packages, by name. They never replace one of ``OWN``."""
    from importlib import metadata  # costs 20 ms, which our own commands do not need

    taken = {command.name for command in OWN}
    found: dict[str, Command] = {}
    for entry in metadata.entry_points(group=GROUP):
        name, _, text = entry.name.partition(":")
        if name.strip() not in taken:
            found.setdefault(name.strip(), Command(name.strip(), text.strip(), entry.value))
    return [found[name] for name in sorted(found)]


def every() -> list[Command]:
    return [*OWN, *offered()]


def find(name: str) -> Command | None:
    own = next((command for command in OWN if command.name == name), None)
    return own or next((command for command in offered() if command.name == name), None)
