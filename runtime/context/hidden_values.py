"""Values of a step that its model must not see, because their names say that they are secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.base import Leaf
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.engine import scopes
from runtime.secrets import masking

if TYPE_CHECKING:
    from runtime.engine.run_state import RunState
    from runtime.language.expressions.names_read import Chain

SHORTEST = 4  # characters of a value that is looked for in a text: a shorter one would be found in innocent words


class Hidden:
    """Hides such values in what a step says to its model: those that its templates read, wherever they stand in it."""

    def __init__(self, run: RunState, node: Leaf, frame: scopes.Scope) -> None:
        self._names = names = run.writer.masker.names
        found: list[str] = []
        for placeholder in run.plan(node).placeholders:
            for each in frame.program.loaded.templates[placeholder.text].names:
                try:
                    value = replayed(frame, each.chain)
                except (KeyError, RunOpsError):
                    continue
                found += names.within(value, ".".join(map(str, each.chain)))
        self._masker = masking.Masker({str(number): each for number, each in enumerate(found) if len(each) >= SHORTEST})

    def text(self, text: str) -> str:
        return self._names.text(self._masker.text(text))


def replayed(frame: scopes.Scope, chain: Chain) -> Json:
    """Return the value at a chain of names. Raises KeyError, and AuthorError ``value-masked``."""
    value: Json = frame[str(chain[0])]
    for key in chain[1:]:
        known = range(-len(value), len(value)) if isinstance(value, list) else value
        if not isinstance(value, list | dict) or key not in known:
            raise KeyError(key)
        items: Json = value
        value = items[key]
    return value
