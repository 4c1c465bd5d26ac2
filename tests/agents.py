"""Models for tests of agents: they follow every instruction, of a person or of a page; and projects that ask them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from runtime.testing import responses, scripted_model
from tests.command import Project


@dataclasses.dataclass(frozen=True)
class Ref:
    """A placeholder for the ref of the element last shown with this name."""

    name: str


def ref_in(texts: Sequence[str], name: str) -> str:
    """The last shown ref of the element with that name."""
    for text in reversed(texts):
        found = re.findall(rf'"{re.escape(name)}"[^\n]*?\[ref=(\w+)\]', text)
        if found:
            return found[-1]
    raise AssertionError(f"no element {name!r} was shown")


class Obedient:
    """A model that calls these tools one after the other, and then finishes. ``told`` has the output of each."""

    def __init__(self, *calls: tuple[str, dict[str, Any]], output: Any = None, done: bool = True) -> None:
        """In the arguments a ``Ref`` is replaced by the ref that the model looks up."""
        self.calls = list(calls)
        self._end: dict[str, Any] = {"done": done, "note": "as I was told"}
        if output is not None:
            self._end["output"] = output
        self.told: list[str] = []

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The next answer."""
        outputs = list(asked.outputs.values())
        self.told = outputs
        if len(outputs) >= len(self.calls):
            return scripted_model.call("finish", self._end)
        name, arguments = self.calls[len(outputs)]
        filled = {
            key: ref_in(outputs, value.name) if isinstance(value, Ref) else value for key, value in arguments.items()
        }
        return scripted_model.call(name, filled)


LOOK = ("look", {"ref": None})
"""An observation of the whole page."""


def click(name: str) -> tuple[str, dict[str, Any]]:
    """A click on the element with this name."""
    return "click", {"ref": Ref(name)}


def fill(name: str, text: str) -> tuple[str, dict[str, Any]]:
    """Text for the field with that name."""
    return "fill", {"ref": Ref(name), "text": text}


def ask_at(project: Project, server: responses.Server, **settings: str) -> None:
    """Have the project ask the fake server."""
    project.environment |= {
        "RUNOPS_MODEL": "test-model",
        "RUNOPS_MODEL_BASE_URL": server.url,
        "RUNOPS_MODEL_KEY": server.key,
        "RUNOPS_MODEL_PROFILE": "openai",
        **settings,
    }
