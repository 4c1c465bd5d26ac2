"""What a session is about: a run, a workflow file, or the draft that it builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runtime.context import window


class Subject(Protocol):
    """Told to the model as text, each time as it is then. Nothing in it holds a secret; what a page said is marked as data.

    A subject only reads: a run's log is never written to by whoever talks about it.
    """

    @property
    def title(self) -> str:
        """One line: what it is, its name, its state: ``run 01JD…K2 of Pay the open orders: failed``."""
        ...

    def summary(self) -> str:
        """What it is for, how large it is (nodes by type), how it went, and what stands in the way."""
        ...

    def outline(self) -> str:
        """The workflow as a short tree: position, id, type, and of a run how each step went."""
        ...

    def nodes(self, which: str, kind: str | None) -> str:
        """Nodes in full, as the file has them: ``1-10``, ``3``, an id, of a run a step path, ``all`` or ``recent``; only those of a type. Positions are those of the outline.

        Raises ModelError ``node-unknown`` for a selection that means none.
        """
        ...

    def variables(self) -> dict[str, object]:
        """The values that it has by now: inputs, ``vars``, and what the steps of a run yielded."""
        ...

    def lacks(self, _name: str) -> tuple[str, str] | None:
        """Why a node of this id has no value that counts, and what gives it one; None where nothing is known of it."""
        return None

    def description(self) -> str:
        """What is wanted of it, in the words that were last agreed on."""
        ...

    def browser_state(self) -> str:
        """The tabs with their addresses and titles, and the current one, as of the last time that they were known."""
        ...

    def directive(self) -> str | None:
        """RUN_DIRECTIVE, as a step of the run would be told it; None where there is no run."""
        ...

    def instructions(self) -> Sequence[window.Part]:
        """How work on it goes, beside what every session is told; nothing where there is only talk about it."""
        return ()

    def state(self, path: str) -> str | None:
        """The text that is kept at a path of its log, ``@state/…``; None where no entry of that log names it."""
        ...

    def items(self) -> Sequence[window.WindowItem]:
        """The thread of the run, a piece for each attempt of a step, oldest first; of what is no run none."""
        ...
