"""Subject of a session: a run, a workflow file, or the draft that it builds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Protocol

from runtime.context import window


class Subject(Protocol):
    """Renders its current state as text for the model, without secrets, and with page text marked as data.

    A subject only reads: it never writes to the log of a run.
    """

    @property
    @abstractmethod
    def title(self) -> str:
        """Return one line with kind, name and state: ``run 01JD…K2 of Pay the open orders: failed``."""

    @abstractmethod
    def summary(self) -> str: ...

    def facts(self) -> Sequence[str]:
        """Return lines on the workflow, as far as they are known: id, name, purpose, inputs, number of nodes, last run."""
        return ()

    @abstractmethod
    def outline(self, configuration: int = 0) -> str:
        """Return a line for each node with its status, and its description and configuration in at most so many characters."""

    @abstractmethod
    def nodes(self, which: str, kind: str | None) -> str:
        """Return the source of nodes, only of type ``kind`` if given.

        ``which`` is ``1-10``, ``3``, an id, ``all``, ``recent``, or for a run a step path. Positions are those of the outline.

        Raises ModelError ``node-unknown`` if nothing is selected.
        """

    @abstractmethod
    def variables(self) -> dict[str, object]: ...

    @abstractmethod
    def description(self) -> str: ...

    def missing_value(self, _name: str) -> tuple[str, str] | None:
        """Return why the node of this name has no valid value, and the fix; None if there is no such node."""
        return None

    def clearable(self) -> Sequence[str]:
        """Return the names of the values that ``clear`` gives up, also those given up already."""
        return ()

    def clear(self, names: Collection[str], reason: str) -> None:
        """Give up values of nodes; the nodes are stale then."""

    def browser_state(self) -> str:
        return "No browser belongs to it: only a run has one."

    def directive(self) -> str | None:
        return None

    def instructions(self) -> Sequence[window.Part]:
        return ()

    def state(self, _path: str) -> str | None:
        """Return the text at a path ``@state/…``; None if no entry of its log names it."""
        return None
