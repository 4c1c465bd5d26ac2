"""Choice of a display: tree, plain lines, or nothing."""

from __future__ import annotations

import sys

from runtime import events
from runtime.display import display
from runtime.display.stream import Talk, kind_for


class Quiet(display.Display):
    def __call__(self, event: events.Event) -> None:
        pass


def choose(*, quiet: bool = False, stream: Talk | None = None) -> display.Display:
    talk = stream if stream is not None else Talk(sys.stderr)
    match kind_for(talk, quiet=quiet):
        case "tree":
            from runtime.display.tree import Tree  # rich is slow to load, and only a terminal needs it

            return Tree(talk)
        case "plain":
            from runtime.display.plain import Plain

            return Plain(talk)
        case "quiet":
            return Quiet()
