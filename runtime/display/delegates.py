"""How a delegate of a session ran, in words for people."""

from __future__ import annotations

from collections.abc import Mapping

from nodes.values import Json
from runtime.display.text import joined, one_line


def how(started: Mapping[str, Json], *, tools: bool = True) -> str:
    """Format a ``delegate-started`` note: ``checker  clean (agent checker)  gpt-x  looks with read_state``."""
    does = "acts" if started["acts"] else "looks"
    names = f" with {', '.join(started['tools'])}" if tools and started["tools"] else ""
    context = f"{started['context']} ({started['why']})"
    return one_line(joined(started["agent"] or "", context, str(started["model"]), f"{does}{names}"))
